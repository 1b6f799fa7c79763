"""The clip stands outermost: whatever the column below it holds, what a row adds lies between the ends."""

from __future__ import annotations

from dataclasses import replace

import duckdb
import pytest

from dpsql.core.ir.components import ValueSum
from dpsql.core.ir.expressions import Literal
from dpsql.core.ir.types import INTEGER
from dpsql.core.printing import grid_integers
from dpsql.core.printing.dialect import Dialect
from dpsql.core.printing.dialects.duckdb import DuckDB
from dpsql.core.printing.dialects.postgres import Postgres
from dpsql.core.printing.dialects.spark import Spark
from dpsql.core.printing.forms import clip
from dpsql.core.printing.forms.clip import clipped
from tests.support.planning import planned, policy

LOW, HIGH = -3, 5
ADDED = ValueSum(Literal(1, INTEGER), lo=LOW, hi=HIGH)
VALUES = [None, -(2**63), -4, -3, 0, 5, 6, 2**63 - 1]
DIALECTS = pytest.mark.parametrize("dialect", [DuckDB(), Postgres(), Spark()], ids=lambda d: d.name)
POLICY = policy("""
log:
  unit: {rows: 1}
  columns:
    y: {type: double, bounds: [-3, 3]}
    p: {type: "decimal(9,2)", bounds: [0, 50]}
""")
SUMS = ["SELECT SUM(y) FROM log", "SELECT SUM(p) FROM log", "SELECT SUM(y * 2 + 1) FILTER (WHERE p > 3) FROM log"]


@DIALECTS
@pytest.mark.parametrize("every_row", [False, True])
def test_an_integer_lies_between_the_ends(dialect: Dialect, every_row: bool) -> None:
    """Of the engines' spellings: DuckDB computes all of them."""
    sql = clipped(dialect, replace(ADDED, every_row=every_row), "y", str(LOW), str(HIGH))
    listed = ", ".join(f"({i}, CAST({'NULL' if v is None else v} AS BIGINT))" for i, v in enumerate(VALUES))
    rows = duckdb.sql(f"SELECT {sql} FROM (VALUES {listed}) AS t(i, y) ORDER BY i").fetchall()
    nothing = LOW if every_row else None
    assert [row[0] for row in rows] == [nothing if v is None else min(HIGH, max(LOW, v)) for v in VALUES]


def beyond(dialect: Dialect) -> set[int]:
    """What is added beyond the ends of a column that has another value at each place where it is named."""
    with duckdb.connect() as con:
        con.execute("CREATE SEQUENCE other")
        sql = clipped(dialect, ADDED, "(nextval('other') * 7 % 23 - 11)", str(LOW), str(HIGH))
        found = con.execute(f"SELECT {sql} FROM range(300)").fetchall()
    return {row[0] for row in found if row[0] is not None and not LOW <= row[0] <= HIGH}


def test_where_projections_are_merged_it_names_its_column_once() -> None:
    assert not beyond(Postgres()) and not beyond(Spark())
    typed = clipped(Postgres(), ADDED, "y", str(LOW), str(HIGH), cast=INTEGER)
    assert typed == "int4larger(int4smaller(y, 5), -3)"
    assert beyond(DuckDB()), "the broken twin: where columns are computed apart, it may name them several times"


def sums_beyond(sql: str) -> list[int]:
    """The totals that are larger than so many rows between the ends can add up to."""
    (release,) = planned(sql, POLICY).releases
    (statement,) = release.statements
    found = []
    with duckdb.connect() as con:
        con.execute("CREATE TABLE log (y DOUBLE, p DECIMAL(9,2))")
        con.execute("INSERT INTO log SELECT i - 5, i FROM range(20) AS t(i)")
        ((total,),) = con.execute(statement.salted(7)).fetchall()
        c = release.measured.measurements[0].component
        assert isinstance(c, ValueSum)
        if not 20 * min(0, c.lo) <= total <= 20 * max(0, c.hi):
            found.append(total)
    return found


@pytest.mark.parametrize("sql", SUMS)
def test_a_sum_adds_nothing_beyond_the_ends(sql: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the projection below holds: here numbers that no one has clipped."""
    for name in ("_from_double", "_from_decimal"):
        monkeypatch.setattr(grid_integers, name, lambda d, sql, *_: f"CAST({sql} * 10000000000 AS BIGINT)")
    assert not sums_beyond(sql)
    monkeypatch.setattr(grid_integers, "within", lambda y, low, high: "TRUE")
    monkeypatch.setattr(grid_integers, "clipped", lambda d, c, y, low, high, **_: y)
    assert sums_beyond(sql), "the broken twin"


def test_a_filter_holds_all_conditions() -> None:
    assert clip.only(["a", "b"]) == " FILTER (WHERE a AND b)" and clip.only([]) == ""
