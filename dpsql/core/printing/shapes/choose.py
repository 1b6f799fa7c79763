"""Which statements compute a release's integers. Chosen after measuring; may not change the integers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from dpsql.core.analysis.facts import Facts
from dpsql.core.ir.nodes import BoundContributions, Node, Release
from dpsql.core.ir.walk import Tagged
from dpsql.core.printing.dialect import Again, Dialect
from dpsql.core.printing.expressions import TableNames
from dpsql.core.printing.shapes.direct import direct
from dpsql.core.printing.shapes.release_statement import Statement
from dpsql.core.printing.shapes.weighted import weighted
from dpsql.diagnostics.errors import Rejected


def statements(
    release: Tagged[Facts], d: Dialect, tables: TableNames, released: Mapping[Node, str]
) -> tuple[Statement, ...]:
    """The statements of one release; every component is in exactly one of them.

    released: each release that this one reads → what stands for its noisy rows in the text.
    """
    node = release.node
    assert isinstance(node, Release)
    (below,) = release.inputs
    printed = weighted if isinstance(below.node, BoundContributions) else direct
    first, other = printed(node, below, d, tables, released), d.again()
    if other is None:
        return first
    try:
        second = printed(node, below, other, tables, released)
    except Rejected:  # too large to be printed twice: then it is asked once
        return first
    return tuple(_with(one, again, other) for one, again in zip(first, second, strict=True))


def _with(one: Statement, again: Statement, other: Again) -> Statement:
    """A statement, with what is asked if it fails."""
    if again.sql == one.sql:
        return one
    called = tuple((name, made) for name, made in other.functions.items() if name in again.sql)
    return replace(one, again=replace(again, functions=called))
