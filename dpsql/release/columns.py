"""Released columns from noisy components, each in its SQL type: counts, sums, averages, variances, interval ends."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import assert_never

from dpsql.measure.allocate import Measurement
from dpsql.measure.integers import Integers, quotients, rounded
from dpsql.plan.components import Count, End, Output, Ratio, Sum, Variance, coefficients
from dpsql.release.arithmetic import averages, linear, variances
from dpsql.release.intervals import COLUMN_LEVEL, output_intervals
from dpsql.release.noisy import NoisyRelease
from dpsql.types import Kind, SqlType


def released_columns(noisy: NoisyRelease) -> list[list[object]]:
    """One list per output of the release, in the SQL type of its column."""
    measurements, height = noisy.planned.measured.measurements, len(noisy.keys)
    return [
        # An interval's ends are post-processing of the same noisy numbers.
        [bounds[o.recipe.high] for bounds in output_intervals(noisy, o, COLUMN_LEVEL)]
        if isinstance(o.recipe, End)
        else _column(o, o.recipe, noisy.columns, measurements, height)
        for o in noisy.planned.measured.node.outputs
    ]


def _column(
    o: Output,
    recipe: Count | Sum | Ratio | Variance,
    columns: Sequence[Integers],
    measurements: Sequence[Measurement],
    height: int,
) -> list[object]:
    match recipe:
        case Count(component=i):
            unit = measurements[i].unit
            return list(rounded(columns[i], unit.numerator, unit.denominator))
        case Sum():
            parts = coefficients(recipe, [m.component for m in measurements])
            return _typed(*linear(parts, columns, height), o.column.type)
        case Ratio(sum=s, count=n, lo=lo, hi=hi):
            center = measurements[s].component.center * measurements[s].component.grid
            units = measurements[s].unit, measurements[n].unit
            return list(averages(columns[s], columns[n], units, center, (lo, hi)).tolist())
        case Variance(sum=s, squares=q, count=n):
            middle = measurements[q].component.shift * measurements[q].component.worth
            units_ = measurements[s].unit, measurements[q].unit, measurements[n].unit
            return list(variances(columns[s], columns[q], columns[n], units_, recipe, middle).tolist())
        case _:
            assert_never(recipe)


def _typed(values: Integers, whole: int, type_: SqlType) -> list[object]:
    """values / whole."""
    if type_.kind is Kind.INTEGER:
        return list(rounded(values, 1, whole))
    if type_.kind is Kind.DECIMAL:
        found = rounded(values, 10**type_.scale, whole)
        return [Decimal(v).scaleb(-type_.scale) for v in found]
    return list(quotients(values, whole).tolist())
