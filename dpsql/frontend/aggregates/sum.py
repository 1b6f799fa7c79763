"""SUM(x): one component, or a centred sum and the count that an average needs anyway."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Self

from dpsql.core.analysis.facts import Facts
from dpsql.core.ir.components import Component, DistinctSum, ValueSum
from dpsql.core.ir.contributions import PerGroup, Weighing
from dpsql.core.ir.expressions import Call, columns_of
from dpsql.core.ir.nodes import AggregateCall
from dpsql.core.ir.recipes import Terms
from dpsql.core.ir.types import DOUBLE, HUGEINT, Kind, SqlType, decimal
from dpsql.core.values.constants import position
from dpsql.core.values.value import Missing
from dpsql.frontend.aggregates.aggregate import AggregateFunction, Shared
from dpsql.frontend.aggregates.arguments import bound, bounded
from dpsql.frontend.aggregates.count import Count, counted
from dpsql.frontend.aggregates.weighted_sum import WeightedSum
from dpsql.functions.expression_values import evaluate


@dataclass(frozen=True, slots=True)
class Sum(WeightedSum):
    """The component's value in the column's type.

    count: of the same rows, where the component is a centred sum: each row adds its center to it.
    """

    component: int
    count: int | None = None

    @property
    def components(self) -> tuple[int, ...]:
        """The sum, then its count."""
        return (self.component,) if self.count is None else (self.component, self.count)

    def moved(self, to: Mapping[int, int]) -> Self:
        """With the components at other places."""
        return replace(self, component=to[self.component], count=None if self.count is None else to[self.count])

    def terms(self, components: Sequence[Component]) -> Terms:
        """The sum, and its center for each row."""
        c = components[self.component]
        own = (self.component, c.worth / c.weight)
        if self.count is None or not c.center:
            return (own,)
        return own, (self.count, c.center * c.grid / components[self.count].weight)

    def nonnegative(self, components: Sequence[Component]) -> bool:
        """Where no value is negative."""
        c = components[self.component]
        return c.ends[0] + c.center >= 0

    def largest_of_row(self, components: Sequence[Component]) -> Fraction:
        """The largest value."""
        c = components[self.component]
        return max(abs(end + c.center) * c.grid for end in c.ends)

    def with_count(self, centred: Callable[[int], tuple[int, int] | None]) -> Self:
        """Of the two, if it is of one."""
        found = centred(self.component) if self.count is None else None
        return self if found is None else replace(self, component=found[0], count=found[1])


def _bind(call: AggregateCall, facts: Facts, shared: Shared) -> Sum | Count:
    if call.distinct:
        bounded(call, facts)
        assert call.arg is not None
        return Sum(shared(DistinctSum(call.arg, call.filter)))
    call = _within_group(call, facts)
    bounded(call, facts)
    each = _constant(call)
    if each is not None:
        return Count(shared(counted(None, call, facts)), times=each)
    assert call.arg is not None
    own = None if call.per_group is None else PerGroup(call.per_group)
    weighing = Weighing.BY_ROW if call.by_row else Weighing.ALONE
    return Sum(shared(ValueSum(call.arg, call.filter, contribution=own or weighing)))


def _constant(call: AggregateCall) -> Fraction | None:
    """c of SUM(c), which is c · COUNT(*); None if c is no constant, or nothing is to be counted or multiplied.

    A total that is clipped for each id and group stays a sum, and so does one of numbers beyond 64 bits: as many of
    them as fit a sum are told by its type.
    """
    if call.arg is None or call.per_group is not None or columns_of(call.arg):
        return None
    found = evaluate(call.arg, {})
    if isinstance(found.constant, Missing) or found.constant is None:
        return None
    at = position(found.constant, found.type)
    return Fraction(at) if at and abs(at) * 10**found.type.scale < 2**63 else None


def _within_group(call: AggregateCall, facts: Facts) -> AggregateCall:
    """A sum with bounds per group: rows that go beyond them by themselves are clipped first.

    Where all values have one sign this changes no clipped total; and it is the only bound that a column without bounds
    gets (the reader is told by a note).
    """
    if call.per_group is None or call.arg is None:
        return call
    ends, (low, high) = facts.value(call.arg).interval, call.per_group
    lo, hi = ends.lo, ends.hi
    if lo is None or (hi is not None and hi <= 0 and lo < low):
        lo = low
    if hi is None or (lo >= 0 and hi > high):
        hi = high
    if (lo, hi) == (ends.lo, ends.hi) or lo > hi:
        return call
    clip = Call("clip", (call.arg, bound(lo, call.arg.type, False), bound(hi, call.arg.type, True)), call.arg.type)
    return replace(call, arg=replace(clip, span=call.arg.span))


def _result(arg: SqlType) -> SqlType:
    if arg.kind is Kind.DOUBLE:
        return DOUBLE
    return HUGEINT if arg.kind is Kind.INTEGER else decimal(38, arg.scale)


SUM = AggregateFunction(
    "sum",
    "sum(x: number) → number",
    "Sum; x needs bounds, declared or by CLIP(x, low, high). DISTINCT adds each value of a group once.",
    _result,
    _bind,
    distinct=True,
)
