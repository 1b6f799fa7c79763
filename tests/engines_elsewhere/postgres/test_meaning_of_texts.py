"""What is accepted in PostgreSQL's dialect gives what it gives there: each text is asked of both."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from itertools import product

import duckdb
import psycopg
import pytest

from dpsql.core.functions.registry import REGISTRY, apply, literal
from dpsql.core.functions.value import Value
from dpsql.core.ir.types import TIMESTAMPTZ, VARCHAR
from dpsql.core.numbers.interval import everything
from dpsql.diagnostics.diagnostic import Source
from dpsql.service.checks.check import static_plan
from dpsql.spelling.postgres_functions import POSTGRES
from tests.engines_elsewhere.postgres.bare import Bare
from tests.engines_elsewhere.postgres.servers import Server
from tests.frontend.test_answer_names import ITEMS
from tests.frontend.test_dialects import DATA, MEANINGS, POLICY
from tests.support.dialect_texts import MADE, compared
from tests.support.planning import policy

DAYS = [
    dt.date(y, m, d) for y, m, d in product((1000, 1970, 1999, 2000, 2023, 2024), (1, 2, 6, 12), (1, 28, 31))
    if d <= 28 or m not in (2, 6)
] + [dt.date(2024, 2, 29), dt.date(2021, 1, 3), dt.date(2020, 12, 31), dt.date(9990, 12, 31)]  # fmt: skip
CLOCKS = [dt.time(0), dt.time(12, 0, 1), dt.time(23, 59, 59, 999999), dt.time(13, 5, 9, 120)]
DATES = policy("""
dates:
  public: true
  columns: {i: {type: integer}, d: {type: date}, e: {type: date}, at: {type: timestamp}}
""")
MOMENTS = policy("dates: {unit: {rows: 1}, columns: {at: {type: timestamp}, tz: {type: timestamptz}}}")
OF_MOMENTS = [
    "tz >= '2000-01-01'", "tz < '2000-01-01T00:00:00+02'", "tz > TIMESTAMP '1999-12-31 23:59:59'",
    "tz >= TO_TIMESTAMP('2000-01-01 12', 'YYYY-MM-DD HH24')", "tz BETWEEN DATE '2000-01-01' AND '2020-01-01 00:00:00Z'",
    "at >= '2000-01-01 02:00+02'::timestamptz", "tz > now() - interval '30 days'", "tz < CAST(now() AS timestamptz)",
    "tz AT TIME ZONE 'Europe/Berlin' >= '2000-01-01'", "timezone('America/St_Johns', tz) < DATE '2000-01-01'",
    "date_trunc('day', tz) = TIMESTAMP '2000-01-01'", "date_trunc('month', tz) >= '2000-01-01'",
    "tz::date = DATE '2000-01-01'",
    "extract(hour FROM tz) >= 12", "extract(dow FROM tz AT TIME ZONE 'Asia/Kathmandu') IN (0, 6)", "at <= tz",
    "extract(epoch FROM tz) >= 946684800", "at AT TIME ZONE 'UTC' AT TIME ZONE 'Europe/Berlin' >= '2000-01-01'",
    "to_char(tz, 'YYYY-MM-DD HH24') > '2000-01-01'", "tz - interval '1 day' >= DATE '2000-01-01'", "tz::timestamp = at",
]  # fmt: skip
OF_DATES = [
    "to_char(d, 'YYYY-MM-DD')", "to_char(at, 'YYYY-MM-DD HH24:MI:SS.US')", "to_char(at, 'HH12:MI AM, Dy DD Mon YY')",
    "to_char(d, 'FMMonth FMDay')", "to_char(d, 'Month|Day|')", "to_char(d, 'IYYY-\"W\"IW-ID')",
    "to_char(d, 'Q/YYYY, DDD')", "to_char(at, 'FMMM/FMDD FMHH24 FMDDD 100%')", "to_char(at, 'PM')",
    "extract(dow FROM d)", "date_part('isodow', at)", "extract(doy FROM at)", "extract(week FROM d)",
    "extract(isoyear FROM d)", "extract(epoch FROM d)", "date_trunc('week', at)", "date_trunc('quarter', at)",
    "make_date(2024, i, 31 - i)", "extract(year FROM age(d, e))", "extract(year FROM age(e, d))",
    "at - e > interval '7 days'", "interval '36 hours' >= at - d", "at - at < interval '1 second'",
    "d + interval '1 day' * i", "d - i * interval '2 weeks'", "width_bucket(i, 1, 4, 2)",
    "d >= '2000-01-01T10:00:00+02:00'", "at < '2000-06-01T23:59:59-05:00'", "at >= '1999-12-31 23:00:00Z'",
    "at >= '2000-01-01 02:00+02'::timestamptz", "d < TO_DATE('02/2000', 'MM/YYYY')",
    "at < TO_TIMESTAMP('20000601 123456.5', 'YYYYMMDD HH24MISS.US')",
    "at >= CAST(CAST('2000-01-01' AS timestamptz) + interval '-1 month' AS timestamptz)",
]  # fmt: skip


def _answers(expression: str, table: str, of: object, bare: Bare, plain: duckdb.DuckDBPyConnection) -> None:
    query = f"SELECT {expression} AS v FROM {table}"
    plan = static_plan(Source(query), of, dialect="postgres")  # type: ignore[arg-type]
    ours = [row[0] for row in plain.execute(plan.post.sql).fetchall()]
    theirs = [row[0] for row in bare.connection.execute(query.encode()).fetchall()]
    assert len(ours) == len(theirs)
    for mine, own in zip(ours, theirs, strict=True):
        if isinstance(own, dt.datetime) and own.tzinfo is not None:
            own = own.replace(tzinfo=None)  # date_trunc of a DATE gives a moment there
        if isinstance(mine, (int, float)) and not isinstance(mine, bool) and own is not None:
            own = type(mine)(own)
        assert mine == own, expression


@pytest.fixture(scope="module")
def plain() -> duckdb.DuckDBPyConnection:
    found = duckdb.connect()
    found.execute("SET TimeZone = 'UTC'")
    found.execute(DATA)
    return found


@pytest.fixture(scope="module")
def bare(one_server: Server) -> Iterator[Bare]:
    opened = Bare(one_server, POSTGRES)
    yield opened
    opened.close()


def test_texts_mean_in_postgresql_what_they_are_said_to(bare: Bare, plain: duckdb.DuckDBPyConnection) -> None:
    bare.connection.execute("DROP TABLE IF EXISTS pg_temp.t; SET search_path = pg_temp, pg_catalog")
    row = DATA.partition("VALUES")[2].rpartition(") AS t")[0].replace("CAST(2.5 AS DOUBLE)", "2.5::double precision")
    bare.connection.execute(
        "CREATE TEMP TABLE t (i integer, j integer, n numeric(9, 2), x double precision, s text, r text, d date, e date"
        f', "at" timestamp, b boolean); INSERT INTO t VALUES {row}'.encode()
    )
    for dialect, expression, _ in MEANINGS:
        if dialect == "postgres":
            _answers(expression, "t", POLICY, bare, plain)


def test_dates_are_written_and_read_as_postgresql_does(bare: Bare, plain: duckdb.DuckDBPyConnection) -> None:
    rows = [
        (1 + at % 4, d, DAYS[-at], dt.datetime.combine(d, clock), dt.datetime.combine(d, clock, dt.UTC))
        for at, (d, clock) in enumerate(product(DAYS, CLOCKS), 0) if at < 150 or at % 3
        for at in [at % len(DAYS)]
    ]  # fmt: skip
    columns = 'i integer, d date, e date, "at" timestamp, tz timestamptz'
    bare.connection.execute(f"SET search_path = pg_temp, pg_catalog; CREATE TEMP TABLE dates ({columns})".encode())
    plain.execute(f"CREATE OR REPLACE TABLE dates ({columns})")
    plain.executemany("INSERT INTO dates VALUES (?, ?, ?, ?, ?)", rows)
    with bare.connection.cursor() as cursor:
        cursor.executemany("INSERT INTO dates VALUES (%s, %s, %s, %s, %s)", rows)
    for expression in OF_DATES:
        _answers(expression, "dates", DATES, bare, plain)
    for condition in OF_MOMENTS:
        query = f"SELECT COUNT(*) AS n FROM dates WHERE {condition}"
        statement = static_plan(Source(query), MOMENTS, dialect="postgres").releases[0].statements[0].sql
        (mine,) = plain.execute(statement).fetchall()
        (own,) = bare.connection.execute(query.encode()).fetchall()
        assert own[0] in mine and own[0] > 0, condition


def test_unnamed_columns_are_called_as_postgresql_calls_them(bare: Bare) -> None:
    rows = "(SELECT 1 AS x, DATE '2024-01-01' AS d) AS t"
    for item, name in ITEMS.items():
        grouped = " GROUP BY x, d" if "(x)" not in item and "count" not in item and " OVER" not in item else ""
        cursor = bare.connection.execute(f"SELECT {item} FROM {rows}{grouped}".encode())
        assert cursor.description is not None
        assert cursor.description[0].name == name, item


def test_a_zone_that_the_server_does_not_know_fails_in_no_row(bare: Bare) -> None:
    """Else a query would fail where some row is reached, and tell so; the twin does."""
    args = literal("Mars/Olympus", VARCHAR), Value(TIMESTAMPTZ, everything(), everything(), True, True, None)
    text = POSTGRES.call("timezone", ["'Mars/Olympus'", "v.tz"], args, apply(REGISTRY["timezone"], args))
    row = "(SELECT TIMESTAMPTZ '2024-01-01 00:00:00+00' + i * interval '1 hour' FROM generate_series(1, 1) AS g (i))"
    twin = "timezone('Mars/Olympus', v.tz)"
    for where, told in (("TRUE", [(None,)]), ("v.tz IS NULL", [])):
        assert asked(bare, f"SELECT {text} FROM {row} AS v (tz) WHERE {where}") == told
    assert asked(bare, f"SELECT {twin} FROM {row} AS v (tz) WHERE v.tz IS NULL") == []
    with pytest.raises(psycopg.Error, match="Mars/Olympus"):
        asked(bare, f"SELECT {twin} FROM {row} AS v (tz)")


def asked(bare: Bare, query: str) -> list[tuple[object, ...]]:
    return bare.connection.execute(query.encode()).fetchall()


def test_none_means_something_else_than_in_postgresql(bare: Bare) -> None:
    """Of some hundred texts as people write them; those that fail there are left out."""
    made = MADE.replace("CREATE TABLE", "CREATE TEMP TABLE")
    begin = "SET search_path = pg_temp, pg_catalog; SET TimeZone = 'UTC'; DROP TABLE IF EXISTS t"
    bare.connection.execute(f"{begin}; {made}".encode())
    same, _, different = compared("postgres", lambda query: [row[0] for row in asked(bare, query)])
    assert different == []
    assert len(same) >= 215
