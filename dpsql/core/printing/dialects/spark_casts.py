"""How Spark brings values into another type.

Its cast of a DOUBLE to an integer cuts, and takes 2⁶³ for a BIGINT; that of a DECIMAL to an integer cuts too, and to
fewer places rounds halves away from zero. So whole numbers are rounded first, as `functions/cast.py` claims.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Final

from dpsql.core.ir.types import BIGINT, DATE, DOUBLE, HUGEINT, VARCHAR, Kind, SqlType, decimal
from dpsql.core.printing.conversions import as_double, held, known_to, of_truth
from dpsql.core.printing.dialect import CannotSpell, Dialect
from dpsql.core.values.value import Value, is_null, may_fail
from dpsql.diagnostics.errors import reject
from dpsql.diagnostics.words import with_article

LARGEST = 10**38 - 1
"""The largest whole number."""
LONGEST = 60
"""Characters of an expression that is written more than once."""

_NAMES: Final = {
    "INTEGER": "INT", "HUGEINT": "DECIMAL(38, 0)", "UTINYINT": "SMALLINT", "USMALLINT": "INT", "UINTEGER": "BIGINT",
    "UBIGINT": "DECIMAL(20, 0)", "VARCHAR": "STRING", "BLOB": "BINARY", "TIMESTAMP": "TIMESTAMP_NTZ",
    "TIMESTAMP WITH TIME ZONE": "TIMESTAMP_LTZ", "INTERVAL": "INTERVAL DAY TO SECOND", "NULL": "VOID",
}  # fmt: skip
_UNSIGNED: Final = ("UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT")
_FARTHEST = 106_751_991
"""Days before and after 1970 that a timestamp reaches."""


def type_name(type_: SqlType) -> str:
    """A type that holds all its values, but for whole numbers of 39 digits. Raises Rejected DP105 if there is none."""
    if type_.kind is Kind.LIST and type_.item is not None:
        return f"ARRAY<{type_name(type_.item)}>"
    if type_.kind is Kind.DECIMAL:
        return f"DECIMAL({type_.precision}, {type_.scale})"
    if type_.kind in (Kind.TIME, Kind.UUID):
        raise reject("DP105", f"{type_} cannot be computed exactly on Apache Spark: it has no such type")
    return _NAMES.get(type_.name, type_.name)


def once(sql: str, body: Callable[[str], str]) -> str:
    """See `Dialect.once`."""
    if len(sql) <= LONGEST:
        return body(sql)
    return f"transform(array({sql}), v -> {body('v')})[0]"


def bound(sql: list[str], body: Callable[[list[str]], str]) -> str:
    """The same of several values."""
    if all(len(s) <= LONGEST for s in sql):
        return body(sql)
    listed = ", ".join(f"{s} AS x{i}" for i, s in enumerate(sql))
    return f"transform(array(struct({listed})), v -> {body([f'v.x{i}' for i in range(len(sql))])})[0]"


def tried(sql: str, type_: SqlType) -> str:
    """Spark's own careful cast: NULL where it does not fit."""
    return f"try_cast({sql} AS {type_name(type_)})"


def fitting(d: Dialect, sql: str, known: Value, target: SqlType) -> str:
    """See `Dialect.try_cast`."""
    source = known.type
    if is_null(known) or source == target:
        return d.cast(sql, target)
    if target.name in _UNSIGNED:
        raise CannotSpell("it has no unsigned numbers")
    match source.kind, target.kind:
        case Kind.DECIMAL, Kind.INTEGER if source.scale:
            return tried(tried(sql, decimal(38, 0)), target)
        case ((Kind.INTEGER | Kind.DECIMAL), (Kind.INTEGER | Kind.DECIMAL)):
            return tried(sql, target)
        case ((Kind.INTEGER | Kind.DECIMAL | Kind.DOUBLE), Kind.DOUBLE):
            return as_double(d, sql, source, target)
        case Kind.DOUBLE, Kind.INTEGER:
            return rounded(d, sql if source == DOUBLE else d.cast(sql, DOUBLE), target)
        case Kind.DATE, Kind.TIMESTAMP:
            if not may_fail(known_to(d, known), target):
                return d.cast(sql, target)
            ends = f"BETWEEN date_from_unix_date({-_FARTHEST}) AND date_from_unix_date({_FARTHEST})"
            return once(sql, lambda x: f"CASE WHEN {x} {ends} THEN {d.cast(x, target)} END")
        case _:
            raise CannotSpell(f"{source} cannot become {target}")


def rounded(d: Dialect, sql: str, target: SqlType) -> str:
    """See `Dialect.round_to_integer`."""
    if target == HUGEINT:
        raise CannotSpell(f"a DOUBLE keeps 17 digits on the way to {target}")
    whole = tried(f"rint({sql})", target)
    return f"CASE WHEN {sql} < {d.constant(2.0**63, DOUBLE)} THEN {whole} END" if target == BIGINT else whole


def convert(d: Dialect, sql: str, known: Value, target: SqlType) -> str:
    """See `Dialect.convert`."""
    source = known.type
    if is_null(known):
        return d.cast("NULL", target)
    match source.kind, target.kind:
        case ((Kind.INTEGER | Kind.DECIMAL | Kind.DOUBLE), (Kind.INTEGER | Kind.DECIMAL | Kind.DOUBLE)):
            if source.kind is Kind.DOUBLE and target.kind is Kind.DOUBLE and target != DOUBLE:
                raise CannotSpell("a number that FLOAT cannot hold would be infinite")
            if source.kind is Kind.DOUBLE and target.kind is Kind.INTEGER and target.name not in _UNSIGNED:
                wide = sql if source == DOUBLE else d.cast(sql, DOUBLE)
                return once(wide, lambda x: once(held(d, x, known), lambda y: rounded(d, y, target)))
            if source.kind is Kind.DOUBLE and target.kind is Kind.DECIMAL:
                return _decimal_of(d, sql, known, target)
            return fitting(d, sql, known, target)
        case Kind.BOOLEAN, (Kind.INTEGER | Kind.DECIMAL | Kind.DOUBLE):
            return of_truth(d, sql, target)
        case ((Kind.INTEGER | Kind.DECIMAL | Kind.DOUBLE), Kind.BOOLEAN):
            return f"({sql} <> {d.cast('0', source)})"  # of its type: beside another one it would lose its places
        case ((Kind.INTEGER | Kind.BOOLEAN), Kind.VARCHAR):
            return d.cast(sql, target)
        case Kind.DECIMAL, Kind.VARCHAR:
            return _digits_of(d, sql, source)
        case Kind.DATE, Kind.VARCHAR:
            return once(sql, lambda x: _date_text(d, x))
        case Kind.TIMESTAMP, Kind.VARCHAR:
            return once(sql, lambda x: f"({_date_text(d, d.cast(x, DATE))} || ' ' || {_clock(d, x)})")
        case Kind.TIMESTAMP, Kind.DATE:
            return d.cast(sql, target)
        case Kind.DATE, Kind.TIMESTAMP:
            return fitting(d, sql, known, target)
        case Kind.VARCHAR, _:
            raise CannotSpell(f"engines differ in which texts are {with_article(target)}")
        case _:
            raise CannotSpell(f"{source} cannot become {target}")


def _digits_of(d: Dialect, sql: str, source: SqlType) -> str:
    """A decimal's text; with no place for a digit before its point it has none there."""
    text = d.cast(sql, VARCHAR)
    if source.precision > source.scale:
        return text
    without = "CASE WHEN left({0}, 1) = '-' THEN '-' || substr({0}, 3) ELSE substr({0}, 2) END"
    return once(text, without.format)


def half_away(sql: str) -> str:
    """A DOUBLE rounded to a whole one, halves away from zero; NaN and infinities stay, and so does the sign of zero."""
    size = "abs({0})"
    nearest = f"rint({size}) + CASE WHEN {size} - rint({size}) = 0.5D THEN 1 ELSE 0 END"
    return once(sql, f"(signum({{0}}) * ({nearest}))".format)


def _decimal_of(d: Dialect, sql: str, known: Value, target: SqlType) -> str:
    """As DuckDB does it: times a power of ten, in DOUBLE, and rounded to a whole number of at most 18 digits."""
    if target.precision > 18:
        raise CannotSpell(f"a DOUBLE keeps 17 digits on the way to {target}")
    power, top = 10.0**target.scale, 10.0**target.precision
    room = d.constant(10.0 ** (target.precision - target.scale) + 1, DOUBLE)
    unit = f"CAST('{Decimal(1).scaleb(-target.scale):f}' AS DECIMAL({target.scale + 1}, {target.scale}))"

    def whole(r: str) -> str:
        exact = d.cast(f"CAST(CAST({r} AS BIGINT) AS DECIMAL(19, 0)) * {unit}", target)
        return f"CASE WHEN abs({r}) < {d.constant(top, DOUBLE)} THEN {exact} END"

    def body(x: str) -> str:
        scaled = half_away(f"({x} * {d.constant(power, DOUBLE)})")
        return f"CASE WHEN abs({x}) < {room} THEN {once(scaled, whole)} END"

    sql = sql if known.type == DOUBLE else d.cast(sql, DOUBLE)
    return once(sql, lambda x: once(held(d, x, known), body))


def _date_text(d: Dialect, day: str) -> str:
    """The years before 1 are marked behind the date, in brackets."""
    shown = f"CASE WHEN year({day}) > 0 THEN year({day}) ELSE 1 - year({day}) END"
    four = f"CASE WHEN year({day}) BETWEEN -9998 AND 9999 THEN lpad({shown}, 4, '0') ELSE CAST({shown} AS STRING) END"
    rest = f"'-' || lpad(month({day}), 2, '0') || '-' || lpad(day({day}), 2, '0')"
    return f"({four} || {rest} || CASE WHEN year({day}) > 0 THEN '' ELSE ' (BC)' END)"


def _clock(d: Dialect, sql: str) -> str:
    return f"substring_index({d.cast(sql, VARCHAR)}, ' ', -1)"
