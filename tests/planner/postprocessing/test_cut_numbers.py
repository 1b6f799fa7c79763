"""Ends of intervals that say nothing of a number without limits: which they are, and that the others hold the truth."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from typing import Any

import duckdb
import pytest

import dpsql
from dpsql.core.ledger.memory import MemoryLedger
from dpsql.diagnostics.words import TOO_HIGH, TOO_LOW
from dpsql.planner.postprocessing.planning.forms import OF_CUT

CUSTOMER = {"type": "bigint", "nullable": False}
KIND = {"type": "varchar", "domain": ["a", "b", "c"], "nullable": False}
WAVES = {"rows": 5, "nobody_has_more": True}


def table(limit: Any, **more: Any) -> dict[str, Any]:
    columns = {
        "customer": CUSTOMER, "kind": KIND, "item": {"type": "bigint", "nullable": False},
        "price": {"type": "integer", "bounds": [0, 10], "nullable": False},
        "debt": {"type": "integer", "bounds": [-10, 0], "nullable": False},
        "balance": {"type": "integer", "bounds": [-10, 10], "nullable": False},
    }  # fmt: skip
    return {"unit": {"column": "customer"}, "max_rows_per_unit": limit, "columns": columns, **more}


POLICY: dict[str, Any] = {
    "version": 1,
    "name": "cuts",
    "units": {"customer": {}},
    "tables": {
        "orders": table(5),
        "waves": table(WAVES),
        "persons": {
            "unit": {"column": "customer"}, "primary_key": ["customer"],
            "columns": {"customer": CUSTOMER, "city": KIND, "age": {"type": "integer", "bounds": [0, 99]}},
        },
        "items": {
            "public": True, "unique": [["item"]],
            "columns": {"item": {"type": "bigint", "nullable": False}, "weight": {"type": "integer"}},
        },
        "copies": {"public": True, "columns": {"item": {"type": "bigint", "nullable": False}}},
        "baskets": table(5, max_frequency=[{"columns": ["customer", "item"], "rows": 2, "enforce": "truncate"}]),
        "grouped": {**table(None), "max_rows_per_group": 2, "max_groups_per_unit": 2},
    },
    "budgets": {"total": {"epsilon": 100_000, "delta": 1e-3}},
}  # fmt: skip
del POLICY["tables"]["grouped"]["max_rows_per_unit"]


@pytest.fixture(scope="module")
def data() -> duckdb.DuckDBPyConnection:
    """In `orders` some have up to 40 rows, of whom the limit leaves 5; in `waves` nobody has more than 5."""
    drawn = random.Random(20260711)
    data = duckdb.connect()
    for name, most in (("orders", 40), ("waves", 5), ("baskets", 40), ("grouped", 40)):
        data.execute(
            f"CREATE TABLE {name} (customer BIGINT, kind VARCHAR, item BIGINT, price INTEGER, debt INTEGER,"
            " balance INTEGER)"
        )
        rows = [
            [c, drawn.choice("abc"), drawn.randrange(20), (p := drawn.randrange(11)), -p, drawn.randrange(-10, 11)]
            for c in range(400)
            for _ in range(min(most, int(drawn.paretovariate(1.3))))
        ]
        data.executemany(f"INSERT INTO {name} VALUES (?, ?, ?, ?, ?, ?)", rows)
    data.execute("CREATE TABLE persons AS SELECT range AS customer, 'a' AS city, 40 AS age FROM range(400)")
    data.execute("CREATE TABLE items AS SELECT range AS item, 3 AS weight FROM range(20)")
    data.execute("CREATE TABLE copies AS SELECT range % 20 AS item FROM range(60)")
    return data


@pytest.fixture(scope="module")
def con(data: duckdb.DuckDBPyConnection) -> Iterator[dpsql.Connection]:
    """Over these."""
    with dpsql.connect(
        data, policy=dpsql.Policy.from_dict(POLICY), ledger=MemoryLedger("cuts"), epsilon=2, optimizers="ours"
    ) as opened:
        yield opened


BOTH, LOW, HIGH, NONE = "both", "low", "high", "none"


def ends_of(interval: tuple[float | None, float | None] | None) -> str:
    if interval is None:
        return NONE
    return {(True, True): BOTH, (True, False): LOW, (False, True): HIGH}[tuple(e is not None for e in interval)]  # type: ignore[index]


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        # What a limit cuts has the end that it cannot pass.
        ("SELECT COUNT(*) AS x FROM orders", LOW),
        ("SELECT SUM(price) AS x FROM orders", LOW),
        ("SELECT SUM(debt) AS x FROM orders", HIGH),
        ("SELECT SUM(balance) AS x FROM orders", NONE),
        ("SELECT COUNT(DISTINCT item) AS x FROM orders", LOW),
        ("SELECT AVG(price) AS x FROM orders", NONE),
        ("SELECT VAR_POP(price) AS x FROM orders", NONE),
        ("SELECT kind, COUNT(*) AS x FROM orders GROUP BY kind", LOW),
        ("SELECT kind, COUNT(*) AS x FROM grouped GROUP BY kind", LOW),
        ("SELECT kind, COUNT(DISTINCT customer) AS x FROM grouped GROUP BY kind", LOW),
        ("SELECT COUNT(*) AS x FROM orders JOIN persons USING (customer)", LOW),
        ("SELECT COUNT(*) AS x FROM orders JOIN items USING (item)", LOW),
        # What the plan proves to be under no limit, or the policy promises, has both.
        ("SELECT COUNT(*) AS x FROM persons", BOTH),
        ("SELECT AVG(age) AS x FROM persons", BOTH),
        ("SELECT city, COUNT(*) AS x FROM persons GROUP BY city", BOTH),
        ("SELECT COUNT(DISTINCT customer) AS x FROM orders", BOTH),
        ("SELECT COUNT(*) AS x FROM waves", BOTH),
        ("SELECT kind, COUNT(*) AS x FROM waves GROUP BY kind", BOTH),
        ("SELECT SUM(balance) AS x FROM waves", BOTH),
        ("SELECT AVG(price) AS x FROM waves", BOTH),
        ("SELECT kind, COUNT(*) * 1.0 / SUM(COUNT(*)) OVER () AS x FROM waves GROUP BY kind", BOTH),
        ("SELECT COUNT(*) AS x FROM waves JOIN persons USING (customer) WHERE price > 3", BOTH),
        ("SELECT COUNT(*) AS x FROM waves JOIN items USING (item)", BOTH),
        ("SELECT AVG(n) AS x FROM (SELECT customer, COUNT(*) AS n FROM waves GROUP BY customer) AS t", BOTH),
        # The promise is of rows of the table: what repeats them may be cut.
        ("SELECT COUNT(*) AS x FROM waves JOIN copies USING (item)", LOW),
        ("SELECT COUNT(*) AS x FROM waves JOIN orders USING (customer)", LOW),
        ("SELECT COUNT(*) AS x FROM (SELECT customer FROM waves UNION ALL SELECT customer FROM orders) AS t", LOW),
        # A value that was made of rows is clipped where the limit on them ends.
        ("SELECT AVG(n) AS x FROM (SELECT customer, COUNT(*) AS n FROM orders GROUP BY customer) AS t", NONE),
        ("SELECT SUM(n) AS x FROM (SELECT customer, COUNT(*) AS n FROM orders GROUP BY customer) AS t", LOW),
        ("SELECT COUNT(*) AS x FROM (SELECT customer, COUNT(*) AS n FROM orders GROUP BY customer) AS t", BOTH),
        ("SELECT AVG(m) AS x FROM (SELECT customer, MAX(price) AS m FROM orders GROUP BY customer) AS t", BOTH),
        ("SELECT AVG(price) AS x FROM (SELECT price, customer FROM waves UNION ALL SELECT price, customer FROM waves)"
         " AS t", BOTH),
        # Of shares, ratios, growth and differences nothing is known; of what rises with the number as much as of it.
        ("SELECT kind, COUNT(*) * 1.0 / SUM(COUNT(*)) OVER () AS x FROM orders GROUP BY kind", NONE),
        ("SELECT COUNT(*) FILTER (WHERE kind = 'a') * 1.0 / COUNT(*) AS x FROM orders", NONE),
        ("SELECT COUNT(*) FILTER (WHERE kind = 'a') - COUNT(*) FILTER (WHERE kind = 'b') AS x FROM orders", NONE),
        ("SELECT kind, COUNT(*) - LAG(COUNT(*)) OVER (ORDER BY kind) AS x FROM orders GROUP BY kind", NONE),
        ("SELECT COUNT(*) * COUNT(DISTINCT item) AS x FROM orders", NONE),
        ("SELECT CASE WHEN COUNT(*) > 100 THEN 1 ELSE 0 END AS x FROM orders", NONE),
        ("SELECT COUNT(*) + SUM(price) AS x FROM orders", LOW),
        ("SELECT -COUNT(*) AS x FROM orders", HIGH),
        ("SELECT 1000 - COUNT(*) AS x FROM orders", HIGH),
        ("SELECT COUNT(*) - SUM(debt) AS x FROM orders", LOW),
        ("SELECT COUNT(*) * -2 AS x FROM orders", HIGH),
        ("SELECT COUNT(*) / 2 AS x FROM orders", LOW),
        ("SELECT ROUND(SQRT(COUNT(*)), 1) AS x FROM orders", LOW),
        ("SELECT GREATEST(COUNT(*), SUM(price)) AS x FROM orders", LOW),
        ("SELECT COALESCE(SUM(price), 0) AS x FROM orders", LOW),
        ("SELECT SUM(n) AS x FROM (SELECT kind, COUNT(*) AS n FROM orders GROUP BY kind) AS t", LOW),
        ("SELECT MAX(n) AS x FROM (SELECT kind, COUNT(*) AS n FROM orders GROUP BY kind) AS t", LOW),
        ("SELECT MIN(n) AS x FROM (SELECT kind, -COUNT(*) AS n FROM orders GROUP BY kind) AS t", HIGH),
        ("SELECT kind, SUM(COUNT(*)) OVER (ORDER BY kind) AS x FROM orders GROUP BY kind", LOW),
        ("SELECT COUNT(*) AS x FROM persons UNION ALL SELECT COUNT(*) FROM orders", LOW),
    ],
)  # fmt: skip
def test_which_ends_there_are(con: dpsql.Connection, sql: str, expected: str) -> None:
    answer = con.sql(sql).run(epsilon=2)
    found = [row["x"] for row in answer.intervals() if row["x"] is not None or expected == NONE]
    assert {ends_of(interval) for interval in found} == {expected}
    reasons = {row.get("x", "") for row in answer.gaps()} - {""}
    assert reasons <= {{NONE: OF_CUT, BOTH: "denominator may be 0", LOW: TOO_LOW}.get(expected, TOO_HIGH)}
    assert bool(reasons) or expected == BOTH
    # What the limits leave has both ends, as it always had.
    assert {ends_of(row["x"]) for row in answer.intervals(bounded=True)} <= {BOTH} | ({NONE} & {expected})


def test_an_end_that_says_nothing_is_null_in_sql(con: dpsql.Connection) -> None:
    ends = "DP_INTERVAL_LOW({0}) AS low, DP_INTERVAL_HIGH({0}) AS high"
    ((low, high),) = con.sql(f"SELECT {ends.format('COUNT(*)')} FROM orders").run()
    assert low is not None and high is None
    ((low, high),) = con.sql(f"SELECT {ends.format('COUNT(*)')} FROM waves").run()
    assert low is not None and high is not None
    ((low, high),) = con.sql(f"SELECT {ends.format('SUM(debt)')} FROM orders").run()
    assert low is None and high is not None
    ((low, high),) = con.sql(f"SELECT {ends.format('AVG(price)')} FROM orders").run()
    assert low is None and high is None


# --- what holds the truth ---------------------------------------------------------------------------------------------


def test_the_end_that_is_left_holds_the_number_without_limits(
    con: dpsql.Connection, data: duckdb.DuckDBPyConnection
) -> None:
    """As often as it says, and the interval of what limits leave, its twin, never: 60 runs at ε 60.

    P(fewer than 46 of 60 hold | 95 % do) < 1e-6.
    """
    asked = "SELECT COUNT(*) AS n, SUM(price) AS s, SUM(debt) AS d, COUNT(*) * 2 + SUM(price) AS both FROM orders"
    (truths,) = data.execute(asked).fetchall()
    query = con.sql(asked)
    held, bounded = [0] * 4, [0] * 4
    for _ in range(60):
        answer = query.run(epsilon=60, fresh=True)
        for counted, (row,) in ((held, answer.intervals()), (bounded, answer.intervals(bounded=True))):
            for i, (name, truth) in enumerate(zip(("n", "s", "d", "both"), truths, strict=True)):
                counted[i] += holds(row[name], truth)
    assert min(held) >= 46 and max(bounded) < 10


def holds(interval: tuple[float | None, float | None] | None, truth: float) -> bool:
    assert interval is not None
    low, high = interval
    return (low is None or low <= truth) and (high is None or truth <= high)


def test_a_lower_end_that_is_the_only_one_is_not_below_what_can_be(con: dpsql.Connection) -> None:
    """Of a count it is 0 at least, in SQL too; a difference may be below, and a ± is shown as it is."""
    low = "DP_INTERVAL_LOW(COUNT(*)) AS low"
    for table, is_cut in (("orders", True), ("waves", False)):
        counted = con.sql(f"SELECT COUNT(*) AS n, {low} FROM {table} WHERE item < 0").run(epsilon=0.05, fresh=True)
        less = con.sql(f"SELECT n - 3 AS n FROM (SELECT COUNT(*) AS n FROM {table} WHERE item < 0)").run(epsilon=0.05)
        (row, below) = (each.intervals()[0]["n"] or pytest.fail() for each in (counted, less))
        (n, shown) = counted.rows[0]
        if is_cut:
            assert row == (0, None) and shown == 0 and str(counted).count("≥ 0 (too low") == 1
            assert below[0] is not None and below[0] < -3
        else:
            assert row[0] is not None and row[0] < 0 and shown == row[0] and row[1] is not None
            assert abs((row[0] + row[1]) / 2 - n) < 1


# --- every face ------------------------------------------------------------------------------------------------------


def test_tables_show_the_end(con: dpsql.Connection) -> None:
    answer = con.sql("SELECT COUNT(*) AS n, COUNT(*) * 1.0 / SUM(price) AS r FROM orders").run(epsilon=1, fresh=True)
    (low, _) = answer.intervals()[0]["n"]  # type: ignore[misc]
    assert f"≥ {math.floor(low):,} (too low by an unknown amount)" in str(answer)
    assert f"≥ {math.floor(low):,} (too low by an unknown amount)" in answer._repr_html_()
    assert "r has no interval: made of numbers that a limit cuts" in answer.notes
    assert any(note.startswith("n: at least the lower end") for note in answer.notes)


def test_frames_hold_null(con: dpsql.Connection) -> None:
    answer = con.sql("SELECT COUNT(*) AS n FROM orders").run()
    for frame in (answer.arrow(intervals=True).to_pylist(), answer.pl(intervals=True).to_dicts()):
        assert frame[0]["n_low"] is not None and frame[0]["n_high"] is None
    panda = answer.df(intervals=True)
    assert panda["n_high"].isna().all() and panda["n_low"].notna().all()
    assert str(panda["n_high"].dtype) == "float64"


def test_plots_draw_one_side_and_an_arrow(con: dpsql.Connection) -> None:
    pytest.importorskip("matplotlib").use("Agg")
    answer = con.sql("SELECT kind, COUNT(*) AS n FROM orders GROUP BY kind").run()
    axes = answer.plot("n")
    arrows = [line for line in axes.lines if line.get_marker() == "^"]
    assert [len(line.get_xdata()) for line in arrows] == [3]
    assert not [line for line in axes.lines if line.get_marker() == "v"]
