"""Scalar expressions of the plan: four node types, because every operator is a call of a registered function.

Columns are identified by a number that is unique in the plan, never by name: a name can be ambiguous or shadowed, a
number cannot. Nodes are immutable values; spans take no part in equality.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from dataclasses import field
from decimal import Decimal
from functools import partial
from operator import is_

from dpsql.core.ir.step_count import take
from dpsql.core.ir.types import SqlType
from dpsql.core.value_classes import replace, value
from dpsql.diagnostics.diagnostic import Span

MOST_NODES = 20_000
"""Largest expression after names are replaced by what they stand for: `x + x` of `x + x` of … doubles every time."""

LiteralValue = bool | int | Decimal | float | str | bytes | dt.date | dt.datetime | dt.time | dt.timedelta | None


@value(frozen=True, slots=True)
class Column:
    """A reference to (or, in a node's output list, the definition of) column `uid`."""

    uid: int
    name: str = field(compare=False)
    type: SqlType
    span: Span | None = field(default=None, compare=False)

    def at(self, span: Span | None) -> Column:
        """The same column, named at another place."""
        return Column(self.uid, self.name, self.type, span)


@value(frozen=True, slots=True)
class Literal:
    """A constant of the query, a bound parameter, or a noisy value of an earlier release."""

    value: LiteralValue
    type: SqlType
    span: Span | None = field(default=None, compare=False)


class _OfOthers:
    """What is made of other expressions. reads: the numbers of its columns, once somebody asked (`columns_of`)."""

    __slots__ = ("reads",)


@value(frozen=True, slots=True)
class Call(_OfOthers):
    """A call of the registered function with this canonical name. `CASE a WHEN …` is `case(c1, v1, …, else)`."""

    function: str
    args: tuple[Expr, ...]
    type: SqlType
    span: Span | None = field(default=None, compare=False)


@value(frozen=True, slots=True)
class Cast(_OfOthers):
    """A conversion to `type`; a value that does not convert becomes NULL (TRY_CAST)."""

    arg: Expr
    type: SqlType
    span: Span | None = field(default=None, compare=False)


Expr = Column | Literal | Call | Cast


def children(expr: Expr) -> tuple[Expr, ...]:
    """Direct sub-expressions."""
    match expr:
        case Call(args=args):
            return args
        case Cast(arg=arg):
            return (arg,)
        case Column() | Literal():
            return ()


def walk(expr: Expr) -> list[Expr]:
    """The expression and all below it, parents first."""
    found: list[Expr] = []
    waiting: list[Expr] = [expr]
    while waiting:
        e = waiting.pop()
        found.append(e)
        if type(e) is Call:
            take(len(e.args))
            waiting += e.args[::-1]
        elif type(e) is Cast:
            waiting.append(e.arg)
    return found


def larger_than(expr: Expr, most: int) -> bool:
    """True if the expression, written out, has more than `most` nodes; looks at no more than that many."""
    seen, waiting = 0, [expr]
    while waiting and seen <= most:
        e = waiting.pop()
        seen += 1
        waiting += children(e)
    take(seen)
    return seen > most


def columns_of(expr: Expr) -> frozenset[int]:
    """Numbers of the columns an expression reads."""
    if type(expr) is Column:
        return frozenset((expr.uid,))
    if type(expr) is Literal:
        return _NONE
    known: frozenset[int] | None = getattr(expr, "reads", None)
    if known is None:
        found: list[int] = []
        waiting: list[Expr] = [expr]
        for e in waiting:
            if type(e) is Column:
                found.append(e.uid)
            elif type(e) is Call:
                waiting += e.args
            elif type(e) is Cast:
                waiting.append(e.arg)
        take(len(waiting))
        known = frozenset(found)
        object.__setattr__(expr, "reads", known)
    return known


_NONE: frozenset[int] = frozenset()


def transform(expr: Expr, change: Callable[[Expr], Expr]) -> Expr:
    """Rebuild bottom-up, applying `change` to every node after its children; what stays the same is the very object."""
    if type(expr) is Call:
        args = expr.args
        take(1 + len(args))
        new = tuple(map(partial(transform, change=change), args))
        return change(expr if all(map(is_, args, new)) else replace(expr, args=new))
    if type(expr) is Cast:
        inner = transform(expr.arg, change)
        return change(expr if inner is expr.arg else replace(expr, arg=inner))
    return change(expr)
