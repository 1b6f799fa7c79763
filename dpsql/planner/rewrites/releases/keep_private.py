"""Which aggregates over private rows become releases, and which stay private operators.

An aggregate below another one stays private

- under an id unit, if its groups contain the id: it makes totals per unit. Where they contain a column that the policy
  says is a unit's own (`belongs_to_unit`), or id and period of a unit that is both, its id is added to them: if the
  policy's word is false, a group counts as several;
- under a row unit, if it has groups, and the other one adds them up and is released. Each row that changes then moves
  two of them.

Everything else is released:

- what has no groups, what a scalar subquery computes, and what no aggregate stands above;
- what other private rows are joined with: a public number for each key joins them at no cost, while a private one
  needs their keys to repeat seldom;
- what is read by MIN, MAX or DISTINCT: they cannot be released over private rows, but can be computed of public
  numbers;
- what is read by quantiles and MODE: of noisy numbers they are exact, and chosen among a few groups they are mostly
  chance.

Under a row unit the two sides of a set operation go together. Where private rows come from one side, the counts of the
other side stay private as well. Whose the rows of a UNION ALL or of a FULL join are is decided on the way
(`joins/carry_ids.py`), since an aggregate above asks for it.

Example:
    >>> before_after(
    ...     keep_private, "SELECT AVG(n) FROM (SELECT patient, COUNT(*) AS n FROM visits GROUP BY patient)"
    ... )
    aggregate COUNT(*) by patient  →  keep private COUNT(*) by patient
    └─ scan visits                    └─ scan visits
"""

from __future__ import annotations

from collections.abc import Sequence

from dpsql.core.analysis.derive import derive_once
from dpsql.core.analysis.facts import Facts
from dpsql.core.ir.expressions import Column
from dpsql.core.ir.nodes import (
    Aggregate,
    AggregateCall,
    Filter,
    Item,
    Join,
    Node,
    Project,
    SetOperation,
    inputs,
    output_columns,
)
from dpsql.core.ir.walk import unused_numbers, with_inputs
from dpsql.core.value_classes import replace
from dpsql.diagnostics.diagnostic import Mark
from dpsql.diagnostics.errors import reject
from dpsql.frontend.bind.aggregates.searched_clips import searched_in
from dpsql.planner.rewrites.bounds.clip_columns import clip_columns
from dpsql.planner.rewrites.joins.carry_ids import Ids
from dpsql.planner.rewrites.joins.join_periods import has_period_ids, joined_by_period, told_by
from dpsql.planner.rewrites.rewrite_context import RewriteContext

_PICKING = frozenset({"min", "max", "mode", "arg_min", "arg_max"})


def keep_private(root: Node, ctx: RewriteContext) -> Node:
    """Mark the aggregates that stay private."""
    return _kept(root, False, False, ctx, Ids(ctx, unused_numbers(root)))


def _kept(node: Node, below_any: bool, below_release: bool, ctx: RewriteContext, ids: Ids) -> Node:
    """below_any: some aggregate is above on this branch. below_release: one that can be released itself."""
    match node:
        case Aggregate(inner=True):  # the distinct rows that IN looks values up in: nobody asked for a release
            return replace(node, input=_kept(node.input, True, False, ctx, ids), inner=ctx.private(node.input))
        case Aggregate(calls=calls):
            released = bool(calls) and not any(c.function in _PICKING or c.p is not None for c in calls)
            child = _kept(node.input, True, below_release or released, ctx, ids)
            found = ids.either(node if child is node.input else replace(node, input=child))
            assert isinstance(found, Aggregate)
            node = found
            if not below_any or not node.keys or not ctx.private(node.input):
                return node
            facts = derive_once(clip_columns(node.input, ctx), ctx.analysis).fact
            node = _with_id(node, facts, ctx, ids)
            owned = any(isinstance(k.expr, Column) and k.expr.uid in facts.ids for k in node.keys)
            private = owned if facts.ids else below_release
            if private:
                _require_bounds(calls)
            return replace(node, inner=private)
        case Join(scalar=True, left=left, right=right):
            inner = _kept(right, True, False, ctx, ids) if _correlated(node) else _kept(right, False, False, ctx, ids)
            outer = _kept(left, below_any, below_release, ctx, ids)
            return joined_by_period(replace(node, left=outer, right=inner), ctx)
        case Join(left=left, right=right):
            beside_left, beside_right = ctx.private(right), ctx.private(left)
            both = (
                _kept(left, below_any, below_release and not beside_left, ctx, ids),
                _kept(right, below_any, below_release and not beside_right, ctx, ids),
            )
            node = ids.either(joined_by_period(replace(node, left=both[0], right=both[1]), ctx))
            return ids.parted(node) if below_any and isinstance(node, Join) else node
        case SetOperation():
            node = with_inputs(node, tuple(_kept(n, below_any, below_release, ctx, ids) for n in inputs(node)))
            node = _together(node, ctx) if below_release and ctx.private(node) else node
            return ids.united(node) if below_any and isinstance(node, SetOperation) else node
        case _:
            below = tuple(_kept(n, below_any, below_release, ctx, ids) for n in inputs(node))
            return ids.either(with_inputs(node, below))


def _with_id(node: Aggregate, facts: Facts, ctx: RewriteContext, ids: Ids) -> Aggregate:
    """Groups of what is one unit's own, by its id as well."""
    held = next((c for c in output_columns(node.input) if c.uid in facts.ids), None)
    bare = [k.expr.uid for k in node.keys if isinstance(k.expr, Column)]
    if held is None or facts.ids & set(bare):
        return node
    if has_period_ids(ctx.analysis.policy) and told_by((k.expr for k in node.keys), facts, ctx):
        return replace(node, keys=(*node.keys, Item(ids.fresh(held), held)))
    for hint in (facts.columns[uid].hint for uid in bare):
        table = None if hint is None or not hint.table else ctx.analysis.table(hint.table)
        if hint is None or table is None or facts.units != (table.unit,):
            continue
        if hint.column.casefold() in map(str.casefold, table.belongs_to_unit):
            return replace(node, keys=(*node.keys, Item(ids.fresh(held), held)))
    return node


def _require_bounds(calls: Sequence[AggregateCall]) -> None:
    """Of what stays private nothing is searched. Raises Rejected DP101."""
    clip = next((clip for call in calls if (clip := searched_in(call.arg)) is not None), None)
    if clip is not None:
        raise reject(
            "DP101", "AUTO is not searched here", span=clip.span, mark=Mark.UNSEARCHED,
            label="this is added up for each unit or group, and aggregated again before anything is released",
            help=[
                "write the bounds themselves:  CLIP(x, lower, upper)",
                "and leave those of the whole to AUTO:  SUM(CLIP(total, AUTO))",
            ],
        )  # fmt: skip


def _together(node: Node, ctx: RewriteContext) -> Node:
    """The sides of a set operation with private rows: a number released for a row of one would be seen by nobody."""
    match node:
        case SetOperation() | Project() | Filter():
            return with_inputs(node, tuple(_together(n, ctx) for n in inputs(node)))
        case Aggregate(keys=(), inner=False) if ctx.private(node.input):
            return node if derive_once(node.input, ctx.analysis).fact.ids else replace(node, inner=True)
        case _:
            return node


def _correlated(node: Join) -> bool:
    """A correlated scalar subquery is grouped by what it is correlated on: totals per unit, if that is the id."""
    return bool(node.equalities)
