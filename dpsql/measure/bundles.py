"""Components of one release that change together by the largest of their changes, not by the sum.

Claim: where no row counts in two components of a bundle, the bundle as a whole loses what its costliest member would
    lose alone: ε = max εᵢ (Laplace), ρ = max ρᵢ (Gaussian).
Why: between neighbours at most c rows come or go, and each moves at most one member, in one group, by at most that
    member's Bᵢ. With nᵢ rows in member i, Σ nᵢ ≤ c:  Laplace: Σ ‖Δᵢ‖₁/sᵢ ≤ Σ nᵢBᵢ/sᵢ ≤ c·max Bᵢ/sᵢ = max εᵢ.
    Gaussian: Σ ‖Δᵢ‖₂²/2σᵢ² ≤ Σ (nᵢBᵢ)²/2σᵢ², which is convex in n, so largest where all c rows are in one member:
    max (cBᵢ)²/2σᵢ² = max ρᵢ. For this the members' own sensitivities must be c·Bᵢ, which those of COUNT, SUM and
    COUNT(DISTINCT …) are: one row more changes each by at most Bᵢ.
When it would be false: under a limit on contributions, where one row more scales down all the others, which are in
    other members, too; where rows or ids are replaced, so that what goes leaves one member and what comes enters
    another; for totals clipped per id and for presence of ids, where one id may do all it may do in each member; for
    the count that decides on private keys, whose δ is its own; for conditions that one row can satisfy both
    (`analysis/disjoint.py`).
Tested by: tests/property/test_bundles.py, tests/unit/measure/test_bundles.py
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from dpsql.analysis.disjoint import ANY, Cases, apart, both, cases_of
from dpsql.analysis.facts import Contribution
from dpsql.plan.components import Component, Measure
from dpsql.plan.expr import Call, Literal
from dpsql.plan.nodes import Release

Bundles = tuple[tuple[int, ...], ...]
"""Numbers of a release's components, each once."""


def bundles(node: Release, contributions: Mapping[str, Contribution]) -> Bundles:
    """The components of a release, those together of which a row counts in one at most; most are alone.

    contributions: privacy unit → what one of it can change. Each component joins the first bundle that it can.
    """
    if all(map(_by_rows, contributions.values())):
        return _bundles(_Same(node.components), node.threshold)
    return tuple((i,) for i in range(len(node.components)))


@dataclass(frozen=True, slots=True, eq=False)
class _Same:
    """Components, which are equal to no others: -0.0 = 0.0, and yet they are two arguments."""

    components: tuple[Component, ...]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and self.components is other.components

    def __hash__(self) -> int:
        return id(self.components)


@lru_cache(maxsize=64)  # every look at a price asks again
def _bundles(same: _Same, threshold: int | None) -> Bundles:
    found: list[list[tuple[int, Cases | None]]] = []
    for i, component in enumerate(same.components):
        cases = counted(component) if i != threshold and _adds_up(component) else None
        for bundle in found if cases not in (None, ANY) else ():
            if all(_apart(cases, other) for _, other in bundle):
                bundle.append((i, cases))
                break
        else:
            found.append([(i, cases)])
    return tuple(tuple(i for i, _ in bundle) for bundle in found)


def _apart(a: Cases | None, b: Cases | None) -> bool:
    return a is not None and b is not None and apart(a, b)


def _by_rows(c: Contribution) -> bool:
    """Whether all that is known of a unit is that `rows` of its rows come or go, and each counts as it is."""
    return c.by_rows is not None and not c.scaled and not c.spread and not c.slots and c.ids == 1


def _adds_up(component: Component) -> bool:
    """Whether one row more changes the component by at most what one row can add, whatever the other rows are."""
    return component.per_group is None and component.measure is not Measure.UNITS


def counted(component: Component) -> Cases:
    """What the rows are that can change a component: those of its filter, and of a CASE that else gives nothing."""
    found = cases_of(component.filter)
    match component.arg:
        case Call(function="case" | "if", args=(condition, _, Literal(value=value))) if value is None or (
            value == 0 and _zero_is_nothing(component)
        ):
            return both(found, cases_of(condition))
        case _:
            return found


def _zero_is_nothing(c: Component) -> bool:
    """Whether a row with the value 0 adds 0."""
    return c.measure is Measure.SUM and not c.center and not c.squared and c.lo <= 0 <= c.hi
