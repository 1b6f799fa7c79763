"""Conditions that promises make false are FALSE: what they leave is no rows, which are neither read nor charged.

`x IS NULL` where the policy says `nullable: false`, or the query that x is not NULL; `COUNT(*) > 1` of groups by what
the policy says is `unique`; a condition on group keys that none of the listed ones meets. Tools test data so (dbt's
not_null, unique and accepted_values): the policy has the answer, and `dpsql policy verify` tests the policy. Where a
promise is false, the answer is, and nothing is told of the data.

Example:
    >>> before_after(promised_conditions, "SELECT COUNT(*) FROM visits WHERE code IS NULL")
    filter code IS NULL  →  filter code IS NULL AND FALSE
    └─ scan visits          └─ scan visits
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress

from dpsql.core.analysis.derive import derive_once
from dpsql.core.analysis.empty_relations import never
from dpsql.core.analysis.facts import Facts
from dpsql.core.ir.conditions import conjuncts
from dpsql.core.ir.expressions import Call, Column, Expr, Literal, columns_of
from dpsql.core.ir.expressions import transform as transform_expr
from dpsql.core.ir.expressions import walk as walk_expr
from dpsql.core.ir.nodes import (
    Aggregate,
    AggregateCall,
    Filter,
    Limit,
    Node,
    Project,
    Release,
    Sort,
    Values,
    Window,
    key_sources,
    output_columns,
)
from dpsql.core.ir.types import BOOLEAN
from dpsql.core.ir.walk import expressions, transform, walk
from dpsql.core.value_classes import replace
from dpsql.core.values.domains import ENUMERABLE
from dpsql.core.values.value import Value
from dpsql.diagnostics.errors import Rejected
from dpsql.planner.group_keys.compute import Condition
from dpsql.planner.rewrites.rewrite_context import RewriteContext

_MORE = {"gt": 1, "ge": 2, "eq": 2}
"""Comparison → from which whole number on it is false of one row."""


_NULLS = frozenset({"is_null", "is_not_null"})
_GROUPS = (Aggregate, Release, Sort, Limit, Window, Project)


def promised_conditions(root: Node, ctx: RewriteContext) -> Node:
    """Write FALSE for what promises of the policy, and lists of keys, make false."""
    if not _may_be_promised(root):
        return root

    def filtered(node: Filter) -> Node:
        terms, rows = conjuncts(node.predicate), node.input
        groups, names = _below(rows)
        found = None
        if isinstance(groups, Release):
            found = next((t for t in terms if _of_no_key(t, groups, names)), None)
        elif isinstance(groups, Aggregate) and ctx.private(groups.input):
            found = next((t for t in terms if _of_one_row(t, groups, names, ctx)), None)
            if found is not None and not groups.inner:
                rows = Values(output_columns(rows), ())  # nor are they refused, as groups that nobody may see would be
        if found is None and _asks_for_null(node.predicate) and ctx.private(rows):
            found = next((t for t in terms if _asks_for_null(t) and _of_null(t, rows, ctx)), None)
        if found is None or never(node.predicate):
            return node
        return replace(node, input=rows, predicate=Call("and", (found, _false(found)), BOOLEAN, found.span))

    def aggregated(node: Aggregate) -> Node:
        if not any(map(_asks_for_null, expressions(node))) or not ctx.private(node.input):
            return node
        calls = tuple(_counting(c, node.input, ctx) for c in node.calls)
        return node if calls == node.calls else replace(node, calls=calls)

    return transform(transform(root, Filter, filtered), Aggregate, aggregated)


def _may_be_promised(root: Node) -> bool:
    """Whether anything here is looked at further: of most queries nothing is."""
    terms: list[Expr] = []
    for node in walk(root):
        if isinstance(node, Filter):
            if isinstance(node.input, _GROUPS):
                return True
            terms.append(node.predicate)
        elif isinstance(node, Aggregate):
            for c in node.calls:
                if c.filter is not None:
                    terms.append(c.filter)
                elif isinstance(c.arg, Call) and c.arg.function == "case":
                    terms.append(c.arg)
    return any(map(_asks_for_null, terms))


def _asks_for_null(e: Expr) -> bool:
    return not _NULLS.isdisjoint([part.function for part in walk_expr(e) if isinstance(part, Call)])


def _of_null(term: Expr, rows: Node, ctx: RewriteContext) -> bool:
    """Whether it holds only where columns are NULL that are not."""
    with suppress(Rejected):  # what is wrong with the rows is told where they are used
        facts = derive_once(rows, ctx.analysis).fact
        return bool(columns_of(term)) and never(_without_nulls(term, facts))
    return False


def _counting(call: AggregateCall, rows: Node, ctx: RewriteContext) -> AggregateCall:
    """The call with FALSE for its own conditions that no row meets: FILTER, and those of a CASE."""

    def judged(term: Expr) -> Expr:
        return _false(term) if _asks_for_null(term) and _of_null(term, rows, ctx) else term

    arg, own = call.arg, call.filter
    if isinstance(arg, Call) and arg.function == "case":
        last = len(arg.args) - 1
        arg = replace(arg, args=tuple(judged(a) if i % 2 == 0 and i < last else a for i, a in enumerate(arg.args)))
    return replace(call, arg=arg, filter=own and judged(own))


def _false(term: Expr) -> Literal:
    """FALSE at the place of a term, by which `notes/unread.py` knows it."""
    return Literal(False, BOOLEAN, term.span)


def _without_nulls(term: Expr, rows: Facts) -> Expr:
    """The term where it is known of columns that they are not NULL."""

    def change(e: Expr) -> Expr:
        match e:
            case Call(function="is_null" | "is_not_null" as name, args=(Column(uid=uid),)):
                return e if rows.columns[uid].value.nullable else Literal(name == "is_not_null", BOOLEAN, e.span)
        return e

    return transform_expr(term, change)


def _of_one_row(term: Expr, groups: Aggregate, names: Mapping[int, int], ctx: RewriteContext) -> bool:
    """Whether it asks for several rows in groups of a unique key."""
    match term:
        case Call(function=name, args=(Column(uid=uid), Literal(value=int(least)))) if least >= _MORE.get(
            name, least + 1
        ):
            pass
        case _:
            return False
    counted = names.get(uid, uid)
    if not any(c.column.uid == counted and c.function == "count" for c in groups.calls):
        return False
    keys = frozenset(k.expr.uid for k in groups.keys if isinstance(k.expr, Column))
    with suppress(Rejected):
        return len(groups.keys) > 0 and derive_once(groups.input, ctx.analysis).fact.is_key(keys)
    return False


def _of_no_key(term: Expr, groups: Release, names: Mapping[int, int]) -> bool:
    """Whether it reads one listed group key alone, and is true of none on the list."""
    if len(columns_of(term)) != 1:
        return False
    (read,) = columns_of(term)
    place = next((i for i, key in enumerate(groups.keys) if key.uid == names.get(read, read)), None)
    source = next((s for s in key_sources(groups) or () if place in s.positions), None)
    if source is None or place is None or len(source.keys) > ENUMERABLE:
        return False
    at = source.positions.index(place)
    condition = Condition(term, {read: Value(groups.keys[place].type)}, frozenset({read}))
    return not any(condition.may_hold({read: key[at]}) for key in source.keys)


def _below(rows: Node) -> tuple[Node, Mapping[int, int]]:
    """What makes groups below nodes that only choose, order or rename them; new column number → old one."""
    names: dict[int, int] = {}
    while isinstance(rows, (Filter, Sort, Limit, Window, Project)):
        if isinstance(rows, Project):
            own = {i.column.uid: i.expr.uid for i in rows.items if isinstance(i.expr, Column)}
            names = {new: own[old] for new, old in names.items() if old in own} | own
        rows = rows.input
    return rows, names
