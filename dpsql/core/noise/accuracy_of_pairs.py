"""The least that columns with two noises need: sums that are made of a centred sum and a count (`share_sums`).

Such a column is a·Z₁ + b·Z₂, and several may share one count. Whatever rate the count gets, each sum then needs the
least rate that keeps its column within its error, decided by the very width that intervals are made with. The count's
own rate is chosen by golden section over the price of all of them, computed for continuous noise: any choice is sound,
and one near the best costs hardly more.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from dpsql.core.noise.calibration import Prepared
from dpsql.core.noise.least_rate import Family, least_rate, log_outside, on_grid, place_of
from dpsql.core.noise.measurement import Measurement
from dpsql.core.noise.mechanisms import DiscreteGaussian, DiscreteLaplace
from dpsql.core.noise.scale import LARGEST_SCALE
from dpsql.core.noise.widths import joint_width
from dpsql.core.numbers.normal import two_sided

_DIGITS = 32
"""Of rates: widths of several noises are known to about as many."""
_STEPS = 60
_GOLDEN = (math.sqrt(5) - 1) / 2


@dataclass(frozen=True, slots=True)
class Pair:
    """A column's two components with what one of their integers is worth in it, and its largest error."""

    sum: int
    count: int
    worth: tuple[Fraction, Fraction]
    error: Fraction


@dataclass(frozen=True, slots=True)
class Pricing:
    """The family of a query's noise, the confidence that is asked for, and how prices add up.

    squared: a share counts by its square (ε under zCDP).
    """

    family: Family
    confidence: Fraction
    squared: bool

    @property
    def quantile(self) -> float:
        """Of continuous noise of scale (or σ) 1."""
        if self.family == "laplace":
            return log_outside(self.confidence)
        return math.sqrt(two_sided(1 - self.confidence))

    def size(self, p: Prepared, i: int) -> Fraction:
        """A component's sensitivity; its share is rate times size."""
        return Fraction(p.worst[i].l1) if self.family == "laplace" else p.worst[i].l2_squared

    def measurement(self, p: Prepared, i: int, rate: Fraction) -> Measurement:
        """The component with noise of this rate."""
        made = DiscreteLaplace(1 / rate) if self.family == "laplace" else DiscreteGaussian(1 / (2 * rate))
        return Measurement(p.node.components[i], p.worst[i], made)

    def rate(self, spread: float) -> float:
        """The rate of noise of this scale (or σ)."""
        return 1 / spread if self.family == "laplace" else 1 / (2 * spread * spread)

    def spread(self, rate: float) -> float:
        """The inverse of `rate`."""
        return 1 / rate if self.family == "laplace" else 1 / math.sqrt(2 * rate)

    @property
    def lowest(self) -> Fraction:
        """Of all rates that are accepted."""
        return 1 / LARGEST_SCALE if self.family == "laplace" else 1 / (2 * LARGEST_SCALE**2)

    def rest(self, other: float, error: float) -> float:
        """How large the first noise may be beside a second one of scale (or σ) `other`, so that `error` holds."""
        top = error / self.quantile
        if self.family == "gaussian":
            return math.sqrt(max(0.0, top * top - other * other))
        low, high, outside = 0.0, top, float(1 - self.confidence)
        for _ in range(_STEPS):
            middle = (low + high) / 2
            low, high = (middle, high) if _two_laplace(middle, other, error) <= outside else (low, middle)
        return low


def _two_laplace(a: float, b: float, w: float) -> float:
    """P(|aX + bY| > w) of continuous Laplace variables."""
    large, small = max(a, b), min(a, b)
    r, t = small / large, w / large
    if r > 1 - 1e-6:
        return math.exp(-t) * (1 + t / 2)
    return (math.exp(-t) - r * r * (math.exp(-t / r) if r > 1e-300 else 0.0)) / (1 - r * r)


def joint_shares(
    p: Prepared, pairs: Sequence[Pair], own: Mapping[int, Fraction], pricing: Pricing
) -> dict[int, Fraction] | None:
    """What the components of a release's pairs have to cost.

    pairs: at most one for each sum. own: what components need for columns of their own.
    None if no such noise was found.
    """
    found: dict[int, Fraction] = {}
    for count in dict.fromkeys(pair.count for pair in pairs):
        shares = _around(p, [pair for pair in pairs if pair.count == count], own, pricing)
        if shares is None:
            return None
        found |= shares
    return found


def _around(
    p: Prepared, pairs: Sequence[Pair], own: Mapping[int, Fraction], pricing: Pricing
) -> dict[int, Fraction] | None:
    """The pairs that share one count."""
    count = pairs[0].count
    floor = own.get(count, Fraction(0)) / pricing.size(p, count)
    # A count with less noise than this leaves nothing of some error.
    least = max(pricing.rate(float(x.error) / pricing.quantile / abs(float(x.worth[1]))) for x in pairs)

    def sum_rate(pair: Pair, rate: float) -> float:
        left = pricing.rest(pricing.spread(rate) * abs(float(pair.worth[1])), float(pair.error))
        return pricing.rate(max(left, 1e-9 * float(pair.error)) / abs(float(pair.worth[0])))

    def price(rate: float) -> float:
        shares = [rate * float(pricing.size(p, count))]
        shares += [
            max(sum_rate(x, rate) * float(pricing.size(p, x.sum)), float(own.get(x.sum, Fraction(0)))) for x in pairs
        ]
        return sum(s * s if pricing.squared else s for s in shares)

    best = _least_at(price, math.log(max(least * (1 + 1e-6), float(floor))), math.log(1e6))
    rate = max(floor, on_grid(place_of(Fraction(best)) + 1))
    for _ in range(100):
        shares = _beside(p, pairs, own, pricing, rate, sum_rate)
        if shares is not None:
            return {count: rate * pricing.size(p, count), **shares}
        rate = on_grid(place_of(rate * Fraction(11, 10)))  # noise that is coarse against the error
    return None


def _beside(
    p: Prepared,
    pairs: Sequence[Pair],
    own: Mapping[int, Fraction],
    pricing: Pricing,
    rate: Fraction,
    sum_rate: Callable[[Pair, float], float],
) -> dict[int, Fraction] | None:
    """What each sum needs beside a count of this rate; None if the count alone takes all of an error."""
    found = {}
    for pair in pairs:
        counted = pricing.measurement(p, pair.count, rate)

        def reached(candidate: Fraction, pair: Pair = pair, counted: Measurement = counted) -> Fraction:
            summed = pricing.measurement(p, pair.sum, max(candidate, pricing.lowest))
            return joint_width([(summed, pair.worth[0]), (counted, pair.worth[1])], pricing.confidence)

        def holds(candidate: Fraction, pair: Pair = pair, reached: Callable[[Fraction], Fraction] = reached) -> bool:
            return reached(candidate) <= pair.error

        guess = Fraction(sum_rate(pair, float(rate)))
        enough = 4 * guess
        if not holds(enough):
            return None
        near = min(_nearer(reached, guess, float(pair.error)), enough)
        least = least_rate(holds, near, pricing.lowest, _DIGITS, enough)
        if least is None:
            return None
        found[pair.sum] = max(least * pricing.size(p, pair.sum), own.get(pair.sum, Fraction(0)))
    return found


def _nearer(reached: Callable[[Fraction], Fraction], guess: Fraction, error: float) -> Fraction:
    """A better guess of the rate that reaches an error: the secant method, in logarithms."""
    x, y = math.log(guess * Fraction(101, 100)), math.log(guess)
    at_x = math.log(max(float(reached(Fraction(math.exp(x)))), 1e-300) / error)
    for _ in range(6):
        at_y = math.log(max(float(reached(Fraction(math.exp(y)))), 1e-300) / error)
        if at_x == at_y or abs(at_y) < 1e-10:
            break
        step = max(-1.0, min(1.0, -at_y * (y - x) / (at_y - at_x)))
        x, at_x, y = y, at_y, y + step
    return Fraction(math.exp(y))


def _least_at(price: Callable[[float], float], start: float, length: float) -> float:
    """Where between e^start and e^(start + length) the price is (nearly) least: golden section over the logarithm."""
    low, high = start, start + length
    inner = [high - _GOLDEN * (high - low), low + _GOLDEN * (high - low)]
    values = [price(math.exp(x)) for x in inner]
    for _ in range(_STEPS):
        if values[0] <= values[1]:
            high, inner = inner[1], [inner[1] - _GOLDEN * (inner[1] - low), inner[0]]
            values = [price(math.exp(inner[0])), values[0]]
        else:
            low, inner = inner[0], [inner[1], inner[0] + _GOLDEN * (high - inner[0])]
            values = [values[1], price(math.exp(inner[1]))]
    return math.exp((low + high) / 2)
