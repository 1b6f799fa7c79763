"""Slice sets: components whose conditions exclude each other, as far as the text tells, so that they cost as one.

A row counts in the first slice of a set that it satisfies (`core/printing/forms/sliced.py`), so a wrong guess moves a
row from one number to another, and no price. Components of one condition are in one slice; a set has two slices or
more. A CASE that else gives NULL, or adds 0, is a condition, too. Ids are counted in slices
where all rows of an id seem to be in one.

Example:
    >>> before_after(cut_slices, "SELECT COUNT(*) FILTER (WHERE age<9), COUNT(*) FILTER (WHERE age>9) FROM patients")
    release COUNT(*) FILTER (age < 9), COUNT(*) FILTER (age > 9)
    → release COUNT(*) FILTER (age < 9), COUNT(*) FILTER (age > 9), in slices 1 | 2
"""

from __future__ import annotations

from dataclasses import dataclass, field

from dpsql.core.analysis.derive import derive_once
from dpsql.core.analysis.facts import Facts
from dpsql.core.analysis.rules.release import contributions
from dpsql.core.ir.components import Component, DistinctSum, RowCount, UnitCount, ValueSum
from dpsql.core.ir.contributions import Weighing
from dpsql.core.ir.expressions import Call, Literal, columns_of
from dpsql.core.ir.nodes import BoundContributions, Node, Release
from dpsql.core.ir.slice_sets import SliceSet
from dpsql.core.ir.types import BOOLEAN
from dpsql.core.ir.walk import Tagged, transform
from dpsql.core.noise.parallel_composition import may_join
from dpsql.core.value_classes import replace
from dpsql.planner.distinct_values import functions_of_the_id
from dpsql.planner.exclusive_conditions import ANY, Cases, are_disjoint, cases_of, signed
from dpsql.planner.rewrites.rewrite_context import RewriteContext


def cut_slices(root: Node, ctx: RewriteContext) -> Node:
    """Give every release its slice sets."""

    def change(node: Release) -> Node:
        if not any(map(_conditional, node.components)):
            return node
        return in_slices(node, derive_once(node.input, ctx.analysis))

    return transform(root, Release, change)


@dataclass(slots=True)
class _Slice:
    """A condition with its cases, and the components that count its rows."""

    condition: object
    cases: Cases
    members: list[int] = field(default_factory=list)


def in_slices(node: Release, rows: Tagged[Facts]) -> Release:
    """The release with slice sets. rows: its input; its components have their grids."""
    filtered = [as_filter(c) for c in node.components]
    joining = may_join(replace(node, components=tuple(filtered)), contributions(node, rows.fact))
    counts_ids = any(isinstance(c, UnitCount) and c.filter is not None for c in filtered)
    of_id = functions_of_the_id(rows) if counts_ids else frozenset()
    sets: list[list[_Slice]] = []
    for i, c in enumerate(filtered):
        if i in joining and c.filter is not None and (not isinstance(c, UnitCount) or columns_of(c.filter) <= of_id):
            _place(sets, i, signed(c.filter), cases_of(c.filter))
    sets = [each for each in sets if len(each) > 1]
    if not sets:
        return node
    members = {i for each in sets for slice_ in each for i in slice_.members}
    components = tuple(filtered[i] if i in members else c for i, c in enumerate(node.components))
    found = tuple(SliceSet(tuple(tuple(slice_.members) for slice_ in each)) for each in sets)
    return replace(node, components=components, slices=found)


def weighed_pivot(node: Release) -> Release:
    """The release with the sums of a pivot under a limit weighed like counts, so that slices of them cost as one.

    A sum alone is clipped by itself: an id may reach the ends of each.
    """
    pivot = [
        i
        for i, c in enumerate(node.components)
        if isinstance(c, ValueSum) and c.contribution is Weighing.ALONE and as_filter(c).filter is not None
    ]
    if not pivot or not isinstance(node.input, BoundContributions):
        return node
    changed = [
        replace(c, contribution=Weighing.BY_ROW) if i in pivot else c  # type: ignore[call-arg]
        for i, c in enumerate(node.components)
    ]
    return replace(node, components=tuple(changed))


def _place(sets: list[list[_Slice]], i: int, condition: object, cases: Cases) -> None:
    for each in sets:
        for slice_ in each:
            if slice_.condition == condition:
                slice_.members.append(i)
                return
    if cases != ANY:
        for each in sets:
            if all(are_disjoint(cases, slice_.cases) for slice_ in each):
                each.append(_Slice(condition, cases, [i]))
                return
        sets.append([_Slice(condition, cases, [i])])


def _conditional(c: Component) -> bool:
    return c.filter is not None or as_filter(c) is not c


def as_filter(c: Component) -> Component:
    """A CASE of one arm, which else adds nothing, as a FILTER."""
    match c.arg:
        case Call(function="case" | "if", args=(condition, value, Literal(value=other))) if other is None or (
            other == 0 and _zero_is_nothing(c)
        ):
            both = condition if c.filter is None else Call("and", (c.filter, condition), BOOLEAN)
            counts = isinstance(c, RowCount) and isinstance(value, Literal) and value.value is not None
            return replace(c, filter=both, arg=None if counts else value)
        case _:
            return c


def _zero_is_nothing(c: Component) -> bool:
    """Whether a row with the value 0 adds 0."""
    return isinstance(c, ValueSum | DistinctSum) and not c.center and c.lo <= 0 <= c.hi
