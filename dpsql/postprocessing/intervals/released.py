"""Confidence intervals of released numbers, from public facts and noisy values alone.

They speak of the *bounded* truth: what the query would give without noise, clips and contribution limits in place.
Counts and sums: value ± the exact quantile of the discrete noise, so the coverage is at least the level. Averages: see
`averages.py`; over a public number of rows only the sum is noisy, and its interval is divided by that number. Variances
and their roots: see `variances.py`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import assert_never

import numpy as np

from dpsql.core.ir.components import Count, End, Output, Ratio, Sum, Variance, coefficients
from dpsql.core.noise.integer_columns import Floats, Integers, combined, outwards
from dpsql.core.noise.measurement import Measurement
from dpsql.core.noise.widths import linear_width
from dpsql.core.release.noisy import NoisyRelease
from dpsql.postprocessing.arithmetic import linear
from dpsql.postprocessing.intervals.averages import AverageIntervals
from dpsql.postprocessing.intervals.outward_rounding import above, below
from dpsql.postprocessing.intervals.variances import VarianceIntervals
from dpsql.postprocessing.quotients import averages_of, variances_of

Bounds = tuple[float, float]


def output_intervals(noisy: NoisyRelease, output: Output, level: Fraction) -> list[Bounds]:
    """One (low, high) per row of the release for one output column, at confidence `level` in (0, 1)."""
    measurements, columns = noisy.planned.measured.measurements, noisy.columns
    match output.recipe:
        case Count() | Sum() as recipe:
            parts = coefficients(recipe, [m.component for m in measurements])
            width = linear_width(recipe, measurements, level)
            values, whole = linear(parts, columns, len(noisy.keys))
            low, high = around(values, Fraction(1, whole), Fraction(0), width)
            return list(zip(low.tolist(), high.tolist(), strict=True))
        case Ratio(sum=s, count=n) as ratio:
            if measurements[n].known is not None:
                return _over_known(measurements[s], measurements[n], ratio, level, columns[s])
            found = AverageIntervals(measurements[s], measurements[n], ratio, level)(columns[s], columns[n])
            return _holding(found, averages_of(ratio, measurements, columns))
        case Variance(sum=s, squares=q, count=n) as variance:
            intervals = VarianceIntervals(measurements[s], measurements[q], measurements[n], variance, level)
            found = intervals(columns[s], columns[q], columns[n])
            return _holding(found, variances_of(variance, measurements, columns))
        case End(of=recipe):
            return output_intervals(noisy, replace(output, recipe=recipe), level)
        case _:
            assert_never(output.recipe)


def _holding(found: list[Bounds], shown: Floats) -> list[Bounds]:
    """Intervals widened to hold the numbers shown, which covers no less.

    They may not where a noisy count is near 0: what fits the noisy numbers can leave out the end of the column's
    bounds at which the quotient shown was cut off.
    """
    low, high = np.array(found, dtype=np.float64).reshape(-1, 2).T
    return list(zip(np.minimum(low, shown).tolist(), np.maximum(high, shown).tolist(), strict=True))


def around(values: Integers, unit: Fraction, center: Fraction, width: Fraction) -> tuple[Floats, Floats]:
    """center + value · unit, less `width` and more, each rounded outwards."""
    over, under = _shifted(values, unit, center - width)
    low = outwards(over, under, -1)
    over, under = _shifted(values, unit, center + width)
    return low, outwards(over, under, 1)


def _shifted(values: Integers, unit: Fraction, by: Fraction) -> tuple[Integers, int]:
    """by + value · unit: integers, and the one number to divide them by."""
    whole = math.lcm(unit.denominator, by.denominator)
    return combined([(values, int(unit * whole))], int(by * whole), len(values)), whole


def _over_known(
    total: Measurement, count: Measurement, ratio: Ratio, level: Fraction, totals: Sequence[int]
) -> list[Bounds]:
    """Averages over a public number of rows, within the bounds [lo, hi] of the column; [lo, hi] if outside of them."""
    assert count.known is not None
    center = total.component.center * total.component.grid
    unit = total.unit / max(Fraction(1), count.known * count.unit)
    sums, width = Integers.of(totals), total.mechanism.half_width(level) * unit
    low, high = around(sums, unit, center, width)
    ends = below(ratio.lo), above(ratio.hi)
    # Outside: low > hi or high < lo, compared exactly.
    over, under = _shifted(sums, unit, center - width)
    outside = over.array > math.floor(ratio.hi * under)
    over, under = _shifted(sums, unit, center + width)
    outside = outside | (over.array < math.ceil(ratio.lo * under))
    low = np.where(outside, ends[0], np.maximum(low, ends[0]))
    high = np.where(outside, ends[1], np.minimum(high, ends[1]))
    return list(zip(low.tolist(), high.tolist(), strict=True))
