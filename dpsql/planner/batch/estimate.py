"""What the noisy marginals say of a number: their least-squares estimate, its variance, and how far it may be off.

The estimate of w over columns Q is Σ_{B ⊆ Q} ⟨W_B, u_B⟩/n(Q), with W_B = w summed over Q∖B and centered, and u_B the
weighted mean over the measured A ⊇ B of marginal A, summed over A∖B and centered (marginal_shares.py has the notation).
It is arithmetic over noisy numbers: no privacy rests on it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dpsql.planner.batch.marginal_shares import precision, residual, volume
from dpsql.planner.batch.workload import Marginal, Number, subsets

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_LEAST = 1e-12
"""A smaller variance counts as this."""
_NOTHING = 1e-9
"""What a cell counts for beyond rounding."""
_REACH, _POINTS = 80.0, 4_096
"""How far and how finely a characteristic function is added up, in standard deviations."""


@dataclass(frozen=True, slots=True)
class CellNoise:
    """The noise of each cell of a marginal, in rows. variance: of it. scale: of a discrete Laplace on multiples of
    `grain`, else None: then it is Gaussian, or no wider."""

    variance: float
    scale: float | None = None
    grain: float = 1.0

    def log_mgf(self, s: NDArray[np.float64]) -> NDArray[np.float64]:
        """ln E e^(s·noise) or a bound above it; ∞ where there is none."""
        import numpy as np

        if self.scale is None:
            return np.asarray(s**2 * self.variance / 2)
        decay, steps = math.exp(-self.grain / self.scale), np.abs(s) * self.grain
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            found = 2 * math.log1p(-decay) - np.log1p(-decay * np.exp(steps)) - np.log1p(-decay * np.exp(-steps))
        return np.where(steps < self.grain / self.scale, found, np.inf)


@dataclass(frozen=True, slots=True)
class Measured:
    """The marginals that are measured, and the noise of each. sizes: of every column, its number of classes."""

    noise: Mapping[Marginal, CellNoise]
    sizes: Mapping[int, int]

    @property
    def theta(self) -> dict[Marginal, float]:
        """1/variance of each."""
        return {m: 1 / max(n.variance, _LEAST) for m, n in self.noise.items()}

    def coefficients(self, number: Number) -> dict[Marginal, NDArray[np.float64]]:
        """What each cell of each marginal counts for in the estimate."""
        import numpy as np

        theta, found = self.theta, dict[Marginal, "NDArray[np.float64]"]()
        parts = {onto: residual(number.weights, number.columns, onto) for onto in subsets(number.columns)}
        precisions = {onto: precision(onto, theta, self.sizes) for onto in parts}
        own = volume(number.columns, self.sizes)
        for marginal, t in theta.items():
            whole = np.zeros(tuple(self.sizes[uid] for uid in marginal))
            for onto, part in parts.items():
                if set(onto) <= set(marginal):
                    rest = volume(tuple(uid for uid in marginal if uid not in onto), self.sizes)
                    shape = tuple(self.sizes[uid] if uid in onto else 1 for uid in marginal)
                    whole = whole + part.reshape(shape) * (t / precisions[onto] / rest / own)
            found[marginal] = whole
        return found

    def variance(self, number: Number) -> float:
        """Of the estimate."""
        found = self.coefficients(number)
        return sum(float((c**2).sum()) * self.noise[m].variance for m, c in found.items())

    def parts(self, number: Number, factor: float = 1.0) -> Parts:
        """What the noise of `factor` times the estimate is a sum of."""
        found = [(c[abs(c) > _NOTHING] * factor, self.noise[m]) for m, c in self.coefficients(number).items()]
        return [(c, n) for c, n in found if factor and c.size and n.variance > _LEAST]

    def width(self, number: Number, level: float) -> float:
        """t with P(|error| ≤ t) ≥ level."""
        return half_width(self.parts(number), level)

    def estimate(self, number: Number, marginals: Mapping[Marginal, NDArray[np.float64]]) -> float:
        """The number. marginals: the noisy cells of each that was measured."""
        return sum(float((c * marginals[m]).sum()) for m, c in self.coefficients(number).items())


Parts = Sequence[tuple["NDArray[np.float64]", CellNoise]]
"""What cells count for, and the noise of each of them."""


def half_width(parts: Parts, level: float) -> float:
    """t with P(|Σ coefficient · noise| ≤ t) ≥ level.

    Where noise is spread over several steps, from the distribution itself: P(|S| ≤ t) = 2/π·∫ φ(s)·sin(ts)/s ds over
    s > 0 (Gil-Pelaez 1951), φ the product of the characteristic functions of the cells, as if noise were continuous,
    and half a step more. Else Chernoff's bound.
    """
    if not parts:
        return 0.0
    if all(n.variance >= (2 * n.grain) ** 2 for _, n in parts):
        return _quantile(parts, level) + max(float(abs(c).max()) * n.grain for c, n in parts) / 2
    return _bound(parts, level)


def _quantile(parts: Parts, level: float) -> float:
    """The level's quantile of |Σ coefficient · noise|, by bisection."""
    import numpy as np

    deviation = math.sqrt(sum(float((c**2).sum()) * n.variance for c, n in parts))
    s = np.linspace(0, _REACH / deviation, _POINTS)[1:]
    logs = np.zeros_like(s)
    for c, noise in parts:
        # coefficients that differ by less than a hundredth count as the larger of them
        classes, counts = np.unique(np.ceil(np.log(np.abs(c)) * 100), return_counts=True)
        for value, count in zip(np.minimum(np.exp(classes / 100), float(np.abs(c).max())), counts, strict=True):
            if noise.scale is None:
                logs -= count * (value * s) ** 2 * noise.variance / 2
            else:  # of variance 2b²
                logs -= count * np.log1p((value * s) ** 2 * noise.variance / 2)
    weights = np.exp(logs)
    step = s[0]

    def inside(t: float) -> float:
        whole = weights * np.sin(t * s) / s
        return float(2 / math.pi * step * (t / 2 + whole[:-1].sum() + whole[-1] / 2))

    low, high = 0.0, 12 * deviation
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (low, middle) if inside(middle) >= level else (middle, high)
    return high


def _bound(parts: Parts, level: float) -> float:
    """min_s (ln E e^(s·error) + ln(2/β))/s, which holds for any s."""
    import numpy as np

    most = min(math.inf if n.scale is None else 1 / (float(np.abs(c).max()) * n.scale) for c, n in parts)
    spread = sum(float((c**2).sum()) * max(n.variance, _LEAST) for c, n in parts)
    tail = math.log(2 / (1 - level))
    start = math.sqrt(2 * tail / spread)

    def bound(s: float) -> float:
        return (sum(float(n.log_mgf(s * c).sum()) for c, n in parts) + tail) / s

    # it is convex in s, and the best of a fine grid below the pole is near enough
    tried = [start * 2 ** (k / 8) for k in range(-24, 17)]
    poles = [] if math.isinf(most) else [most * part for part in (0.5, 0.75, 0.9, 0.97)]
    return min(map(bound, [*(s for s in tried if s < most), *poles]))
