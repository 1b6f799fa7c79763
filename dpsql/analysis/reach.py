"""How much of one component a single unit can contribute: in all, and in one group.

Claim: with contributions bounded as `limits` says, the integers of one unit, before the weight grid F, have
    Σ|v| ≤ in_all, Σv² ≤ squares and max|v| ≤ in_group.
Why: each of at most G groups (or of c rows) holds at most M rows of at most B units. Where the component clips the
    unit's own total of a group to [a, b], a group holds at most T = max(|a|, |b|) instead. Under a limit of C rows in
    all, both hold: at most C·B in all, and at most T in each of at most C (or G) groups; and Σv² ≤ max|v| · Σ|v|.
When it would be false: a clip that the emitted SQL does not apply (only the weighted shapes do, hence `scaled`).
Tested by: tests/property/test_contributions.py
"""

from __future__ import annotations

from dataclasses import dataclass

from dpsql.analysis.facts import Contribution
from dpsql.plan.components import Component


@dataclass(frozen=True, slots=True)
class Reach:
    """Norms of one unit's vector, in the component's integer units and whole rows (before the weight grid)."""

    in_all: int
    squares: int
    in_group: int


def reach(component: Component, limits: Contribution) -> Reach:
    """The reach of one unit in a COUNT or a SUM."""
    each = component.magnitude
    if component.per_group is None or not limits.scaled:
        return Reach(limits.rows * each, limits.l2_squared * each**2, limits.rows_in_one_group * each)
    clipped = component.most_per_group
    if limits.by_rows is None:
        return Reach(limits.most_groups * clipped, limits.most_groups * clipped**2, clipped)
    in_all = min(limits.by_rows * each, limits.most_groups * clipped)
    in_group = min(clipped, in_all)
    return Reach(in_all, in_all * in_group, in_group)
