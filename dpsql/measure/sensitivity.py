"""How far a component can move between neighbours: facts + component → (l0, l1, l2², l∞), in integer units.

Units are those of the integers that the noise is added to: grid units times the weight F (semantics.md §5, §6).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction

from dpsql.analysis.facts import Contribution
from dpsql.plan.nodes import Component, Measure


@dataclass(frozen=True, slots=True)
class Sensitivity:
    """Norms of the largest change of the vector of one component over all groups, between neighbours.

    l0: groups that can change (l1 where a contribution is spread). l1, linf: integers.
    l2_squared: exact square of the l2 norm.
    """

    l0: int
    l1: int
    l2_squared: Fraction
    linf: int


def sensitivity(component: Component, contribution: Contribution, grouped: bool) -> Sensitivity:
    """The component's sensitivity.

    contribution: what one unit can change (semantics.md §4, §5).
    grouped: whether there are several groups; a single number moves by its l∞.
    """
    c, ids = contribution, contribution.ids
    if not grouped and c.by_rows is None:
        assert c.per_group is not None
        c = replace(c, by_rows=c.per_group, per_group=None, groups=1)
    factor = component.weight * component.magnitude
    groups = ids * c.most_groups if grouped else 1
    match component.measure:
        case Measure.COUNT | Measure.SUM:
            l1, linf = ids * c.rows * factor, ids * c.rows_in_one_group * factor
            l2_squared = Fraction(ids**2 * c.l2_squared * factor**2)
        case Measure.DISTINCT:
            # D values may all be new in one group, or spread over D groups (semantics.md §4).
            l1 = linf = ids * c.rows
            l2_squared = Fraction(l1) ** 2
        case Measure.UNITS:
            # An id is present in a group or not; replaced ids may both be in the same one.
            l1, linf = groups * factor if grouped else ids * factor, ids * factor
            l2_squared = Fraction(l1 * linf)
    # Each group that changes moves by at least one integer unit; scaled-down contributions may move as many.
    return Sensitivity(l1 if c.spread else min(groups, l1), l1, l2_squared, linf)
