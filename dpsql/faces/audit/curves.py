"""What noise of a known width allows: the δ at every ε between two databases whose exact integers are known.

The logarithm of the likelihood ratio of one noisy integer has a distribution that is known exactly; those of several
add up, because their noise is independent. They are added on a grid, each rounded up, so that the δ computed is never
below the true one (Meiser & Mohammadi 2018 call it a privacy bucket). Floating-point sums are off by far less than the
margins of any test here. A chosen cell has such a distribution, too.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpsql.core.noise.mechanisms import AdditiveNoise, DiscreteGaussian, DiscreteLaplace
from dpsql.faces.audit.choices import Chosen

Array = NDArray[np.float64]
Moved = tuple[AdditiveNoise, int] | Chosen
"""One noisy integer: its noise, and how far apart its exact values are; or one chosen cell."""

_CELLS = 4000
_MOST_CELLS = 1 << 17
_WIDE = 1024
"""From this σ² on Gaussian noise is taken as continuous; a hundredth is added to δ for the difference."""
_REACH = 9.0
"""Standard deviations beyond which Gaussian noise is cut off; what lies there is below 10⁻¹⁸."""


def own_delta(moved: Sequence[Moved], epsilon: float, narrower: float = 1.0) -> float:
    """The δ at ε that these have together; with noise so many times narrower than stated, and η as much larger."""
    if narrower <= 0:
        return 0.0
    if any(isinstance(one, Chosen) for one in moved):  # alone of all these it is not the same both ways
        back = [one.swapped if isinstance(one, Chosen) else one for one in moved]
        return max(_one_way(moved, epsilon, narrower), _one_way(back, epsilon, narrower))
    return _one_way(moved, epsilon, narrower)


def _one_way(moved: Sequence[Moved], epsilon: float, narrower: float) -> float:
    parts: list[_Part] = []
    squares = 0.0
    for one in moved:
        match one:
            case Chosen():
                parts.append(_Picked(one, narrower))
            case DiscreteLaplace(scale=scale), apart:
                parts.append(_Laplace(float(scale) / narrower, abs(apart)))
            case DiscreteGaussian(sigma_squared=variance), apart if variance < _WIDE:
                parts.append(_Gaussian(float(variance) / narrower**2, abs(apart)))
            case DiscreteGaussian(sigma_squared=variance), apart:
                squares += float(apart) ** 2 / float(variance) * narrower**2
            case mechanism, _:  # what a mechanism states of itself is not what audits it
                raise AssertionError(f"no curve is known of {mechanism.name} noise")
    if squares and not parts:
        return gaussian_delta(math.sqrt(squares), epsilon)
    if squares:
        parts.append(_Normal(math.sqrt(squares)))
    return _together(parts, epsilon) * (1.01 if squares else 1.0) if parts else 0.0


def gaussian_delta(mu: float, epsilon: float) -> float:
    """The δ at ε of Gaussian noise with databases μ standard deviations apart (Balle & Wang 2018, Theorem 5).

    Φ(μ/2 − ε/μ) − e^ε·Φ(−μ/2 − ε/μ). Of continuous noise; a hundredth is added for integers that are wide enough.
    """
    if mu <= 0:
        return 0.0
    found = _normal(mu / 2 - epsilon / mu) - math.exp(epsilon) * _normal(-mu / 2 - epsilon / mu)
    return max(0.0, found) * 1.01 + 1e-12


def gaussian_rho(delta: float, epsilon: float) -> float:
    """The least ρ = μ²/2 of Gaussian noise that loses δ at ε."""
    low, high = 0.0, 100.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (low, middle) if gaussian_delta(middle, epsilon) > delta else (middle, high)
    return low * low / 2


def _normal(x: float) -> float:
    return math.erfc(-x / math.sqrt(2)) / 2


@dataclass(frozen=True, slots=True)
class _Laplace:
    """One integer with discrete Laplace noise. Noise -j gives (d - 2j)/s for 0 < j < d, and ±d/s beyond."""

    scale: float
    apart: int

    @property
    def reach(self) -> float:
        """The largest |logarithm|."""
        return self.apart / self.scale

    def on_grid(self, cell: float) -> tuple[int, Array]:
        """(index of the first cell, probabilities): logarithms rounded up to multiples of `cell`, on database a."""
        s, d = self.scale, self.apart
        last = math.ceil(d / s / cell)
        edges = np.arange(-last, last) * cell
        j = np.clip(np.ceil((d - edges * s) / 2 - 1e-9), 1, d)
        tail = np.exp(-j / s) / (1 + math.exp(-1 / s))  # P(Z ≤ -j) = q^j/(1+q)
        below = np.where(edges < -d / s * (1 - 1e-12), 0.0, tail)
        return -last, np.diff(np.concatenate([[0.0], below, [1.0]]))


@dataclass(frozen=True, slots=True)
class _Gaussian:
    """One integer with discrete Gaussian noise, term by term."""

    variance: float
    apart: int

    @property
    def reach(self) -> float:
        """The largest |logarithm| within `_REACH`."""
        d = self.apart
        return (d * (_REACH * math.sqrt(self.variance) + 2) + d**2 / 2) / self.variance

    def on_grid(self, cell: float) -> tuple[int, Array]:
        """As `_Laplace.on_grid`."""
        v, d = self.variance, self.apart
        reach = math.ceil(_REACH * math.sqrt(v)) + 1
        z = np.arange(-reach, reach + 1, dtype=float)
        weights = np.exp(-(z**2) / (2 * v))
        at = np.ceil((2 * z * d + d * d) / (2 * v) / cell - 1e-9).astype(np.int64)
        first = int(at.min())
        found = np.zeros(int(at.max()) - first + 1)
        np.add.at(found, at - first, weights / weights.sum())
        return first, found


@dataclass(frozen=True, slots=True)
class _Normal:
    """All wide Gaussian noise together: the logarithm is normal, of mean μ²/2 and standard deviation μ."""

    mu: float

    @property
    def reach(self) -> float:
        """The largest |logarithm| within `_REACH`."""
        return self.mu**2 / 2 + _REACH * self.mu

    def on_grid(self, cell: float) -> tuple[int, Array]:
        """As `_Laplace.on_grid`."""
        last = math.ceil(self.reach / cell)
        edges = (np.arange(-last, last) * cell - self.mu**2 / 2) / self.mu
        below = [_normal(float(x)) for x in edges]
        return -last, np.diff(np.array([0.0, *below, 1.0]))


@dataclass(frozen=True, slots=True)
class _Picked:
    """One chosen cell, at η times `narrower`."""

    choice: Chosen
    narrower: float

    @property
    def reach(self) -> float:
        """The largest |logarithm|."""
        return float(np.abs(self.choice.logs(self.narrower)[1]).max())

    def on_grid(self, cell: float) -> tuple[int, Array]:
        """As `_Laplace.on_grid`."""
        weights, logs = self.choice.logs(self.narrower)
        at = np.ceil(logs / cell - 1e-9).astype(np.int64)
        first = int(at.min())
        found = np.zeros(int(at.max()) - first + 1)
        np.add.at(found, at - first, np.exp(weights))
        return first, found


_Part = _Laplace | _Gaussian | _Normal | _Picked


def _together(parts: Sequence[_Part], epsilon: float) -> float:
    """Adds the logarithms up by multiplying Fourier transforms, and takes Σ P(l)·(1 − e^(ε−l))⁺."""
    whole = sum(part.reach for part in parts)
    if not whole:
        return 0.0
    cell = whole / min(_MOST_CELLS // 2, max(_CELLS, 100 * len(parts)))
    size = 1 << math.ceil(math.log2(2 * whole / cell + 4 * len(parts) + 2))
    product, first = np.ones(size // 2 + 1, dtype=complex), 0
    for part, times in Counter(parts).items():
        start, found = part.on_grid(cell)
        product *= np.fft.rfft(found, size) ** times
        first += start * times
    total = np.maximum(np.fft.irfft(product, size), 0.0)
    logs = (first + np.arange(size)) * cell
    return float((total * -np.expm1(np.minimum(0.0, epsilon - logs))).sum()) + 1e-9
