"""Two more columns for each noisy one: where its interval begins and ends. Which they are, the plan alone says.

They stand behind all columns of the query, which keep their places: tools read columns by their number, and would
show the end of one number as the next one.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from dpsql.answers.results.answer import Release, column_intervals, unique_names
from dpsql.core.ir.types import DOUBLE, SqlType
from dpsql.planner.plan import Plan
from dpsql.planner.postprocessing.planning.unchanged_columns import is_key

ENDS = ("low", "high")


def with_ends(plan: Plan) -> tuple[tuple[str, SqlType], ...]:
    """Names and types of an answer's columns, behind them `n_low` and `n_high` of each `n` that is a noisy number."""
    shown = [(column.name, column.type) for column in plan.columns]
    ends = [(f"{shown[at][0]}_{end}", DOUBLE) for at in places_of_ends(plan) for end in ENDS]
    return (*shown, *ends)


def places_of_ends(plan: Plan) -> tuple[int, ...]:
    """The columns that have ends: numbers that are no group keys, where anything is released."""
    if not plan.releases:
        return ()
    columns = enumerate(plan.columns)
    return tuple(at for at, c in columns if c.type.numeric and not is_key(plan.tree.node, c.uid))


def rows_with_ends(release: Release, level: Fraction) -> list[tuple[Any, ...]]:
    """The rows for the columns of `with_ends`: NULL where a number has no interval."""
    intervals, names = column_intervals(release, level), unique_names(release.columns)
    found = [intervals[names[at]] for at in places_of_ends(release.plan)]
    return [
        (*row, *(end for each in found for end in each.bounds[at] or (None, None)))
        for at, row in enumerate(release.rows)
    ]
