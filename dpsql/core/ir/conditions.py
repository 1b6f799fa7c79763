"""Conditions as lists of terms."""

from __future__ import annotations

from collections.abc import Iterable

from dpsql.core.ir.expressions import Call, Expr, columns_of
from dpsql.core.ir.step_count import take
from dpsql.core.ir.types import BOOLEAN


def conjuncts(condition: Expr) -> list[Expr]:
    """The terms of a top-level AND."""
    found: list[Expr] = []
    waiting = [condition]
    while waiting:
        term = waiting.pop()
        if isinstance(term, Call) and term.function == "and":
            waiting += term.args[::-1]
        else:
            found.append(term)
    return found


def conjunction(terms: Iterable[Expr]) -> Expr | None:
    """The AND of all terms; None if there is none."""
    found: Expr | None = None
    for term in terms:
        found = term if found is None else Call("and", (found, term), BOOLEAN, term.span)
    return found


def equality_between(term: Expr, left: frozenset[int], right: frozenset[int]) -> tuple[Expr, Expr] | None:
    """(left side, right side) of a plain `=` whose one side reads `left` columns and the other `right` ones."""
    take()
    if not (isinstance(term, Call) and term.function == "eq"):
        return None
    a, b = term.args
    reads_a, reads_b = columns_of(a), columns_of(b)
    if not reads_a or not reads_b:
        return None
    if reads_a <= left and reads_b <= right:
        return a, b
    if reads_a <= right and reads_b <= left:
        return b, a
    return None
