"""Parallel composition: components of different slices of one set cost the largest of their losses, not the sum.

Claim: of components in different slices of a slice set, the group as a whole loses what its costliest member would
    lose alone: ε = max εᵢ (Laplace), ρ = max ρᵢ (Gaussian). [tight]
Why: the printed statement gives each row one slice number (`core/printing/forms/sliced.py`), whatever its conditions
    are; nothing that they mean is believed. Of what differs between neighbours let nᵢ rows count in member i.
    *Rows that count as they are.* At most c of them come or go. Each moves one member, in one group of the release, by
    at most Bᵢ. Laplace: Σ ‖Δᵢ‖₁/sᵢ ≤ Σ nᵢBᵢ/sᵢ ≤ c·max Bᵢ/sᵢ = max εᵢ. Gaussian: Σ ‖Δᵢ‖₂²/2σᵢ² ≤ Σ (nᵢBᵢ)²/2σᵢ². It
    is convex in n, so largest where all c rows are in one member: max (cBᵢ)²/2σᵢ² = max ρᵢ. For this the members' own
    sensitivities must be c·Bᵢ. Those of COUNT, SUM and COUNT(DISTINCT …) are: one row more changes each by at most Bᵢ.
    *Rows that are weighed* under a limit. The weights of all members divide by the same numbers: those of all rows of
    the id, whatever a filter or a NULL leaves of them, and never less than the rows of all slices together. Of a limit
    C, Σ ‖vᵢ‖₁/(F·C·Bᵢ) ≤ Σ nᵢ/max(N, C) ≤ 1. Of M and G,
    Σ ‖vᵢ‖₁/(F·G·M·Bᵢ) ≤ Σ over the id's K groups of 1/max(K, G) ≤ 1, and Σ ‖vᵢ‖₂²/(F²·G·M²·Bᵢ²) ≤ K·G/max(K, G)² ≤ 1.
    The rounding of weights takes away only. Such members are COUNTs and the sums paired with them.
    *Choices* are among the same cells or values, of one statement that counts each row in one slice. Rows that weigh v
    in a slice and group move the scores there by at most c·v, so a choice loses 2ηcv, and ρ = (ηcv)²/2: what noise on a
    COUNT loses, times a number. The sums over slices and groups are those above.
    *Ids that are counted* under a limit (COUNT(DISTINCT id)) make groups of their own: each (id, group) counts in the
    first slice that it has a row in. So the members move together by what one of them may.
When it would be false:
    - a slice number that two places compute, or a condition that is read beside it;
    - under a limit, whatever is cut by itself instead of weighed with all rows of the id: a SUM alone,
      COUNT(DISTINCT …), a total clipped per id and group, a weight that divides by the rows of the member's own filter
      (as that of a limit found by a search does);
    - components of different bounding nodes;
    - rows or ids that are replaced: what goes leaves one member, and what comes enters another;
    - an id that counts in two slices of one group; ids and rows in one group: an id may have all its rows in one slice,
      and count in another;
    - distinct values of which there are few: one id may do all it may do in each member;
    - choices of two statements: a row may count in one slice of the one, and in another of the other; a choice by ids;
    - the count that decides on private keys, whose δ is its own.
Proved by: Bounds.parallel_laplace, Bounds.parallel_gauss. Not proved: choices, ids, shares of M and G
Tested by: tests/deep/core/noise/test_parallel_composition.py, tests/core/noise/test_parallel_composition.py,
    tests/deep/core/printing/test_sliced.py
"""

from __future__ import annotations

from collections.abc import Mapping

from dpsql.core.analysis.facts import Contribution
from dpsql.core.ir.components import Component, UnitCount
from dpsql.core.ir.contributions import PerGroup, UnitTotal
from dpsql.core.ir.nodes import BoundContributions, Release
from dpsql.core.measures.all_measures import rule
from dpsql.core.measures.quantile import of_any_slice

ParallelGroups = tuple[tuple[int, ...], ...]
"""Numbers of a release's components, each once: of those in one group, a row counts in one at most."""


def parallel_groups(node: Release, contributions: Mapping[str, Contribution]) -> ParallelGroups:
    """The components of a release in groups of parallel composition. Most groups have one member.

    contributions: privacy unit → what one of it can change. The first that each slice of a set has make one group, the
    second ones another, and so on; those that count ids apart, and choices by the values that they are made among.
    """
    joining = may_join(node, contributions) if node.slices else frozenset()
    found: dict[int, list[int]] = {}
    joined = set[int]()
    for each in node.slices:
        kinds = {i: _kind(node.components[i]) for own in each.slices for i in own if i in joining}
        for kind in dict.fromkeys(kinds.values()):
            groups: list[list[int]] = []
            for own in each.slices:
                for at, i in enumerate(i for i in own if i in kinds and kinds[i] == kind):
                    groups[at:at] = [[]] if at == len(groups) else []
                    groups[at].append(i)
            found |= {min(group): group for group in groups}
        joined |= kinds.keys()
    found |= {i: [i] for i in range(len(node.components)) if i not in joined}
    return tuple(tuple(found[first]) for first in sorted(found))


def may_join(node: Release, contributions: Mapping[str, Contribution]) -> frozenset[int]:
    """The components that may share their price with those of other slices."""
    if all(map(_counts_rows, contributions.values())):
        joins = _bounded_by_each_row
    elif isinstance(node.input, BoundContributions) and all(map(_weighs_rows, contributions.values())):
        joins = _weighed_by_all_rows
    else:
        return frozenset()
    return frozenset(i for i, c in enumerate(node.components) if i != node.threshold and joins(c))


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
    """Whether the component's weights divide by the numbers of all rows of the id, in its groups and in all; or each
    (id, group) counts in one slice of a set."""
    if isinstance(component.contribution, PerGroup | UnitTotal):
        return False  # its own total is clipped, or divides: two of them may both be full
    own = rule(component)
    return _counts_ids(component) or (own.counts == "rows" and not own.alone(component))


def _bounded_by_each_row(component: Component) -> bool:
    """Whether one row more changes the component by at most what one row can add, whatever the other rows are.

    And whether c rows are priced as c times that: the values of a small image are not.
    """
    own = isinstance(component.contribution, PerGroup | UnitTotal) or component.values is not None
    return not own and rule(component).counts != "ids"


def _counts_ids(component: Component) -> bool:
    return isinstance(component, UnitCount)


def _kind(component: Component) -> Component | bool:
    """Of one kind are those that one statement counts by one number of each row."""
    return of_any_slice(component) or _counts_ids(component)
