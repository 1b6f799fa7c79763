"""Statements about counters as text, and the query of one with its day put in."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence

import pytest

from dpsql.diagnostics.errors import Rejected
from dpsql.frontend.text.counted_query import counted_query
from dpsql.frontend.text.counter_statements import (
    CreateCounter,
    DropCounter,
    ReceiveCounter,
    TickCounter,
    counter_statement,
    relations_named,
)

FIRST, LAST = dt.date(2026, 1, 1), dt.date(2026, 1, 9)
DAYS = "t.day >= DATE '2026-01-01' AND t.day <= DATE '2026-01-09'"


@pytest.mark.parametrize(
    ("sql", "read"),
    [
        (
            "CREATE DP COUNTER r AS SELECT COUNT(*) AS n FROM t FROM DATE '2026-01-01'",
            CreateCounter("r", "SELECT COUNT(*) AS n FROM t", FIRST),
        ),
        (
            '/* why */ create dp counter "my r" as select count(*) from t -- so\n where a in (select 1) group by b '
            "from date '2026-01-01' with (rho = .5, delta = '1/3');",
            CreateCounter(
                "my r",
                "select count(*) from t -- so\n where a in (select 1) group by b",
                FIRST,
                (("rho", ".5"), ("delta", "'1/3'")),
            ),
        ),
        ('DROP DP COUNTER "a""b"', DropCounter('a"b')),
        ("RECEIVE DP COUNTER r;", ReceiveCounter("r")),
        ("TICK DP COUNTER r", TickCounter("r")),
    ],
)
def test_what_is_read(sql: str, read: object) -> None:
    assert counter_statement(sql) == read
    if isinstance(read, CreateCounter | DropCounter):
        assert counter_statement(read.sql) == read


@pytest.mark.parametrize(
    "sql",
    [
        "",
        "SELECT 1",
        "CREATE COUNTER r",
        "SELECT 'CREATE DP COUNTER r'",
        "EXPLAIN CREATE DP COUNTER r",
        "counter",
        "x DP COUNTER r",
    ],
)
def test_what_is_none(sql: str) -> None:
    assert counter_statement(sql) is None


HEAD = "CREATE DP COUNTER r AS SELECT COUNT(*) FROM t"


@pytest.mark.parametrize(
    ("sql", "why"),
    [
        ("CREATE DP COUNTER", "a name is missing"),
        ("CREATE DP COUNTER r SELECT 1 FROM DATE '2026-01-01'", "AS is missing"),
        ("CREATE DP COUNTER r AS WITH w AS (SELECT 1) SELECT 1 FROM w FROM DATE '2026-01-01'", "SELECT is missing"),
        (HEAD, "FROM DATE '…' is missing"),
        (f"{HEAD} FROM DATE 2026", "FROM DATE '…' is missing"),
        (f"{HEAD} FROM DATE '2026-13-01'", "a day is missing"),
        (f"{HEAD} FROM DATE '2026-01-01' WITH", r"\( is missing"),
        (f"{HEAD} FROM DATE '2026-01-01' WITH (rho = 1, rho = 1)", "an option of a counter"),
        (f"{HEAD} FROM DATE '2026-01-01' WITH (rho = 1) x", "ends before this"),
        ("DROP DP COUNTER r, s", "ends before this"),
        ("TICK DP COUNTER", "a name is missing"),
    ],
)
def test_what_cannot_be_read(sql: str, why: str) -> None:
    with pytest.raises(Rejected, match=why) as refusal:
        counter_statement(sql)
    assert refusal.value.diagnostics[0].code == "DP010"


def day_of(names: Sequence[str]) -> tuple[str, str] | None:
    return ("trips", "day") if names in (["trips"], ["main", "trips"]) else None


@pytest.mark.parametrize(
    ("sql", "asked"),
    [
        ("SELECT COUNT(*) FROM trips t", f"SELECT t.day, COUNT(*) FROM trips t WHERE {DAYS} GROUP BY t.day"),
        (
            "SELECT a, COUNT(*) FROM s JOIN main.trips AS t ON s.a = t.a WHERE x OR y GROUP BY a, b",
            f"SELECT t.day, a, COUNT(*) FROM s JOIN main.trips AS t ON s.a = t.a WHERE {DAYS} AND ( x OR y )"
            " GROUP BY t.day, a, b",
        ),
        (
            "SELECT COUNT(*) FILTER (WHERE a IS DISTINCT FROM b) FROM trips t WHERE a IS NOT DISTINCT FROM b",
            f"SELECT t.day, COUNT(*) FILTER (WHERE a IS DISTINCT FROM b) FROM trips t WHERE {DAYS} AND ( a IS NOT "
            "DISTINCT FROM b ) GROUP BY t.day",
        ),
    ],
)
def test_the_day_is_put_in(sql: str, asked: str) -> None:
    assert " ".join(counted_query(sql, day_of).of(FIRST, LAST).split()) == asked


def test_a_comment_ends_where_it_ended() -> None:
    made = counted_query("SELECT COUNT(*) FROM trips t WHERE x -- so\n", day_of).of(FIRST, LAST)
    assert "-- so\n" in made and made.endswith(") GROUP BY t.day")


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT COUNT(*) FROM stations",
        "SELECT COUNT(*) FROM trips, trips",
        "SELECT COUNT(*) FROM (SELECT * FROM trips) t",
        "SELECT DISTINCT a FROM trips",
        "SELECT COUNT(*)",
        "SELECT a, COUNT(*) FROM trips GROUP BY 1",
        "SELECT a, COUNT(*) FROM trips GROUP BY ALL",
        "SELECT a, COUNT(*) FROM trips GROUP BY ROLLUP (a)",
        "SELECT COUNT(*) FROM trips HAVING COUNT(*) > 1",
        "SELECT COUNT(*) FROM trips UNION ALL SELECT 1",
        "SELECT COUNT(*) FROM trips LIMIT 1",
    ],
)
def test_what_is_no_counters_query(sql: str) -> None:
    with pytest.raises(Rejected, match="DP903"):
        counted_query(sql, day_of)


def test_the_relations_that_a_text_names() -> None:
    assert relations_named("SELECT * FROM dpsql.Rides r, DPSQL.\"x y\" /* dpsql.no */ WHERE a = 'dpsql.no'") == (
        "rides",
        "x y",
    )
    assert relations_named("SELECT dpsql FROM t") == ()
