"""Released columns from noisy components: counts, sums, and averages as ratios. Public arithmetic."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from typing import assert_never

from dpsql.measure.allocate import Measurement
from dpsql.plan.components import Count, End, Output, Ratio, Sum
from dpsql.release.noisy import NoisyRelease
from dpsql.types import Kind, SqlType


def released_columns(noisy: NoisyRelease) -> list[list[object]]:
    """One list per output of the release, in the SQL type of its column."""
    from dpsql.release.intervals import COLUMN_LEVEL, output_intervals  # which reads averages from here

    measurements = noisy.planned.measured.measurements
    columns = [[row[i] for row in noisy.values] for i in range(len(measurements))]
    return [
        # An interval's ends are post-processing of the same noisy numbers.
        [bounds[o.recipe.high] for bounds in output_intervals(noisy, o, COLUMN_LEVEL)]
        if isinstance(o.recipe, End)
        else _column(o, o.recipe, columns, measurements)
        for o in noisy.planned.measured.node.outputs
    ]


def _column(
    o: Output, recipe: Count | Sum | Ratio, columns: Sequence[Sequence[int]], measurements: Sequence[Measurement]
) -> list[object]:
    match recipe:
        case Count(component=i):
            return [rounded(v, measurements[i].unit) for v in columns[i]]
        case Sum(component=i):
            unit = measurements[i].unit
            return [_typed(v, unit, o.column.type) for v in columns[i]]
        case Ratio(sum=s, count=n, lo=lo, hi=hi):
            center = measurements[s].component.center * measurements[s].component.grid
            units = measurements[s].unit, measurements[n].unit
            pairs = zip(columns[s], columns[n], strict=True)
            return [float(min(hi, max(lo, average(a, b, units, center)))) for a, b in pairs]
        case _:
            assert_never(recipe)


def average(total: int, count: int, units: tuple[Fraction, Fraction], center: Fraction) -> Fraction:
    """center + sum / max(1, count), exact."""
    return center + total * units[0] / max(Fraction(1), count * units[1])


def rounded(value: int, unit: Fraction) -> int:
    """value · unit to the nearest integer, halves away from zero: post-processing."""
    scaled = value * unit.numerator
    down, rest = divmod(abs(scaled), unit.denominator)
    whole = down + (2 * rest >= unit.denominator)
    return whole if scaled >= 0 else -whole


def _typed(value: int, unit: Fraction, type_: SqlType) -> object:
    if type_.kind is Kind.INTEGER:
        return rounded(value, unit)
    if type_.kind is Kind.DECIMAL:
        return Decimal(rounded(value, unit * 10**type_.scale)).scaleb(-type_.scale)
    return value * unit.numerator / unit.denominator
