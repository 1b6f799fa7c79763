"""TIMESTAMP WITH TIME ZONE: read by the policy's clock, and by any that a query names, as `zoneinfo` reads it."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from typing import Any
from zoneinfo import ZoneInfo

import duckdb
import pytest

import dpsql
from dpsql.core.ir.types import TIMESTAMPTZ, VARCHAR
from dpsql.core.ledger.memory import MemoryLedger
from dpsql.core.numbers.interval import everything
from dpsql.core.printing.dialect import CannotSpell, Dialect
from dpsql.core.values.constants import literal
from dpsql.core.values.value import Value
from dpsql.functions.registry import REGISTRY, apply
from dpsql.spelling.postgres_functions import POSTGRES
from dpsql.spelling.spark_functions import SPARK

FIRST = dt.datetime(2025, 3, 29, 12, tzinfo=dt.UTC)
ROWS = [FIRST + dt.timedelta(hours=n) for n in range(800)]
Clock = Callable[[str], dt.datetime]


def policy(zone: str | None = None, **more: Any) -> dpsql.Policy:
    given: dict[str, Any] = {
        "version": 1, "name": "calls", "tables": {
            "calls": {"unit": {"rows": 1}, "columns": {
                "seen": {"type": "timestamptz", "nullable": False,
                         "bounds": ["2025-03-29 00:00:00Z", "2025-05-31 00:00:00Z"]},
                "at": {"type": "timestamp", "nullable": False}, "day": {"type": "date", "nullable": False}, **more,
            }}
        },
        "budgets": {"total": {"epsilon": 10**13}},
    }  # fmt: skip
    return dpsql.Policy.from_dict({**given, "zone": zone} if zone else given)


def opened(of: dpsql.Policy) -> dpsql.Connection:
    data = duckdb.connect()
    data.execute('CREATE TABLE calls (seen TIMESTAMPTZ, "at" TIMESTAMP, day DATE)')
    rows = [(seen, seen.replace(tzinfo=None), seen.date()) for seen in ROWS]
    data.executemany("INSERT INTO calls VALUES (?, ?, ?)", rows)
    return dpsql.connect(data, policy=of, ledger=MemoryLedger("calls"), epsilon=10**6, optimizers="ours")


def by_clock(zone: str, moment: dt.datetime) -> dt.datetime:
    return moment.astimezone(ZoneInfo(zone)).replace(tzinfo=None)


APRIL = dt.datetime(2025, 4, 1)
CONDITIONS: dict[str, Callable[[dt.datetime, Callable[[dt.datetime], dt.datetime]], bool]] = {
    "seen >= '2025-04-01'": lambda m, own: own(m) >= APRIL,
    "seen >= DATE '2025-04-01'": lambda m, own: own(m) >= APRIL,
    "seen::date = DATE '2025-04-01'": lambda m, own: own(m).date() == APRIL.date(),
    "seen::date = day": lambda m, own: own(m).date() == m.date(),
    "at < seen": lambda m, own: m.replace(tzinfo=None) < own(m),
    "date_trunc('month', seen) = '2025-04-01'": lambda m, own: (own(m).year, own(m).month) == (2025, 4),
    "EXTRACT(hour FROM seen) < 6": lambda m, own: own(m).hour < 6,
    "to_char(seen, 'YYYY-MM-DD') = '2025-03-30'": lambda m, own: own(m).date() == dt.date(2025, 3, 30),
    "seen - INTERVAL '1 month' < '2025-03-01'": lambda m, own: own(m) < APRIL,
    "epoch(seen) >= 1743465600": lambda m, own: m.replace(tzinfo=None) >= APRIL,
    "seen AT TIME ZONE 'america/new_york' >= '2025-04-01'": lambda m, own: by_clock("America/New_York", m) >= APRIL,
    "timezone('Asia/Kathmandu', seen) >= TIMESTAMP '2025-04-01'": lambda m, own: by_clock("Asia/Kathmandu", m) >= APRIL,
    "at AT TIME ZONE 'UTC' AT TIME ZONE 'Europe/Berlin' >= '2025-04-01'": (
        lambda m, own: by_clock("Europe/Berlin", m) >= APRIL
    ),
    "seen >= TIMESTAMP '2025-04-01' AT TIME ZONE 'Europe/Berlin'": lambda m, own: by_clock("Europe/Berlin", m) >= APRIL,
    "seen >= TIMESTAMPTZ '2025-04-01 00:00+05'": lambda m, own: by_clock("Etc/GMT-5", m) >= APRIL,
}  # fmt: skip


@pytest.mark.parametrize("zone", [None, "Europe/Berlin", "america/st_johns"])
def test_what_a_clock_shows(zone: str | None) -> None:
    named = {"america/st_johns": "America/St_Johns", None: "UTC"}.get(zone, str(zone))
    with opened(policy(zone)) as con:
        for dialect in ("duckdb", "postgres"):
            for condition, holds in CONDITIONS.items():
                if dialect == "postgres" and condition.startswith("epoch"):
                    continue
                answer = con.sql(f"SELECT COUNT(*) AS n FROM calls WHERE {condition}", dialect=dialect).run()
                true = sum(holds(moment, lambda m: by_clock(named, m)) for moment in ROWS)
                assert answer.rows == ((true,),), (condition, dialect)
        months = con.sql("SELECT date_trunc('month', seen) AS m, COUNT(*) AS n FROM calls GROUP BY m ORDER BY m").run()
    shown = [by_clock(named, m).replace(day=1, hour=0, minute=0) for m in ROWS]
    assert months.rows == tuple((m, shown.count(m)) for m in (dt.datetime(2025, n, 1) for n in (3, 4, 5)))


@pytest.mark.parametrize(
    ("condition", "code", "repair"),
    [
        ("seen AT TIME ZONE 'Mars/Olympus' > '2025-04-01'", "DP106", "such as 'Europe/Berlin' or 'UTC'"),
        ("seen AT TIME ZONE 'UTC+5' > '2025-04-01'", "DP106", "such as 'Europe/Berlin' or 'UTC'"),
        ("seen AT TIME ZONE CAST(day AS VARCHAR) > '2025-04-01'", "DP115", "x AT TIME ZONE 'Europe/Berlin'"),
        ("at AT TIME ZONE 'Europe/Berlin' > '2025-04-01'", "DP106", "x AT TIME ZONE 'UTC' AT TIME ZONE 'zone'"),
        ("date_trunc('day', seen, 'Europe/Berlin') > '2025-04-01'", "DP106", "x AT TIME ZONE 'Europe/Berlin'"),
    ],
)
def test_what_is_no_clock_is_refused(condition: str, code: str, repair: str) -> None:
    (found,) = dpsql.check(f"SELECT COUNT(*) FROM calls WHERE {condition}", policy())
    assert found.code == code and any(repair in text for text in (*found.help, found.message))


def test_a_policy_names_a_zone_that_is_one() -> None:
    with pytest.raises(dpsql.CannotOpen, match="'Berlin' is no zone that is known here"):
        policy("Berlin")


@pytest.mark.parametrize(
    "made",
    ["CAST(seen AT TIME ZONE 'Europe/Berlin' AS date)", "CAST(timezone('Asia/Tokyo', seen) AS date)",
     "CAST(seen AT TIME /**/ ZONE 'Europe/Berlin' AS date)"],
)  # fmt: skip
def test_no_period_is_told_by_a_zone_whose_rules_change(made: str) -> None:
    grows = {"by": "told", "every": "day", "from": "2025-01-01"}
    given = policy().document | {"zone": "Europe/Berlin"}
    table = given["tables"]["calls"]
    columns = {**table["columns"], "told": {"from": made, "type": "date"}}
    with pytest.raises(dpsql.CannotOpen, match="which is read by the clock of a zone"):
        dpsql.Policy.from_dict({**given, "tables": {"calls": {**table, "grows": grows, "columns": columns}}})
    columns["told"]["from"] = "CAST(seen AT TIME ZONE 'UTC' AS date)"
    assert dpsql.Policy.from_dict({**given, "tables": {"calls": {**table, "grows": grows, "columns": columns}}})


@pytest.mark.parametrize(
    "call",
    ["MOD(i, 2, 7)", "LOG10(i, 2)", "LPAD(s, 2, 'x', 'y')", "DATE_DIFF('day', d, d, 1)", "LTRIM(s, 'a', 'b')"],
)
def test_arguments_that_the_parser_drops_are_refused(call: str) -> None:
    columns = {"i": {"type": "bigint"}, "s": {"type": "varchar"}, "d": {"type": "date"}}
    of = policy(**columns)
    assert [d.code for d in dpsql.check(f"SELECT COUNT(*) FROM calls WHERE {call} IS NULL", of)] == ["DP106"]
    fewer = f"{call.rpartition(',')[0]})"
    assert dpsql.check(f"SELECT COUNT(*) FROM calls WHERE {fewer} IS NULL", of) == []


def test_what_the_policy_computes_is_read_by_the_clock_of_utc() -> None:
    """Else a row would be of another period, with a budget of its own, once the policy names another zone."""
    made = {"told": {"from": "CAST(seen AS date)", "type": "date"}}
    sql = "SELECT COUNT(*) AS n FROM calls WHERE told = DATE '2025-04-01'"
    texts = set()
    for zone in ("UTC", "Europe/Berlin"):
        with opened(policy(zone, **made)) as con:
            texts.add(con.sql(sql).plan().releases[0].statements[0].sql)
            assert con.sql(sql).run().rows == ((24,),)
    (text,) = texts
    assert "timezone('UTC', " in text and text.count("timezone(") == 1


def test_a_zone_that_an_engine_may_not_know_fails_in_no_row() -> None:
    """A failure of each row that is reached would tell whether one is: PostgreSQL is asked first, Spark is not used."""
    moment = Value(TIMESTAMPTZ, everything(), everything(), True, True, None)

    def spelled(dialect: Dialect, zone: str) -> str:
        args = literal(zone, VARCHAR), moment
        return dialect.call("timezone", [f"'{zone}'", "seen"], args, apply(REGISTRY["timezone"], args))

    asked = "CASE WHEN (SELECT count(*) > 0 FROM pg_catalog.pg_timezone_names AS z WHERE z.name = 'Europe/Berlin'"
    assert spelled(POSTGRES, "Europe/Berlin").startswith(asked) and "pg_timezone_names" not in spelled(POSTGRES, "UTC")
    with pytest.raises(CannotSpell, match="which zones it knows"):
        spelled(SPARK, "Europe/Berlin")
    assert "TIMESTAMP_NTZ" in spelled(SPARK, "UTC")
