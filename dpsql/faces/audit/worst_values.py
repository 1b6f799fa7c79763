"""What a column may hold at its worst, as SQL literals: the ends of its bounds, values beyond them, NULL, NaN, ±∞."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Iterable, Sequence
from decimal import Decimal
from fractions import Fraction

from dpsql.core.ir.expressions import LiteralValue
from dpsql.core.ir.types import INTEGER, Kind, SqlType, value_range
from dpsql.core.policy.tables import Bound, Column, ValuesDomain
from dpsql.engines.literals import NULL, fresh, nearest
from dpsql.engines.synthetic import DIALECT

_TEXTS = ("a", "b", "c", "d", "e", "f", "g", "h", "")
_EXTREME = {Kind.DOUBLE: ("1e308", "-1e308", "nan", "inf", "-inf")}
_DAY = dt.timedelta(days=1)
_PARTS = (Fraction(1, 10), Fraction(1, 2), Fraction(9, 10))
_STEPS = 7
"""Into how many parts a range of dates is cut."""


def pool(column: Column, listed: Sequence[str] = (), literals: Iterable[LiteralValue] = ()) -> tuple[str, ...]:
    """Literals for a column, the most telling first.

    listed: values that other tables or key lists have. literals: what the query compares the column with.
    """
    type_ = column.sql_type or INTEGER
    low, high = column.bounds or (None, None)
    found = [*_ends(low, high, type_), *listed]
    if isinstance(column.domain, ValuesDomain):
        found += [DIALECT.constant(value, type_) for value in column.domain.values]
    found += [*_near(literals, type_), NULL]
    match type_.kind:
        case Kind.INTEGER | Kind.DECIMAL | Kind.DOUBLE:
            found += [nearest(n, type_) for n in (1, 2, 3, 4, 5, 6, 7, 0)]
            found += _beyond(low, high, type_)
        case Kind.BOOLEAN:
            found += ["TRUE", "FALSE"]
        case Kind.VARCHAR:
            found += [] if isinstance(column.domain, ValuesDomain) and len(found) > 3 else map(DIALECT.text, _TEXTS)
        case Kind.LIST:
            assert type_.item is not None
            found += _lists(pool(Column("", sql_type=type_.item)), (column.max_length or 1) + 2)
        case _:
            found += [fresh(i, type_) for i in range(_STEPS)]
    return tuple(dict.fromkeys(v for v in found if v != NULL or column.is_nullable))


def between_ends(column: Column) -> tuple[str, ...]:
    """Literals near either end of a number's bounds, and in the middle."""
    type_, (low, high) = column.sql_type or INTEGER, column.bounds or (None, None)
    if not isinstance(low, Fraction) or not isinstance(high, Fraction):
        return ()
    return tuple(nearest(low + (high - low) * part, type_) for part in _PARTS)


def another(column: Column, number: int) -> str:
    """A value of a column beyond its pool; lists are one longer than what is used of them."""
    return fresh(100 + number, column.sql_type or INTEGER, (column.max_length or 1) + 1)


def _ends(low: Bound | None, high: Bound | None, type_: SqlType) -> list[str]:
    """Both ends, the farther from 0 first; for times some moments between them, too."""
    if isinstance(low, dt.date) and isinstance(high, dt.date):
        step = (high - low) / (_STEPS - 1)
        return [DIALECT.constant(moment, type_) for moment in (*(low + i * step for i in range(_STEPS - 1)), high)]
    ends = [e for e in (low, high) if isinstance(e, Fraction)]
    return [nearest(e, type_) for e in sorted(ends, key=abs, reverse=True)]


def _beyond(low: Bound | None, high: Bound | None, type_: SqlType) -> list[str]:
    """Values that have to be clipped, and those that are no numbers."""
    found = []
    for end, away in ((low, -1), (high, 1)):
        if isinstance(end, Fraction):
            found += [nearest(end + away * (abs(end) + 1), type_), nearest(end + away, type_)]
    held = value_range(type_)
    if held is not None and held.lo is not None and held.hi is not None:
        found += [nearest(held.hi, type_), nearest(held.lo, type_)]
    if type_.name == "DOUBLE":
        found += [f"CAST('{x}' AS DOUBLE)" for x in _EXTREME[Kind.DOUBLE]]
    elif type_.kind is Kind.DOUBLE:
        found += [f"CAST('{x}' AS {type_.name})" for x in ("3e38", "nan", "inf", "-inf")]
    return found


def _near(literals: Iterable[LiteralValue], type_: SqlType) -> list[str]:
    """What the query compares a column with, and what lies just beside it."""
    found: list[str] = []
    for value in literals:
        match value:
            case bool() | None:
                continue
            case int() | Decimal() | float() if type_.numeric and math.isfinite(value) and abs(float(value)) < 1e300:
                exact = Fraction(value)
                found += [nearest(exact + step, type_) for step in (0, 1, -1)]
            case str() if type_.kind is Kind.VARCHAR:
                found += [DIALECT.text(value), DIALECT.text(value.replace("%", "").replace("_", "a"))]
            case dt.date() if type_.kind in (Kind.DATE, Kind.TIMESTAMP):
                found += [DIALECT.constant(value + step, type_) for step in (0 * _DAY, _DAY, -_DAY)]
            case _:
                continue
    return found


def _lists(items: Sequence[str], most: int) -> list[str]:
    same = ", ".join([items[0]] * most)
    other = ", ".join(items[i % len(items)] for i in range(most))
    return [f"[{other}]", f"[{same}]", f"[{items[0]}]", f"[{items[0]}, NULL]"]
