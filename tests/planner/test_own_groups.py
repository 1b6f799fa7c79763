"""Groups of what one unit owns (`belongs_to_unit`): kept private by the id as well, whether or not that is true."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import duckdb
import pytest

import dpsql
from dpsql.core.release.noisy import exact_totals
from dpsql.diagnostics.diagnostic import Source
from dpsql.diagnostics.errors import CannotOpen, Rejected
from dpsql.planner.settings.query_settings import QuerySettings
from dpsql.service.checks.check import static_plan
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
def test_without_the_promise_it_is_refused_with_the_text_that_works(sql: str) -> None:
    """In which no basket could be shown, so that the average would be paid for and NULL."""
    with pytest.raises(Rejected) as refusal:
        planned(sql.format("basket"), NOBODYS)
    (first, *_) = refusal.value.diagnostics
    assert first.code == "DP305" and "GROUP BY household, " in first.help[0]
    assert "belongs_to_unit: [basket]" in first.help[1] and "anyway=on" in first.help[-1]
    keys = first.help[0].partition("GROUP BY ")[2].removeprefix("store, ")
    assert planned(sql.format("household, basket"), NOBODYS).releases and "household" in keys
    settings = QuerySettings(Fraction(1), Fraction(1, 10**9), anyway=True)
    plan = static_plan(Source(sql.format("basket")), NOBODYS, (), settings=settings)
    assert any(r.measured.threshold is not None for r in plan.releases)


def test_texts_are_refused_where_only_large_groups_are_shown_and_lists_never() -> None:
    words = policy(SALES.replace("  OWN\n", "").replace("basket: {type: bigint", "basket: {type: varchar"), HEAD)
    with pytest.raises(Rejected, match="before it is aggregated"):
        planned(INNER[0].format("basket"), words, epsilon="0.1")
    assert planned(INNER[0].format("basket"), words, epsilon="9").releases
    listed = policy(SALES.replace("  OWN\n", "").replace("basket: {", "basket: {bounds: [1, 9], "), HEAD)
    assert planned(INNER[0].format("basket"), listed).releases
    assert planned("SELECT MAX(n) AS m FROM (SELECT COUNT(*) AS n FROM sales GROUP BY basket) AS b", NOBODYS).releases


def test_what_is_computed_is_no_id() -> None:
    """Years, decades, sizes: many share each, and a threshold shows them; a column of integers may be an order."""
    asked = planned(INNER[0].format("basket // 1000"), NOBODYS)
    assert asked.releases[0].measured.threshold is not None


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
