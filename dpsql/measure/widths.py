"""Half-widths of intervals of numbers that are sums of measurements, from their noise alone."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from dpsql.measure.measured import Measurement
from dpsql.plan.components import Count, Sum, coefficients


def linear_width(recipe: Count | Sum, measurements: Sequence[Measurement], level: Fraction) -> Fraction:
    """Of a count, a sum, or a centred sum and a count, in the released number's unit, at a confidence in (0, 1)."""
    parts = coefficients(recipe, [m.component for m in measurements])
    noisy = [(measurements[i], worth) for i, worth in parts if measurements[i].known is None]
    if len(noisy) <= 1:
        return sum((m.mechanism.half_width(level) * abs(worth) for m, worth in noisy), Fraction(0))
    return Fraction(joint_width(noisy, level))


def joint_width(parts: Sequence[tuple[Measurement, Fraction]], level: Fraction) -> float:
    """Of Σ coefficient · number of this measurement, for several noisy ones (`tails.half_width`)."""
    # Imported here: `dpsql check`, which only prices, loads neither this nor numpy with it.
    from dpsql.measure.tails import half_width

    return half_width(parts, level)
