"""The SQL types dpsql knows, and the range of values each can hold.

One flat list on purpose: a type that is not here does not exist for the planner (default deny).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from fractions import Fraction
from functools import cache

from dpsql.core.numbers.interval import Interval, interval


class Kind(Enum):
    """Families of types; the rules of functions speak of these."""

    BOOLEAN = "boolean"
    INTEGER = "integer"
    DECIMAL = "decimal"
    DOUBLE = "double"
    VARCHAR = "varchar"
    DATE = "date"
    TIMESTAMP = "timestamp"
    TIMESTAMPTZ = "timestamptz"
    TIME = "time"
    INTERVAL = "interval"
    UUID = "uuid"
    BLOB = "blob"
    LIST = "list"
    NULL = "null"

    __hash__ = object.__hash__  # each is one object; Enum's own hash is that of the name, in Python


_NUMERIC = frozenset({Kind.INTEGER, Kind.DECIMAL, Kind.DOUBLE})
_TEMPORAL = frozenset({Kind.DATE, Kind.TIMESTAMP})


@dataclass(frozen=True, slots=True)
class SqlType:
    """A type as the engine has it. `name` is DuckDB's spelling; `precision`/`scale` for DECIMAL; `item` for LIST."""

    kind: Kind
    name: str
    precision: int = 0
    scale: int = 0
    item: SqlType | None = None

    def __str__(self) -> str:
        return self.name

    def __hash__(self) -> int:
        return hash(self.name)  # which tells types apart, and strings keep theirs

    @property
    def numeric(self) -> bool:
        """INTEGER, DECIMAL or DOUBLE: what SUM and AVG take (BOOLEAN must be cast first)."""
        return self.kind in _NUMERIC

    @property
    def temporal(self) -> bool:
        """DATE or TIMESTAMP (a TIMESTAMPTZ has no calendar of its own)."""
        return self.kind in _TEMPORAL

    @property
    def one_form(self) -> bool:
        """Whether equal values are one value: 0.0 and -0.0 are not, nor 30 days and 1 month, nor lists of such."""
        return self.kind not in (Kind.DOUBLE, Kind.INTERVAL, Kind.LIST)


_INTEGERS = {
    "TINYINT": (-(2**7), 2**7 - 1),
    "SMALLINT": (-(2**15), 2**15 - 1),
    "INTEGER": (-(2**31), 2**31 - 1),
    "BIGINT": (-(2**63), 2**63 - 1),
    "HUGEINT": (-(2**127), 2**127 - 1),
    "UTINYINT": (0, 2**8 - 1),
    "USMALLINT": (0, 2**16 - 1),
    "UINTEGER": (0, 2**32 - 1),
    "UBIGINT": (0, 2**64 - 1),
}

TINYINT, SMALLINT, INTEGER, BIGINT, HUGEINT, UTINYINT, USMALLINT, UINTEGER, UBIGINT = (
    SqlType(Kind.INTEGER, name) for name in _INTEGERS
)
BOOLEAN = SqlType(Kind.BOOLEAN, "BOOLEAN")
DOUBLE = SqlType(Kind.DOUBLE, "DOUBLE")
FLOAT = SqlType(Kind.DOUBLE, "FLOAT")
VARCHAR = SqlType(Kind.VARCHAR, "VARCHAR")
DATE = SqlType(Kind.DATE, "DATE")
TIMESTAMP = SqlType(Kind.TIMESTAMP, "TIMESTAMP")
TIMESTAMPTZ = SqlType(Kind.TIMESTAMPTZ, "TIMESTAMP WITH TIME ZONE")
TIME = SqlType(Kind.TIME, "TIME")
INTERVAL = SqlType(Kind.INTERVAL, "INTERVAL")
UUID = SqlType(Kind.UUID, "UUID")
BLOB = SqlType(Kind.BLOB, "BLOB")
NULL = SqlType(Kind.NULL, '"NULL"')


@cache
def decimal(precision: int, scale: int) -> SqlType:
    """DECIMAL(precision, scale), 1 ≤ precision ≤ 38."""
    return SqlType(Kind.DECIMAL, f"DECIMAL({precision},{scale})", precision, scale)


def list_of(item: SqlType) -> SqlType:
    """item[]"""
    return SqlType(Kind.LIST, f"{item.name}[]", item=item)


_ALIASES: dict[str, SqlType] = {
    **{t.name: t for t in (TINYINT, SMALLINT, INTEGER, BIGINT, HUGEINT, UTINYINT, USMALLINT, UINTEGER, UBIGINT)},
    **{t.name: t for t in (BOOLEAN, DOUBLE, FLOAT, VARCHAR, DATE, TIMESTAMP, TIMESTAMPTZ, TIME, INTERVAL, UUID, BLOB)},
    "BOOL": BOOLEAN, "LOGICAL": BOOLEAN,
    "INT1": TINYINT, "INT2": SMALLINT, "SHORT": SMALLINT, "INT": INTEGER, "INT4": INTEGER, "SIGNED": INTEGER,
    "INT8": BIGINT, "LONG": BIGINT, "INT64": BIGINT, "INT32": INTEGER, "INT16": SMALLINT, "INT128": HUGEINT,
    "UINT8": UTINYINT, "UINT16": USMALLINT, "UINT32": UINTEGER, "UINT64": UBIGINT, "UINT": UINTEGER,
    "FLOAT8": DOUBLE, "FLOAT64": DOUBLE, "DOUBLE PRECISION": DOUBLE, "FLOAT4": FLOAT, "REAL": FLOAT,
    "TEXT": VARCHAR, "STRING": VARCHAR, "CHAR": VARCHAR, "BPCHAR": VARCHAR,
    "DATETIME": TIMESTAMP, "TIMESTAMP_US": TIMESTAMP, "TIMESTAMP WITHOUT TIME ZONE": TIMESTAMP,
    "BYTEA": BLOB, "BINARY": BLOB, "VARBINARY": BLOB,
}  # fmt: skip


def parse_type(text: str) -> SqlType | None:
    """The type a policy or the engine's catalogue names, or None if dpsql does not know it."""
    name = " ".join(text.strip().upper().split())
    if name.endswith("[]"):
        item = parse_type(name[:-2])
        return None if item is None else list_of(item)
    if name.startswith(("DECIMAL", "NUMERIC")):
        head, _, rest = name.partition("(")
        if head.strip() not in ("DECIMAL", "NUMERIC"):
            return None
        if not rest:
            return decimal(18, 3)
        try:
            parts = [int(p) for p in rest.rstrip(")").split(",")]
        except ValueError:
            return None
        precision, scale = parts[0], parts[1] if len(parts) > 1 else 0
        return decimal(precision, scale) if 1 <= precision <= 38 and 0 <= scale <= precision else None
    if name.startswith(("VARCHAR(", "CHAR(")):
        return VARCHAR
    if name == "TIMESTAMPTZ":
        return TIMESTAMPTZ
    return _ALIASES.get(name)


@cache
def value_range(t: SqlType) -> Interval | None:
    """Every value the type can hold, in the numeric sense; None for types that are not finite sets of numbers.

    DOUBLE is None: it holds NaN and infinities as well.
    """
    if t.kind is Kind.INTEGER:
        lo, hi = _INTEGERS[t.name]
        return interval(lo, hi)
    if t.kind is Kind.DECIMAL:
        top = Fraction(10**t.precision - 1, 10**t.scale)
        return Interval(-top, top)
    return None


def integer_type_of(value: int) -> SqlType | None:
    """The first of INTEGER, BIGINT, HUGEINT that holds the number."""
    for t in (INTEGER, BIGINT, HUGEINT):
        lo, hi = _INTEGERS[t.name]
        if lo <= value <= hi:
            return t
    return None


def integer_type_for(i: Interval, *candidates: SqlType) -> SqlType | None:
    """The first of the candidates (default INTEGER, BIGINT, HUGEINT) that holds the whole interval."""
    for t in candidates or (INTEGER, BIGINT, HUGEINT):
        held = value_range(t)
        if held is not None and i.within(held):
            return t
    return None
