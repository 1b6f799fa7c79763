"""COUNT(*), COUNT(x), COUNT(DISTINCT x): one component, or slices of it that are measured anyway."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Self

from dpsql.core.analysis.facts import Facts
from dpsql.core.ir.components import Component, DistinctCount, RowCount, UnitCount
from dpsql.core.ir.contributions import PerGroup
from dpsql.core.ir.expressions import Column, Expr
from dpsql.core.ir.nodes import AggregateCall
from dpsql.core.ir.recipes import Terms
from dpsql.core.ir.types import BIGINT
from dpsql.core.value_classes import replace
from dpsql.frontend.aggregates.aggregate import AggregateFunction, Shared
from dpsql.frontend.aggregates.formula import Parts
from dpsql.frontend.aggregates.weighted_sum import WeightedSum


@dataclass(frozen=True, slots=True)
class Count(WeightedSum):
    """The component's value in the column's type.

    others: counts of other rows that are added to it: those of columns of their own, and the component is of the rest.
    times: what each row is worth: of SUM(5), which is 5 · COUNT(*), 5.
    """

    component: int
    others: tuple[int, ...] = ()
    times: Fraction = Fraction(1)

    @property
    def components(self) -> tuple[int, ...]:
        """The rest, then the others."""
        return self.component, *self.others

    @property
    def own(self) -> tuple[int, ...]:
        """What it measures of its own."""
        return (self.component,)

    def moved(self, to: Mapping[int, int]) -> Self:
        """With the components at other places."""
        return replace(self, component=to[self.component], others=tuple(to[n] for n in self.others))

    def terms(self, components: Sequence[Component]) -> Terms:
        """Each count, `times` times."""
        return tuple((i, self.times * components[i].worth / components[i].weight) for i in self.components)

    def nonnegative(self, components: Sequence[Component]) -> bool:
        """Always."""
        return True

    def largest_of_row(self, components: Sequence[Component]) -> Fraction:
        """What a row is worth."""
        return abs(self.times)

    @property
    def splits(self) -> bool:
        """Rows of disjoint slices add up."""
        return True

    def with_parts(self, parts: Parts) -> Self:
        """Of the rest and the slices."""
        if self.others or self.component not in parts:
            return self
        component, others = parts[self.component]
        return replace(self, component=component, others=others)


def counted(arg: Expr | None, call: AggregateCall, facts: Facts) -> RowCount:
    """The count of the call's rows in which `arg` is valid; of all of them for None."""
    count = count_of(arg, call.filter, facts)
    return count if call.per_group is None else replace(count, contribution=PerGroup(call.per_group))


def count_of(arg: Expr | None, where: Expr | None, facts: Facts) -> RowCount:
    """COUNT(x) is COUNT(*) where x is never NULL nor NaN; otherwise the two are different questions."""
    if arg is not None:
        value = facts.value(arg)
        if not value.nullable and value.finite:
            arg = None
    return RowCount(arg, where)


def _bind(call: AggregateCall, facts: Facts, shared: Shared) -> Count:
    return Count(shared(_distinct(call, facts) if call.distinct else counted(call.arg, call, facts)))


def _distinct(call: AggregateCall, facts: Facts) -> Component:
    assert call.arg is not None
    if isinstance(call.arg, Column) and call.arg.uid in facts.ids:
        return RowCount(None, call.filter) if facts.one_row_per_id else UnitCount(None, call.filter)
    facts.value(call.arg)
    return DistinctCount(call.arg, call.filter)


COUNT = AggregateFunction(
    "count",
    "count(*) → bigint",
    "Number of rows; of x, of rows where x is not NULL; DISTINCT counts values.",
    lambda arg: BIGINT,
    _bind,
    numeric=False,
    distinct=True,
)
COUNT_IF = replace(
    COUNT, name="count_if", signature="count_if(condition) → bigint",
    summary="Number of rows where the condition holds.",
)  # fmt: skip
