"""Post-processing: the answer's rows from the noisy tables, in a database that holds nothing private."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import repeat
from typing import Any

from dpsql.compiler.plan import Plan
from dpsql.compiler.post import public_table
from dpsql.engine.base import Engine, quoted
from dpsql.engine.scratch import Scratch
from dpsql.plan.expr import Column
from dpsql.release.columns import released_columns
from dpsql.release.noisy import NoisyRelease
from dpsql.types import BIGINT


@dataclass(frozen=True, slots=True)
class Rows:
    """The answer's rows, and the same column by column.

    traced: for each row the branch of the plan and the row of its release that it shows, if any; None: row by row the
        rows of the only branch's release.
    """

    rows: tuple[tuple[Any, ...], ...]
    columns: tuple[Sequence[Any], ...]
    traced: tuple[tuple[int, int] | None, ...] | None = None

    @property
    def origin(self) -> tuple[tuple[int, int] | None, ...]:
        """`traced`, written out."""
        if self.traced is not None:
            return self.traced
        return tuple(zip(repeat(0), range(len(self.rows)), strict=False))


def post_process(plan: Plan, noisy: Sequence[NoisyRelease], engine: Engine, scratch: Scratch) -> Rows:
    """The rows of the answer. Reads noisy numbers and public tables only. Raises EngineError."""
    if plan.post.renamed is not None:
        shown = noisy[plan.post.shown]
        columns = [*shown.key_columns, *released_columns(shown)]
        chosen = [columns[i] for i in plan.post.renamed]
        return Rows(tuple(zip(*chosen, strict=True)) if chosen else ((),) * len(shown.keys), tuple(chosen))
    for release in noisy:
        node = release.planned.measured.node
        height = len(release.keys)
        named = [(f"c{k.uid}", k.type) for k in node.keys] + [(f"c{o.column.uid}", o.column.type) for o in node.outputs]
        values = [*release.key_columns, *released_columns(release)]
        scratch.load_columns(release.planned.label, [*named, ("c0", BIGINT)], [*values, list(range(height))])
    for table, read in plan.post.public_tables:
        _load_public(table, read, engine, scratch)
    found, _ = scratch.fetch(plan.post.sql)
    width = len(plan.columns)
    shown_columns, branches = found.columns[:width], len(plan.post.branches)
    rows = tuple(zip(*shown_columns, strict=True)) if width else ((),) * found.height
    if not branches:
        return Rows(rows, shown_columns, (None,) * len(rows))
    numbers = found.columns[width]
    origin = tuple(None if number is None else (number % branches, number // branches) for number in numbers)
    return Rows(rows, shown_columns, origin)


def _load_public(table: str, columns: Sequence[Column], engine: Engine, scratch: Scratch) -> None:
    """Copy the columns of a public table that the answer reads."""
    listed = ", ".join(quoted(c.name) for c in columns)
    rows = engine.fetch(f"SELECT {listed} FROM {engine.table_sql(table)}")
    scratch.load_columns(public_table(table), [(c.name, c.type) for c in columns], list(rows.columns))
