"""Numbers of rows or values that another noisy number decides on: which they are, and why they have no interval."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

import duckdb
import pytest

import dpsql
from dpsql.core.ledger.memory import MemoryLedger
from dpsql.planner.postprocessing.planning import cut_numbers
from dpsql.planner.postprocessing.planning.forms import OF_OTHERS

POLICY = {
    "version": 1,
    "name": "decided",
    "units": {"person": {}},
    "tables": {
        "people": {
            "unit": {"column": "id"}, "primary_key": ["id"],
            "columns": {
                "id": {"type": "bigint"},
                "income": {"type": "bigint", "bounds": [0, 1_000_000], "nullable": False},
                "kind": {"type": "varchar", "domain": ["a", "b", "c"], "nullable": False},
                "city": {"type": "varchar", "nullable": False},
            },
        }
    },
    "budgets": {"total": {"epsilon": 10**9, "delta": 0.1}},
}  # fmt: skip


@pytest.fixture(scope="module")
def data() -> duckdb.DuckDBPyConnection:
    """Incomes lie close together, far within their bounds: a little more or less on average is many people."""
    data = duckdb.connect()
    data.execute(
        "CREATE TABLE people AS SELECT i AS id, 40000 + (i * 7919) % 20000 AS income, ['a', 'b', 'c'][i % 3 + 1]"
        " AS kind, 'city ' || i % 7 AS city FROM range(20000) AS t(i)"
    )
    return data


@pytest.fixture(scope="module")
def con(data: duckdb.DuckDBPyConnection) -> Iterator[dpsql.Connection]:
    policy = dpsql.Policy.from_dict(POLICY)
    with dpsql.connect(data, policy=policy, ledger=MemoryLedger("decided"), optimizers="ours") as opened:
        yield opened


AVERAGE = "(SELECT AVG(income) FROM people)"
LARGE = "SELECT city FROM people GROUP BY city HAVING COUNT(*) > 100"
FEW = "SELECT city FROM people GROUP BY city HAVING COUNT(*) < 100"
BY_CITY = "(SELECT city, AVG(income) AS m FROM people GROUP BY city) AS b"


@pytest.mark.parametrize(
    ("sql", "has_one"),
    [
        (f"SELECT COUNT(*) AS x FROM people WHERE income > {AVERAGE}", False),
        (f"SELECT COUNT(*) * 2 AS x FROM people WHERE income > {AVERAGE}", False),
        (f"SELECT COUNT(*) / 20000 AS x FROM people WHERE income > {AVERAGE}", False),
        (f"SELECT kind, AVG(income) AS x FROM people WHERE income > {AVERAGE} GROUP BY kind", False),
        (f"SELECT SUM(income - {AVERAGE}) AS x FROM people", False),
        (f"SELECT COUNT(*) FILTER (WHERE income > {AVERAGE}) AS x FROM people", False),
        (f"SELECT COUNT(*) AS x FROM people AS p JOIN {BY_CITY} ON p.city = b.city WHERE income > m", False),
        (f"SELECT p.city, COUNT(*) AS x FROM people AS p JOIN {BY_CITY} ON p.city = b.city AND income > m"
         " GROUP BY p.city", False),
        # Other rows are counted where noise leaves a city out; all rows of a city, where cities are the groups.
        (f"SELECT COUNT(*) AS x FROM people WHERE city IN ({LARGE})", False),
        (f"SELECT kind, COUNT(*) AS x FROM people WHERE city IN ({LARGE}) GROUP BY kind", False),
        (f"SELECT city, COUNT(*) AS x FROM people WHERE city IN ({LARGE}) GROUP BY city", True),
        (f"SELECT p.city, COUNT(*) AS x FROM people AS p JOIN ({LARGE}) AS l ON p.city = l.city GROUP BY p.city", True),
        (f"SELECT COUNT(*) AS x FROM people WHERE city NOT IN ({LARGE})", False),
        ("SELECT COUNT(*) AS x FROM people WHERE kind IN (SELECT kind FROM people GROUP BY kind)", True),
        ("SELECT kind, COUNT(*) AS x FROM people WHERE kind IN (SELECT kind FROM people GROUP BY kind"
         " HAVING COUNT(*) > 9) GROUP BY kind", True),
        (f"SELECT city, COUNT(*) AS x FROM people WHERE city NOT IN ({FEW}) GROUP BY city", True),
        ("SELECT r.kind, COUNT(*) AS x FROM people AS p LEFT JOIN (SELECT id, kind FROM people WHERE kind IN"
         " (SELECT kind FROM people GROUP BY kind HAVING COUNT(*) > 9)) AS r ON p.id = r.id GROUP BY r.kind", False),
        ("SELECT COUNT(*) AS x FROM people WHERE kind IN (SELECT kind FROM people GROUP BY kind ORDER BY COUNT(*)"
         " LIMIT 2)", False),
        # Beside such a number others are as they are.
        ("WITH a AS (SELECT AVG(income) AS m FROM people) SELECT COUNT(*) AS x FROM people, a", True),
        ("SELECT COUNT(*) AS x FROM people", True),
        (f"SELECT COUNT(*) - {AVERAGE} AS x FROM people", True),
    ],
)  # fmt: skip
def test_which_numbers_have_an_interval(con: dpsql.Connection, sql: str, has_one: bool) -> None:
    answer = con.sql(sql).run(epsilon=20, delta=1e-6)
    assert len(answer.rows) and {row["x"] is not None for row in answer.intervals()} == {has_one}
    assert {row.get("x") for row in answer.gaps()} == {None if has_one else OF_OTHERS}
    assert (f"x has no interval: {OF_OTHERS}" in answer.notes) is not has_one
    # What the query gives for the numbers that were drawn has one all the same.
    assert all(row["x"] is not None for row in answer.intervals(bounded=True))


def test_what_such_an_interval_would_hold(
    con: dpsql.Connection, data: duckdb.DuckDBPyConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The twin, which gives one, misses the answer without noise in most of 40 runs."""
    sql = f"SELECT COUNT(*) AS x FROM people WHERE income > {AVERAGE}"
    ((truth,),) = data.execute(sql).fetchall()
    monkeypatch.setattr(cut_numbers, "decided_by_noise", lambda release: (False,) * len(release.node.components))
    held = 0
    for run in range(40):
        (row,) = con.sql(f"{sql} -- {run}").run(epsilon=1, fresh=True).intervals()
        low, high = row["x"] or (None, None)
        assert low is not None and high is not None
        held += low <= truth <= high
    assert held < 20


def test_its_ends_are_null_in_sql(con: dpsql.Connection) -> None:
    ends = "DP_INTERVAL_LOW(COUNT(*)) AS low, DP_INTERVAL_HIGH(COUNT(*)) AS high"
    ((low, high),) = con.sql(f"SELECT {ends} FROM people WHERE income > {AVERAGE}").run(epsilon=Fraction(3))
    assert low is None and high is None
