"""What the form of a bound plan tells about its rows: whether there is exactly one, and what is never NULL."""

from __future__ import annotations

from dpsql.core.ir.conditions import conjuncts
from dpsql.core.ir.expressions import Call, Column, Expr, Literal
from dpsql.core.ir.nodes import (
    Aggregate,
    Filter,
    Join,
    JoinKind,
    Limit,
    Node,
    Project,
    Scan,
    SetKind,
    SetOperation,
    Sort,
    Values,
    Window,
    inputs,
    output_columns,
)
from dpsql.core.policy.policy import Policy

_REJECT_NULL = frozenset({"eq", "ne", "lt", "le", "gt", "ge"})


def one_row(node: Node) -> bool:
    """True if the plan gives exactly one row, whatever the data."""
    match node:
        case Values(rows=rows):
            return len(rows) == 1
        case Project(input=child) | Sort(input=child) | Window(input=child):
            return one_row(child)
        case Limit(input=child, count=count, offset=offset):
            return count != 0 and offset == 0 and one_row(child)
        case Aggregate(input=child, keys=keys):
            return not keys or one_row(child)
        case Join(kind=kind, left=left, right=right, scalar=scalar):
            if kind is JoinKind.LEFT and scalar:
                return one_row(left)
            return kind is JoinKind.CROSS and one_row(left) and one_row(right)
        case _:
            return False


def never_null(expr: Expr, node: Node, policy: Policy) -> bool:
    """True if the expression over the node's rows cannot be NULL: a literal, or a column that starts NOT NULL."""
    if isinstance(expr, Literal):
        return expr.value is not None
    return isinstance(expr, Column) and _sure(expr.uid, node, policy)


def _sure(uid: int, node: Node, policy: Policy) -> bool:
    match node:
        case Scan(table=name, columns=columns):
            table = policy.table(name)
            declared = [table.columns[c.name] for c in columns if c.uid == uid] if table is not None else []
            # A row whose id is NULL is nobody's: the plan drops it.
            return table is not None and any(not c.is_nullable or c is table.id_column for c in declared)
        case Values(columns=columns, rows=rows):
            places = [i for i, c in enumerate(columns) if c.uid == uid]
            return bool(places) and all(row[places[0]] is not None for row in rows)
        case Project(input=child, items=items):
            return any(i.column.uid == uid and never_null(i.expr, child, policy) for i in items)
        case Filter(input=child, predicate=predicate):
            return any(_drops_null(term, uid) for term in conjuncts(predicate)) or _sure(uid, child, policy)
        case Join(kind=kind, left=left, right=right):
            side = left if uid in {c.uid for c in output_columns(left)} else right
            if kind is JoinKind.FULL or (kind is JoinKind.LEFT and side is right):
                return False
            return _sure(uid, side, policy)
        case SetOperation(kind=set_kind, left=left, right=right, columns=set_columns):
            at = [c for c in set_columns if c.column.uid == uid]
            if not at or not never_null(at[0].left, left, policy):
                return False
            return set_kind is not SetKind.UNION or never_null(at[0].right, right, policy)
        case Aggregate(input=child, keys=keys, calls=calls):
            if any(c.column.uid == uid and c.function == "count" for c in calls):
                return True
            return any(k.column.uid == uid and never_null(k.expr, child, policy) for k in keys)
        case _:
            below = inputs(node)
            return len(below) == 1 and _sure(uid, below[0], policy)


def _drops_null(term: Expr, uid: int) -> bool:
    """True if rows in which the column is NULL do not satisfy the term."""
    if not isinstance(term, Call):
        return False
    if term.function == "not":
        (inner,) = term.args
        return isinstance(inner, Call) and inner.function == "is_null" and _is(inner.args[0], uid)
    return term.function in _REJECT_NULL and any(_is(a, uid) for a in term.args)


def _is(expr: Expr, uid: int) -> bool:
    return isinstance(expr, Column) and expr.uid == uid
