"""CLIP(x, AUTO): the written end is a clip, the other end is open, and a limit of the total is found.

With ε this large the limit is above all totals, and noise is 0 but once in 10^20 runs; of doubles, below 0.01.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

import dpsql
from dpsql.core.ledger.memory import MemoryLedger

EPSILON = 1_000_000
POLICY: dict[str, Any] = {
    "version": 1,
    "name": "shop",
    "units": {"customer": {}},
    "tables": {
        "orders": {
            "unit": {"column": "customer"},
            "columns": {
                "customer": {"type": "bigint"},
                "amount": {"type": "integer"},
                "price": {"type": "decimal(9,2)"},
                "weight": {"type": "double"},
                "coarse": {"type": "double", "resolution": 0.3},
                "known": {"type": "double", "bounds": [0, 10]},
            },
        },
        "visits": {"unit": {"rows": 1}, "columns": {"fee": {"type": "integer"}}},
        "lists": {"public": True, "columns": {"n": {"type": "integer"}}},
    },
    "budgets": {"total": {"epsilon": 10**12}},
}
ROWS = 6000
AMOUNT = [i % 30 - 5 for i in range(ROWS)]
WEIGHT = [math.inf, -math.inf, math.nan, *((i % 9) / 4 - 1 for i in range(ROWS - 3))]
FINITE = [w for w in WEIGHT if math.isfinite(w)]
FRAMES = {
    "orders": pa.table(
        {
            "customer": pa.array([i % 1000 for i in range(ROWS)], pa.int64()),
            "amount": pa.array(AMOUNT, pa.int32()),
            "price": pa.array([Decimal(a) / 4 for a in AMOUNT], pa.decimal128(9, 2)),
            "weight": pa.array(WEIGHT, pa.float64()),
            "coarse": pa.array([0.26] * ROWS, pa.float64()),
            "known": pa.array([20.0] * ROWS, pa.float64()),
        }
    ),
    "visits": pa.table({"fee": pa.array([1, 2, 3], pa.int32())}),
    "lists": pa.table({"n": pa.array([1, 2, 3], pa.int32())}),
}


def opened(**tables: Any) -> dpsql.Connection:
    policy = {**POLICY, "tables": {n: {**t, **tables.get(n, {})} for n, t in POLICY["tables"].items()}}
    return dpsql.connect(dpsql.Policy.from_dict(policy), frames=FRAMES, ledger=MemoryLedger("shop"))


@pytest.fixture(scope="module", params=[None, 20], ids=["no limit", "20 rows"])
def con(request: pytest.FixtureRequest) -> Iterator[dpsql.Connection]:
    with opened(orders={} if request.param is None else {"max_rows_per_unit": request.param}) as connection:
        yield connection


@pytest.mark.parametrize(
    ("sql", "truth"),
    [
        ("SUM(CLIP(amount, AUTO))", sum(AMOUNT)),
        ("SUM(CLIP(amount, 0, AUTO))", sum(max(a, 0) for a in AMOUNT)),
        ("SUM(CLIP(amount, AUTO, 7))", sum(min(a, 7) for a in AMOUNT)),
        ("SUM(2 * CLIP(amount, -2, AUTO))", 2 * sum(max(a, -2) for a in AMOUNT)),
        ("SUM(CLIP(price, AUTO))", Decimal(sum(AMOUNT)) / 4),
        ("SUM(CLIP(price, 0, AUTO))", Decimal(sum(max(a, 0) for a in AMOUNT)) / 4),
        ("SUM(CLIP(weight, AUTO))", sum(FINITE)),
        ("SUM(CLIP(weight, 0, AUTO))", sum(max(w, 0) for w in FINITE)),
        ("SUM(CLIP(weight, AUTO, 0.5))", sum(min(w, 0.5) for w in FINITE)),
        ("SUM(CLIP(coarse, AUTO))", 0.25 * ROWS),
        ("SUM(CLIP(amount, 0, AUTO)) FILTER (WHERE amount <> 3)", sum(max(a, 0) for a in AMOUNT if a != 3)),
    ],
)
def test_the_written_end_is_a_clip_and_the_other_is_open(con: dpsql.Connection, sql: str, truth: Any) -> None:
    answer = con.execute(f"SELECT {sql} AS s FROM orders", epsilon=EPSILON)
    ((found,),) = answer.rows
    assert found == truth if isinstance(found, int | Decimal) else abs(found - truth) < 0.01
    assert any("found" in note for note in answer.notes)


def test_the_written_end_is_told_as_it_was_written(con: dpsql.Connection) -> None:
    for clip in ("CLIP(amount, 0, AUTO)", "CLIP(amount, AUTO, 7)", "CLIP(weight, 0.0, AUTO)"):
        query = con.sql(f"SELECT SUM({clip}) AS s FROM orders")
        told = query.explain(epsilon=1)
        assert f"SUM({clip})" in told and "CASE" not in told.partition("SQL")[0]
        assert query.run(epsilon=EPSILON).plan.found[0].octaves.what == f"SUM({clip})"
    written = con.sql("SELECT SUM(CASE WHEN amount < 0 THEN 0 ELSE amount END) AS s FROM orders")
    assert "AUTO" not in written.explain(epsilon=1, limits="search")


@pytest.mark.parametrize("clip", ["CLIP(amount, AUTO)", "CLIP(weight, 0.0, AUTO)"])
def test_what_is_added_up_for_each_id_is_not_searched(con: dpsql.Connection, clip: str) -> None:
    per_id = f"(SELECT customer, SUM({clip}) AS s FROM orders GROUP BY customer)"
    with pytest.raises(dpsql.Rejected, match="DP101") as refused:
        con.sql(f"SELECT SUM(s) FROM {per_id}").plan(epsilon=1)
    (found,) = refused.value.diagnostics
    assert found.message == "AUTO is not searched here" and "aggregated again" in found.label
    repaired = per_id.replace(clip, "CLIP(weight, 0, 5)")
    assert con.sql(f"SELECT SUM(CLIP(s, AUTO)) FROM {repaired}").plan(epsilon=1).loss.epsilon == 1


def test_declared_bounds_hold(con: dpsql.Connection) -> None:
    plan = con.sql("SELECT SUM(CLIP(known, AUTO)) AS s FROM orders")
    if con.policy.tables["orders"].max_rows_per_unit is None:
        with pytest.raises(dpsql.Rejected, match="DP211"):
            plan.plan(epsilon=1)
    else:
        assert plan.plan(epsilon=1).searches is None
        ((found,),) = plan.run(epsilon=EPSILON).rows
        assert abs(found - 10 * ROWS) < 1


def test_only_what_says_so_is_searched(con: dpsql.Connection) -> None:
    with pytest.raises(dpsql.Rejected, match="DP201"):
        con.sql("SELECT SUM(CLIP(amount, AUTO)) AS s, SUM(weight) AS w FROM orders").plan(epsilon=1)


def test_bounds_of_a_column_may_be_left_to_a_search_by_the_policy() -> None:
    columns = POLICY["tables"]["orders"]["columns"]
    asked = {"columns": {**columns, "amount": {"type": "integer", "bounds": "search"}}}
    with opened(orders=asked) as con:
        assert con.execute("SELECT SUM(amount) AS s FROM orders", epsilon=EPSILON).rows == ((sum(AMOUNT),),)
        with pytest.raises(dpsql.Rejected, match="DP201"):
            con.sql("SELECT SUM(weight) AS s FROM orders").plan(epsilon=1)


def test_where_no_bounds_are_found_those_of_the_policy_hold() -> None:
    columns = {**POLICY["tables"]["orders"]["columns"], "amount": {"type": "integer", "bounds": WITHIN}}
    table = {**POLICY["tables"]["orders"], "columns": columns, "max_rows_per_unit": {"search": True, "at_most": 10}}
    policy = dpsql.Policy.from_dict({**POLICY, "tables": {**POLICY["tables"], "orders": table}})
    nobody = {**FRAMES, "orders": FRAMES["orders"].slice(0, 0)}
    with dpsql.connect(policy, frames=nobody, ledger=MemoryLedger("shop")) as con:
        answer = con.execute("SELECT AVG(amount) AS a, SUM(amount) AS s FROM orders", epsilon=EPSILON)
        assert [found.limit for found in answer.plan.found] == [(-1000, 10_000), 100_000, 10]


WITHIN = {"search": True, "within": [-1000, 10_000]}


def test_of_averages_and_of_rows_the_values_themselves_get_bounds(con: dpsql.Connection) -> None:
    """The limit on rows is not what AUTO asks for: an average needs one that is declared."""
    average = con.sql("SELECT AVG(CLIP(amount, AUTO)) AS a FROM orders")
    if con.policy.tables["orders"].max_rows_per_unit is None:
        with pytest.raises(dpsql.Rejected, match="DP211"):
            average.plan(epsilon=1)
    else:
        searches = average.plan(epsilon=1).searches
        assert searches is not None and [each.limit.rule.value for each in searches.limits] == ["range"]
    by_rows = con.sql("SELECT SUM(CLIP(fee, AUTO)) AS s FROM visits").plan(epsilon=1).searches
    assert by_rows is not None and [each.limit.what for each in by_rows.limits] == ["fee"]


def test_a_privacy_clause_may_leave_bounds_out(con: dpsql.Connection) -> None:
    """As in GoogleSQL, where a part of ε finds them then."""
    sql = "SELECT WITH DIFFERENTIAL_PRIVACY SUM(amount) AS s FROM orders"
    assert con.execute(sql, epsilon=EPSILON).rows == ((sum(AMOUNT),),)
    by_rows = con.sql("SELECT WITH DIFFERENTIAL_PRIVACY AVG(fee) AS a FROM visits").plan(epsilon=1).searches
    assert by_rows is not None and [each.limit.what for each in by_rows.limits] == ["fee"]
    known = con.sql(sql.replace("amount", "known, contribution_bounds_per_group => (0, 9)"))
    assert known.plan(epsilon=1).searches is None


def test_a_clause_leaves_nothing_out_where_searches_are_refused() -> None:
    policy = dpsql.Policy.from_dict({**POLICY, "search": "refuse"})
    with (
        dpsql.connect(policy, frames=FRAMES, ledger=MemoryLedger("shop")) as con,
        pytest.raises(dpsql.Rejected, match="DP201"),
    ):
        con.sql("SELECT WITH DIFFERENTIAL_PRIVACY SUM(amount) AS s FROM orders").plan(epsilon=1)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT SUM(CLIP(n, AUTO)) AS s FROM lists",
        "SELECT SUM(CLIP(amount, AUTO), contribution_bounds_per_group => (0, 4)) AS s FROM orders",
    ],
)
def test_elsewhere_it_is_refused(con: dpsql.Connection, sql: str) -> None:
    with pytest.raises(dpsql.Rejected) as refusal:
        con.sql(sql).plan(epsilon=1)
    (found,) = refusal.value.diagnostics
    assert found.code == "DP101" and "AUTO is not searched here" in found.message
    assert found.span is not None and sql[found.span.start : found.span.end].startswith("CLIP(")


def test_a_total_that_stays_private_has_no_searched_bounds(con: dpsql.Connection) -> None:
    inner = "SELECT customer, SUM(CLIP(amount, AUTO)) AS s FROM orders GROUP BY customer"
    with pytest.raises(dpsql.Rejected, match="DP101"):
        con.sql(f"SELECT AVG(CLIP(s, 0, 9)) AS a FROM ({inner})").plan(epsilon=1)


def test_an_end_beyond_the_grid_is_refused(con: dpsql.Connection) -> None:
    with pytest.raises(dpsql.Rejected, match="DP214") as refusal:
        con.sql("SELECT SUM(CLIP(weight, -1e14, AUTO)) AS s FROM orders").plan(epsilon=1)
    assert "2^62 steps of 2^-20" in refusal.value.diagnostics[0].message
    con.sql("SELECT SUM(CLIP(coarse, -1e14, AUTO)) AS s FROM orders").plan(epsilon=1)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT SUM(CLIP(fee, AUTO) // 10) AS s FROM visits",  # 0 for all values between 0 and 1
        "SELECT AVG(CLIP(CLIP(amount, AUTO), 0, AUTO)) AS a FROM orders",
        "SELECT AVG(CLIP(CLIP(amount, AUTO) * 2, AUTO)) AS a FROM orders",
    ],
)
def test_what_cannot_be_planned_before_bounds_are_found_is_refused(con: dpsql.Connection, sql: str) -> None:
    with pytest.raises(dpsql.Rejected, match="DP101"):
        con.execute(sql, epsilon=EPSILON)
