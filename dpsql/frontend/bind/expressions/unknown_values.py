"""Parameters whose values are not known yet: a statement that is prepared is asked for their types first.

A value that is not known stands as a text, as in PostgreSQL, until something says what it is: what it is compared or
computed with, a CAST, a LIMIT. From there on a sample of that type stands for it. Only types may be read from what is
bound so; whatever depends on the sample's value does not hold.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from decimal import Decimal
from typing import Any, Final

from dpsql.core.ir.expressions import Expr, Literal, LiteralValue
from dpsql.core.ir.types import BIGINT, VARCHAR, Kind, SqlType
from dpsql.diagnostics.diagnostic import Span

_SAMPLES: Final[Mapping[Kind, LiteralValue]] = {
    Kind.BOOLEAN: True,
    Kind.INTEGER: 1,
    Kind.DECIMAL: Decimal(1),
    Kind.DOUBLE: 0.5,
    Kind.DATE: dt.date(2000, 1, 1),
    Kind.TIMESTAMP: dt.datetime(2000, 1, 1),
    Kind.TIMESTAMPTZ: dt.datetime(2000, 1, 1, tzinfo=dt.UTC),
    Kind.VARCHAR: "",
}


class Unknowns:
    """The parameters of one statement, and the types that were found for them: the first that is said counts."""

    def __init__(self) -> None:
        self.types: dict[str, SqlType] = {}
        self.used: set[str] = set()

    def take(self, name: str, span: Span) -> Literal:
        """What stands for a parameter: a text, or a sample of the type that is known of it."""
        self.used.add(name)
        known = self.types.get(name)
        unknown = UnknownValue(self, name)
        found = None if known is None else unknown.read_as(known, span)
        return found or Literal(unknown, VARCHAR, span)

    def listed(self, name: str, type_: SqlType, span: Span) -> Literal:
        """A value of a parameter that is a list: of this type, if nothing else is known of it."""
        self.used.add(name)
        known = self.types.setdefault(name, type_)
        item = known.item or known
        return Literal(_SAMPLES.get(item.kind), item, span)


class UnknownValue(str):
    """A text in place of a value that is not known."""

    _among: Unknowns
    _name: str

    def __new__(cls, among: Unknowns, name: str) -> UnknownValue:
        """The parameter of this name."""
        made = super().__new__(cls, "")
        made._among, made._name = among, name
        return made

    def read_as(self, target: SqlType, span: Span | None) -> Literal | None:
        """A sample of this type, which the parameter has from now on; None if there are no constants of it."""
        if target.kind not in _SAMPLES:
            return None
        self._among.types.setdefault(self._name, target)
        return Literal(_SAMPLES[target.kind], target, span)


def taken_as(expr: Expr, type_: SqlType) -> Expr:
    """A parameter that is not known, as one of this type; any other expression as it is."""
    found = expr.value.read_as(type_, expr.span) if _is_unknown(expr) else None  # type: ignore[union-attr]
    return found or expr


def sample(type_: SqlType, at: int) -> LiteralValue | list[Any]:
    """A value of a type that a parameter may have: another one for each number, larger for a larger one."""
    if type_.item is not None:
        return [sample(type_.item, at)]
    found = _SAMPLES.get(type_.kind)
    return found + at if isinstance(found, (int, float, Decimal)) and found is not True else found


def like_the_others(args: tuple[Expr, ...]) -> tuple[Expr, ...]:
    """The arguments of a call, those that are not known read as the first of the others that is no text."""
    if not any(map(_is_unknown, args)):
        return args
    types = (a.type for a in args if not _is_unknown(a) and a.type.kind not in (Kind.VARCHAR, Kind.NULL))
    first = next(types, None)
    return args if first is None else tuple(taken_as(a, first) for a in args)


def as_numbers(args: tuple[Expr, ...]) -> tuple[Expr, ...] | None:
    """The arguments of a call that takes no text there, unknown ones as whole numbers; None: all are known."""
    return tuple(taken_as(a, BIGINT) for a in args) if any(map(_is_unknown, args)) else None


def _is_unknown(expr: Expr) -> bool:
    return isinstance(expr, Literal) and isinstance(expr.value, UnknownValue)
