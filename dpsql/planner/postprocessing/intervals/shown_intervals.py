"""What an answer tells of a column that was computed: intervals at one level, and why there is none.

An interval always holds the number that is shown. Where the sum or quotient that a form gives is not the number that
the engine shows, the row was not followed, and there is no interval.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from dpsql.core.noise.integer_columns import Floats
from dpsql.diagnostics.words import TOO_HIGH, TOO_LOW
from dpsql.frontend.aggregates.formula import Ends
from dpsql.planner.postprocessing.intervals.column_enclosures import ELSEWHERE, FINE, LOST, WHY, Bounds
from dpsql.planner.postprocessing.intervals.derived_columns import (
    IntervalColumn,
    KnownColumn,
    Picked,
    Quotient,
    TotalColumn,
    nothing,
)
from dpsql.planner.postprocessing.planning.forms import Form

_MOST_LEVELS = 24
"""Different numbers of atoms in the rows of one column; more are put together, which only widens."""
_NEAR = 1e-6


@dataclass(frozen=True)
class ShownIntervals:
    """Of one column of the answer, row by row: (low, high), or None; and why it is None, unless there is no noise.

    An end is None where a limit cuts the number by an unknown amount; the reason says that, too.

    single: the column has intervals, so that a reason is one of this number alone.
    """

    bounds: list[Ends | None]
    why: list[str]
    single: bool = False

    @classmethod
    def nothing(cls, height: int, why: str = "") -> ShownIntervals:
        """No interval anywhere."""
        return cls([None] * height, [why] * height)


def simultaneous(column: IntervalColumn, outside: Fraction) -> Bounds:
    """Intervals of which each row's hold together with this probability."""
    atoms = column.atoms()
    number = np.maximum(1, sum((np.asarray(c) for c in atoms.values()), np.zeros(len(column), dtype=np.int64)))
    levels = np.unique(number)
    if len(levels) > _MOST_LEVELS:
        grid = np.unique(np.ceil(np.geomspace(levels[0], levels[-1], _MOST_LEVELS)).astype(np.int64))
        number = grid[np.searchsorted(grid, number)]
        levels = np.unique(number)
    if len(levels) <= 1:
        return column.bounds(outside / int(levels[0]) if len(levels) else outside)
    whole = nothing(len(column), ELSEWHERE, np.zeros(len(column), dtype=np.bool_))
    for level in levels.tolist():
        rows = np.flatnonzero(number == level)
        whole = whole.replaced(rows, column.taken(rows).bounds(outside / level))
    return whole


def shown_intervals(column: IntervalColumn, found: Bounds, values: Sequence[Any], form: Form) -> ShownIntervals:
    """What is shown of a column, given where it lies and the values that the engine shows."""
    shown = KnownColumn.of(values)
    lost = _lost(column, shown.values) & ~shown.missing
    known = ~np.isnan(found.low) & ~shown.missing & ~lost & ~np.isnan(shown.values)
    noisy = column.noisy
    low, high = np.minimum(found.low, shown.values), np.maximum(found.high, shown.values)
    if form.lost.high and form.nonnegative:  # the only end, so that no ± is told by it
        low = np.maximum(low, 0.0)
    ends = [[None] * len(own) if lost else own.tolist() for own, lost in ((low, form.lost.low), (high, form.lost.high))]
    shown_ends = [pair if there else None for *pair, there in zip(*ends, (known & noisy).tolist(), strict=True)]
    why = np.where(lost, LOST, found.why)
    why = np.where(known | ~noisy | found.missing, 0, why)
    texts = {code: WHY.get(code, form.why) for code in np.unique(why).tolist()}
    texts[FINE] = TOO_LOW if form.lost.high else TOO_HIGH if form.lost else ""
    reasons = [texts[code] if there or code else "" for code, there in zip(why.tolist(), noisy.tolist(), strict=True)]
    return ShownIntervals([None if pair is None else (pair[0], pair[1]) for pair in shown_ends], reasons, single=True)


def _lost(column: IntervalColumn, shown: Floats) -> np.ndarray:
    """Where a sum or a quotient is not the number that is shown."""
    match column:
        case TotalColumn(sum=number):
            value, error = number.valued()
            room = number.slack + error + _NEAR * (np.abs(value) + np.abs(shown))
            return np.abs(value - shown) > room
        case Quotient(above=above, below=below):
            (a, a_error), (b, b_error) = above.valued(), below.valued()
            room = above.slack + a_error + np.abs(shown) * (below.slack + b_error)
            room = room + _NEAR * (np.abs(a) + np.abs(shown * b))
            return np.abs(a - shown * b) > room
        case Picked(which=which, columns=columns):
            found = np.zeros(len(column), dtype=np.bool_)
            for i, own in enumerate(columns):
                rows = np.flatnonzero(which == i)
                found[rows] = _lost(own.taken(rows), shown[rows])
            return found
        case _:
            return np.zeros(len(column), dtype=np.bool_)
