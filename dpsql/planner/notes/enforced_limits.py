"""Which limits a release enforces on the contributions of one id: what is above them is missing from its numbers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from dpsql.core.ir.components import Component
from dpsql.core.ir.nodes import BoundContributions, Node, Release, Scan
from dpsql.core.ir.walk import walk
from dpsql.core.measures.all_measures import rule
from dpsql.core.policy.tables import Table


@dataclass(frozen=True, slots=True)
class Enforced:
    """None: no such limit, or it takes nothing away.

    rows: of an id in all groups together. per_group: rows of an id in one group. groups: of an id.
    """

    rows: int | None = None
    per_group: int | None = None
    groups: int | None = None


def enforced(release: Release) -> Enforced:
    """The limits of a release; totals that single aggregates bound for themselves are not among them."""
    b = release.input
    if not isinstance(b, BoundContributions):
        return Enforced()
    rows = b.rows if b.rows is not None else b.per_group if b.one_group else None
    per_group = b.per_group if b.rows is None and not b.one_group else None
    groups = b.groups if b.keys and not b.few_groups else None
    if not any(_counts_rows(c) for c in release.components):
        # Totals are bounded one by one, or an id counts once in each group.
        rows, per_group, groups = None, None, groups or (b.rows if b.keys and not b.few_groups else None)
    return Enforced(rows, per_group, groups)


def missed(release: Node, tables: Mapping[str, Table]) -> Iterator[str]:
    """The prepared tables of which rows are missing from a release, because no more were copied: perhaps twice.

    Rows whose owner is found in another table are missing where that one's row is.
    """
    for scan in (n for n in walk(release) if isinstance(n, Scan)):
        name: str | None = scan.table
        while name is not None and (copy := tables[name].copied) is not None:
            if copy.cut:
                yield name
            name = None if copy.hop is None else copy.hop.table


def distinct_values(release: Release, component: Component) -> int | None:
    """Most different (group, value) of an id that a COUNT(DISTINCT …) counts; None if that takes nothing away."""
    b = release.input
    if not isinstance(b, BoundContributions) or rule(component).counts != "values":
        return None
    if component.of_unit is not None:
        return component.of_unit.most
    most = b.rows if b.rows is not None else (b.per_group or 1) * (b.groups or 1)
    kept = 1 if not b.keys else b.groups if b.few_groups or b.truncate_groups or b.rows is None else most
    possible = None if component.values is None or kept is None else kept * component.values
    if possible is None or possible > most:
        return most
    return None if not b.keys or b.few_groups or b.truncate_groups else possible


def _counts_rows(c: Component) -> bool:
    return c.per_group is None and c.of_unit is None and rule(c).counts == "rows"
