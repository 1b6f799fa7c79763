"""Half-widths of intervals of numbers that are sums of measurements, from their noise alone."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache

from dpsql.core.ir.recipes import Recipe, Terms
from dpsql.core.noise.measurement import Measurement
from dpsql.core.noise.mechanisms import Additive


def linear_width(recipe: Recipe, measurements: Sequence[Measurement], level: Fraction) -> Fraction | None:
    """Of a weighted sum of components, in the released number's unit, at a confidence in (0, 1); None for others."""
    return _width(recipe.terms([m.component for m in measurements]), measurements, level)


def planned_width(recipe: Recipe, measurements: Sequence[Measurement], level: Fraction) -> Fraction | None:
    """The same of any number whose error does not depend on the data."""
    terms = recipe.noisy_terms([m.component for m in measurements], [m.known for m in measurements])
    return _width(terms, measurements, level)


def _width(terms: Terms | None, measurements: Sequence[Measurement], level: Fraction) -> Fraction | None:
    return None if terms is None else joint_width([(measurements[i], worth) for i, worth in terms], level)


def joint_width(parts: Sequence[tuple[Measurement, Fraction]], level: Fraction) -> Fraction:
    """Of Σ coefficient · number of this measurement: the least, where all of them have one law.

    Of three different laws and more those of one family and one coefficient count as the widest, which is
    stochastically larger, and each family gets its part of what may lie outside.
    """
    noisy = [(m.noise, abs(worth)) for m, worth in parts if m.noise.scale]
    if len(noisy) == 2 and noisy[0] != noisy[1]:
        # Imported here: `dpsql check`, which only prices, loads neither this nor numpy with it.
        from dpsql.accuracy.tails import half_width

        return Fraction(half_width(parts, level))
    alike: dict[tuple[str, Fraction], list[Additive]] = {}
    for mechanism, worth in noisy:
        alike.setdefault((mechanism.name, worth), []).append(mechanism)
    each = 1 - (1 - level) / max(1, len(alike))
    widths = (
        worth * _half_width_of_sum(max(same, key=lambda mechanism: mechanism.scale), len(same), each)
        for (_, worth), same in alike.items()
    )
    return sum(widths, Fraction(0))


@lru_cache(maxsize=1_000)
def _half_width_of_sum(mechanism: Additive, count: int, level: Fraction) -> int:
    """Kept, for it takes logarithms to many digits, and answers that are given again have the same noise."""
    return mechanism.half_width_of_sum(count, level)
