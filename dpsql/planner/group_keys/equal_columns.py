"""Columns that are equal are one variable: what is known of one of them is known of all."""

from __future__ import annotations

from collections.abc import Iterable

from dpsql.core.ir.expressions import Call, Column, Expr
from dpsql.core.ir.expressions import transform as transform_expr
from dpsql.core.ir.types import Kind

_JOINED = frozenset({Kind.INTEGER, Kind.VARCHAR, Kind.DATE, Kind.TIMESTAMP, Kind.BOOLEAN, Kind.DECIMAL, Kind.UUID})


def variables(terms: Iterable[Expr]) -> dict[int, int]:
    """Column → the variable it shares with the columns that a condition equates it with; only of such columns."""
    root: dict[int, int] = {}

    def find(uid: int) -> int:
        while root.setdefault(uid, uid) != uid:
            uid = root[uid]
        return uid

    for term in terms:
        match term:
            case Call(function="eq", args=(Column(type=s) as a, Column(type=t) as b)) if s.kind in _JOINED and (
                s == t or s.kind is t.kind is Kind.INTEGER
            ):
                one, other = sorted((find(a.uid), find(b.uid)))
                root[other] = one
    return {uid: find(uid) for uid in root}


def is_trivial(term: Expr) -> bool:
    """Whether the term compares a column with itself."""
    return (
        isinstance(term, Call)
        and term.function == "eq"
        and isinstance(term.args[0], Column)
        and (term.args[0] == term.args[1])
    )


def replaced(expr: Expr, old: Expr, new: Column) -> Expr:
    """The expression with every occurrence of a part replaced, outermost first."""
    return transform_expr(expr, lambda e: new if e == old else e)
