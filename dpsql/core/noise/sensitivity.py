"""How far a component can move between neighbours: facts + component → (l0, l1, l2², l∞), in integer units.

Units are those of the integers that the noise is added to: grid units times the weight F.

Claim: between neighbours the vector of the component over all groups moves by at most these norms.
Why: only the rows of one unit differ (of two ids, where ids are replaced; of c rows, where rows are), and the
    contribution says how many rows in how many groups those are, each of at most `magnitude` units, or the component
    how much one unit adds (`largest_contribution`). What goes and what
    comes may meet in one group or change two: the worse of both is taken, norm by norm.
When it would be false: a clip, a limit or a weight that the emitted SQL does not apply; a public number of rows
    (`size`) that a unit can change.
Proved by: Release.measured_l1, Release.released_l1, End.release_of_rows, End.release_of_ids. Not proved: replaced rows
Tested by: tests/deep/core/analysis/test_contribution_bounding.py, tests/deep/core/analysis/test_replace_one.py,
tests/deep/core/analysis/test_stability.py, tests/deep/core/analysis/test_unit_totals.py
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction

from dpsql.core.analysis.empty_relations import never
from dpsql.core.analysis.facts import Contribution, Facts
from dpsql.core.ir.components import Comoment, Component
from dpsql.core.ir.contributions import PerGroup, UnitTotal
from dpsql.core.ir.expressions import Literal
from dpsql.core.measures.all_measures import largest_contribution, rule
from dpsql.core.measures.measure_rule import squares


@dataclass(frozen=True, slots=True)
class Sensitivity:
    """Norms of the largest change of the vector of one component over all groups, between neighbours.

    l0: groups that can change (l1 where a contribution is scaled over groups). l1, linf: integers.
    l2_squared: exact square of the l2 norm.
    """

    l0: int
    l1: int
    l2_squared: Fraction
    linf: int


NOTHING = Sensitivity(0, 0, Fraction(0), 0)
"""Of a component that no row can change."""


def counts_nothing(component: Component, below: Facts) -> bool:
    """Whether no row of any database counts in a component: it is 0. below: facts of the release's input."""
    null = isinstance(component.arg, Literal) and component.arg.value is None
    return below.empty or null or (component.filter is not None and never(component.filter))


def sensitivity(component: Component, contribution: Contribution, grouped: bool) -> Sensitivity:
    """The component's sensitivity.

    contribution: what one unit can change.
    grouped: whether there are several groups; a single number moves by its l∞.
    """
    c = contribution
    if c.replaces_rows:
        found = _replaced_rows(component, c, grouped)
    elif isinstance(component.contribution, UnitTotal):
        found = _limited_totals(component, c)
    elif isinstance(component.contribution, PerGroup) and c.scaled:
        found = _clipped_totals(component, c, *component.ends_per_group)
    else:
        if not grouped and c.by_rows is None:
            assert c.per_group is not None
            c = replace(c, by_rows=c.per_group, per_group=None, groups=1)
        found = _bounded(component, c, grouped)
    return _over(contribution.released_groups if grouped else 1, found)


def _bounded(component: Component, c: Contribution, grouped: bool) -> Sensitivity:
    """Of single rows, or of ids whose rows are weighted or few."""
    one, factor = largest_contribution(component, c), component.weight
    # Where one id's rows replace another's, two vectors change, of which one goes and one comes.
    both = c.ids
    l1, linf, l2_squared = both * one.in_all * factor, one.in_group * factor, both * one.squares * factor**2
    # Values and ids that go and come are counted once in a group that has both: |v - w|² ≤ |v|² + |w|².
    if rule(component).counts == "rows":
        furthest = _furthest(component, c, grouped)
        linf = c.rows_in_one_group * furthest * factor
        # What goes and what comes meet in a group, or change two: convex in both, so one of the two is the worst.
        each = max(both * component.magnitude**2, furthest**2)
        l2_squared = each * factor**2 * c.l2_squared
    elif rule(component).adds_values:  # different values, of which some go and others come
        if both > 1:
            linf = rule(component).values_in_group(component, c) * component.span * factor
        l2_squared *= 1 if component.one_sign else both
    elif rule(component).chosen:  # what goes and what comes move the scores of two options of one choice
        linf, l2_squared = both * linf, both * l2_squared
    # Each group that changes moves by at least one integer unit; scaled-down contributions may move as many.
    return Sensitivity(l1 if c.scaled_over_groups else min(both * c.most_groups, l1), l1, Fraction(l2_squared), linf)


def _over(groups: int | None, found: Sensitivity) -> Sensitivity:
    """Of a vector of so many numbers, each of which moves by at most l∞. None: it may have any length."""
    l0, l1, linf = found.l0, found.l1, found.linf
    if groups is not None:
        l0, l1 = min(l0, groups), min(l1, groups * linf)
    return Sensitivity(min(l0, l1), l1, min(found.l2_squared, Fraction(squares(l1, linf))), linf)


def _furthest(component: Component, c: Contribution, grouped: bool) -> int:
    """How far one row's worth of an id's part in one group can move.

    Of a replaced id from the lowest to the highest value, 0 among them. A SUM alone under a limit C over groups is
    bounded by ±C·B only: many low values in one group may reach C·B from above.
    """
    if c.ids == 1:
        return component.magnitude
    if rule(component).alone(component) and grouped and c.scaled and c.by_rows is not None and not component.one_sign:
        return 2 * component.magnitude
    return component.span


def _limited_totals(component: Component, c: Contribution) -> Sensitivity:
    """A component with a limit on what one id adds: counts, and sums of one sign, lie between 0 and the most."""
    if not c.scaled:
        raise AssertionError("a limit that no statement enforces")
    most = largest_contribution(component, c).in_group
    low, high = component.ends if rule(component).adds_values else (0, 1)
    return _clipped_totals(component, c, -most if low < 0 else 0, most if high > 0 else 0)


def _clipped_totals(component: Component, c: Contribution, low: int, high: int) -> Sensitivity:
    """Totals per id and group that lie in [low, high], or are the 0 of no row.

    Where ids are replaced, one total goes and one comes: together they move a group by at most high - low, and where
    all have one sign, |v - w|² ≤ |v|² + |w|².
    """
    one, weight = largest_contribution(component, c), component.weight
    # An id without rows contributes 0. Of ends that are the wrong way round the printed clip takes the second.
    low, high = min(0, low, high), max(0, low, high)
    l1, linf = c.ids * one.in_all * weight, min(c.ids * one.in_group, high - low) * weight
    squares = (c.ids if low >= 0 or high <= 0 else c.ids**2) * one.squares * weight**2
    l2_squared = Fraction(min(squares, l1 * linf))
    any_group = c.scaled_over_groups or (c.groups is None and not c.limits_rows)
    return Sensitivity(l1 if any_group else min(c.ids * c.most_groups, l1), l1, l2_squared, linf)


def _replaced_rows(component: Component, c: Contribution, grouped: bool) -> Sensitivity:
    """Bounded DP: `rows` rows, each replaced by another one.

    A replaced row leaves a value x of its group and puts x' into another group or the same one. Where the number of
    rows is public and every row counts, COUNT(*) does not move at all, and a sum by at most U - L.
    """
    rows = c.rows
    other = isinstance(component, Comoment) and component.rows != c.size
    fixed = c.size is not None and component.counts_every_row and not grouped and not other
    one = rule(component).replaced(component, fixed)
    linf = rows * one.in_group
    if component.values is not None:  # a number from 0 to V, or a sum that is cut to that of so many
        linf = min(linf, component.values * (component.span if rule(component).adds_values else 1))
    return Sensitivity(min(2 * rows, rows * one.in_all), rows * one.in_all, Fraction(rows**2 * one.squares), linf)


def known(component: Component, contribution: Contribution) -> int:
    """The integer of a component whose sensitivity is 0: everybody knows it, and no data is read for it.

    Of a public number of rows, that number; a sum of one constant over them; else nothing but zeros.
    """
    return rule(component).known(component, contribution.size or 0)
