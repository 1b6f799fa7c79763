"""How Spark brings values into another type.

Its cast of a DOUBLE to an integer cuts, and takes 2⁶³ for a BIGINT; that of a DECIMAL to an integer cuts too, and to
fewer places rounds halves away from zero. So whole numbers are rounded first, as `core/functions/cast.py` claims.
"""

from __future__ import annotations

from dpsql.core.functions.signature import is_null, may_fail
from dpsql.core.functions.value import Value
from dpsql.core.ir.types import BIGINT, DOUBLE, HUGEINT, Kind, SqlType, decimal
from dpsql.core.printing.conversions import safe
from dpsql.core.printing.dialect import CannotSpell, Dialect
from dpsql.diagnostics.errors import reject

_NAMES = {
    "INTEGER": "INT", "HUGEINT": "DECIMAL(38, 0)", "UTINYINT": "SMALLINT", "USMALLINT": "INT", "UINTEGER": "BIGINT",
    "UBIGINT": "DECIMAL(20, 0)", "VARCHAR": "STRING", "BLOB": "BINARY", "TIMESTAMP": "TIMESTAMP_NTZ",
    "TIMESTAMP WITH TIME ZONE": "TIMESTAMP", "INTERVAL": "INTERVAL DAY TO SECOND", "NULL": "VOID",
}  # fmt: skip


def type_name(type_: SqlType) -> str:
    """A type that holds all its values, but for whole numbers of 39 digits. Raises Rejected DP105 if there is none."""
    if type_.kind is Kind.LIST and type_.item is not None:
        return f"ARRAY<{type_name(type_.item)}>"
    if type_.kind is Kind.DECIMAL:
        return f"DECIMAL({type_.precision}, {type_.scale})"
    if type_.kind in (Kind.TIME, Kind.UUID):
        raise reject("DP105", f"{type_} cannot be computed exactly on Apache Spark: it has no such type")
    return _NAMES.get(type_.name, type_.name)


def tried(sql: str, type_: SqlType) -> str:
    """Spark's own careful cast: NULL where it does not fit."""
    return f"try_cast({sql} AS {type_name(type_)})"


def fitting(d: Dialect, sql: str, known: Value, target: SqlType) -> str:
    """See `Dialect.try_cast`."""
    source = known.type
    if is_null(known) or source == target:
        return d.cast(sql, target)
    match source.kind, target.kind:
        case Kind.DECIMAL, Kind.INTEGER if source.scale:
            return tried(tried(sql, decimal(38, 0)), target)
        case ((Kind.INTEGER | Kind.DECIMAL), (Kind.INTEGER | Kind.DECIMAL)):
            return tried(sql, target)
        case ((Kind.INTEGER | Kind.DECIMAL | Kind.DOUBLE), Kind.DOUBLE):
            return d.cast(sql, target)
        case Kind.DOUBLE, Kind.INTEGER:
            return _rounded(d, sql if source == DOUBLE else d.cast(sql, DOUBLE), target)
        case Kind.DATE, Kind.TIMESTAMP:
            return d.cast(safe(d, sql, known) if may_fail(known, target) else sql, target)
        case _:
            raise CannotSpell(f"{source} cannot become {target}")


def _rounded(d: Dialect, sql: str, target: SqlType) -> str:
    """A DOUBLE rounded to an integer, halves to even."""
    if target.name in ("HUGEINT", "UBIGINT"):
        raise CannotSpell(f"a DOUBLE keeps 17 digits on the way to {target}")
    whole = tried(f"rint({sql})", target)
    if target == BIGINT:
        return f"CASE WHEN {sql} < {d.constant(2.0**63, DOUBLE)} THEN {whole} END"
    return whole


def convert(d: Dialect, sql: str, known: Value, target: SqlType) -> str:
    """See `Dialect.convert`."""
    source = known.type
    if is_null(known):
        return d.cast("NULL", target)
    match source.kind, target.kind:
        case ((Kind.INTEGER | Kind.DECIMAL), (Kind.INTEGER | Kind.DECIMAL)) if HUGEINT not in (source, target):
            return fitting(d, sql, known, target)
        case _:
            raise CannotSpell(f"{source} cannot become {target}")
