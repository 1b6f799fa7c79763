"""A made-up value of a column, as a SQL literal: one that the policy allows, and that looks like one."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from fractions import Fraction
from typing import Final

from dpsql.core.ir.types import INTEGER, Kind, SqlType
from dpsql.core.policy.tables import Bound, Column, TableDomain, ValuesDomain
from dpsql.engines.literals import NULL, fresh, nearest
from dpsql.engines.synthetic import DIALECT
from dpsql.service.made_up.repeatable_choices import Choosing

_NULLS: Final = 0.04
"""The share of NULL in a column that may have it."""
_FEW: Final = 8
"""Different values of a column of which nothing is declared."""
_MANY: Final = 400
"""Values that a column's are taken from."""
_WIDE: Final = Fraction(100)
"""How far numbers reach where no bound says it."""
_STEPS: Final = 1_000
_FIRST: Final = dt.datetime(2024, 1, 1)
_SPAN: Final = dt.timedelta(days=730)
"""When times begin where no bound says it, and how long they go on."""


def some_values(column: Column, listed: Sequence[str], choosing: Choosing) -> list[str]:
    """Values at random, as often as they shall be. listed: those of the column of its domain, if another table's."""
    return [_one(column, listed, choosing) for _ in range(_MANY)]


def _one(column: Column, listed: Sequence[str], choosing: Choosing) -> str:
    if column.is_nullable and choosing.share() < _NULLS:
        return NULL
    type_ = column.sql_type or INTEGER
    match column.domain:
        case ValuesDomain(values=values) if values:
            return choosing.one_of_the_first([DIALECT.constant(value, type_) for value in values])
        case TableDomain() if listed:
            return choosing.one_of_the_first(listed)
    return _of_type(column, type_, choosing)


def next_value(column: Column, number: int) -> str:
    """The value of this number, counted from 1, of a column in which none comes twice."""
    type_ = column.sql_type or INTEGER
    if isinstance(column.domain, ValuesDomain):
        values = column.domain.values
        return DIALECT.constant(values[(number - 1) % len(values)], type_)
    low = (column.bounds or (None, None))[0]
    if type_.numeric and isinstance(low, Fraction):
        return nearest(low + number - 1, type_)
    return DIALECT.text(f"{column.name} {number}") if type_.kind is Kind.VARCHAR else fresh(number, type_)


def _of_type(column: Column, type_: SqlType, choosing: Choosing) -> str:
    low, high = column.bounds or (None, None)
    match type_.kind:
        case Kind.INTEGER | Kind.DECIMAL | Kind.DOUBLE:
            least, most = _ends(low, high)
            share = Fraction(choosing.between(0, _STEPS) + choosing.between(0, _STEPS), 2 * _STEPS)
            return nearest(least + (most - least) * share, type_)
        case Kind.VARCHAR:
            return choosing.one_of_the_first([next_value(column, n) for n in range(1, _FEW + 1)])
        case Kind.DATE | Kind.TIMESTAMP | Kind.TIMESTAMPTZ:
            return _moment(low, high, type_, choosing)
        case Kind.BOOLEAN:
            return choosing.one_of(("TRUE", "FALSE"))
        case Kind.LIST:
            assert type_.item is not None
            item = Column(column.name, sql_type=type_.item, is_nullable=False)
            items = [_of_type(item, type_.item, choosing) for _ in range(choosing.between(1, column.max_length or 3))]
            return f"[{', '.join(items)}]"
    return fresh(choosing.between(1, _FEW), type_)


def _ends(low: Bound | None, high: Bound | None) -> tuple[Fraction, Fraction]:
    least = low if isinstance(low, Fraction) else None
    most = high if isinstance(high, Fraction) else None
    if least is None:
        least = Fraction(0) if most is None else most - _WIDE
    return least, least + _WIDE if most is None else most


def _moment(low: Bound | None, high: Bound | None, type_: SqlType, choosing: Choosing) -> str:
    start, end = _naive(low), _naive(high)
    first = start or (_FIRST if end is None else end - _SPAN)
    last = end or first + _SPAN
    at = first + (last - first) * (choosing.between(0, _STEPS) / _STEPS)
    if type_.kind is Kind.DATE:
        return DIALECT.constant(at.date(), type_)
    return f"CAST('{at.replace(microsecond=0).isoformat(sep=' ')}' AS {type_.name})"


def _naive(end: Bound | None) -> dt.datetime | None:
    match end:
        case dt.datetime():
            return end.replace(tzinfo=None)
        case dt.date():
            return dt.datetime.combine(end, dt.time())
    return None
