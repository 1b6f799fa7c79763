"""A query that is asked again is not compiled again, and never has a plan that compiling anew would not make."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb
import pytest

from dpsql.api.connection import Connection, connect
from dpsql.diagnostics.errors import Rejected
from dpsql.planner.plan import Plan
from dpsql.planner.settings.query_settings import QuerySettings
from dpsql.policy.load import load_policy
from dpsql.service.planning import kept_plans as plans
from dpsql.service.planning import planning as module
from dpsql.service.planning.planning import Planner, WrittenQuery

QUERIES = (
    "SELECT city, COUNT(*) AS n, AVG(age) AS a FROM members GROUP BY city",
    "SELECT country, SUM(fee) AS s FROM members JOIN cities USING (city) GROUP BY country",
    "SELECT note, COUNT(*) AS n FROM members GROUP BY note ORDER BY n DESC LIMIT 2",
    "SELECT COUNT(*) FROM visits WHERE hours > (SELECT AVG(hours) FROM visits)",
)
OVER = "SELECT COUNT(*) AS n FROM members WHERE age > ?"


class Compilations:
    """How many there were."""

    def __init__(self) -> None:
        self.number = 0

    def new(self) -> bool:
        """Whether there was one since the last call."""
        found, self.number = self.number > 0, 0
        return found


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> Compilations:
    found, inner = Compilations(), module.compile_query

    def compile_query(*arguments: Any) -> Plan:
        found.number += 1
        return inner(*arguments)

    monkeypatch.setattr(module, "compile_query", compile_query)
    return found


def plan(con: Connection, sql: str, parameters: Any = (), **settings: Any) -> Plan:
    return con.sql(sql, parameters).plan(**{"epsilon": 1, "delta": "1e-6", **settings})


@pytest.mark.parametrize("sql", QUERIES)
def test_the_same_query_has_the_same_plan(con: Connection, made: Compilations, sql: str) -> None:
    first = plan(con, sql)
    assert made.new()
    again = plan(con, sql)
    assert not made.new()
    con.service.planner = Planner(con.policy, con.service.facts)
    anew = plan(con, sql)
    assert made.new() and again == first == anew
    assert again.hash == anew.hash and [r.statements for r in again.releases] == [r.statements for r in anew.releases]
    assert len(con.run(again)) == len(con.run(anew))


def test_other_settings_are_another_plan(con: Connection, made: Compilations) -> None:
    usual = plan(con, QUERIES[0]).hash
    for settings in (
        {"epsilon": 2}, {"epsilon": "1.0000001"}, {"weights": {"n": 3}}, {"weights": {"a": 3}},
        {"epsilon": None, "max_error": {"n": 50}}, {"epsilon": None, "max_error": {"n": 50}, "confidence": 0.9},
    ):  # fmt: skip
        made.new()
        assert plan(con, QUERIES[0], **settings).hash != usual and made.new(), settings
    assert plan(con, QUERIES[0]).hash == usual and not made.new()
    assert plan(con, QUERIES[2], delta="1e-7").hash != plan(con, QUERIES[2]).hash
    con.sql(QUERIES[0], dialect="postgres").plan(1)
    assert made.new()


def test_other_values_of_parameters_are_another_plan(con: Connection, made: Compilations) -> None:
    values = [30, 31, 30.0, Decimal(30), Decimal("30.0")]
    found = [plan(con, OVER, [value]) for value in values]
    assert made.number >= len(values)
    made.new()
    for value, first in zip(values, found, strict=True):
        assert plan(con, OVER, [value]) == first and plan(con, OVER, (value,)) == first
    assert not made.new()
    assert "> 31" in found[1].releases[0].statements[0].sql and "> 31" not in found[0].releases[0].statements[0].sql
    named = "SELECT COUNT(*) AS n FROM members WHERE age BETWEEN $low AND $high"
    one, other = plan(con, named, {"low": 1, "high": 2}), plan(con, named, {"low": 2, "high": 1})
    assert one.hash != other.hash
    made.new()
    since = "SELECT COUNT(*) FROM members WHERE joined >= ?"
    days = [dt.date(2020, 5, 1), dt.datetime(2020, 5, 1), dt.datetime(2020, 5, 1, tzinfo=dt.UTC)]
    for day in days:
        plan(con, since, [day])
        assert made.new()
    for day, again in zip(days, (False, False, True), strict=True):
        plan(con, since, [day])
        assert made.new() == again, "what nothing simple tells apart is not kept"


def test_values_of_unknown_types_are_not_kept(con: Connection, made: Compilations) -> None:
    class Sly(int):
        def __repr__(self) -> str:
            return "30"

    first = plan(con, OVER, [30])
    made.new()
    assert plan(con, OVER, [Sly(31)]) != first and made.new()


def test_refusals_are_not_kept(con: Connection, made: Compilations) -> None:
    for _ in range(2):
        with pytest.raises(Rejected, match="DP013"):
            plan(con, OVER)
        assert made.new()


def test_another_policy_is_another_plan(con: Connection, made: Compilations) -> None:
    """Also where it is equal, and its file another one: what is kept is told apart by the policy itself."""
    first, planner = plan(con, QUERIES[0]), con.service.planner
    made.new()
    con.service.planner = replace(planner, policy=load_policy(con.policy.path))  # type: ignore[arg-type]
    plan(con, QUERIES[0])
    assert made.new()
    con.service.planner = planner
    assert plan(con, QUERIES[0]) == first and made.new()


def test_a_caller_cannot_change_what_is_kept(con: Connection, made: Compilations) -> None:
    first = plan(con, QUERIES[1])
    assert first.basis.public
    kept = dict(first.basis.public)
    for held in (first, plan(con, QUERIES[1])):
        held.basis.public.clear()  # type: ignore[attr-defined]
        held.cost.clear()  # type: ignore[attr-defined]
    made.new()
    again = plan(con, QUERIES[1])
    assert not made.new() and again.basis.public == kept and again.cost


def test_a_bounded_number_is_kept(con: Connection, made: Compilations, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plans, "MOST_PLANS", 2)
    for sql in (*QUERIES[:2], QUERIES[0], QUERIES[2]):
        plan(con, sql)
    assert len(con.service.planner.kept) == 2
    made.new()
    plan(con, QUERIES[0])
    plan(con, QUERIES[2])
    assert not made.new(), "the ones used last"
    plan(con, QUERIES[1])
    assert made.new()
    monkeypatch.setattr(plans, "MOST_KEYS", 1)
    plan(con, "SELECT city, COUNT(*) AS k FROM members GROUP BY city")
    assert len(con.service.planner.kept) == 1, "a large one alone"


# --- what a connection of the user's own can change meanwhile --------------------------------------------------------

ROWS = """\
version: 1
name: notes
tables:
  notes:
    unit: {rows: 1}
    columns:
      word: {type: varchar, nullable: false}
  words:
    public: true
    columns:
      word: {type: varchar, nullable: false}
budgets:
  total: {epsilon: 1000}
"""
JOINED = "SELECT COUNT(*) AS n FROM notes JOIN words USING (word)"


@pytest.fixture
def own(tmp_path: Path) -> Iterator[tuple[duckdb.DuckDBPyConnection, Connection]]:
    (tmp_path / "policy.yaml").write_text(ROWS, encoding="utf-8")
    with duckdb.connect() as database:
        database.execute("CREATE TABLE notes AS SELECT 'a' AS word FROM range(100)")
        database.execute("CREATE TABLE words AS SELECT 'a' AS word FROM range(2)")
        with connect(
            database, policy=tmp_path / "policy.yaml", ledger=tmp_path / "ledger.db", optimizers="ours"
        ) as con:
            yield database, con


def test_public_facts_that_have_changed_make_another_plan(
    own: tuple[duckdb.DuckDBPyConnection, Connection], made: Compilations
) -> None:
    database, con = own
    first = plan(con, JOINED, delta=None)
    assert set(first.basis.public.values()) == {2}
    con.run(first)
    database.execute("INSERT INTO words SELECT 'a' FROM range(3)")
    made.new()
    stale = plan(con, JOINED, delta=None)
    assert not made.new(), "nobody has looked yet"
    with pytest.raises(Rejected, match="DP409"):  # nothing runs with two where there are five
        con.run(stale)
    again = plan(con, JOINED, delta=None)
    assert made.new() and set(again.basis.public.values()) == {5}
    scales = [plan_.releases[0].measured.measurements[0].mechanism.scale for plan_ in (first, again)]
    assert scales == [2, 5]
    con.run(again)


def test_tables_of_another_name_make_another_plan(
    own: tuple[duckdb.DuckDBPyConnection, Connection], made: Compilations, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, con = own
    first = plan(con, JOINED, delta=None)
    inner = con.service.engine.table_sql
    monkeypatch.setattr(
        type(con.service.engine), "table_sql", lambda self, name: inner(name).replace("notes", "others")
    )
    made.new()
    again = plan(con, JOINED, delta=None)
    assert made.new() and "others" in again.releases[0].statements[0].sql
    assert "others" not in first.releases[0].statements[0].sql


def test_a_closed_session_plans_nothing(own: tuple[duckdb.DuckDBPyConnection, Connection]) -> None:
    _, con = own
    plan(con, JOINED, delta=None)
    con.close()
    with pytest.raises(Rejected, match="DP903"):
        plan(con, JOINED, delta=None)


def test_what_asks_the_clock_is_planned_for_the_time_at_which_it_was_asked(con: Connection, made: Compilations) -> None:
    sql = "SELECT COUNT(*) AS n FROM members WHERE joined < CURRENT_DATE"
    first, second = (WrittenQuery(sql, asked=dt.datetime(2026, 1, day)) for day in (1, 2))
    settings = QuerySettings(Fraction(1), Fraction(1, 10**6))
    plans = [con.service.planner.plan(question, settings) for question in (first, second, first)]
    assert made.number == 2 and plans[0] == plans[2]
    assert plans[0].notes[0] == "current_date is 2026-01-01 (UTC): a constant of this query"
    assert "2026-01-01" in plans[0].releases[0].statements[0].sql and plans[0].hash != plans[1].hash
    query = con.sql(sql)
    made.new()
    assert query.plan(1) == query.plan(1) and made.new()  # one question, one time


def test_what_asks_no_clock_is_kept_whenever_it_is_asked(con: Connection, made: Compilations) -> None:
    settings = QuerySettings(Fraction(1), Fraction(1, 10**6))
    for day in (1, 2):
        con.service.planner.plan(WrittenQuery(QUERIES[0], asked=dt.datetime(2026, 1, day)), settings)
    assert made.number == 1
