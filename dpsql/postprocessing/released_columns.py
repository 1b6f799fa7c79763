"""Released columns from noisy components, each in its SQL type: counts, sums, averages, variances, interval ends."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Context
from itertools import repeat
from typing import assert_never

from dpsql.core.ir.components import Count, End, Output, Ratio, Sum, Variance, coefficients
from dpsql.core.ir.types import Kind, SqlType
from dpsql.core.noise.integer_columns import Integers, quotients, rounded
from dpsql.core.noise.measurement import Measurement
from dpsql.core.numbers.confidence import LEVEL
from dpsql.core.release.noisy import NoisyRelease
from dpsql.postprocessing.arithmetic import linear
from dpsql.postprocessing.intervals.released import output_intervals
from dpsql.postprocessing.quotients import averages_of, variances_of

_EXACT = Context(prec=100)
"""Wider than any total with its decimals, whatever the caller's own context would round to."""


def released_columns(noisy: NoisyRelease) -> list[list[object]]:
    """One list per output of the release, in the SQL type of its column."""
    measurements, height = noisy.planned.measured.measurements, len(noisy.keys)
    return [
        # An interval's ends are post-processing of the same noisy numbers.
        [bounds[o.recipe.high] for bounds in output_intervals(noisy, o, LEVEL)]
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
        case Count() | Sum():
            parts = coefficients(recipe, [m.component for m in measurements])
            return _typed(*linear(parts, columns, height), o.column.type)
        case Ratio():
            return list(averages_of(recipe, measurements, columns).tolist())
        case Variance():
            return list(variances_of(recipe, measurements, columns).tolist())
        case _:
            assert_never(recipe)


def _typed(values: Integers, whole: int, type_: SqlType) -> list[object]:
    """values / whole."""
    if type_.kind is Kind.INTEGER:
        return list(rounded(values, 1, whole))
    if type_.kind is Kind.DECIMAL:
        found = rounded(values, 10**type_.scale, whole)
        return list(map(_EXACT.scaleb, found, repeat(-type_.scale)))
    return list(quotients(values, whole).tolist())
