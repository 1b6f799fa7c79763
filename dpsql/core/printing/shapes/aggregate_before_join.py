"""Aggregating before a join: where the rows of an id are joined to the one row that says which group it is in.

*Claim.* `Σ per (id, group)` of a join is `Σ per id` of its many side, joined afterwards. *Why.* The one side has at
most one row per id (a key of it, by the tree's facts), the join is on the id alone, keys and key conditions read the
one side only, arguments and conditions the many side only: every joined row of an id carries the same key, and none is
lost but for ids without a row on the one side, which the later join drops just the same. *When it would be false.* A
key that is not one; a residual condition; a condition on the one side (each refused here). *Tested by*
tests/core/printing/test_shapes_early.py. Measured: two thirds of the time of joining first (benchmarks/README.md). A
filter on the one side may make the join the cheaper start, so that case is left alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from dpsql.core.analysis.facts import Facts
from dpsql.core.ir.expressions import Column, Expr, walk
from dpsql.core.ir.nodes import (
    BoundContributions,
    Filter,
    GroupKeys,
    Join,
    JoinKind,
    Node,
    Project,
    Release,
    Scan,
    output_columns,
)
from dpsql.core.ir.walk import Tagged
from dpsql.core.measures.all_measures import rule
from dpsql.core.printing.dialect import Dialect
from dpsql.core.printing.expressions import Aliases, Block, TableNames, condition
from dpsql.core.printing.relational_nodes import Emitter


@dataclass(frozen=True, slots=True)
class Early:
    """many: the rows to aggregate per `unit`. one: the side joined afterwards, on `match`, with the group columns."""

    many: Block
    unit: int
    one: Block
    match: str


def early(
    node: Release, below: Tagged[Facts], d: Dialect, tables: TableNames, released: Mapping[Node, str]
) -> Early | None:
    """How to aggregate before the join under a bounding node; None unless every condition above is met."""
    (keyed,) = below.inputs
    (joined,) = keyed.inputs
    conditions = []
    while isinstance(joined.node, Filter):
        conditions.append(joined.node.predicate)
        (joined,) = joined.inputs
    bounding, grouping, join = below.node, keyed.node, joined.node
    assert isinstance(bounding, BoundContributions) and isinstance(grouping, GroupKeys)
    if (
        not isinstance(join, Join)
        or join.kind is not JoinKind.INNER
        or join.residual is not None
        or len(join.equalities) != 1
        or not grouping.items
    ):
        return None
    (pair,) = join.equalities
    sides = [(joined.inputs[0], pair.left, joined.inputs[1], pair.right)]
    sides.append((joined.inputs[1], pair.right, joined.inputs[0], pair.left))
    for one, match, many, unit in sides:
        if not isinstance(match, Column) or not isinstance(unit, Column):
            continue
        if _fits(node, grouping, one, match, many, unit, conditions):
            emitter = Emitter(d, tables, released, Aliases())
            rows = emitter.block(many)
            rows = rows.filtered(*(condition(c, rows.names) for c in conditions))
            rows = rows.filtered(f"{rows.names.sql[unit.uid]} IS NOT NULL")
            later = emitter.block(Tagged(replace(grouping, input=one.node), keyed.fact, (one,)))
            return Early(rows, unit.uid, later, later.names.sql[match.uid])
    return None


def _fits(
    node: Release,
    grouping: GroupKeys,
    one: Tagged[Facts],
    match: Column,
    many: Tagged[Facts],
    unit: Column,
    conditions: list[Expr],
) -> bool:
    inner = [*conditions, *(e for c in node.components for e in c.expressions)]
    return (
        match.uid in one.fact.ids
        and unit.uid in many.fact.ids
        and one.fact.is_key(frozenset({match.uid}))
        and all(isinstance(t.node, (Scan, Project)) for t in one.walk())
        and all(rule(c).counts != "values" for c in node.components)
        and _reads([i.expr for i in grouping.items]) <= {c.uid for c in output_columns(one.node)}
        and _reads(inner) <= {c.uid for c in output_columns(many.node)}
    )


def _reads(expressions: Iterable[Expr]) -> set[int]:
    return {e.uid for expression in expressions for e in walk(expression) if isinstance(e, Column)}
