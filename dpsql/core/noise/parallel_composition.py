"""Parallel composition: components that no row counts in together cost the largest of their losses, not the sum.

Claim: where no row counts in two components of a group, the group as a whole loses what its costliest member would
    lose alone: ε = max εᵢ (Laplace), ρ = max ρᵢ (Gaussian). [tight]
Why: of what differs between neighbours let nᵢ rows count in member i.
    *Rows that count as they are.* At most c of them come or go. Each moves one member, in one group of the release, by
    at most Bᵢ. Laplace: Σ ‖Δᵢ‖₁/sᵢ ≤ Σ nᵢBᵢ/sᵢ ≤ c·max Bᵢ/sᵢ = max εᵢ. Gaussian: Σ ‖Δᵢ‖₂²/2σᵢ² ≤ Σ (nᵢBᵢ)²/2σᵢ². It
    is convex in n, so largest where all c rows are in one member: max (cBᵢ)²/2σᵢ² = max ρᵢ. For this the members' own
    sensitivities must be c·Bᵢ. Those of COUNT, SUM and COUNT(DISTINCT …) are: one row more changes each by at most Bᵢ.
    *Rows that are weighed* under a limit. The weights of all members divide by the same numbers: those of all rows of
    the id, whatever a filter or a NULL leaves of them. Of a limit C, Σ ‖vᵢ‖₁/(F·C·Bᵢ) ≤ Σ nᵢ/max(N, C) ≤ 1. Of M and G,
    Σ ‖vᵢ‖₁/(F·G·M·Bᵢ) ≤ Σ over the id's K groups of 1/max(K, G) ≤ 1, and Σ ‖vᵢ‖₂²/(F²·G·M²·Bᵢ²) ≤ K·G/max(K, G)² ≤ 1.
    The rounding of weights takes away only. Such members are COUNTs and the sums paired with them.
When it would be false:
    - two conditions that one row can satisfy both (`core/analysis/disjoint_conditions.py`);
    - under a limit, whatever is cut by itself instead of weighed with all rows of the id: a SUM alone,
      COUNT(DISTINCT …), a total clipped per id and group, a weight that divides by the rows of the member's own filter
      (as that of a limit found by a search does);
    - components of different bounding nodes;
    - rows or ids that are replaced: what goes leaves one member, and what comes enters another;
    - presence of ids, and distinct values of which there are few: one id may do all it may do in each member;
    - a choice among cells, whose price has another form;
    - the count that decides on private keys, whose δ is its own.
Tested by: tests/deep/core/noise/test_parallel_composition.py, tests/core/noise/test_parallel_composition.py
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache

from dpsql.core.analysis.disjoint_conditions import ANY, Cases, are_disjoint, both, cases_of
from dpsql.core.analysis.facts import Columns, Contribution
from dpsql.core.analysis.stored_columns import stored_columns
from dpsql.core.ir.components import Component, DistinctSum, ValueSum
from dpsql.core.ir.contributions import PerGroup, UnitTotal
from dpsql.core.ir.expressions import Call, Literal
from dpsql.core.ir.nodes import BoundContributions, Release
from dpsql.core.measures.all_measures import rule

ParallelGroups = tuple[tuple[int, ...], ...]
"""Numbers of a release's components, each once: of those in one group, a row counts in one at most."""


def parallel_groups(node: Release, contributions: Mapping[str, Contribution]) -> ParallelGroups:
    """The components of a release in groups of parallel composition. Most groups have one member.

    contributions: privacy unit → what one of it can change. Each component joins the first group that it can.
    """
    if all(map(_counts_rows, contributions.values())):
        joins = _bounded_by_each_row
    elif isinstance(node.input, BoundContributions) and all(map(_weighs_rows, contributions.values())):
        joins = _weighed_by_all_rows
    else:
        return tuple((i,) for i in range(len(node.components)))
    return _grouped(_Same(node.components), node.threshold, joins, stored_columns(node.input))


@dataclass(frozen=True, slots=True, eq=False)
class _Same:
    """Components, which are equal to no others: -0.0 = 0.0, and yet they are two arguments."""

    components: tuple[Component, ...]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and self.components is other.components

    def __hash__(self) -> int:
        return id(self.components)


@lru_cache(maxsize=64)  # every look at a price asks again
def _grouped(same: _Same, threshold: int | None, joins: Callable[[Component], bool], stored: Columns) -> ParallelGroups:
    found: list[list[tuple[int, Cases | None]]] = []
    for i, component in enumerate(same.components):
        cases = cases_that_count(component, stored) if i != threshold and joins(component) else None
        for group in found if cases not in (None, ANY) else ():
            if all(_disjoint(cases, other) for _, other in group):
                group.append((i, cases))
                break
        else:
            found.append([(i, cases)])
    return tuple(tuple(i for i, _ in group) for group in found)


def _disjoint(a: Cases | None, b: Cases | None) -> bool:
    return a is not None and b is not None and are_disjoint(a, b)


def _counts_rows(c: Contribution) -> bool:
    """Whether all that is known of a unit is that `rows` of its rows come or go, and each counts as it is.

    They may all be in one group, or else each is in another one: then ‖Δᵢ‖₂² is nᵢ·Bᵢ², and the bound c·Bᵢ².
    """
    plain = c.by_rows is not None or c.per_group == 1
    return plain and not c.scaled and not c.scaled_over_groups and not c.replaces_rows and c.ids == 1


def _weighs_rows(c: Contribution) -> bool:
    """Whether the rows of one id come or go, each with a weight that all rows of the id decide."""
    return c.scaled and not c.replaces_rows and c.ids == 1


def _weighed_by_all_rows(component: Component) -> bool:
    """Whether the component's weights divide by the numbers of all rows of the id, in its groups and in all."""
    if isinstance(component.contribution, PerGroup | UnitTotal):
        return False  # its own total is clipped, or divides: two of them may both be full
    own = rule(component)
    return own.counts == "rows" and not own.alone(component) and not own.chosen


def _bounded_by_each_row(component: Component) -> bool:
    """Whether one row more changes the component by at most what one row can add, whatever the other rows are.

    And whether c rows are priced as c times that: the values of a small image are not.
    """
    own = isinstance(component.contribution, PerGroup | UnitTotal) or component.values is not None
    return not own and rule(component).counts != "ids" and not rule(component).chosen


def cases_that_count(component: Component, stored: Columns) -> Cases:
    """What the rows are that can change a component: those of its filter, and of a CASE that else gives nothing."""
    found = cases_of(component.filter, stored)
    match component.arg:
        case Call(function="case" | "if", args=(condition, _, Literal(value=value))) if value is None or (
            value == 0 and _zero_is_nothing(component)
        ):
            return both(found, cases_of(condition, stored))
        case _:
            return found


def _zero_is_nothing(c: Component) -> bool:
    """Whether a row with the value 0 adds 0."""
    return isinstance(c, ValueSum | DistinctSum) and not c.center and c.lo <= 0 <= c.hi
