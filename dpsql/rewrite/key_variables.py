"""Columns that are equal are one variable; tables of public rows are joined by the variables they share."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any
from uuid import UUID

from dpsql.functions.domains import ENUMERABLE
from dpsql.functions.registry import literal
from dpsql.functions.value import Domain, Value
from dpsql.plan.expr import Call, Column, Expr, LiteralValue
from dpsql.plan.expr import transform as transform_expr
from dpsql.rewrite.key_tables import KeyTable
from dpsql.types import Kind

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
    return (
        isinstance(term, Call)
        and term.function == "eq"
        and isinstance(term.args[0], Column)
        and (term.args[0] == term.args[1])
    )


def replaced(expr: Expr, old: Expr, new: Column) -> Expr:
    """The expression with every occurrence of a part replaced, outermost first."""
    return transform_expr(expr, lambda e: new if e == old else e)


def by_variable(
    grouped: dict[int, list[Column]], held: Sequence[Column], found: Iterable[Sequence[Any]], sort: bool
) -> KeyTable:
    """Rows of a table by variable; those in which columns that must be equal differ are left out."""
    places = [[held.index(c) for c in same] for same in grouped.values()]
    rows: dict[tuple[LiteralValue, ...], None] = {}
    for row in found:
        if all(row[i] == row[same[0]] for same in places for i in same[1:]):
            values = (row[same[0]] for same in places)
            rows[tuple(str(v) if isinstance(v, UUID) else v for v in values)] = None
    return KeyTable(tuple(grouped), tuple(rows), True, sort)


def whole(value: Value, most: int) -> Domain | None:
    """All whole numbers that a bounded integer expression can be, if they are not too many to be keys."""
    span = value.interval
    if value.is_constant:
        return literal(value.constant, value.type).domain  # type: ignore[arg-type]
    if value.type.kind is not Kind.INTEGER or span.lo is None or span.hi is None:
        return None
    if span.hi - span.lo >= min(most, ENUMERABLE):
        return None
    return Domain(range(-(-span.lo // 1), span.hi // 1 + 1), value.nullable)
