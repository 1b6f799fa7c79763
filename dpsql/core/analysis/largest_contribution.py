"""The largest contribution of one unit to a component: in all groups together, and in one group.

Claim: with contributions bounded as `limits` says, the integers of one unit, before the weight grid F, have
    Σ|v| ≤ in_all, Σv² ≤ squares and max|v| ≤ in_group.
Why: each of at most G groups (or of c rows) holds at most M rows of at most B units. Where the component clips the
    unit's own total of a group to [a, b], a group holds at most T = max(|a|, |b|) instead. Under a limit of C rows in
    all, both hold: at most C·B in all, and at most T in each of at most G groups; Σv² is convex, so largest where
    groups are full. A unit is in a group or not. Of V possible values a group counts each once, however often. A limit
    τ of the component's own on Σ|v| or on √Σv² is that; by Cauchy and Schwarz the latter leaves Σ|v| ≤ τ·√G, and of
    integers Σ|v| ≤ Σv².
When it would be false:
    - a clip, a weight or a limit on distinct values that the emitted SQL does not apply (it reads them from here; only
      the weighted shapes do, hence `scaled`);
    - a number of groups that nothing enforces;
    - an argument with more than V values (`Component.values`, checked by the rule of releases);
    - a τ that divides by other totals than those that it multiplies: of other rows, another filter, other groups.
Tested by: tests/deep/analysis/test_contribution_bounding.py, tests/deep/analysis/test_public_groups.py,
tests/deep/analysis/test_unit_totals.py
"""

from __future__ import annotations

from dataclasses import dataclass
from math import isqrt
from typing import assert_never

from dpsql.core.analysis.facts import Contribution
from dpsql.core.ir.components import Component, Measure, UnitTotal


@dataclass(frozen=True, slots=True)
class LargestContribution:
    """Norms of one unit's vector, in the component's integer units and whole rows (before the weight grid)."""

    in_all: int
    squares: int
    in_group: int


def largest_contribution(component: Component, limits: Contribution) -> LargestContribution:
    """The largest contribution of one unit to a component."""
    if component.of_unit is not None:
        return _of_unit(component, component.of_unit, limits)
    if component.measure is Measure.UNITS:
        return LargestContribution(limits.most_groups, limits.most_groups, 1)
    rows, groups, each = limits.rows, limits.most_groups, component.magnitude
    match component.measure:
        case Measure.DISTINCT:
            alike = rows if limits.scaled else limits.rows_in_one_group  # values are cut over all groups
            return _at_most(rows, groups, alike if component.values is None else min(alike, component.values))
        case Measure.COUNT | Measure.SUM:
            if component.per_group is None or not limits.scaled:
                return LargestContribution(rows * each, limits.l2_squared * each**2, limits.rows_in_one_group * each)
            clipped = component.most_per_group
            if limits.by_rows is None:
                return LargestContribution(groups * clipped, groups * clipped**2, clipped)
            return _at_most(rows * each, groups, clipped)
        case _:
            assert_never(component.measure)


def _of_unit(component: Component, total: UnitTotal, limits: Contribution) -> LargestContribution:
    """Under a limit τ of the component's own."""
    most, possible = total.most, limits.released_groups
    groups = possible if limits.scaled_over_groups or limits.groups is None else limits.groups
    if possible is not None and groups is not None:
        groups = min(groups, possible)
    if component.measure is Measure.DISTINCT:
        in_group = most if component.values is None else min(most, component.values)
        return _at_most(most, most if groups is None else groups, in_group)
    if total.norm == "l1":
        return LargestContribution(most, most**2, most)
    # Rounded up, so that it holds of the parts of whole units that the weight makes, too.
    in_all = component.weight * most**2 if groups is None else isqrt(groups * most**2 - 1) + 1
    return LargestContribution(in_all, most**2, most)


def _at_most(in_all: int, groups: int, in_group: int) -> LargestContribution:
    """At most `in_all`, and at most `in_group` in each of at most `groups` groups."""
    in_all = min(in_all, groups * in_group)
    in_group = min(in_group, in_all)
    return LargestContribution(in_all, squares(in_all, in_group), in_group)


def squares(in_all: int, in_group: int) -> int:
    """The largest Σv² where Σ|v| ≤ in_all and max|v| ≤ in_group: as many of the largest as there is room for."""
    if not in_group:
        return 0
    full, rest = divmod(in_all, in_group)
    return full * in_group**2 + rest**2
