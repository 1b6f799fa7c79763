"""Which statements compute a release's integers. Chosen after measuring; may not change the integers."""

from __future__ import annotations

from dpsql.analysis.facts import Facts
from dpsql.plan.nodes import BoundContributions, Release
from dpsql.plan.walk import Tagged
from dpsql.sql.emit import TableNames
from dpsql.sql.shapes.direct import direct
from dpsql.sql.shapes.statement import Statement
from dpsql.sql.shapes.weighted import weighted


def statements(release: Tagged[Facts], tables: TableNames) -> tuple[Statement, ...]:
    """The statements of one release; every component is in exactly one of them."""
    node = release.node
    assert isinstance(node, Release)
    (below,) = release.inputs
    if isinstance(below.node, BoundContributions):
        return weighted(node, below, tables)
    return direct(node, below, tables)
