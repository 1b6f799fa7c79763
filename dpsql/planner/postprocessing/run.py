"""Post-processing: the answer's rows from the noisy tables, in a database that holds nothing private.

An answer that takes public tables alone is made where they are, by the engine.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import islice
from typing import Any, Final

from dpsql.core.engine import Engine
from dpsql.core.ir.expressions import Column
from dpsql.core.ir.types import BIGINT, Kind
from dpsql.core.release.noisy import NoisyRelease, with_texts
from dpsql.engines.scratch import Scratch
from dpsql.planner.postprocessing.consistency.totals import Consistent, with_totals
from dpsql.planner.postprocessing.intervals.answer_intervals import AnswerIntervals, Trace
from dpsql.planner.postprocessing.intervals.ends_in_sql import ends_in_sql
from dpsql.planner.postprocessing.intervals.linear import NO_CUT, Cut
from dpsql.planner.postprocessing.noisy_rows import released_columns
from dpsql.planner.postprocessing.planning.cut_statements import public_table
from dpsql.planner.postprocessing.planning.forms import Sources
from dpsql.planner.postprocessing.planning.steps import PostProcessing, Step


@dataclass(frozen=True)
class AnswerRows:
    """The answer's rows, column by column. derived: their intervals; None where nothing has noise."""

    columns: tuple[Sequence[Any], ...]
    height: int
    derived: AnswerIntervals | None = None

    @cached_property
    def rows(self) -> tuple[tuple[Any, ...], ...]:
        """The same row by row; made when first asked for, which with many rows takes longer than all else."""
        return tuple(zip(*self.columns, strict=True)) if self.columns else ((),) * self.height

    def first(self, most: int) -> AnswerRows:
        """The first rows."""
        if most >= self.height:
            return self
        return AnswerRows(tuple(list(islice(column, most)) for column in self.columns), most, self.derived)


_INCONSISTENT: Final[Consistent] = {}


def post_process(
    post: PostProcessing,
    noisy: Sequence[NoisyRelease],
    engine: Engine,
    scratch: Scratch,
    consistent: Consistent = _INCONSISTENT,
    cut: Cut = NO_CUT,
) -> AnswerRows:
    """The rows of the answer. Reads noisy numbers and public tables only; of an answer without rows nothing at all.

    consistent: totals that are the sums of their parts. cut: what limits cut that searches found.
    Raises EngineError; CannotOpen if a public table is gone.
    """
    if post.empty:
        return AnswerRows(tuple(() for _ in post.columns), 0)
    if not post.steps:
        return _exact(post, engine)
    if post.renamed is not None:
        shown = noisy[post.shown]
        columns = [*shown.key_columns, *released_columns(shown, known=ends_in_sql(post, noisy, cut, post.shown))]
        chosen = [columns[i] for i in post.renamed]
        height = len(shown.keys)
        derived = AnswerIntervals(post.steps, (Trace(height, (range(height),), ()),), noisy, cut=cut)
        return AnswerRows(tuple(chosen), height, derived)
    for place, release in enumerate(noisy):
        node = release.planned.measured.node
        named = [(f"c{k.uid}", k.type) for k in node.keys] + [(f"c{o.column.uid}", o.column.type) for o in node.outputs]
        ends = ends_in_sql(post, noisy, NO_CUT if consistent else cut, place)
        made = released_columns(with_totals(place, release, consistent), release, ends)
        values = [*release.key_columns, *made]
        if not named:  # no table is without columns
            named, values = [("c0", BIGINT)], [list(range(len(release.keys)))]
        scratch.load_columns(release.planned.label, named, values)
    for table, read in post.public_tables:
        _load_public(table, read, engine, scratch)
    *before, last = post.steps
    traces = [_made(step, scratch) for step in before]
    found, _ = scratch.fetch(last.sql)
    width = len(post.columns)
    traces.append(_trace(last, found.columns[width:], found.height, scratch))
    derived = AnswerIntervals(post.steps, traces, noisy, consistent, cut)
    return AnswerRows(_shown(post, found.columns[:width]), found.height, derived)


def _made(step: Step, scratch: Scratch) -> Trace:
    """Makes the table of a step, and says which rows it is made of."""
    assert step.table is not None
    scratch.make(step.table, step.sql)
    listed = ", ".join(name for name in step.hidden if name is not None) or scratch.row
    found, _ = scratch.fetch(f"SELECT {listed} FROM {scratch.table_sql(step.table)} ORDER BY {scratch.row}")
    return _trace(step, found.columns, found.height, scratch)


def _trace(step: Step, columns: Sequence[Sequence[Any]], height: int, scratch: Scratch) -> Trace:
    """columns: the hidden ones that the rows still have."""
    waiting = iter(columns)
    hidden = tuple(() if name is None else next(waiting) for name in step.hidden)
    return Trace(height, hidden, _shares(step, scratch))


def _shares(step: Step, scratch: Scratch) -> tuple[tuple[Sources, Fraction], ...]:
    """Which part of the rows was left where noisy numbers chose them."""
    found = []
    for selection in step.selections:
        (left,), (there,) = scratch.fetch(selection.counted)[0].columns
        if 0 < left < there:
            found.append((selection.sources, Fraction(left, there)))
    return tuple(found)


def _exact(post: PostProcessing, engine: Engine) -> AnswerRows:
    """The rows of an answer that takes public tables alone: there the engine has them, and need not hand them over."""
    for table, _ in post.public_tables:
        engine.table_sql(table)  # says what is wrong with one that has gone since the plan was made
    found = engine.fetch(post.sql)
    return AnswerRows(_shown(post, found.columns), found.height)


def _shown(post: PostProcessing, columns: Sequence[Sequence[Any]]) -> tuple[Sequence[Any], ...]:
    """The answer's columns as they are shown whether or not they were computed with."""
    return tuple(
        with_texts(values) if column.type.kind is Kind.UUID else values
        for values, column in zip(columns, post.columns, strict=True)
    )


def _load_public(table: str, columns: Sequence[Column], engine: Engine, scratch: Scratch) -> None:
    """Copy the columns of a public table that the answer reads."""
    listed = ", ".join(engine.dialect.identifier(c.name) for c in columns)
    rows = engine.fetch(f"SELECT {listed} FROM {engine.table_sql(table)} AS t0")
    scratch.load_columns(public_table(table), [(c.name, c.type) for c in columns], list(rows.columns))
