"""The rows that every scalar function must survive: extreme and ordinary values of every type, as columns with facts.

Used by test_functions.py. A column is *raw* (nothing is claimed about it beyond its type) or *known* (an interval and a
domain are claimed, and its values keep to them).
"""

from __future__ import annotations

import datetime as dt
import random
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

from dpsql.core.ir.types import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    HUGEINT,
    INTEGER,
    SMALLINT,
    TIME,
    TIMESTAMP,
    TINYINT,
    UBIGINT,
    UINTEGER,
    UUID,
    VARCHAR,
    Kind,
    SqlType,
    decimal,
    list_of,
    value_range,
)
from dpsql.core.numbers.interval import interval
from dpsql.core.values.domains import DateRange, TimestampRange
from dpsql.core.values.value import Domain, Scalar, Value, type_range

ROWS = 260
EPOCH = dt.date(1970, 1, 1)


@dataclass(frozen=True)
class Column:
    """A column of the test table: its facts and the SQL spellings of the values it draws from."""

    name: str
    value: Value
    pool: tuple[str, ...]


def typed(text: str, t: SqlType) -> str:
    """A SQL constant of a type."""
    if text == "NULL":
        return f"CAST(NULL AS {t})"
    quoted = text.replace("'", "''")
    return f"CAST('{quoted}' AS {t})"


def _raw(name: str, t: SqlType, *pool: str) -> Column:
    facts = Value(t, range=type_range(t), nullable=True, finite=t.kind is not Kind.DOUBLE)
    return Column(name, facts, ("NULL", *pool))


def _filled(name: str, t: SqlType, *pool: str) -> Column:
    """A raw column that is declared NOT NULL."""
    facts = Value(t, range=type_range(t), nullable=False, finite=t.kind is not Kind.DOUBLE)
    return Column(name, facts, pool)


def _whole(name: str, t: SqlType) -> Column:
    held = value_range(t)
    assert held is not None and held.lo is not None and held.hi is not None
    ends = [held.lo, held.lo + 1, held.hi, held.hi - 1, held.hi // 2]
    small = [n for n in (-7, -3, -2, -1, 0, 1, 2, 3, 5, 10, 28, 31, 100) if n in held]
    return _raw(name, t, *(str(int(n)) for n in (*ends, *small)))


def _decimal(name: str, precision: int, scale: int) -> Column:
    top = "9" * (precision - scale) + ("." + "9" * scale if scale else "")
    tiny = "0." + "0" * (scale - 1) + "1" if scale else "1"
    pool = [top, "-" + top, tiny, "-" + tiny, "0"]
    if precision > scale:
        pool += ["1", "-1", "2.5" if scale else "2", "-3.5" if scale else "-3", "7"]
    if scale:
        pool += ["0.5", "-0.5"]
    return _raw(name, decimal(precision, scale), *pool)


_FLOATS = (
    "nan",
    "inf",
    "-inf",
    "-0.0",
    "0",
    "1",
    "-1",
    "0.5",
    "-0.5",
    "1.5",
    "2.5",
    "-2.5",
    "3",
    "-8",
    "100",
    "1e-300",
    "-1e-300",
    "5e-324",
    "1.7976931348623157e308",
    "-1.7976931348623157e308",
    "1e18",
    "9223372036854775807",
    "-9223372036854775808",
    "1e40",
    "0.1",
    "710",
    "-745.2",
    "3.141592653589793",
)
_FLOATS32 = ("nan", "inf", "-inf", "-0.0", "0", "1", "-1", "0.5", "-2.5", "3.4e38", "-3.4e38", "1e-45", "0.1", "88.8")
_TEXTS = (
    "",
    " ",
    "a",
    "A",
    "ab",
    "abc",
    "  both  ",
    "x'y",
    "100",
    "-5",
    "1.5",
    "1e400",
    "nan",
    "inf",
    "true",
    "f",
    "2024-02-30",
    "2024-02-29",
    "infinity",
    "2024-01-01 10:00:00",
    "99999999999999999999999999999999999999999",
    "é",
    "ß",
    "İstanbul",
    "日本語",
    "👩‍👩‍👧",
    "e\u0301",
    "a,b,,c",
    "a%b_c",
    "\\",
    "%",
    "_",
    "\n",
    "\t tab",
    "long " * 400,
    "10:00:00",
    "0x1F",
    "1_000",
    "ǅ",
)
_DATES = (
    "infinity",
    "-infinity",
    "5881580-07-10",
    "5877642-06-25 (BC)",
    "290309-12-22 (BC)",
    "294247-01-10",
    "0001-01-01",
    "0001-12-31 (BC)",
    "9999-12-31",
    "10000-01-01",
    "1970-01-01",
    "1969-12-31",
    "2024-02-29",
    "2023-12-31",
    "2024-01-31",
    "2021-01-03",
    "2020-12-28",
    "1900-03-01",
    "0004-02-29",
)
_TIMESTAMPS = (
    "infinity",
    "-infinity",
    "290309-12-22 (BC) 00:00:00",
    "294247-01-10 04:00:54.775806",
    "0001-01-01 00:00:00",
    "9999-12-31 23:59:59.999999",
    "10000-01-01 00:00:00",
    "1970-01-01 00:00:00",
    "1969-12-31 23:59:59.999999",
    "2024-02-29 12:34:56.789",
    "2023-12-31 23:59:59",
    "2024-01-31 06:00:00",
    "2021-01-03 00:00:01",
    "0001-12-31 (BC) 10:00:00",
)


def _known(name: str, t: SqlType, lo: Any, hi: Any, pool: list[str], *, null: bool, domain: Any = None) -> Column:
    bounds = interval(lo, hi)
    held = bounds if t.kind in (Kind.INTEGER, Kind.DECIMAL) else type_range(t)
    keys = None if domain is None else Domain(domain, null=null)
    return Column(name, Value(t, bounds, held, null, True, keys), (*pool, "NULL") if null else tuple(pool))


def _texts(name: str, *values: str, null: bool = False) -> Column:
    facts = Value(VARCHAR, nullable=null, domain=Domain(values, null=null))
    return Column(name, facts, (*values, "NULL") if null else values)


_DAYS = DateRange(dt.date(2023, 12, 15), dt.date(2024, 3, 10))
_LONG_DAYS = DateRange(dt.date(1950, 1, 1), dt.date(2049, 12, 31))
_INSTANTS = TimestampRange(dt.datetime(2023, 12, 30), dt.datetime(2024, 1, 2, 23, 59, 59, 999999))


def _day(d: dt.date) -> int:
    return (d - EPOCH).days


def _us(x: dt.datetime) -> int:
    return (x - dt.datetime(1970, 1, 1)) // dt.timedelta(microseconds=1)


_BASE = (
    *(_whole(t.name.lower(), t) for t in (TINYINT, SMALLINT, INTEGER, BIGINT, HUGEINT, UINTEGER, UBIGINT)),
    _decimal("dec4_2", 4, 2),
    _decimal("dec18_3", 18, 3),
    _decimal("dec38_0", 38, 0),
    _decimal("dec38_10", 38, 10),
    _decimal("dec38_38", 38, 38),
    _raw("f64", DOUBLE, *_FLOATS),
    _raw("f32", FLOAT, *_FLOATS32),
    _raw("txt", VARCHAR, *_TEXTS),
    _raw("flag", BOOLEAN, "true", "false"),
    _raw("day", DATE, *_DATES),
    _raw("ts", TIMESTAMP, *_TIMESTAMPS),
    _filled("f64_nn", DOUBLE, *_FLOATS),
    _filled("i64_nn", BIGINT, "-9223372036854775808", "9223372036854775807", "0", "1", "-1", "7"),
    _filled("day_nn", DATE, *_DATES),
    _filled("ts_nn", TIMESTAMP, *_TIMESTAMPS),
    _filled("txt_nn", VARCHAR, *_TEXTS),
    _raw("clock", TIME, "00:00:00", "23:59:59.999999", "12:34:56.789"),
    _raw("id", UUID, "00000000-0000-0000-0000-000000000000", "ffffffff-ffff-ffff-ffff-ffffffffffff"),
    _raw("ints", list_of(INTEGER), "[]", "[1]", "[1, NULL, 3]", "[NULL]", "[7, 7]"),
    _raw("texts", list_of(VARCHAR), "[]", "[a]", "[a, NULL, '']", "[NULL]", "[ab, é]"),
    _known("age", INTEGER, 0, 110, [str(n) for n in range(0, 111, 5)], null=False, domain=range(111)),
    _known("step", BIGINT, -5, 5, [str(n) for n in range(-5, 6)], null=True, domain=range(-5, 6)),
    _known("wide", HUGEINT, 1, 10**25, ["1", "2", str(10**25), str(10**24 + 7)], null=False),
    _known("unit_f", DOUBLE, 0, 1, ["0", "1", "0.5", "0.1", "1e-300", "-0.0", "0.3333333333333333"], null=True),
    _known("away_f", DOUBLE, 1, 100, ["1", "100", "3.3", "2.5", "99.99999999999999"], null=False),
    _known("big_f", DOUBLE, -(10**6), 10**6, ["-1e6", "1e6", "0", "12345.678", "-0.5"], null=False),
    _known("price", decimal(8, 2), 0, 500, ["0", "500", "0.01", "249.99", "499.5"], null=True),
    _known("on_day", DATE, _day(_DAYS[0]), _day(_DAYS[-1]), [str(d) for d in _DAYS][::6], null=False, domain=_DAYS),
    _known(
        "long_day",
        DATE,
        _day(_LONG_DAYS[0]),
        _day(_LONG_DAYS[-1]),
        [str(d) for d in _LONG_DAYS[::1000]],
        null=True,
        domain=_LONG_DAYS,
    ),
    _known(
        "instant",
        TIMESTAMP,
        _us(_INSTANTS.first),
        _us(_INSTANTS.last),
        ["2023-12-30 00:00:00", "2024-01-02 23:59:59.999999", "2023-12-31 12:34:56.789", "2024-01-01 00:00:00"],
        null=False,
        domain=_INSTANTS,
    ),
    _texts("region", "north", "South", "east", "", null=True),
    _texts("code", "a1", "b2", "10", "2024-02-29"),
    _known("yes", BOOLEAN, 0, 1, ["true", "false"], null=False, domain=(False, True)),
)

COLUMNS = (*_BASE, *(replace(c, name=f"{c.name}_2") for c in _BASE))


def build(con: Any, rng: random.Random) -> dict[str, list[Any]]:
    """Create table `t` and give each column's values as `fetch` presents them."""
    con.execute(f"CREATE TABLE t ({', '.join(f'{c.name} {c.value.type}' for c in COLUMNS)})")
    rows = []
    for i in range(ROWS):
        picks = (c.pool[i] if i < len(c.pool) and not c.name.endswith("_2") else rng.choice(c.pool) for c in COLUMNS)
        rows.append(f"({', '.join(typed(p, c.value.type) for p, c in zip(picks, COLUMNS, strict=True))})")
    con.execute(f"INSERT INTO t VALUES {', '.join(rows)}")
    return {c.name: fetch(con, c.name, c.value.type) for c in COLUMNS}


def fetch(con: Any, sql: str, t: SqlType) -> list[Any]:
    """One column; DATE as days and TIMESTAMP as microseconds since 1970, ±infinity as the ends of their integers."""
    if t.kind is Kind.DATE:
        sql = f"CAST(r - DATE '1970-01-01' AS BIGINT) FROM (SELECT {sql} AS r FROM t)"
    elif t.kind in (Kind.TIMESTAMP, Kind.TIMESTAMPTZ):
        far = 2**63 - 1
        sql = (
            f"CASE WHEN r = 'infinity'::{t} THEN {far} WHEN r = '-infinity'::{t} THEN {-far} "
            f"ELSE epoch_us(r) END FROM (SELECT {sql} AS r FROM t)"
        )
    else:
        sql = f"{sql} FROM t"
    return [row[0] for row in con.execute(f"SELECT {sql}").fetchall()]


def as_python(value: Any, t: SqlType) -> Scalar:
    """A fetched value as functions' `python` sees it; raises OverflowError outside of Python's calendar."""
    if value is None:
        return None
    if t.kind is Kind.DATE:
        return EPOCH + dt.timedelta(days=value)
    if t.kind is Kind.TIMESTAMP:
        return dt.datetime(1970, 1, 1) + dt.timedelta(microseconds=value)
    return value


def constants() -> list[tuple[Scalar, SqlType]]:
    """Literals to try as arguments."""
    return [
        (None, INTEGER),
        (None, VARCHAR),
        (0, INTEGER),
        (1, INTEGER),
        (-1, INTEGER),
        (2, INTEGER),
        (3, INTEGER),
        (7, INTEGER),
        (100, INTEGER),
        (2**40, BIGINT),
        (10**30, HUGEINT),
        (Decimal("0.5"), decimal(2, 1)),
        (Decimal("1.25"), decimal(3, 2)),
        (Decimal("-100"), decimal(3, 0)),
        (1.5, DOUBLE),
        (0.0, DOUBLE),
        ("", VARCHAR),
        ("a", VARCHAR),
        ("north", VARCHAR),
        (" ", VARCHAR),
        (True, BOOLEAN),
        (False, BOOLEAN),
        (dt.date(2024, 2, 29), DATE),
        (dt.date(1, 1, 1), DATE),
        (dt.datetime(2024, 1, 1, 12, 30), TIMESTAMP),
    ]
