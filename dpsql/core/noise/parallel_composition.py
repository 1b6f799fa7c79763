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
    - a choice among cells, whose price has another form;
    - the count that decides on private keys, whose δ is its own.
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

ParallelGroups = tuple[tuple[int, ...], ...]
"""Numbers of a release's components, each once: of those in one group, a row counts in one at most."""


def parallel_groups(node: Release, contributions: Mapping[str, Contribution]) -> ParallelGroups:
    """The components of a release in groups of parallel composition. Most groups have one member.

    contributions: privacy unit → what one of it can change. The first that each slice of a set has make one group, the
    second ones another, and so on; those that count ids apart.
    """
    joining = may_join(node, contributions) if node.slices else frozenset()
    found: dict[int, list[int]] = {}
    joined = set()
    for each in node.slices:
        for ids in (False, True):
            groups: list[list[int]] = []
            for own in each.slices:
                alike = (i for i in own if i in joining and _counts_ids(node.components[i]) is ids)
                for at, i in enumerate(alike):
                    groups[at:at] = [[]] if at == len(groups) else []
                    groups[at].append(i)
                    joined.add(i)
            found |= {min(group): group for group in groups}
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
    return _counts_ids(component) or (own.counts == "rows" and not own.alone(component) and not own.chosen)


def _bounded_by_each_row(component: Component) -> bool:
    """Whether one row more changes the component by at most what one row can add, whatever the other rows are.

    And whether c rows are priced as c times that: the values of a small image are not.
    """
    own = isinstance(component.contribution, PerGroup | UnitTotal) or component.values is not None
    return not own and not _counts_ids(component) and not rule(component).chosen


def _counts_ids(component: Component) -> bool:
    return isinstance(component, UnitCount)
