"""Values of every type as SQL literals, for rows that are made up."""

from __future__ import annotations

import datetime as dt
from fractions import Fraction
from typing import Final

from dpsql.core.ir.types import Kind, SqlType, value_range
from dpsql.engines.synthetic import DIALECT

NULL: Final = "NULL"
_DAY: Final = dt.timedelta(days=1)
_EPOCH: Final = dt.date(2024, 1, 1)


def fresh(number: int, type_: SqlType, items: int = 2) -> str:
    """A value that no other number gives, as far as the type has enough of them. items: how many a list has."""
    match type_.kind:
        case Kind.INTEGER | Kind.DECIMAL | Kind.DOUBLE:
            return nearest(number, type_)
        case Kind.VARCHAR:
            return DIALECT.text(f"u{number}")
        case Kind.DATE:
            return DIALECT.constant(_EPOCH + number * _DAY, type_)
        case Kind.TIMESTAMP | Kind.TIMESTAMPTZ:
            stamp = dt.datetime.combine(_EPOCH, dt.time()) + number * _DAY
            return f"CAST('{stamp.isoformat(sep=' ')}' AS {type_.name})"
        case Kind.UUID:
            return f"CAST('00000000-0000-0000-0000-{number:012x}' AS UUID)"
        case Kind.TIME:
            return f"CAST('00:{number // 60 % 60:02d}:{number % 60:02d}' AS TIME)"
        case Kind.BOOLEAN:
            return "TRUE" if number % 2 else "FALSE"
        case Kind.LIST:
            assert type_.item is not None
            return f"[{', '.join(fresh(items * number + i, type_.item) for i in range(items))}]"
        case Kind.BLOB:
            return f"CAST({DIALECT.text(f'u{number}')} AS BLOB)"
        case _:
            return NULL


def nearest(number: Fraction | int, type_: SqlType) -> str:
    """The value of a type of numbers that is nearest to a number."""
    held = value_range(type_)
    if held is not None and held.lo is not None and held.hi is not None:
        number = min(max(Fraction(number), held.lo), held.hi)
    if type_.kind is Kind.INTEGER:
        return DIALECT.constant(round(number), type_)
    if type_.kind is Kind.DECIMAL:
        units = round(Fraction(number) * 10**type_.scale)  # not by Decimal, whose context has 28 digits
        whole, rest = divmod(abs(units), 10**type_.scale)
        return f"CAST('{'-' if units < 0 else ''}{whole}.{rest:0{type_.scale}d}' AS {type_.name})"
    return f"CAST('{float(number)!r}' AS {type_.name})"
