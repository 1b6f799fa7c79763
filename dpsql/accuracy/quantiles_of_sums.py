"""How far weighted sums of independent noise reach: w with P(|Σ coefficient · noise| > w) ≤ outside, many at once.

The characteristic function of a sum is the product of those of its terms, each known in closed form; a discrete Fourier
transform gives the distribution from it.

- Sums on a common lattice (all coefficients are multiples of one): the transform is exact for the distribution wrapped
  around a circle so long that less than 1e-12 lies beyond it (Chernoff), and so is the quantile.
- Others: a Gaussian of a hundredth of the sum's deviation, cut off where its tail is negligible, is added, and the w
  found for that is made larger by where it was cut off. So w is above the least one by about half a per cent. A term
  whose unit is small beside the sum takes the characteristic function of the continuous law that it is the rounding
  of: a discrete Laplace variable is a continuous one less an independent symmetric difference of fractions, which only
  widens (`tails.py` has why, and by how much).
- Probabilities too small for the digits of floating-point numbers: Chernoff's bound itself.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from dpsql.core.noise.mechanisms.mechanism import MARGIN, Additive

Floats = NDArray[np.float64]
Places = NDArray[np.intp]
Flags = NDArray[np.bool_]

_NEGLECTED = 1e-4
"""Part of `outside` that may lie beyond the circle, or beyond where the added Gaussian is cut off."""
_LEAST = 1e-8
"""The least probability that the transform resolves."""
_BLUR = 0.02
"""The reach of the Gaussian that is added, in deviations of the sum."""
_SMALL_UNIT, _SMALL_UNIT_OF_MANY = 0.02, 0.1
"""A term whose unit is smaller than this, in deviations of the sum, is taken as continuous, and the sum's reach made
larger by half of that: the larger number where there are so many sums that exactness would take its time."""
_MANY = 2000
_MOST_POINTS = 1 << 15
_AT_ONCE = 1 << 20
"""Numbers of an array that are worked on at a time."""
_TILTS = np.array([0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.98])


def reaches(
    laws: Sequence[Additive], law: Places, counts: NDArray[np.int64], coefficients: Floats, outside: float
) -> Floats:
    """One w for each row of the arrays, whose columns are the terms of its sum.

    laws: the noises, in integer units. law: which of them a term has. counts: of how many independent noises of that
    law and coefficient it is the sum; 0 for no term. outside: in (0, 1).
    """
    sizes = np.abs(coefficients) * (counts > 0)
    single = (sizes > 0).sum(axis=1)
    found = np.zeros(len(sizes))
    alone = (single <= 1) & (counts.max(axis=1, initial=0, where=sizes > 0) <= 1)
    if laws and alone.any():
        exact = np.array([float(m.half_width(1 - Fraction(outside))) for m in laws])
        found[alone] = (sizes[alone] * exact[law[alone]]).max(axis=1, initial=0)
    several = np.flatnonzero(~alone)
    if len(several):
        found[several] = _Sums(laws, law[several], counts[several], sizes[several]).reaches(outside)
    return found


class _Sums:
    """Sums of several terms, a row each."""

    def __init__(self, laws: Sequence[Additive], law: Places, counts: NDArray[np.int64], sizes: Floats) -> None:
        # In units of the sum's deviation: the squares of coefficients may be beyond all floating-point numbers.
        top = sizes.max(axis=1)
        deviations = np.array([math.sqrt(m.variance()) for m in laws])
        scales = np.array([float(m.scale) for m in laws])
        self._is_laplace = np.array([m.laplace > 0 for m in laws])[law]
        part = sizes / top[:, None]
        self.deviation = np.sqrt((counts * (part * deviations[law]) ** 2).sum(axis=1))
        # Noise that is nearly always 0 still has units.
        self.deviation = np.maximum(self.deviation, 1e-3)
        self.units = part / self.deviation[:, None]
        self.scales = self.units * scales[law]
        self._own = scales[law]
        self.counts = counts.astype(np.float64)
        self.deviation = self.deviation * top
        self._smooth = self.units < (_SMALL_UNIT_OF_MANY if len(law) > _MANY else _SMALL_UNIT)
        self.lattice = _lattice(self.units, self.scales)

    def reaches(self, outside: float) -> Floats:
        found = self._radius(outside)
        if outside > _LEAST:
            around = found + self._radius(outside * _NEGLECTED)
            with np.errstate(divide="ignore", invalid="ignore"):
                points = np.where(self.lattice > 0, around / self.lattice, np.inf)
            exact = points <= _MOST_POINTS
            blurred = np.zeros(len(found))
            for at, n in _by_size(np.where(exact, np.ceil(points), 0)):
                blurred[at] = self._on_lattice(at, n, outside)
            for at, n in _by_size(np.where(exact, 0, self._nodes(around, outside))):
                blurred[at] = self._blurred(at, n, around[at], outside)
            found = np.minimum(found, blurred)
        reached: Floats = found * self.deviation * (1 + MARGIN)
        return reached

    def _radius(self, outside: float) -> Floats:
        """Chernoff's bound: P(|S| > it) ≤ outside, by E e^(λS) of the continuous laws, which is larger."""
        laplace = np.where(self._is_laplace, self.scales, 0.0)
        gaussian = (self.counts * np.where(self._is_laplace, 0.0, self.scales) ** 2).sum(axis=1)
        largest = laplace.max(axis=1)
        natural = math.sqrt(2 * math.log(2 / outside))  # the best λ of a Gaussian of deviation 1
        tilt = np.minimum(natural / _TILTS[-1], 1 / np.maximum(largest, 1e-9))[:, None] * _TILTS
        squares = np.minimum((tilt[:, None, :] * laplace[:, :, None]) ** 2, 0.999)
        logs = -(self.counts[:, :, None] * np.log1p(-squares)).sum(axis=1) + gaussian[:, None] * tilt**2 / 2
        found: Floats = ((math.log(2 / outside) + logs) / tilt).min(axis=1)
        return found

    # --- on a lattice ----------------------------------------------------------------------------------------------

    def _on_lattice(self, at: Places, points: int, outside: float) -> Floats:
        """The least multiple of the lattice's unit."""
        angles = 2 * np.pi * np.arange(points // 2 + 1) / points
        logs = self._logs(at, angles[None] / self.lattice[at, None], np.zeros(self.units[at].shape, dtype=bool))
        chances = np.fft.irfft(np.exp(logs), points, axis=1)
        half = points // 2
        beyond = 2 * np.cumsum(chances[:, half - 1 : 0 : -1], axis=1)[:, ::-1]  # P(|S| ≥ k) for k = 1, 2, …
        within = beyond > outside * (1 - 2 * _NEGLECTED)
        most = np.where(within.any(axis=1), half - 1 - within[:, ::-1].argmax(axis=1), 0)
        return most * self.lattice[at]

    # --- anywhere --------------------------------------------------------------------------------------------------

    def _reach_of_blur(self, outside: float) -> float:
        """Where the added Gaussian is cut off, in its own deviations."""
        return math.sqrt(2 * math.log(1 / (outside * _NEGLECTED)))

    def _nodes(self, around: Floats, outside: float) -> NDArray[np.int64]:
        """How many points of the characteristic function are needed."""
        blur = _BLUR / self._reach_of_blur(outside)
        needed = np.full(len(around), 0, dtype=np.int64)
        for exponent in range(8, _MOST_POINTS.bit_length()):
            t = 2 * np.pi * (1 << exponent) / around
            logs = self._continuous(t[:, None])
            left = (np.where(self._smooth, logs, 0.0) * self.counts).sum(axis=1) - (blur * t) ** 2 / 2
            needed[(needed == 0) & (left < math.log(outside * _NEGLECTED))] = 1 << exponent
        return np.where(needed == 0, _MOST_POINTS, needed)

    def _blurred(self, at: Places, nodes: int, around: Floats, outside: float) -> Floats:
        """w for the sum with a little Gaussian noise, and as much more."""
        t = 2 * np.pi * np.arange(nodes) / around[:, None]
        logs = self._logs(at, t, self._smooth[at])
        values = np.exp(logs - (_BLUR / self._reach_of_blur(outside) * t) ** 2 / 2)
        # P(|S| ≤ x) of the wrapped sum is 2x/L + Σ 2/(πn)·φ(2πn/L)·sin(2πnx/L).
        weights = np.zeros_like(values)
        weights[:, 1:] = values[:, 1:] * (2 / np.pi / np.arange(1, nodes))
        points = max(2 * nodes, 1 << 14)
        series = -np.fft.rfft(np.concatenate([weights, np.zeros((len(at), points - nodes))], axis=1), axis=1).imag
        x = np.arange(points // 2 + 1) / points
        beyond = 1 - (2 * x + series)
        within = beyond > outside * (1 - 10 * _NEGLECTED)
        first = points // 2 + 1 - within[:, ::-1].argmax(axis=1)
        rounding = np.where(self._smooth[at], self.units[at], 0.0).max(axis=1) / 2
        found: Floats = np.minimum(first, points // 2) / points * around + _BLUR + rounding
        return found

    def _logs(self, at: Places, t: Floats, smooth: Flags) -> Floats:
        """Logarithms of the characteristic functions of these rows."""
        total = np.zeros((len(at), t.shape[1]))
        for j in range(self.units.shape[1]):
            total += self.counts[at, j, None] * self._log(at, j, t, smooth[:, j])
        return total

    def _log(self, at: Places, j: int, t: Floats, smooth: Flags) -> Floats:
        laplace = self._is_laplace[at, j][:, None]
        scaled = t * self.scales[at, j, None]
        # Laplace: 1/(1 + x²), or (1-q)²/(1 - 2q·cos + q²) = 1/(1 + 4q·sin²/(1-q)²) with the half angle.
        with np.errstate(under="ignore"):
            q = np.exp(-1 / np.maximum(self._own[at, j], 1e-3))[:, None]
        angle = t * self.units[at, j, None]
        bent = np.where(smooth[:, None], scaled**2, 4 * q * (np.sin(angle / 2) / (1 - q)) ** 2)
        found = -np.log1p(np.where(laplace, bent, 0.0))
        if not laplace.all():
            found = np.where(laplace, found, self._gaussian(at, j, t, scaled, angle, smooth[:, None]))
        return found

    def _gaussian(self, at: Places, j: int, t: Floats, scaled: Floats, angle: Floats, smooth: Flags) -> Floats:
        """Of a discrete Gaussian: Σ e^(-σ²(θ - 2πk)²/2) over all k, over the same at 0; its unit more where smooth."""
        sigma = self._own[at, j, None]
        nearest = np.abs(angle - 2 * np.pi * np.rint(angle / (2 * np.pi)))
        images = [np.exp(-((sigma * (2 * np.pi * k + nearest)) ** 2) / 2) for k in (-3, -2, -1, 0, 1, 2, 3)]
        total = sum(np.exp(-((sigma * 2 * np.pi * k) ** 2) / 2) for k in (-3, -2, -1, 0, 1, 2, 3))
        continuous = -(scaled**2) / 2 - angle**2 / 24
        with np.errstate(divide="ignore"):
            return np.where(smooth, continuous, np.maximum(np.log(sum(images) / total), -1e4))

    def _continuous(self, t: Floats) -> Floats:
        scaled = t * self.scales
        logs: Floats = np.where(self._is_laplace, -np.log1p(scaled**2), -(scaled**2) / 2)
        return logs


def _lattice(units: Floats, scales: Floats) -> Floats:
    """The unit of which all of a row's units are multiples, where the least of them is that; else 0."""
    least = np.where(units > 0, units, np.inf).min(axis=1)
    multiples = units / least[:, None]
    return np.where((np.abs(multiples - np.rint(multiples)) <= 1e-9).all(axis=1), least, 0.0)


def _by_size(points: NDArray[np.floating | np.integer]) -> list[tuple[Places, int]]:
    """Rows with as many points, rounded up to a power of two, in parts that fit the memory; none where it is 0."""
    sizes = np.where(points > 0, 2 ** np.ceil(np.log2(np.maximum(points, 64))), 0).astype(np.int64)
    found = []
    for n in np.unique(sizes[sizes > 0]).tolist():
        rows = np.flatnonzero(sizes == n)
        most = max(1, _AT_ONCE // n)
        found += [(rows[i : i + most], n) for i in range(0, len(rows), most)]
    return found
