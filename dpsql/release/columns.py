"""Released columns from noisy components, each in its SQL type: counts, sums, averages, variances, interval ends."""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from typing import assert_never

from dpsql.measure.measured import Measurement
from dpsql.numbers.confidence import LEVEL
from dpsql.plan.components import Count, End, Output, Ratio, Sum, Variance, coefficients
from dpsql.release.arithmetic import average, linear, rounded, variance
from dpsql.release.intervals import output_intervals
from dpsql.release.noisy import NoisyRelease
from dpsql.types import Kind, SqlType


def released_columns(noisy: NoisyRelease) -> list[list[object]]:
    """One list per output of the release, in the SQL type of its column."""
    measurements = noisy.planned.measured.measurements
    columns = [[row[i] for row in noisy.values] for i in range(len(measurements))]
    return [
        # An interval's ends are post-processing of the same noisy numbers.
        [bounds[o.recipe.high] for bounds in output_intervals(noisy, o, LEVEL)]
        if isinstance(o.recipe, End)
        else _column(o, o.recipe, columns, measurements)
        for o in noisy.planned.measured.node.outputs
    ]


def _column(
    o: Output,
    recipe: Count | Sum | Ratio | Variance,
    columns: Sequence[Sequence[int]],
    measurements: Sequence[Measurement],
) -> list[object]:
    match recipe:
        case Count(component=i):
            unit = measurements[i].unit
            return [rounded(v, unit) for v in columns[i]]
        case Sum():
            parts = coefficients(recipe, [m.component for m in measurements])
            return _typed(*linear(parts, zip(*columns, strict=True)), o.column.type)
        case Ratio(sum=s, count=n, lo=lo, hi=hi):
            center = measurements[s].component.center * measurements[s].component.grid
            units = measurements[s].unit, measurements[n].unit
            pairs = zip(columns[s], columns[n], strict=True)
            return [float(min(hi, max(lo, average(a, b, units, center)))) for a, b in pairs]
        case Variance():
            return _variances(recipe, columns, measurements)
        case _:
            assert_never(recipe)


def _variances(recipe: Variance, columns: Sequence[Sequence[int]], measurements: Sequence[Measurement]) -> list[object]:
    """As floats: of a root that of the exact variance, which is rounded once more."""
    s, q, n = (measurements[i] for i in (recipe.sum, recipe.squares, recipe.count))
    middle = q.component.shift * q.component.worth
    found: list[object] = []
    for a, b, c in zip(columns[recipe.sum], columns[recipe.squares], columns[recipe.count], strict=True):
        v = variance(a * s.unit, b * q.unit, c * n.unit, recipe, middle)
        found.append(min(recipe.greatest, math.sqrt(v) if recipe.root else float(v)))
    return found


def _typed(values: Sequence[int], whole: int, type_: SqlType) -> list[object]:
    """values / whole."""
    if type_.kind is Kind.INTEGER:
        unit = Fraction(1, whole)
        return [rounded(v, unit) for v in values]
    if type_.kind is Kind.DECIMAL:
        unit = Fraction(10**type_.scale, whole)
        return [Decimal(rounded(v, unit)).scaleb(-type_.scale) for v in values]
    return [v / whole for v in values]
