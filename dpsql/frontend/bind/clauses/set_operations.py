"""UNION, INTERSECT and EXCEPT: columns by position or by name, each in a type that both sides fit into."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from sqlglot import exp

from dpsql.core.ir.expressions import Column, Expr, Literal
from dpsql.core.ir.nodes import Node, Project, SetColumn, SetKind, SetOperation
from dpsql.core.ir.types import NULL
from dpsql.diagnostics.diagnostic import Span
from dpsql.diagnostics.errors import reject
from dpsql.diagnostics.together import Together
from dpsql.frontend.bind.clauses.order_by import orders, sorted_rows
from dpsql.frontend.bind.expressions.common_types import unified
from dpsql.frontend.bind.expressions.expressions import ExprBinder
from dpsql.frontend.bind.scope import BoundRelation, VisibleColumn

CLAUSES = ("this", "expression", "distinct", "by_name", "order", "limit", "offset")
"""What sqlglot calls the accepted parts of a set operation."""

_KINDS: dict[type[exp.Expr], SetKind] = {
    exp.Union: SetKind.UNION,
    exp.Intersect: SetKind.INTERSECT,
    exp.Except: SetKind.EXCEPT,
}


def combined(
    tree: exp.SetOperation, args: Mapping[str, Any], left: BoundRelation, right: BoundRelation, binder: ExprBinder
) -> BoundRelation:
    """The rows of a set operation with the names of its left side. Raises Rejected."""
    kind, at = _KINDS[type(tree)], _keyword(tree, binder)
    names = kind.value.upper()
    pairs = _by_name(left, right, kind, at) if args.get("by_name") else _by_position(left, right, names, at)
    together, columns = Together(), []
    for number, (name, a, b) in enumerate(pairs, 1):
        with together.attempt():
            target, sides = unified(binder, (a, b), at, f"column {number} of the {names}: ")
            column = binder.numbering.column(name, target, a.span or b.span)
            columns.append(SetColumn(column, *sides))
    together.settle()
    node = SetOperation(kind, tree.args.get("distinct") is False, left.node, right.node, tuple(columns), at)
    return BoundRelation(node, tuple(VisibleColumn("", c.column.name, c.column) for c in columns))


def ordered(relation: BoundRelation, args: Mapping[str, Any], binder: ExprBinder) -> BoundRelation:
    """A query in brackets, or a set operation, with the ORDER BY, LIMIT and OFFSET behind it, over its columns."""
    binder.entries, binder.clause = relation.entries, "ORDER BY"
    named: list[tuple[str, Expr]] = [(e.name, e.column) for e in relation.entries]
    keys = orders(args.get("order"), binder, named)
    return BoundRelation(sorted_rows(relation.node, keys, args, binder), relation.entries)


Pairs = list[tuple[str, Expr, Expr]]


def _by_position(left: BoundRelation, right: BoundRelation, names: str, at: Span) -> Pairs:
    lefts, rights = _columns(left), _columns(right)
    if len(lefts) != len(rights):
        raise reject(
            "DP106", f"{names} of {len(lefts)} and {len(rights)} columns", span=at,
            help=["select the same number of columns on both sides"],
        )  # fmt: skip
    return [(name, a, b) for (name, a), (_, b) in zip(lefts, rights, strict=True)]


def _by_name(left: BoundRelation, right: BoundRelation, kind: SetKind, at: Span) -> Pairs:
    """Columns of the left side, then those that only the right side has; NULL where a side has none."""
    if kind is not SetKind.UNION:
        raise reject(
            "DP101", f"{kind.value.upper()} BY NAME is not supported", span=at, help=["list the columns in one order"]
        )
    sides = []
    for relation in (left, right):
        columns = _columns(relation)
        known = {name.lower(): (name, e) for name, e in columns}
        if len(known) < len(columns):
            raise reject(
                "DP104", "UNION BY NAME needs different names for all columns of a side", span=at,
                help=["give the columns aliases"],
            )  # fmt: skip
        sides.append(known)
    missing = Literal(None, NULL, at)
    ours, theirs = sides
    found: Pairs = []
    for key in dict.fromkeys([*ours, *theirs]):
        name, _ = ours.get(key) or theirs[key]
        found.append((name, ours[key][1] if key in ours else missing, theirs[key][1] if key in theirs else missing))
    return found


def _columns(relation: BoundRelation) -> list[tuple[str, Expr]]:
    """Names and expressions; a constant that is selected stands for itself, so that a text may become a date."""
    return [(e.name, _constant(relation.node, e.column) or e.column) for e in relation.entries if not e.merged]


def _constant(node: Node, column: Column) -> Literal | None:
    if not isinstance(node, Project):
        return None
    expr = next((i.expr for i in node.items if i.column.uid == column.uid), None)
    return expr if isinstance(expr, Literal) else None


def _keyword(tree: exp.SetOperation, binder: ExprBinder) -> Span:
    """The word UNION, INTERSECT or EXCEPT between the two sides."""
    left, right = binder.span(tree.this), binder.span(tree.expression)
    found = re.compile(r"UNION|INTERSECT|EXCEPT", re.IGNORECASE).search(binder.source.text, left.end, right.start)
    return Span(*found.span()) if found else binder.span(tree)
