"""Statements by which tools ask which columns there are."""

from __future__ import annotations

from sqlglot import exp, parse_one
from sqlglot.errors import SqlglotError


def wants_no_row(sql: str, dialect: str) -> bool:
    """Whether a query says that it wants no row: LIMIT 0, WHERE FALSE, WHERE 1 = 0; or cannot be read."""
    try:
        tree = parse_one(sql, dialect=dialect)
    except (SqlglotError, RecursionError):
        return True
    return any(_is_zero(n) for n in tree.find_all(exp.Limit)) or any(
        _is_false(n.this) for n in tree.find_all(exp.Where)
    )


def _is_zero(limit: exp.Limit) -> bool:
    return isinstance(limit.expression, exp.Literal) and limit.expression.name == "0"


def _is_false(condition: exp.Expr) -> bool:
    """FALSE, or numbers that differ, alone or beside AND."""
    return any(
        (isinstance(n, exp.Boolean) and not n.this)
        or (isinstance(n, exp.EQ) and n.this.is_number and n.expression.is_number and n.this != n.expression)
        for n in (condition.flatten() if isinstance(condition, exp.And) else [condition])
    )
