"""The groups of the most units, without their numbers: picked where that is cheaper, and never twice.

At ε 100,000 a group that has a dozen units more than the next is missed with a probability below e^-1000.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from dpsql.api.connection import Connection
from dpsql.core.ir.components import Component, LargestChoice, RowCount, UnitCount
from dpsql.diagnostics.errors import Rejected
from tests.support.built_once import build
from tests.support.opened_once import opened

POLICY = """\
version: 1
name: bus
database: bus.duckdb
units: {rider: {}}
tables:
  trips:
    unit: {column: rider}
    columns:
      rider: {type: bigint}
      stop: {type: varchar, domain: [Airport, Bridge, Castle, Docks, Elm], nullable: false}
      gate: {type: varchar, domain: {values: [x, y], null: true}}
      hour: {type: bigint, bounds: [0, 23], nullable: false}
  owners:
    unit: {column: rider}
    max_rows_per_unit: 2
    columns:
      rider: {type: bigint}
      stop: {type: varchar, domain: [Airport, Bridge, Castle, Docks, Elm], nullable: false}
  stops:
    public: true
    unique: [[stop]]
    columns: {stop: {type: varchar, nullable: false}, zone: {type: varchar, nullable: false}}
  rows:
    unit: {rows: 1}
    columns:
      stop: {type: varchar, domain: [Airport, Bridge, Castle], nullable: false}
      kind: {type: integer, bounds: [0, 9], nullable: false}
budgets:
  total: {epsilon: 1e9}
"""
DATA = """\
CREATE TABLE trips AS SELECT rider, stop, NULL::VARCHAR AS gate, hour FROM
  (VALUES ('Castle', 90), ('Airport', 70), ('Elm', 50), ('Docks', 30)) AS s(stop, riders), range(90) AS r(rider),
  range(5) AS h(hour) WHERE rider < riders;
INSERT INTO trips SELECT 7, 'Bridge', 'x', 5 FROM range(5000);
INSERT INTO trips SELECT NULL, 'Bridge', 'x', 5 FROM range(5000);
CREATE TABLE owners AS SELECT DISTINCT rider, stop FROM trips WHERE stop IN ('Castle', 'Elm');
CREATE TABLE stops AS FROM (VALUES ('Castle', 'A'), ('Airport', 'B'), ('Elm', 'B'), ('Docks', 'C')) AS t(stop, zone);
CREATE TABLE rows AS SELECT 'Castle' AS stop, 1 AS kind FROM range(9);
"""
LARGEST = "SELECT stop FROM trips GROUP BY stop ORDER BY COUNT(DISTINCT rider) DESC LIMIT"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("bus")
    build(made / "bus.duckdb", DATA)
    (made / "bus.yaml").write_text(POLICY, encoding="utf-8")
    return made


@pytest.fixture
def con(folder: Path) -> Iterator[Connection]:
    with Connection(*opened(folder / "bus.yaml"), ledger=":memory:") as found:
        yield found


def answered(con: Connection, sql: str, **settings: Any) -> list[Any]:
    return con.sql(sql).run(epsilon=100_000, **settings).fetchall()


def measures(con: Connection, sql: str, **settings: Any) -> list[list[type[Component]]]:
    plan = con.sql(sql).plan(**({"epsilon": 1} | settings))
    return [[type(m.component) for m in r.measured.measurements] for r in plan.releases]


@pytest.mark.parametrize(
    ("sql", "answer"),
    [
        (f"{LARGEST} 1", ["Castle"]),
        (f"{LARGEST} 3", ["Castle", "Airport", "Elm"]),
        (f"{LARGEST} 2 OFFSET 1", ["Airport", "Elm"]),
        ("SELECT upper(stop) AS s FROM trips AS t GROUP BY t.stop ORDER BY COUNT(DISTINCT t.rider) DESC, stop LIMIT 2",
         ["CASTLE", "AIRPORT"]),
        ("SELECT hour > 2 AS late FROM trips GROUP BY late ORDER BY COUNT(DISTINCT rider) FILTER (WHERE hour = 4) "
         "DESC LIMIT 1", [True]),
        ("SELECT zone FROM trips JOIN stops USING (stop) WHERE stop <> 'Castle' GROUP BY zone "
         "ORDER BY COUNT(DISTINCT rider) DESC LIMIT 1", ["B"]),
        ("SELECT gate FROM trips GROUP BY gate ORDER BY COUNT(DISTINCT rider) DESC LIMIT 2", [None, "x"]),
        (f"WITH top AS ({LARGEST} 2) SELECT zone FROM stops JOIN top USING (stop) ORDER BY zone", ["A", "B"]),
        (f"SELECT zone FROM stops WHERE stop IN ({LARGEST} 2) ORDER BY zone", ["A", "B"]),
        (f"SELECT COUNT(DISTINCT rider) FROM trips WHERE stop IN ({LARGEST} 2 OFFSET 2)", [50]),
    ],
)  # fmt: skip
def test_the_groups_of_the_most_units_in_their_order(con: Connection, sql: str, answer: list[Any]) -> None:
    """Bridge has the most rows, of one rider and of nobody; no limit is declared."""
    assert [row[0] for row in answered(con, sql)] == answer
    assert LargestChoice in measures(con, sql)[0] and UnitCount not in measures(con, sql)[0]


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT stop, COUNT(DISTINCT rider) AS n FROM owners GROUP BY stop ORDER BY n DESC LIMIT 1",
        "SELECT stop FROM owners GROUP BY stop HAVING COUNT(DISTINCT rider) > 9 ORDER BY COUNT(DISTINCT rider) DESC "
        "LIMIT 1",
        "SELECT stop FROM owners GROUP BY stop ORDER BY COUNT(DISTINCT rider) LIMIT 1",
        "SELECT stop FROM owners GROUP BY stop ORDER BY COUNT(DISTINCT rider) DESC",
        "SELECT stop FROM owners GROUP BY stop ORDER BY COUNT(DISTINCT rider) DESC LIMIT 2",
        "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (max_groups_contributed = 2) stop FROM owners GROUP BY stop "
        "ORDER BY COUNT(DISTINCT rider) DESC LIMIT 1",
    ],
)
def test_counts_where_they_are_shown_or_as_cheap(con: Connection, sql: str) -> None:
    """A rider owns two stops at most: two picks cost as much as all counts."""
    assert LargestChoice not in {m for release in measures(con, sql) for m in release}


def test_one_pick_is_cheaper_than_two_counts(con: Connection) -> None:
    sql = "SELECT stop FROM owners GROUP BY stop ORDER BY COUNT(DISTINCT rider) DESC LIMIT 1"
    assert measures(con, sql) == [[LargestChoice]] and answered(con, sql) == [("Castle",)]


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT stop, hour FROM trips GROUP BY ALL ORDER BY COUNT(DISTINCT rider) DESC LIMIT 1",
        "SELECT COUNT(DISTINCT rider) > 9 FROM trips GROUP BY stop ORDER BY COUNT(DISTINCT rider) DESC LIMIT 1",
    ],
)
def test_what_is_not_picked_needs_a_limit_as_before(con: Connection, sql: str) -> None:
    """Keys of two columns, a count that is shown."""
    with pytest.raises(Rejected) as refused:
        con.sql(sql).plan(epsilon=1)
    assert refused.value.diagnostics[0].code == "DP211"


def test_each_pick_pays_its_share_and_nothing_more(con: Connection) -> None:
    query = con.sql(f"{LARGEST} 4")
    (release,) = query.plan(epsilon=1).releases
    assert [m.loss.epsilon for m in release.measured.measurements] == [Fraction(1, 4)] * 4
    assert [m.sensitivity.l1 for m in release.measured.measurements] == [1] * 4
    assert query.run(epsilon=1).spent.epsilon == 1
    beside = con.sql(f"SELECT (SELECT COUNT(DISTINCT rider) FROM trips) AS n, stop FROM ({LARGEST} 1) AS t")
    assert [len(r.measured.measurements) for r in beside.plan(epsilon=1).releases] == [1, 1]


def test_nothing_is_picked_twice_and_more_than_all_are_all(con: Connection) -> None:
    """At an ε at which all are alike."""
    for run in range(12):
        found = con.sql(f"{LARGEST} 9 /* {run} */").run(epsilon=Fraction(1, 10**6) + Fraction(run, 10**9)).fetchall()
        assert sorted(found) == [("Airport",), ("Bridge",), ("Castle",), ("Docks",), ("Elm",)]


def test_an_answer_is_served_again_and_none_of_another_number_of_picks(con: Connection) -> None:
    first = con.sql(f"{LARGEST} 2").run(epsilon=1)
    again = con.sql(f"{LARGEST} 2").run(epsilon=1)
    assert again.spent.epsilon == 0 and again.fetchall() == first.fetchall()
    assert con.sql(f"{LARGEST} 1").run(epsilon=1).spent.epsilon == 1
    assert con.sql(f"{LARGEST} 1 OFFSET 1").run(epsilon=1).fetchall() == first.fetchall()[1:]


def test_of_no_rows_the_first_keys_for_nothing(con: Connection) -> None:
    found = con.sql(LARGEST.replace("GROUP", "WHERE FALSE GROUP") + " 2").run(epsilon=1)
    assert found.fetchall() == [("Airport",), ("Bridge",)] and found.spent.epsilon == 0


def test_the_error_is_told_in_units_and_can_be_asked_for(con: Connection) -> None:
    query = con.sql(f"{LARGEST} 1")
    assert "stop: at 95 %, a count is at most 5 units below the largest that is left" in query.plan(epsilon=1).notes
    text = str(query.explain(epsilon=1))
    assert "stop BY COUNT(DISTINCT rider)" in text and "4.605 units" in text
    asked = query.plan(max_error={"stop": 3})
    (measured,) = asked.releases[0].measured.measurements
    assert 1 < measured.loss.epsilon < 2
    assert "epsilon 1.53506 for stop within 3 units at 95 %" in str(query.explain(max_error={"stop": 3}))


def test_rows_as_units_are_counted(con: Connection) -> None:
    assert measures(con, "SELECT stop FROM rows GROUP BY stop ORDER BY COUNT(*) DESC LIMIT 1") == [[RowCount]]
