"""What a reader of the result should know: what was clipped, what was bounded, which keys may be missing."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from dpsql.analysis.facts import Facts
from dpsql.measure.allocate import MeasuredRelease
from dpsql.plan.expr import Column, walk
from dpsql.plan.nodes import BoundContributions, Measure
from dpsql.plan.render import expression
from dpsql.plan.walk import Tagged


def notes_of(releases: Sequence[MeasuredRelease], tree: Tagged[Facts]) -> tuple[str, ...]:
    """Notes in plain words; they depend on the query and the policy alone, never on data."""
    found: list[str] = []
    for release in releases:
        found += _limits(release, tree)
        for m in release.measurements:
            c = m.component
            if c.measure is Measure.SUM and c.arg is not None:
                low, high = (Fraction(end + c.center) * c.grid for end in (c.lo, c.hi))
                columns = {e.name for e in walk(c.arg) if isinstance(e, Column)}
                if columns:
                    found.append(f"{expression(c.arg)} is clipped to [{_show(low)}, {_show(high)}]")
        if release.threshold is not None:
            keys = ", ".join(k.name for k in release.node.keys)
            found.append(
                f"groups of {keys} are shown only where the noisy number of units reaches {release.threshold.threshold}"
            )
    return tuple(dict.fromkeys(found))


def _limits(release: MeasuredRelease, tree: Tagged[Facts]) -> list[str]:
    bounding = release.node.input
    if not isinstance(bounding, BoundContributions):
        return []
    unit = release.unit
    if bounding.rows is not None:
        found = [f"at most {bounding.rows} rows per {unit} counted"]
    elif not bounding.keys or bounding.groups == 1:
        found = [f"at most {bounding.per_group} rows per {unit} counted"]
    elif bounding.few_groups:
        found = [f"at most {bounding.per_group} rows per {unit} and group counted"]
    else:
        found = [f"at most {bounding.groups} groups per {unit}, and {bounding.per_group} rows in each, counted"]
    if bounding.truncate_groups:
        found.append(f"only {bounding.groups} groups of each {unit} are kept")
    return found


def _show(x: Fraction) -> str:
    return str(x.numerator) if x.denominator == 1 else f"{float(x):g}"
