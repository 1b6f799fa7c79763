"""Medians, quantiles, modes and values at an extreme, per unit, are the values that windows pick.

A quantile of a unit's n values is the one in place ⌈p·n⌉, or lies between the two around p·(n - 1); a MODE has the
largest count; ARG_MAX(a, b) stands where b is the greatest. Of several modes the least is taken, and of several rows at
an extreme the one with the greatest a, or the least for ARG_MIN, so that no order of rows counts. Public and released
rows have ARG_MAX and ARG_MIN in the same way.

Example:
    >>> before_after(
    ...     pick_within_units,
    ...     "SELECT AVG(c) FROM (SELECT patient, ARG_MAX(cost, visit) AS c FROM visits GROUP BY patient)",
    ... )
    keep private ARG_MAX(cost) by patient
    └─ scan visits
    → project patient, c
    └─ keep private MAX(cost) FILTER (CASE WHEN cost IS NOT NULL THEN visit ELSE NULL END = max) by patient
       └─ window max(…)
          └─ scan visits
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import reduce

from dpsql.core.analysis.derive import derive_once
from dpsql.core.ir.expressions import Call, Cast, Column, Expr, Literal
from dpsql.core.ir.nodes import Aggregate, AggregateCall, Item, Node, Project, SortKey, Window, WindowCall
from dpsql.core.ir.types import BIGINT, BOOLEAN, DOUBLE, SqlType
from dpsql.core.ir.walk import transform, unused_numbers
from dpsql.core.value_classes import replace
from dpsql.planner.rewrites.rewrite_context import RewriteContext

PICKED = frozenset({"arg_min", "arg_max"})
"""Aggregates that have no other form."""


def pick_within_units(root: Node, ctx: RewriteContext) -> Node:
    """Make windows of the aggregates of a unit that pick one of its values."""
    numbers = unused_numbers(root)

    def change(node: Aggregate) -> Node:
        private = ctx.private(node.input)
        if not any(_picks(c, node.inner and private, private) for c in node.calls):
            return node
        if private:
            ids = derive_once(node.input, ctx.analysis).fact.ids
            if not any(isinstance(k.expr, Column) and k.expr.uid in ids for k in node.keys):
                return node
        return _Picking(node, numbers, private).done()

    return transform(root, Aggregate, change)


def _picks(call: AggregateCall, inner: bool, private: bool) -> bool:
    if call.distinct or call.arg is None:
        return False
    if call.function in PICKED:
        return inner or not private
    continuous = call.function == "quantile_cont" and not call.arg.type.numeric
    return inner and (call.function == "mode" or (call.p is not None and not continuous))


@dataclass
class _Picking:
    """What an aggregate becomes. first, second: windows over its rows, and over what these add."""

    node: Aggregate
    numbers: Iterator[int]
    private: bool
    first: list[WindowCall] = field(default_factory=list)
    second: list[WindowCall] = field(default_factory=list)
    calls: list[AggregateCall] = field(default_factory=list)

    def done(self) -> Node:
        items = [Item(k.column, k.column) for k in self.node.keys]
        for call in self.node.calls:
            if not _picks(call, self.node.inner and self.private, self.private):
                self.calls.append(call)
                items.append(Item(call.column, call.column))
            else:
                items.append(Item(call.column, self._picked(call)))
        rows = Window(self.node.input, tuple(self.first), self.node.span)
        rows = Window(rows, tuple(self.second), self.node.span) if self.second else rows
        return Project(replace(self.node, input=rows, calls=tuple(self.calls)), tuple(items), self.node.span)

    def _picked(self, call: AggregateCall) -> Expr:
        assert call.arg is not None
        if call.function in PICKED:
            assert call.second is not None
            name = call.function.removeprefix("arg_")
            at = _where(call, call.second, Call("is_not_null", (call.arg,), BOOLEAN, call.span))
            end = self._window(self.first, name, (at,), at.type)
            return self._one(call, name, _eq(at, end))
        value = _where(call, call.arg)
        if call.function == "mode":
            times = self._window(self.first, "count", (value,), BIGINT, by=(value,))
            most = self._window(self.second, "max", (times,), BIGINT)
            return self._one(call, "min", _all(Call("is_not_null", (value,), BOOLEAN), _eq(times, most)), value)
        return self._quantile(call, value)

    def _quantile(self, call: AggregateCall, value: Expr) -> Expr:
        """With p = a/b: in place i, where b·(i - 1) < a·n ≤ b·i; or between those around a·(n - 1)/b, from 0."""
        assert call.p is not None
        down = call.descending and call.function == "quantile_disc"
        p = 1 - call.p if down else call.p
        a, b = p.numerator, p.denominator
        order = (SortKey(value, descending=down, nulls_first=False),)
        place = self._window(self.first, "row_number", (), BIGINT, order=order)
        size = self._window(self.first, "count", (value,), BIGINT)
        if call.function == "quantile_disc":
            reached = _times(max(a, 0), size)
            here = _all(_lt(_times(b, _minus(place, 1)), reached), _le(reached, _times(b, place)))
            return self._one(call, "min", here if a else _eq(place, Literal(1, BIGINT)), value)
        reached = _times(a, _minus(size, 1))
        low = self._one(
            call, "min", _all(_le(_times(b, _minus(place, 1)), reached), _lt(reached, _times(b, place))), value
        )
        high = self._one(
            call,
            "min",
            _all(_lt(_times(b, _minus(place, 2)), reached), _le(reached, _times(b, _minus(place, 1)))),
            value,
        )
        n = self._aggregate(AggregateCall("max", size, self._column("n", BIGINT), span=call.span))
        rest = Call("mod", (_times(a, _minus(n, 1)), Literal(b, BIGINT)), BIGINT)
        part = Call("div", (Cast(rest, DOUBLE), _double(b)), DOUBLE)
        step = Call("mul", (Call("sub", (Cast(high, DOUBLE), Cast(low, DOUBLE)), DOUBLE), part), DOUBLE)
        found = Call("add", (Cast(low, DOUBLE), step), DOUBLE, call.span)
        return found if call.column.type == DOUBLE else Cast(found, call.column.type, call.span)

    def _one(self, call: AggregateCall, name: str, here: Expr, value: Expr | None = None) -> Column:
        """The value of the rows that a condition picks, which all have it, or the outermost of them."""
        arg = call.arg if value is None else value
        assert arg is not None
        return self._aggregate(
            AggregateCall(name, arg, self._column(call.function, arg.type), filter=here, span=call.span)
        )

    def _aggregate(self, call: AggregateCall) -> Column:
        self.calls.append(call)
        return call.column

    def _column(self, name: str, type_: SqlType) -> Column:
        return Column(next(self.numbers), name, type_)

    def _window(
        self,
        among: list[WindowCall],
        function: str,
        args: tuple[Expr, ...],
        type_: SqlType,
        by: Sequence[Expr] = (),
        order: tuple[SortKey, ...] = (),
    ) -> Column:
        partition = (*(k.expr for k in self.node.keys), *by)
        for known in among:
            if (known.function, known.args, known.partition, known.order) == (function, args, partition, order):
                return known.column
        among.append(WindowCall(function, args, self._column(function, type_), partition, order, span=self.node.span))
        return among[-1].column


def _where(call: AggregateCall, value: Expr, *more: Expr) -> Expr:
    """A value, or NULL where the call's condition, or another one, does not hold."""
    terms = [t for t in (call.filter, *more) if t is not None]
    return Call("case", (_all(*terms), value, Literal(None, value.type)), value.type, call.span) if terms else value


def _all(*terms: Expr) -> Expr:
    return reduce(lambda a, b: Call("and", (a, b), BOOLEAN), terms)


def _eq(a: Expr, b: Expr) -> Expr:
    return Call("eq", (a, b), BOOLEAN)


def _lt(a: Expr, b: Expr) -> Expr:
    return Call("lt", (a, b), BOOLEAN)


def _le(a: Expr, b: Expr) -> Expr:
    return Call("le", (a, b), BOOLEAN)


def _times(a: int, b: Expr) -> Expr:
    return Call("mul", (Literal(a, BIGINT), b), BIGINT)


def _minus(a: Expr, b: int) -> Expr:
    return Call("sub", (a, Literal(b, BIGINT)), BIGINT)


def _double(a: int) -> Literal:
    return Literal(float(a), DOUBLE)
