"""Intervals of an answer's columns: forms (`planning/forms.py`) carried out over rows that the engine followed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, assert_never

import numpy as np

from dpsql.core.release.noisy import NoisyRelease
from dpsql.core.value_classes import replace
from dpsql.planner.postprocessing.consistency.totals import Consistent
from dpsql.planner.postprocessing.intervals.column_enclosures import ELSEWHERE, MANY, UNSETTLED
from dpsql.planner.postprocessing.intervals.derived_columns import (
    FunctionColumn,
    IntervalColumn,
    KnownColumn,
    NoInterval,
    Picked,
    Quotient,
    TotalColumn,
    as_quotient,
    whole_output,
)
from dpsql.planner.postprocessing.intervals.gathered_rows import Gathered
from dpsql.planner.postprocessing.intervals.linear import (
    NO_CUT,
    Cut,
    LaidOut,
    LinearColumn,
    Noises,
    Places,
    Spans,
    TooMany,
)
from dpsql.planner.postprocessing.intervals.shown_intervals import ShownIntervals, shown_intervals, simultaneous
from dpsql.planner.postprocessing.planning.forms import (
    OF_CUT,
    WHOLE,
    Called,
    Constant,
    Converted,
    Either,
    First,
    Fixed,
    Form,
    Framed,
    Grouped,
    IntervalMethod,
    Moved,
    Over,
    Shown,
    Sources,
    Taken,
)
from dpsql.planner.postprocessing.planning.steps import Input, Step


@dataclass(frozen=True)
class Trace:
    """What a step has told of its rows. hidden: its hidden columns. shares: noisy numbers that chose rows, and the part
    of the rows that they left."""

    height: int
    hidden: tuple[Sequence[Any], ...]
    shares: tuple[tuple[Sources, Fraction], ...]


class AnswerIntervals:
    """The columns of one answer."""

    def __init__(
        self,
        steps: Sequence[Step],
        traces: Sequence[Trace],
        releases: Sequence[NoisyRelease],
        consistent: Consistent | None = None,
        cut: Cut = NO_CUT,
    ) -> None:
        self._steps, self.traces, self._releases, self._consistent = steps, traces, releases, consistent or {}
        self._cut = cut
        self._made: dict[tuple[int, Form], IntervalColumn] = {}
        self._hidden_rows: dict[tuple[int, int], Places] = {}
        self._orders: dict[tuple[int, int, int, int], tuple[Places, Places]] = {}
        # Columns are kept as well, so that their numbers cannot be given to others.
        self._laid_out: dict[tuple[int, int], tuple[IntervalColumn, LaidOut]] = {}
        self._inputs: dict[tuple[int, int], IntervalColumn] = {}
        self._intervals: dict[tuple[int, Fraction, int, bool], ShownIntervals] = {}

    @cached_property
    def _noises(self) -> Noises:
        return Noises(self._releases, NO_CUT if self._consistent else self._cut)

    @cached_property
    def _of_what_limits_leave(self) -> AnswerIntervals:
        if not self._cut:
            return self
        return AnswerIntervals(self._steps, self.traces, self._releases, self._consistent)

    def intervals(self, uid: int, values: Sequence[Any], level: Fraction, bounded: bool = False) -> ShownIntervals:
        """Of column `uid`, which shows these values in the first rows of the answer.

        bounded: of what the query would give with its limits in place.
        """
        key = uid, level, len(values), bounded
        if key not in self._intervals:
            of = self._of_what_limits_leave if bounded else self
            self._intervals[key] = of._found(uid, values, level, bounded)
        return self._intervals[key]

    def _found(self, uid: int, values: Sequence[Any], level: Fraction, bounded: bool) -> ShownIntervals:
        last, height = len(self._steps) - 1, len(values)
        form = self._steps[last].forms[uid]
        form = replace(form, lost=WHOLE) if bounded else form
        if (gap := form.gap) is not None:
            return ShownIntervals.nothing(height, gap)
        column = self._column(form, last)
        if len(column) > height:
            column = column.taken(np.arange(height))
        if form.lost.told:
            if all(at in self._noises.cut for at in form.sources if at in self._cut):
                form = replace(form, lost=WHOLE)  # the intervals hold what is cut
            elif form.lost.low and form.lost.high:
                return ShownIntervals.nothing(height, OF_CUT)
        outside = (1 - level) * self._share(form.sources, last)
        return shown_intervals(column, simultaneous(column, outside), values, form)

    def _share(self, sources: Sources, at: int) -> Fraction:
        """The part of the rows that is left where these noisy numbers chose them."""
        found = Fraction(1)
        for chose, share in self.traces[at].shares:
            found *= share if chose & sources else 1
        for own in self._steps[at].inputs:
            if own.step is not None and own.row is not None:
                found *= self._share(sources, own.step)
        return found

    # --- forms -----------------------------------------------------------------------------------------------------

    def _column(self, form: Form, at: int) -> IntervalColumn:
        """A form of a step, for each of its rows; made once."""
        key = at, form
        if key not in self._made:
            self._made[key] = self._carried_out(form, at)
        return self._made[key]

    def _carried_out(self, form: Form, at: int) -> IntervalColumn:
        height = self.traces[at].height
        match form.maker:
            case None | Shown():
                return NoInterval(np.zeros(height, dtype=np.bool_), ELSEWHERE)
            case Constant(value=value):
                one = KnownColumn.of([value])
                return one.taken(np.zeros(height, dtype=np.intp))
            case Fixed(hidden=hidden):
                return KnownColumn.of(self.traces[at].hidden[hidden])
            case Taken(input=number, uid=uid):
                source = self._steps[at].inputs[number]
                assert source.row is not None
                return self._of_input(source, uid).taken(self._rows(at, source.row))
            case Called(function=function):
                return self._called(function, form, [self._column(a, at) for a in form.args])
            case Converted(places=places):
                (arg,) = (self._column(a, at) for a in form.args)
                if form.kind is not IntervalMethod.ENCLOSED or (
                    places is None and form.args[0].kind is IntervalMethod.ENCLOSED
                ):
                    return arg
                return FunctionColumn("cast", (), (arg,), (form.nonnegative,), places)
            case First():
                number = (len(form.args) + 1) // 2
                return self._first(form, at, form.args[:number], form.args[number:])
            case Either(hidden=hidden):
                which = self._rows(at, hidden)
                return self._mixed(form, which, [self._column(a, at) for a in form.args])
            case Moved(hidden=hidden):
                rows = self._rows(at, hidden)
                columns = [self._source(form.args[0], at).taken(rows)]
                columns += [self._column(a, at) for a in form.args[1:]]
                return self._mixed(form, np.where(rows >= 0, 0, len(columns) - 1), columns)
            case Over(function=function, rows=rows_of):
                return self._over(form, function, self._source(form.args[0], at), self._spans(rows_of, at))
            case _:
                assert_never(form.maker)

    def _of_input(self, source: Input, uid: int) -> IntervalColumn:
        """A column of an input, in its own rows."""
        if source.release is None:
            assert source.step is not None
            return self._column(self._steps[source.step].forms[uid], source.step)
        key = source.release, source.outputs[uid]
        if key not in self._inputs:
            self._inputs[key] = whole_output(self._noises, *key, self._releases[source.release], self._consistent)
        return self._inputs[key]

    def _source(self, form: Form, at: int) -> IntervalColumn:
        """The column of the input that a step reads several rows of."""
        assert isinstance(form.maker, Taken)
        return self._of_input(self._steps[at].inputs[form.maker.input], form.maker.uid)

    def _rows(self, at: int, hidden: int) -> Places:
        """Numbers of rows; -1 where there is none."""
        key = at, hidden
        if key not in self._hidden_rows:
            listed = self.traces[at].hidden[hidden]
            self._hidden_rows[key] = np.array([-1 if r is None else r for r in listed], dtype=np.intp)
        return self._hidden_rows[key]

    def _spans(self, rows: Framed | Grouped, at: int) -> Spans:
        if isinstance(rows, Grouped):
            lists = [found or () for found in self.traces[at].hidden[rows.rows]]
            stop = np.cumsum([len(found) for found in lists], dtype=np.intp)
            every = np.array([r for found in lists for r in found], dtype=np.intp)
            return Spans(every, np.concatenate([np.zeros(1, dtype=np.intp), stop[:-1]])[: len(lists)], stop)
        order, stands = self._order(rows, at)
        height = self.traces[at].height
        if rows.frame is None:
            return Spans(order, np.zeros(height, dtype=np.intp), np.full(height, len(order)))
        first, last = (self._rows(at, hidden) for hidden in rows.frame)
        if not len(order):
            return Spans(order, first, last)
        start = np.where(first >= 0, stands[np.maximum(first, 0)], 0)
        stop = np.where(first >= 0, stands[np.maximum(last, 0)] + 1, 0)
        return Spans(order, start, np.maximum(start, stop))

    def _order(self, rows: Framed, at: int) -> tuple[Places, Places]:
        """The rows of the input in the order of a window, and where each stands in it; found once."""
        key = at, rows.row, rows.partition, rows.place
        if key not in self._orders:
            own, partition, place = (self._rows(at, hidden) for hidden in key[1:])
            order = own[np.lexsort((place, partition))]
            stands = np.zeros(int(order.max(initial=-1)) + 1, dtype=np.intp)
            stands[order] = np.arange(len(order))
            self._orders[key] = order, stands
        return self._orders[key]

    # --- functions -------------------------------------------------------------------------------------------------

    def _called(self, function: str, form: Form, args: list[IntervalColumn]) -> IntervalColumn:
        if form.kind is not IntervalMethod.ENCLOSED and (lost := _lost_among(args)) is not None:
            return lost
        match form.kind:
            case IntervalMethod.LINEAR:
                return self._linear(function, form, args)
            case IntervalMethod.QUOTIENT:
                return self._quotient(function, form, args)
            case _:
                assert isinstance(form.maker, Called)
                nonnegative = tuple(f.nonnegative for f in form.args)
                return FunctionColumn(function, form.maker.values, tuple(args), nonnegative)

    def _linear(self, function: str, form: Form, args: list[IntervalColumn]) -> IntervalColumn:
        match function:
            case "nullif":
                return args[0]
            case "case" | "if":
                return self._cased(form, args)
            case "mul" if isinstance(args[0], KnownColumn):
                factor, number = args[0].linear(), args[1].linear()
            case "mul":
                factor, number = args[1].linear(), args[0].linear()
            case "div":
                by, number = args[1].linear(), args[0].linear()
                zero = by.constant == 0
                factor = LinearColumn.fixed(1 / np.where(zero, 1.0, by.constant), by.missing | zero)
            case "neg":
                factor, number = _all(-1.0, len(args[0])), args[0].linear()
            case "add":
                return TotalColumn(self._noises, args[0].linear().plus(args[1].linear()))
            case "sub":
                minus = args[1].linear().scaled(_all(-1.0, len(args[1])).constant, args[1].missing)
                return TotalColumn(self._noises, args[0].linear().plus(minus))
            case _:
                raise AssertionError(f"{function} is no weighted sum")
        return TotalColumn(self._noises, number.scaled(factor.constant, factor.missing))

    def _quotient(self, function: str, form: Form, args: list[IntervalColumn]) -> IntervalColumn:
        if function in ("case", "if"):
            return self._cased(form, args)
        if function == "nullif":
            return args[0]
        minus = _all(-1.0, len(args[0]))
        known = next((a for a in args if isinstance(a, KnownColumn)), None)
        match function:
            case "neg":
                return as_quotient(self._noises, args[0]).scaled(minus)
            case "add" | "sub" if known is args[0]:
                assert known is not None
                other = as_quotient(self._noises, args[1])
                return (other if function == "add" else other.scaled(minus)).plus(known.linear())
            case "add" | "sub":
                assert known is not None
                number = known.linear() if function == "add" else known.linear().scaled(minus.constant, minus.missing)
                return as_quotient(self._noises, args[0]).plus(number)
            case "mul":
                assert known is not None
                return as_quotient(self._noises, args[1] if known is args[0] else args[0]).scaled(known.linear())
            case "div" if known is args[1]:
                by = args[1].linear()
                zero = by.constant == 0
                factor = LinearColumn.fixed(1 / np.where(zero, 1.0, by.constant), by.missing | zero)
                return as_quotient(self._noises, args[0]).scaled(factor)
            case "div" if form.args[1].kind is IntervalMethod.QUOTIENT:
                below = as_quotient(self._noises, args[1])
                above = below.below.scaled(args[0].linear().constant, args[0].missing)
                return Quotient(self._noises, above, below.above, form.args[1].nonnegative)
            case "div":
                return Quotient(self._noises, args[0].linear(), args[1].linear(), form.args[1].nonnegative)
            case _:
                raise AssertionError(f"{function} is no quotient")

    def _cased(self, form: Form, args: list[IntervalColumn]) -> IntervalColumn:
        """CASE by conditions without noise."""
        which = np.full(len(args[0]), len(args) // 2, dtype=np.intp)
        conditions = [a for a in args[:-1:2] if isinstance(a, KnownColumn)]
        for i in reversed(range(len(conditions))):
            which = np.where((conditions[i].values == 1) & ~conditions[i].missing, i, which)
        return self._mixed(form, which, [*args[1:-1:2], args[-1]])

    def _first(self, form: Form, at: int, values: Sequence[Form], absent: Sequence[Form]) -> IntervalColumn:
        columns = [self._column(v, at) for v in values]
        which = np.full(len(columns[0]), len(columns) - 1, dtype=np.intp)
        gone = [self._column(a, at) for a in absent]
        for i in reversed(range(len(gone))):
            is_gone = gone[i]
            assert isinstance(is_gone, KnownColumn)
            which = np.where(is_gone.values == 1, which, i)
        unsettled = np.zeros(len(which), dtype=np.bool_)
        for i, value in enumerate(values[:-1]):
            unsettled |= (which > i) & (not value.settled)
        if unsettled.any():  # without noise it might be a number
            columns.append(NoInterval(np.zeros(len(which), dtype=np.bool_), UNSETTLED))
            return Picked(np.where(unsettled, len(columns) - 1, which), tuple(columns))
        return self._mixed(form, which, columns)

    def _mixed(self, form: Form, which: Places, columns: list[IntervalColumn]) -> IntervalColumn:
        """Each row from one of the columns; NULL where the number is -1."""
        if form.kind is not IntervalMethod.ENCLOSED and (lost := _lost_among(columns)) is not None:
            return lost
        return Picked(which, tuple(columns))

    def _over(self, form: Form, function: str, column: IntervalColumn, spans: Spans) -> IntervalColumn:
        """An aggregate of several rows of a column."""
        if form.kind is not IntervalMethod.LINEAR:
            return Gathered(function, column, spans)
        nothing_there = np.zeros(len(spans.start), dtype=np.bool_)
        if isinstance(column, NoInterval):
            return NoInterval(nothing_there, column.why)
        key = id(column), id(spans.order)
        try:
            if key not in self._laid_out:
                self._laid_out[key] = column, LaidOut.of(self._noises, column.linear(), spans.order)
        except TooMany:
            return NoInterval(nothing_there, MANY)
        total = self._laid_out[key][1].sums(spans)
        if function == "avg":
            count = spans.present(column.missing)
            total = total.scaled(1 / np.maximum(count, 1), count == 0)
        return TotalColumn(self._noises, total)


def _lost_among(columns: Sequence[IntervalColumn]) -> NoInterval | None:
    """What a sum or quotient is that has one of these, too long ones, in it."""
    return next((c for c in columns if isinstance(c, NoInterval)), None)


def _all(value: float, height: int) -> LinearColumn:
    return LinearColumn.fixed(np.full(height, value), np.zeros(height, dtype=np.bool_))
