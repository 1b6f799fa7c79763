"""Two more columns behind each noisy one: where its interval begins and ends. Which they are, the plan alone says."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Any

from dpsql.answers.results.answer import Release, column_intervals, unique_names
from dpsql.core.ir.types import DOUBLE, SqlType
from dpsql.planner.plan import Plan
from dpsql.planner.postprocessing.planning.unchanged_columns import is_key

ENDS = ("low", "high")


def with_ends(plan: Plan) -> tuple[tuple[str, SqlType], ...]:
    """Names and types of an answer's columns, with `n_low` and `n_high` behind each `n` that is no group key."""
    found: list[tuple[str, SqlType]] = []
    for column in plan.columns:
        found.append((column.name, column.type))
        if not is_key(plan.tree.node, column.uid):
            found += [(f"{column.name}_{end}", DOUBLE) for end in ENDS]
    return tuple(found)


def places_of_ends(plan: Plan) -> tuple[int, ...]:
    """Where in `with_ends` a column stands that has its `_low` and `_high` behind it."""
    found, at = list[int](), 0
    for column in plan.columns:
        has_ends = not is_key(plan.tree.node, column.uid)
        found += [at] if has_ends else []
        at += 3 if has_ends else 1
    return tuple(found)


def rows_with_ends(release: Release, level: Fraction) -> list[tuple[Any, ...]]:
    """The rows for the columns of `with_ends`: NULL where a number has no interval."""
    intervals = column_intervals(release, level)
    names = unique_names(release.columns)

    def cells(at: int, row: tuple[Any, ...]) -> Iterator[Any]:
        for name, value in zip(names, row, strict=True):
            yield value
            if name in intervals:
                yield from intervals[name].bounds[at] or (None, None)

    return [tuple(cells(at, row)) for at, row in enumerate(release.rows)]
