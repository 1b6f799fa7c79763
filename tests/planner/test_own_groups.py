"""Groups of what one unit owns (`belongs_to_unit`): kept private by the id as well, whether or not that is true."""

from __future__ import annotations

from typing import Any

import duckdb
import pytest

import dpsql
from dpsql.core.release.noisy import exact_totals
from dpsql.diagnostics.errors import CannotOpen, Rejected
from tests.support.planning import planned, policy

SALES = """
sales:
  unit: {column: household}
  max_rows_per_unit: 6
  OWN
  columns:
    household: {type: bigint, nullable: false}
    basket: {type: bigint, nullable: false}
    store: {type: varchar, domain: [a, b], nullable: false}
    price: {type: integer, bounds: [0, 100], nullable: false}
"""
HEAD = "units: {household: {}}\n"
OWNED = policy(SALES.replace("OWN", "belongs_to_unit: [basket]"), HEAD)
NOBODYS = policy(SALES.replace("  OWN\n", ""), HEAD)
INNER = [
    "SELECT AVG(n) AS a FROM (SELECT COUNT(*) AS n FROM sales GROUP BY {}) AS b",
    "SELECT COUNT(*) AS a FROM (SELECT COUNT(*) AS n FROM sales GROUP BY {} HAVING SUM(price) > 9) AS b WHERE n > 1",
    "SELECT store, SUM(s) AS a FROM (SELECT store, SUM(price) AS s FROM sales GROUP BY store, {}) AS b GROUP BY store",
]


@pytest.mark.parametrize("sql", INNER)
def test_they_are_grouped_by_the_id_as_well(sql: str) -> None:
    """Price and noise are those of the query that names the id."""
    asked, named = (planned(sql.format(keys), OWNED) for keys in ("basket", "basket, household"))
    assert len(asked.releases) == 1 and asked.cost == named.cost
    own, other = (
        [(m.component.weight, m.sensitivity, m.mechanism) for r in plan.releases for m in r.measured.measurements]
        for plan in (asked, named)
    )
    assert own == other


@pytest.mark.parametrize("sql", INNER)
def test_without_the_promise_each_group_is_asked_for_by_itself(sql: str) -> None:
    try:
        plan = planned(sql.format("basket"), NOBODYS)
    except Rejected:
        return
    assert any(r.measured.threshold is not None for r in plan.releases)


def test_as_groups_of_the_answer_they_are_refused() -> None:
    with pytest.raises(Rejected, match="each group of basket belongs to one household") as refusal:
        planned("SELECT basket, COUNT(*) AS n FROM sales GROUP BY basket", OWNED)
    assert refusal.value.code == "DP301" and "GROUP BY household, basket" in " ".join(refusal.value.diagnostics[0].help)
    assert planned("SELECT basket, COUNT(*) AS n FROM sales GROUP BY basket", NOBODYS).releases[0].measured.threshold


def _data(rows: list[tuple[int, int]]) -> duckdb.DuckDBPyConnection:
    data = duckdb.connect()
    data.execute("CREATE TABLE sales (household BIGINT, basket BIGINT, store VARCHAR, price INTEGER)")
    data.executemany("INSERT INTO sales VALUES (?, ?, 'a', 10)", rows)
    return data


def _open(data: Any) -> Any:
    return dpsql.connect(data, policy=OWNED, optimizers="ours", ledger=":memory:")


@pytest.mark.parametrize(
    ("rows", "shared"), [([(1, 7), (1, 7), (2, 8)], 0), ([(1, 7), (2, 7), (2, 8)], 1), ([(1, 7), (2, 7), (3, 7)], 1)]
)
def test_verify_counts_what_several_units_share(rows: list[tuple[int, int]], shared: int) -> None:
    found = dpsql.verify_policy(_data(rows), policy=OWNED, optimizers="ours")
    (checked,) = (c for c in found.checks if c.kind == "belongs_to_unit")
    assert checked.measured == shared and checked.status == ("broken" if shared else "ok")
    assert checked.where == "tables.sales.belongs_to_unit[0]" and checked.promised == 0


def test_a_household_that_shares_baskets_moves_no_more_than_it_is_priced_for() -> None:
    """With a promise that is false: neighbours of three households that share all baskets, every one left out."""
    rows = [(h, b) for h in (1, 2, 3) for b in (1, 1, 2, 2, 3, 3)]
    for sql in INNER:
        totals = []
        for left_out in (0, 1, 2, 3):
            with _open(_data([row for row in rows if row[0] != left_out])) as con:
                plan = con.plan(sql.format("basket"), epsilon=1)
                (release,) = plan.releases
                totals.append(exact_totals(release, con.service.engine, 5))
        whole = totals[0]
        for other in totals[1:]:
            for i, m in enumerate(release.measured.measurements):
                moved = sum(abs(whole[key][i] - other[key][i]) for key in whole)
                assert moved <= m.sensitivity.l1
        assert totals[0] != totals[1]


def test_only_ids_own_anything() -> None:
    with pytest.raises(CannotOpen, match="has no ids"):
        policy("t:\n  unit: {rows: 1}\n  belongs_to_unit: [k]\n  columns: {k: {type: bigint}}", "")
    with pytest.raises(CannotOpen, match="names column `k`"):
        policy(SALES.replace("OWN", "belongs_to_unit: [k]"), HEAD)
