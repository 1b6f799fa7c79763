"""Facts for every node of a plan, bottom-up: one `match`, one rule per operator, default deny."""

from __future__ import annotations

from dataclasses import replace
from typing import assert_never

from dpsql.analysis.context import Context
from dpsql.analysis.facts import ColumnFact, Facts
from dpsql.analysis.rules.aggregate import aggregate, combined
from dpsql.analysis.rules.bound_contributions import bound_contributions
from dpsql.analysis.rules.filter import filter_
from dpsql.analysis.rules.group_keys import group_keys
from dpsql.analysis.rules.join import join
from dpsql.analysis.rules.project import project
from dpsql.analysis.rules.release import release
from dpsql.analysis.rules.scan import scan
from dpsql.analysis.rules.set_operation import set_operation
from dpsql.analysis.rules.truncate import truncate
from dpsql.analysis.rules.unnest import unnest
from dpsql.analysis.rules.values import values
from dpsql.diagnostics.errors import reject
from dpsql.functions.value import Value, type_range
from dpsql.plan.expr import Column
from dpsql.plan.nodes import (
    Aggregate,
    BoundContributions,
    Filter,
    GroupKeys,
    Join,
    Limit,
    Node,
    Project,
    Release,
    Scan,
    SetOperation,
    Sort,
    Truncate,
    Unnest,
    Values,
    Window,
    inputs,
)
from dpsql.plan.walk import Tagged


def derive(node: Node, ctx: Context) -> Tagged[Facts]:
    """The plan with its facts. Raises Rejected where a rule refuses.

    Facts depend on the node and the context alone, so a subtree that a rewrite left as it was is not derived again.
    """
    known = ctx.derived.get(id(node))
    if known is not None:
        return known
    below = tuple(derive(child, ctx) for child in inputs(node))
    found = Tagged(node, _rule(node, tuple(t.fact for t in below), ctx), below)
    ctx.derived[id(node)] = found  # it holds the node, so the number cannot be given to another one
    return found


def _rule(node: Node, below: tuple[Facts, ...], ctx: Context) -> Facts:
    match node:
        case Scan():
            return scan(node, ctx)
        case Values():
            return values(node)
        case Filter():
            return filter_(node, below[0])
        case Project():
            return project(node, below[0])
        case Join():
            return join(node, below[0], below[1], ctx)
        case SetOperation():
            return set_operation(node, below[0], below[1])
        case Unnest():
            return unnest(node, below[0])
        case Truncate():
            return truncate(node, below[0])
        case GroupKeys():
            return group_keys(node, below[0])
        case BoundContributions():
            return bound_contributions(node, below[0])
        case Release():
            return release(node, below[0], ctx)
        case Aggregate():
            return _aggregate(node, below[0], ctx)
        case Window():
            return _window(node, below[0])
        case Sort():
            return _public_order(node, below[0], "ORDER BY")
        case Limit():
            return _public_order(node, below[0], "LIMIT")
        case _:
            assert_never(node)


def _aggregate(node: Aggregate, below: Facts, ctx: Context) -> Facts:
    """Over public rows an aggregate is plain SQL. Over private ones it stays private, or must become a release."""
    if not below.public:
        if node.inner:
            return aggregate(node, below, ctx)
        if not ctx.drafting:
            raise combined(node)
    columns = {c.uid: _released(c) for c in (*(k.column for k in node.keys), *(a.column for a in node.calls))}
    return Facts(columns, keys=frozenset({frozenset(k.column.uid for k in node.keys)}), rule="aggregate")


def _window(node: Window, below: Facts) -> Facts:
    """A window function compares rows with each other: free over public rows, unbounded over private ones."""
    if not below.public:
        raise reject(
            "DP113", "a window function over private rows", span=node.span,
            label="one person's row changes what is computed for others",
            help=["aggregate first; windows over released numbers cost nothing"],
        )  # fmt: skip
    columns = {**below.columns, **{c.column.uid: _released(c.column) for c in node.calls}}
    return replace(below, columns=columns, rule="window", note="")


def _released(column: Column) -> ColumnFact:
    return ColumnFact(Value(column.type, range=type_range(column.type)))


def _public_order(node: Sort | Limit, below: Facts, what: str) -> Facts:
    """Order and LIMIT of private rows depend on all of them at once: unbounded (semantics.md §3)."""
    if not below.public:
        raise reject(
            "DP112", f"{what} over private rows", span=node.span,
            label="which rows come first depends on everybody's rows",
            help=["aggregate first, then sort or limit the result"],
        )  # fmt: skip
    return Facts(below.columns, keys=below.keys, frequency=below.frequency, rule=what.lower())
