"""How PostgreSQL brings values into another type. It has no TRY_CAST: what may not fit is compared before it is cast.

A cast of a numeric to fewer places rounds halves away from zero, one of a DOUBLE to an integer halves to even: as
`functions/cast.py` claims both. A DOUBLE becomes numeric with 15 digits only, so that is never asked for.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction

from dpsql.core.ir.types import BIGINT, DOUBLE, HUGEINT, INTEGER, Kind, SqlType
from dpsql.core.numbers.interval import Exact, outward
from dpsql.core.printing.conversions import as_double, held, of_truth, safe
from dpsql.core.printing.dialect import CannotSpell, Dialect
from dpsql.core.values.value import Value, is_null, may_fail, stored, type_range
from dpsql.diagnostics.words import with_article

LONGEST = 60
"""Characters of an expression that is written more than once."""

_NAMES = {
    "TINYINT": "smallint", "UTINYINT": "smallint", "USMALLINT": "integer", "UINTEGER": "bigint",
    "UBIGINT": "numeric", "HUGEINT": "numeric", "DOUBLE": "double precision", "FLOAT": "real",
    "VARCHAR": "text", "BLOB": "bytea",
}  # fmt: skip


def type_name(type_: SqlType) -> str:
    """A type that holds all its values. Integers beyond 64 bits have no precision, as no DECIMAL is."""
    if type_.kind is Kind.LIST and type_.item is not None:
        return f"{type_name(type_.item)}[]"
    if type_.kind is Kind.DECIMAL:
        return f"numeric({type_.precision}, {type_.scale})"
    return _NAMES.get(type_.name, type_.name.lower())


def once(sql: str, body: Callable[[str], str]) -> str:
    """See `Dialect.once`."""
    return bound([sql], lambda x: body(*x))


def bound(sql: list[str], body: Callable[[list[str]], str]) -> str:
    """The same of several values."""
    if all(len(s) <= LONGEST for s in sql):
        return body(sql)
    listed = ", ".join(f"{s} AS x{i}" for i, s in enumerate(sql))
    return f"(SELECT {body([f'v.x{i}' for i in range(len(sql))])} FROM (SELECT {listed} OFFSET 0) AS v)"


def rounded(d: Dialect, sql: str, type_: SqlType) -> str:
    """See `Dialect.round_to_integer`. Half a unit beyond the ends of an INTEGER is rounded to the even one, beyond."""
    ends = {
        INTEGER.name: (-(2.0**31) - 0.5, ">=", 2.0**31 - 0.5),
        BIGINT.name: (-(2.0**63), ">=", 2.0**63),
        "SMALLINT": (-(2.0**15) - 0.5, ">=", 2.0**15 - 0.5),
        "TINYINT": (-(2.0**7) - 0.5, ">=", 2.0**7 - 0.5),
        "UTINYINT": (-0.5, ">=", 2.0**8 - 0.5),
        "USMALLINT": (-0.5, ">=", 2.0**16 - 0.5),
        "UINTEGER": (-0.5, ">=", 2.0**32 - 0.5),
    }
    if type_.name not in ends:
        raise CannotSpell(f"a DOUBLE keeps 15 digits on the way to {type_}")
    low, least, high = ends[type_.name]

    def body(x: str) -> str:
        inside = f"{x} {least} {d.constant(low, DOUBLE)} AND {x} < {d.constant(high, DOUBLE)}"
        return f"CASE WHEN {inside} THEN {d.cast(x, type_)} END"

    return once(sql, body)


def fitting(d: Dialect, sql: str, known: Value, target: SqlType) -> str:
    """See `Dialect.try_cast`."""
    source = known.type
    if is_null(known) or source == target:
        return d.cast(sql, target)
    match source.kind, target.kind:
        case ((Kind.INTEGER | Kind.DECIMAL), (Kind.INTEGER | Kind.DECIMAL)):
            return _exact(d, sql, known, target)
        case ((Kind.INTEGER | Kind.DECIMAL | Kind.DOUBLE), Kind.DOUBLE):
            return as_double(d, sql, source, target)
        case Kind.DOUBLE, Kind.INTEGER:
            return rounded(d, sql if source == DOUBLE else d.cast(sql, DOUBLE), target)
        case Kind.DATE, Kind.TIMESTAMP:
            if not may_fail(known, target):
                return d.cast(sql, target)
            fits = "<= DATE '294247-01-10'"
            return once(sql, lambda x: f"CASE WHEN {x} {fits} OR {x} = 'infinity' THEN {d.cast(x, target)} END")
        case _:
            raise CannotSpell(f"{source} cannot become {target}")


def _exact(d: Dialect, sql: str, known: Value, target: SqlType) -> str:
    """Integers and decimals among themselves."""
    held, room = outward(stored(known), target.scale), type_range(target)
    cast = _narrowed(d, known.type, target)
    if held.within(room):
        return cast(sql)
    low, high = room.lo, room.hi
    assert low is not None and high is not None
    half = Fraction(1, 2 * 10**target.scale)
    if known.type.scale > target.scale:
        ends = f"> {_digits(low - half)}", f"< {_digits(high + half)}"
    else:
        ends = f">= {_digits(low)}", f"<= {_digits(high)}"
    return once(sql, lambda x: f"CASE WHEN {x} {ends[0]} AND {x} {ends[1]} THEN {cast(x)} END")


def _narrowed(d: Dialect, source: SqlType, target: SqlType) -> Callable[[str], str]:
    if source.kind is Kind.DECIMAL and type_name(target) == "numeric":
        return lambda sql: f"round({sql})"  # as the cast would do, if integers had a precision
    return lambda sql: d.cast(sql, target)


def _digits(x: Exact) -> str:
    """A numeric literal, exact, typed: the halves of decimals have one place more than they."""
    places = 0
    while (x * 10**places).denominator != 1:
        places += 1
    whole = int(x * 10**places)
    if not places:
        return f"CAST({whole} AS numeric)"
    sign, digits = "-" * (whole < 0), f"{abs(whole):0{places + 1}}"
    return f"CAST({sign}{digits[:-places]}.{digits[-places:]} AS numeric)"


def convert(d: Dialect, sql: str, known: Value, target: SqlType) -> str:
    """See `Dialect.convert`."""
    source = known.type
    if is_null(known):
        return d.cast("NULL", target)
    match source.kind, target.kind:
        case ((Kind.INTEGER | Kind.DECIMAL | Kind.DOUBLE), (Kind.INTEGER | Kind.DECIMAL | Kind.DOUBLE)):
            if source.kind is Kind.DOUBLE and target.kind is Kind.DOUBLE and target != DOUBLE:
                raise CannotSpell("a number that FLOAT cannot hold would be an error")
            if source.kind is Kind.DOUBLE and target.kind is Kind.INTEGER:
                return _rounded_within(d, sql, known, target)
            if source.kind is Kind.DOUBLE and target.kind is Kind.DECIMAL:
                return _decimal_of(d, sql, known, target)
            return fitting(d, sql, known, target)
        case Kind.BOOLEAN, (Kind.INTEGER | Kind.DECIMAL | Kind.DOUBLE):
            return of_truth(d, sql, target)
        case ((Kind.INTEGER | Kind.DECIMAL | Kind.DOUBLE), Kind.BOOLEAN):
            return f"({sql} <> 0)"
        case ((Kind.INTEGER | Kind.BOOLEAN | Kind.UUID), Kind.VARCHAR):
            return d.cast(d.wide(sql) if source == HUGEINT else sql, target)
        case Kind.DECIMAL, Kind.VARCHAR:
            return _digits_of(d, sql, source, target)
        case ((Kind.DATE | Kind.TIMESTAMP | Kind.TIME), Kind.VARCHAR):
            return _date_text(d, sql, source, target)
        case Kind.TIMESTAMP, Kind.TIME:
            return d.cast(safe(d, sql, known), target)
        case Kind.TIMESTAMP, Kind.DATE:
            return d.cast(sql, target)
        case Kind.DATE, Kind.TIMESTAMP:
            return fitting(d, sql, known, target)
        case Kind.VARCHAR, _:
            raise CannotSpell(f"engines differ in which texts are {with_article(target)}")
        case _:
            raise CannotSpell(f"{source} cannot become {target}")


def _digits_of(d: Dialect, sql: str, source: SqlType, target: SqlType) -> str:
    """A decimal's text; with no place for a digit before its point it has none there."""
    text = d.cast(d.cast(sql, source), target)
    if source.precision > source.scale:
        return text
    without = "CASE WHEN left({0}, 1) = '-' THEN '-' || substr({0}, 3) ELSE substr({0}, 2) END"
    return d.cast(once(text, without.format), target)


def _rounded_within(d: Dialect, sql: str, known: Value, target: SqlType) -> str:
    """A DOUBLE within its interval, which holds in real arithmetic only: sums that cancel may round far beyond it."""
    sql = sql if known.type == DOUBLE else d.cast(sql, DOUBLE)
    return once(sql, lambda x: rounded(d, held(d, x, known), target))


def half_away(sql: str) -> str:
    """A DOUBLE rounded to a whole one, halves away from zero; NaN and infinities are whole."""
    return once(
        f"({sql})", lambda x: f"CASE WHEN {x} = trunc({x}) THEN {x} ELSE trunc({x}) + trunc(({x} - trunc({x})) * 2) END"
    )


def _decimal_of(d: Dialect, sql: str, known: Value, target: SqlType) -> str:
    """As DuckDB does it: times a power of ten, in DOUBLE, and rounded to a whole number of at most 18 digits."""
    if target.precision > 18:
        raise CannotSpell(f"a DOUBLE keeps 15 digits on the way to {target}")
    power, top = 10.0**target.scale, 10.0**target.precision
    room = d.constant(10.0 ** (target.precision - target.scale) + 1, DOUBLE)
    unit = f"{Decimal(1).scaleb(-target.scale):f}"

    def whole(r: str) -> str:
        exact = d.cast(f"{d.wide(d.cast(r, BIGINT))} * {unit}", target)
        return f"CASE WHEN abs({r}) < {d.constant(top, DOUBLE)} THEN {exact} END"

    def body(x: str) -> str:
        scaled = half_away(f"{x} * {d.constant(power, DOUBLE)}")
        return f"CASE WHEN abs({x}) < {room} THEN {once(f'({scaled})', whole)} END"

    sql = sql if known.type == DOUBLE else d.cast(sql, DOUBLE)
    return once(sql, lambda x: once(held(d, x, known), body))


def _date_text(d: Dialect, sql: str, source: SqlType, target: SqlType) -> str:
    """The years before 1 are marked behind the date, in brackets."""
    text = d.cast(sql, target)
    if source.kind is Kind.TIME:
        return text
    if source.kind is Kind.DATE:
        return f"replace({text}, ' BC', ' (BC)')"
    early = "split_part({0}, ' ', 1) || ' (BC) ' || split_part({0}, ' ', 2)"
    return once(text, f"CASE WHEN right({{0}}, 3) = ' BC' THEN {early} ELSE {{0}} END".format)
