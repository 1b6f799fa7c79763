"""Confidence intervals of released numbers, from public facts and noisy values alone.

They speak of the *bounded* truth: what the query would give without noise, clips and contribution limits in place.
Counts and sums: value ± the exact quantile of the discrete noise, so the coverage is at least the level. Averages: see
`averages.py`; over a public number of rows only the sum is noisy, and its interval is divided by that number. Variances
and their roots: see `variances.py`.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import assert_never

from dpsql.measure.measured import Measurement
from dpsql.measure.widths import linear_width
from dpsql.plan.components import Count, End, Output, Ratio, Sum, Variance, coefficients
from dpsql.release.arithmetic import average, linear
from dpsql.release.noisy import NoisyRelease
from dpsql.release.outwards import above, below

Bounds = tuple[float, float]


def output_intervals(noisy: NoisyRelease, output: Output, level: Fraction) -> list[Bounds]:
    """One (low, high) per row of the release for one output column, at confidence `level` in (0, 1)."""
    measurements = noisy.planned.measured.measurements
    match output.recipe:
        case Count() | Sum() as recipe:
            parts = coefficients(recipe, [m.component for m in measurements])
            width = linear_width(recipe, measurements, level)
            values, whole = linear(parts, noisy.values)
            middles = (Fraction(v, whole) for v in values)
            return [(below(middle - width), above(middle + width)) for middle in middles]
        case Ratio(sum=s, count=n) as ratio:
            if measurements[n].known is not None:
                return _over_known(measurements[s], measurements[n], ratio, level, [row[s] for row in noisy.values])
            # Imported here so that `dpsql check`, which only prices, does not load numpy.
            from dpsql.release.averages import AverageIntervals

            intervals = AverageIntervals(measurements[s], measurements[n], ratio, level)
            return intervals([row[s] for row in noisy.values], [row[n] for row in noisy.values])
        case Variance(sum=s, squares=q, count=n) as variance:
            from dpsql.release.variances import VarianceIntervals

            columns = [[row[i] for row in noisy.values] for i in (s, q, n)]
            return VarianceIntervals(measurements[s], measurements[q], measurements[n], variance, level)(*columns)
        case End(of=recipe):
            return output_intervals(noisy, replace(output, recipe=recipe), level)
        case _:
            assert_never(output.recipe)


def _over_known(
    total: Measurement, count: Measurement, ratio: Ratio, level: Fraction, totals: list[int]
) -> list[Bounds]:
    """Averages over a public number of rows, within the bounds [lo, hi] of the column; [lo, hi] if outside of them."""
    assert count.known is not None
    width = total.mechanism.half_width(level)
    center, units = total.component.center * total.component.grid, (total.unit, count.unit)
    found = []
    for s in totals:
        low, high = (average(end, count.known, units, center) for end in (s - width, s + width))
        if low > ratio.hi or high < ratio.lo:
            low, high = ratio.lo, ratio.hi
        found.append((below(max(low, ratio.lo)), above(min(high, ratio.hi))))
    return found
