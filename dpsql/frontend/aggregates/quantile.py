"""MEDIAN, quantiles, percentiles: a public cell of values, chosen by the exponential mechanism.

The answer is the middle of the cell. How far it is from the quantile is known in rows, not in values
(`accuracy/rank_error.py`).
Both names are one mechanism; QUANTILE_CONT of integers has the type of a DOUBLE.
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING, ClassVar, Self

from dpsql.core.analysis.facts import Facts
from dpsql.core.ir.components import Component, QuantileChoice
from dpsql.core.ir.expressions import Call, Expr, Literal
from dpsql.core.ir.nodes import AggregateCall
from dpsql.core.ir.types import BIGINT, DOUBLE, VARCHAR, Kind, SqlType
from dpsql.core.measures.quantile import cells_of, histograms
from dpsql.core.values.constants import EPOCH
from dpsql.frontend.aggregates.aggregate import AggregateFunction, Shared
from dpsql.frontend.aggregates.arguments import bounded, declared_interval
from dpsql.frontend.aggregates.formula import Bounds, Formula

if TYPE_CHECKING:
    from dpsql.core.release.noisy import NoisyRelease

WIDEST = dt.datetime(1900, 1, 1), dt.datetime(2075, 12, 31)
"""Between which dates a quantile lies where nobody says it: each day has a cell, by up to 256 public keys."""


@dataclass(frozen=True, slots=True)
class QuantileFormula(Formula):
    """The middle of the cell that was chosen, in the column's type; NULL of rows that are known to be none."""

    no_interval: ClassVar[str] = "the error of a quantile is a number of rows"
    off: ClassVar[str] = "at most {rows} {lie} between the answer and the quantile"
    doubt: ClassVar[str] = "may be {rows} away from the quantile"

    component: int
    temporal: Kind | None = None

    @property
    def components(self) -> tuple[int, ...]:
        """One."""
        return (self.component,)

    def moved(self, to: Mapping[int, int]) -> Self:
        """With the component at another place."""
        return replace(self, component=to[self.component])

    def values(self, noisy: NoisyRelease, type_: SqlType) -> Sequence[object]:
        """Exact where the type is. Of several quantiles of the same values the lower one is never above the other."""
        from dpsql.core.noise.integer_columns import Integers
        from dpsql.frontend.aggregates.released_numbers import typed

        if noisy.planned.measured.measurements[self.component].known is not None:
            return [None] * len(noisy.keys)
        own = noisy.planned.measured.node.components[self.component]
        assert isinstance(own, QuantileChoice)
        cells = cells_of(own)
        middles = [cells.middle(cell) for cell in self._in_order(noisy)]
        if self.temporal is not None:
            return [_moment(middle * own.grid, self.temporal) for middle in middles]
        return typed(Integers.of(middle * own.grid.numerator for middle in middles), own.grid.denominator, type_)

    def _in_order(self, noisy: NoisyRelease) -> list[int]:
        """Its cells, once those of all quantiles of the histogram are put in order, row by row."""
        import numpy as np

        components = noisy.planned.measured.node.components
        (alike,) = (numbers for numbers in histograms(components) if self.component in numbers)
        by_p = sorted(alike, key=lambda i: _p(components[i]))
        ordered = np.sort(np.stack([noisy.columns[i].array for i in by_p]).astype(np.int64), axis=0)
        found: list[int] = ordered[by_p.index(self.component)].tolist()
        return found

    def intervals(self, noisy: NoisyRelease, level: Fraction) -> list[Bounds]:
        """None is known."""
        return [(math.nan, math.nan)] * len(noisy.keys)

    def nonnegative(self, components: Sequence[Component]) -> bool:
        """Where no value is negative."""
        own = components[self.component]
        return isinstance(own, QuantileChoice) and own.lo >= 0

    def variance(self, components: Sequence[Component], spread: Sequence[float]) -> float:
        """As of the ranks."""
        return spread[self.component]


def ordered(c: QuantileChoice) -> tuple[Expr, Kind | None]:
    """What a quantile orders, as it was written but for clips; DATE or TIMESTAMP where its units count from 1970."""
    arg = c.arg.args[0] if isinstance(c.arg, Call) and c.arg.function == "clip" else c.arg
    match arg:
        case Call(function="date_diff", args=(_, Literal(type=type_), inner)) if not c.logarithmic:
            inner = inner.args[0] if isinstance(inner, Call) and inner.function == "clip" else inner
            return inner, type_.kind
        case _:
            return arg, None


def ends(c: QuantileChoice) -> tuple[str, str] | None:
    """Between which dates or timestamps a quantile lies, as they are declared or written; None of numbers."""
    kind = ordered(c)[1]
    match c.arg:
        case _ if kind is None:
            return None
        case Call(function="clip", args=(_, Literal(value=int(low)), Literal(value=int(high)))):
            return str(_moment(Fraction(low), kind)), str(_moment(Fraction(high), kind))
        case Call(args=(*_, Call(function="clip", args=(_, Literal(value=first), Literal(value=last))))):
            return str(first), str(last)
        case _:
            return str(_moment(c.lo * c.grid, kind)), str(_moment(c.hi * c.grid, kind))


def _p(c: Component) -> Fraction:
    assert isinstance(c, QuantileChoice)
    return c.p


def _moment(at: Fraction, kind: Kind) -> dt.date | dt.datetime:
    """A date so many days, or a timestamp so many microseconds, after 1970."""
    if kind is Kind.DATE:
        return EPOCH.date() + dt.timedelta(days=math.floor(at))
    return EPOCH + dt.timedelta(microseconds=math.floor(at))


def _bind(call: AggregateCall, facts: Facts, shared: Shared) -> QuantileFormula:
    assert call.arg is not None and call.p is not None
    p = call.p
    kind = call.arg.type.kind if call.arg.type.temporal else None
    if kind is not None:
        call = replace(call, arg=_since_1970(call.arg, facts))
    assert call.arg is not None
    bounded(call, facts)
    return QuantileFormula(shared(QuantileChoice(call.arg, call.filter, p=p, logarithmic=kind is None)), kind)


def _since_1970(arg: Expr, facts: Facts) -> Expr:
    """Days of a date, microseconds of a timestamp, clipped to what the policy declares of a column, else to WIDEST.

    No search is needed: the cells of WIDEST cost less than one, as the error grows with the logarithm of their number.
    """
    unit = "day" if arg.type.kind is Kind.DATE else "microsecond"
    since = partial(Call, "date_diff", type=BIGINT, span=arg.span)
    first = Literal(EPOCH.date() if arg.type.kind is Kind.DATE else EPOCH, arg.type)
    found = since(args=(Literal(unit, VARCHAR), first, arg))
    if facts.value(found).interval.bounded:
        return found
    ends = None if facts.value(arg).interval.bounded else declared_interval(arg, facts)
    if ends is not None:
        low, high = (Literal(end, BIGINT) for end in (math.floor(ends[0]), math.ceil(ends[1])))
        return Call("clip", (found, low, high), BIGINT, span=arg.span)
    widest = (Literal(day.date() if arg.type.kind is Kind.DATE else day, arg.type) for day in WIDEST)
    return since(args=(Literal(unit, VARCHAR), first, Call("clip", (arg, *widest), arg.type, arg.span)))


def _continuous(arg: SqlType) -> SqlType:
    return DOUBLE if arg.kind is Kind.INTEGER else arg


QUANTILES = (
    AggregateFunction(
        "quantile_cont", "quantile_cont(x, p)",
        "Value with the share p of all values at or below it; a number needs bounds.",
        _continuous, _bind, numeric=False,
    ),
    AggregateFunction(
        "quantile_disc", "quantile_disc(x, p)",
        "Value with the share p of all values at or below it; a number needs bounds.",
        lambda arg: arg, _bind, numeric=False,
    ),
)  # fmt: skip
