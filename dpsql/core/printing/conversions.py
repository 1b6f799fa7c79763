"""Values brought into another type or range, printed for a dialect: what spellings of functions have in common."""

from __future__ import annotations

import datetime as dt

from dpsql.core.ir.expressions import LiteralValue
from dpsql.core.ir.types import BIGINT, DOUBLE, TIMESTAMP, Kind, SqlType, integer_type_of
from dpsql.core.numbers import interval as iv
from dpsql.core.numbers.doubles import above, below
from dpsql.core.printing.dialect import CannotSpell, Dialect
from dpsql.core.values.calendar_years import is_safe
from dpsql.core.values.value import Value, is_null, type_range


def as_type(d: Dialect, sql: str, a: Value, target: SqlType) -> str:
    """`sql` as `target`, for a value whose range fits; `try_cast` wherever the types alone would allow an error."""
    if a.type == target or target.kind is Kind.NULL:
        return sql
    widening = (
        is_null(a)
        or (target.kind is Kind.DOUBLE and a.type.numeric and target.name == "DOUBLE")
        or (
            a.type.kind is Kind.INTEGER
            and target.kind is Kind.INTEGER
            and type_range(a.type).within(type_range(target))
        )
    )
    return d.cast(sql, target) if widening else d.try_cast(sql, a, target)


def calendar_ends(d: Dialect, type_: SqlType) -> tuple[str, str] | None:
    """The first and the last date or time that Python can hold, of the years 1 to 9999; None of other types."""
    match type_.kind:
        case Kind.DATE:
            ends: tuple[LiteralValue, LiteralValue] = dt.date.min, dt.date.max
        case Kind.TIMESTAMP:
            ends = dt.datetime.min, dt.datetime.max
        case Kind.TIME:
            ends = dt.time.min, dt.time.max
        case _:
            return None
    return d.constant(ends[0], type_), d.constant(ends[1], type_)


def known_to(d: Dialect, a: Value) -> Value:
    """What a guard may rest on: of what is no constant perhaps its type alone."""
    if d.believes or a.is_constant:
        return a
    held = type_range(a.type)
    return Value(a.type, held, held)


def safe(d: Dialect, sql: str, a: Value) -> str:
    """`sql`, with NULL in place of dates outside the years 1 to 9999."""
    ends = calendar_ends(d, a.type)
    if is_safe(known_to(d, a)) or ends is None:
        return sql
    return d.once(sql, lambda x: f"CASE WHEN {x} BETWEEN {ends[0]} AND {ends[1]} THEN {x} END")


def as_time(d: Dialect, sql: str, a: Value) -> str:
    """A date or timestamp of the years 1 to 9999, as a timestamp."""
    sql = safe(d, sql, a)
    return sql if a.type == TIMESTAMP else d.cast(sql, TIMESTAMP)


def as_double(d: Dialect, sql: str, source: SqlType, target: SqlType) -> str:
    """A number as a DOUBLE or FLOAT, by one rounding. Raises CannotSpell if the engine would round twice."""
    if target == DOUBLE or source == target:
        return d.cast(sql, target)
    if source.kind is Kind.INTEGER and type_range(source).within(type_range(BIGINT)):
        return d.cast(sql, target)
    raise CannotSpell(f"{source} cannot become {target} by one rounding")


def of_truth(d: Dialect, sql: str, target: SqlType) -> str:
    """TRUE and FALSE as the numbers 1 and 0; NULL for a number that the type does not hold."""
    one, zero = (d.cast(n, target) for n in "10")
    if not iv.point(1).within(type_range(target)):
        one = d.constant(None, target)
    return d.once(sql, lambda x: f"CASE WHEN {x} THEN {one} WHEN NOT {x} THEN {zero} END")


def typed_constant(d: Dialect, value: LiteralValue, type_: SqlType) -> str:
    """A literal of exactly this type: what is computed from it must not overflow the narrower one of its value."""
    if isinstance(value, int) and type_.kind is Kind.INTEGER and integer_type_of(value) != type_:
        return d.cast(str(value), type_)
    return d.constant(value, type_)


def held(d: Dialect, sql: str, known: Value) -> str:
    """A DOUBLE within its interval, which is not believed: what is made of it is exact, and guards against errors."""
    i = known.interval
    if i.lo is None and i.hi is None:
        return sql
    cases = [] if known.finite else [f"WHEN NOT {d.is_finite(sql)} THEN NULL"]
    for sign, end in (("<", None if i.lo is None else below(i.lo)), (">", None if i.hi is None else above(i.hi))):
        if end is not None:
            at = d.cast(f"'{end!r}'", DOUBLE)
            cases.append(f"WHEN {sql} {sign} {at} THEN {at}")
    return f"CASE {' '.join(cases)} ELSE {sql} END"
