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

from dpsql.accuracy.least_rate import least_rate, on_grid, place_of
from dpsql.accuracy.widths import joint_width
from dpsql.core.noise.calibration import PreparedRelease
from dpsql.core.noise.measurement import Measurement
from dpsql.core.noise.mechanisms import AdditiveNoise

_DIGITS = 32
"""Of rates: widths of several noises are known to about as many."""
_STEPS = 60
_GOLDEN = (math.sqrt(5) - 1) / 2


@dataclass(frozen=True, slots=True)
class ComponentPair:
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

    family: type[AdditiveNoise]
    confidence: Fraction
    squared: bool

    def size(self, p: PreparedRelease, i: int) -> Fraction:
        """A component's sensitivity; its share is rate times size."""
        return self.family.size(p.worst[i].l1, p.worst[i].l2_squared)

    def measurement(self, p: PreparedRelease, i: int, rate: Fraction) -> Measurement:
        """The component with noise of this rate."""
        return Measurement(p.node.components[i], p.worst[i], self.family.of_rate(rate))


def joint_shares(
    p: PreparedRelease, pairs: Sequence[ComponentPair], own: Mapping[int, Fraction], pricing: Pricing
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
    p: PreparedRelease, pairs: Sequence[ComponentPair], own: Mapping[int, Fraction], pricing: Pricing
) -> dict[int, Fraction] | None:
    """The pairs that share one count."""
    count, family = pairs[0].count, pricing.family
    floor = own.get(count, Fraction(0)) / pricing.size(p, count)
    # A count with less noise than this leaves nothing of some error.
    quantile = family.quantile(pricing.confidence)
    least = max(family.rate_of(float(x.error) / quantile / abs(float(x.worth[1]))) for x in pairs)

    def sum_rate(pair: ComponentPair, rate: float) -> float:
        beside = family.spread_of(rate) * abs(float(pair.worth[1]))
        left = family.rest(beside, float(pair.error), pricing.confidence)
        return family.rate_of(max(left, 1e-9 * float(pair.error)) / abs(float(pair.worth[0])))

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
    p: PreparedRelease,
    pairs: Sequence[ComponentPair],
    own: Mapping[int, Fraction],
    pricing: Pricing,
    rate: Fraction,
    sum_rate: Callable[[ComponentPair, float], float],
) -> dict[int, Fraction] | None:
    """What each sum needs beside a count of this rate; None if the count alone takes all of an error."""
    found = {}
    for pair in pairs:
        counted = pricing.measurement(p, pair.count, rate)

        def reached(candidate: Fraction, pair: ComponentPair = pair, counted: Measurement = counted) -> Fraction:
            summed = pricing.measurement(p, pair.sum, max(candidate, pricing.family.lowest_rate))
            return joint_width([(summed, pair.worth[0]), (counted, pair.worth[1])], pricing.confidence)

        def holds(
            candidate: Fraction, pair: ComponentPair = pair, reached: Callable[[Fraction], Fraction] = reached
        ) -> bool:
            return reached(candidate) <= pair.error

        guess = Fraction(sum_rate(pair, float(rate)))
        enough = 4 * guess
        if not holds(enough):
            return None
        near = min(_nearer(reached, guess, float(pair.error)), enough)
        least = least_rate(holds, near, pricing.family.lowest_rate, _DIGITS, enough)
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
