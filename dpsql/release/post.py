"""Post-processing: the answer's rows from the noisy tables, in a database that holds nothing private.

An answer that takes public tables alone is made where they are, by the engine.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import Any

from dpsql.compiler.plan import Plan
from dpsql.compiler.post import public_table
from dpsql.engine.base import Engine, quoted
from dpsql.engine.scratch import Scratch
from dpsql.plan.expr import Column
from dpsql.release.columns import released_columns
from dpsql.release.noisy import NoisyRelease, with_texts
from dpsql.types import BIGINT, Kind


@dataclass(frozen=True)
class Rows:
    """The answer's rows, column by column.

    traced: for each row the branch of the plan and the row of its release that it shows, if any; None: row by row the
        rows of the only branch's release.
    """

    columns: tuple[Sequence[Any], ...]
    height: int
    traced: tuple[tuple[int, int] | None, ...] | None = None

    @cached_property
    def rows(self) -> tuple[tuple[Any, ...], ...]:
        """The same row by row; made when first asked for, which with many rows takes longer than all else."""
        return tuple(zip(*self.columns, strict=True)) if self.columns else ((),) * self.height

    def first(self, most: int) -> Rows:
        """The first rows."""
        columns = tuple(list(islice(column, most)) for column in self.columns)
        return Rows(columns, min(most, self.height), None if self.traced is None else self.traced[:most])

    @property
    def origin(self) -> tuple[tuple[int, int] | None, ...]:
        """`traced`, written out."""
        return self.traced if self.traced is not None else tuple((0, row) for row in range(self.height))


def post_process(plan: Plan, noisy: Sequence[NoisyRelease], engine: Engine, scratch: Scratch) -> Rows:
    """The rows of the answer. Reads noisy numbers and public tables only; of an answer without rows nothing at all.

    Raises EngineError; CannotOpen if a public table is gone.
    """
    if plan.tree.fact.empty:
        return Rows(tuple(() for _ in plan.columns), 0, ())
    if not plan.releases:
        return _exact(plan, engine)
    if plan.post.renamed is not None:
        shown = noisy[plan.post.shown]
        columns = [*shown.key_columns, *released_columns(shown)]
        chosen = [columns[i] for i in plan.post.renamed]
        return Rows(tuple(chosen), len(shown.keys))
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
    shown_columns, branches = _shown(plan, found.columns[:width]), len(plan.post.branches)
    if not branches:
        return Rows(shown_columns, found.height, (None,) * found.height)
    numbers = found.columns[width]
    origin = tuple(None if number is None else (number % branches, number // branches) for number in numbers)
    return Rows(shown_columns, found.height, origin)


def _exact(plan: Plan, engine: Engine) -> Rows:
    """The rows of an answer that takes public tables alone: there the engine has them, and need not hand them over."""
    for table, _ in plan.post.public_tables:
        engine.table_sql(table)  # says what is wrong with one that has gone since the plan was made
    found = engine.fetch(plan.post.sql)
    return Rows(_shown(plan, found.columns), found.height, (None,) * found.height)


def _shown(plan: Plan, columns: Sequence[Sequence[Any]]) -> tuple[Sequence[Any], ...]:
    """The answer's columns as they are shown whether or not they were computed with."""
    return tuple(
        with_texts(values) if column.type.kind is Kind.UUID else values
        for values, column in zip(columns, plan.columns, strict=True)
    )


def _load_public(table: str, columns: Sequence[Column], engine: Engine, scratch: Scratch) -> None:
    """Copy the columns of a public table that the answer reads."""
    listed = ", ".join(quoted(c.name) for c in columns)
    rows = engine.fetch(f"SELECT {listed} FROM {engine.table_sql(table)}")
    scratch.load_columns(public_table(table), [(c.name, c.type) for c in columns], list(rows.columns))
