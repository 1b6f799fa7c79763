"""The rewrites of relations: join order, unit paths, truncation, private groups, correlated subqueries."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

import dpsql
from dpsql.core.ir.nodes import Aggregate, Filter, Join, JoinKind, Node, Release, Scan, Truncate
from dpsql.core.ir.walk import walk
from dpsql.diagnostics.diagnostic import Source
from dpsql.planner.plan import Plan
from dpsql.policy.load import load_policy
from dpsql.service.checks.check import static_plan

STORE = load_policy(Path(__file__).parents[1] / "fixtures" / "policies" / "store.yaml")


def planned(sql: str) -> Plan:
    return static_plan(Source(sql), STORE)


def nodes(sql: str) -> list[Node]:
    return list(walk(planned(sql).tree.node))


def scans(sql: str) -> Counter[str]:
    return Counter(n.table for n in nodes(sql) if isinstance(n, Scan))


FIVE = (
    "SELECT city, COUNT(*) AS n FROM {} WHERE i.order_id = o.order_id AND o.customer_id = c.customer_id "
    "AND o.shop = s.shop GROUP BY city"
)


@pytest.mark.parametrize("order", ["o, i, c, s", "i, c, o, s", "s, c, i, o", "c, s, o, i"])
def test_tables_may_be_named_in_any_order(order: str) -> None:
    names = {"i": "items i", "o": "orders o", "c": "customers c", "s": "shops s"}
    plan = planned(FIVE.format(", ".join(names[n] for n in order.split(", "))))
    joins = [n for n in walk(plan.tree.node) if isinstance(n, Join)]
    assert len(joins) == 3 and all(j.kind is JoinKind.INNER and len(j.equalities) == 1 for j in joins)
    (release,) = plan.releases
    (measured,) = release.measured.measurements
    assert (measured.sensitivity.l1 / measured.component.weight) <= 12 * 10  # the limits of items, whatever the order


def test_what_nothing_connects_stays_a_product() -> None:
    with pytest.raises(dpsql.Rejected) as caught:
        planned("SELECT COUNT(*) FROM customers, items")
    assert {d.code for d in caught.value.diagnostics} == {"DP230"}


@pytest.mark.parametrize(
    ("sql", "found"),
    [
        ("SELECT COUNT(*) FROM items", {"items": 1, "orders": 1}),
        ("SELECT COUNT(*) FROM items JOIN orders USING (order_id)", {"items": 1, "orders": 1}),
        ("SELECT COUNT(*) FROM items i, orders o WHERE o.order_id = i.order_id", {"items": 1, "orders": 1}),
        ("SELECT COUNT(*) FROM items i JOIN orders o ON o.order_id = i.order_id AND o.amount > 5 JOIN customers USING "
         "(customer_id)", {"items": 1, "orders": 1, "customers": 1}),
        # An item without a matching order stays: its owner is looked up apart from the query's own condition.
        ("SELECT COUNT(*) FROM items i LEFT JOIN orders o ON o.order_id = i.order_id AND o.amount > 5",
         {"items": 1, "orders": 2}),
        ("SELECT COUNT(*) FROM orders o LEFT JOIN items i USING (order_id)", {"items": 1, "orders": 1}),
        ("SELECT COUNT(*) FROM orders o WHERE EXISTS (SELECT 1 FROM items i WHERE i.order_id = o.order_id)",
         {"items": 1, "orders": 1}),
        ("SELECT COUNT(*) FROM items WHERE order_id IN (SELECT order_id FROM orders WHERE amount > 5)",
         {"items": 1, "orders": 2}),
        ("SELECT COUNT(*) FROM items a JOIN items b USING (order_id)", {"items": 2, "orders": 2}),
    ],
)  # fmt: skip
def test_paths_are_joined_where_the_query_does_not(sql: str, found: dict[str, int]) -> None:
    assert scans(sql) == found
    assert planned(sql).releases[0].measured.unit == "customer"


def test_private_rows_are_cut_only_where_a_join_needs_it() -> None:
    cut = [n for n in nodes("SELECT COUNT(*) FROM sensors JOIN repairs USING (device) WHERE cost > 3")
           if isinstance(n, Truncate)]  # fmt: skip
    assert sorted(n.rows for n in cut) == [4, 50]
    assert isinstance(next(n for n in cut if n.rows == 4).input, Scan | Filter)
    public_first = "SELECT COUNT(*) FROM shops JOIN sensors s ON s.device = shop WHERE reading > 3 AND EXISTS "
    below = nodes(public_first + "(SELECT 1 FROM repairs r WHERE r.device = s.device)")
    assert sorted(n.rows for n in below if isinstance(n, Truncate)) == [4, 50]
    assert not any(isinstance(n, Truncate) for n in nodes("SELECT COUNT(*) FROM sensors"))
    assert not any(isinstance(n, Truncate) for n in nodes("SELECT COUNT(*) FROM sensors JOIN shops ON device = shop"))


@pytest.mark.parametrize(
    ("sql", "inner", "releases"),
    [
        ("SELECT AVG(n) FROM (SELECT customer_id, COUNT(*) AS n FROM orders GROUP BY customer_id) t", 1, 1),
        ("SELECT SUM(LEAST(n, 9)) FROM (SELECT device, COUNT(*) AS n FROM sensors GROUP BY device) t", 1, 1),
        ("SELECT MAX(n) FROM (SELECT segment, COUNT(*) AS n FROM customers GROUP BY segment) t", 0, 1),
        ("SELECT SUM(n) FROM (SELECT COUNT(*) AS n FROM sensors) t", 0, 1),
        ("SELECT COUNT(*) FROM sensors WHERE reading > (SELECT AVG(reading) FROM sensors)", 0, 2),
        ("SELECT AVG(n) FROM (SELECT segment, COUNT(*) AS n FROM customers GROUP BY segment) t", 0, 1),
        ("SELECT COUNT(*) FROM (SELECT device, COUNT(*) FROM sensors GROUP BY ROLLUP (device)) t", 2, 1),
        ("SELECT COUNT(*) FROM (SELECT COUNT(*) FROM sensors GROUP BY GROUPING SETS ((), (device), ())) t", 3, 1),
        ("SELECT MAX(n) FROM (SELECT device, COUNT(*) AS n FROM sensors GROUP BY ROLLUP (device)) t", 0, 2),
        ("SELECT COUNT(*) FROM (SELECT device FROM sensors UNION ALL SELECT COUNT(*) FROM repairs) t", 1, 1),
        ("SELECT COUNT(*) FROM (SELECT COUNT(*) FROM sensors UNION ALL SELECT COUNT(*) FROM repairs) t", 0, 2),
    ],
)
def test_which_aggregates_stay_private(sql: str, inner: int, releases: int) -> None:
    found = nodes(sql)
    assert sum(isinstance(n, Aggregate) and n.inner for n in found) == inner
    assert sum(isinstance(n, Release) for n in found) == releases


def test_a_correlated_subquery_reads_the_public_rows_it_is_asked_for() -> None:
    sql = (
        "SELECT COUNT(*) FROM orders o JOIN shops s USING (shop) WHERE s.city = 'Bern' "
        "AND o.amount > (SELECT AVG(b.amount) FROM orders b WHERE b.shop = s.shop)"
    )
    semi = next(n for n in nodes(sql) if isinstance(n, Join) and n.kind is JoinKind.SEMI)
    assert isinstance(semi.right, Filter) and isinstance(semi.right.input, Scan) and semi.right.input.table == "shops"
    with pytest.raises(dpsql.Rejected) as caught:
        planned("SELECT COUNT(*) FROM orders o WHERE amount > (SELECT AVG(amount) FROM orders b WHERE b.shop = o.shop)")
    assert [d.code for d in caught.value.diagnostics] == ["DP111"]


@pytest.mark.parametrize(
    ("second", "releases"),
    [
        ("SELECT segment, COUNT(*) AS n FROM customers GROUP BY segment", 1),
        ("SELECT segment, COUNT(*) AS m FROM customers AS other GROUP BY segment", 1),
        ("SELECT segment, COUNT(*) AS n FROM customers WHERE age > 1 GROUP BY segment", 2),
        ("SELECT segment, COUNT(age) AS n FROM customers GROUP BY segment", 2),
        ("SELECT segment, COUNT(*) FILTER (WHERE age > 1) AS n FROM customers GROUP BY segment", 2),
        ("SELECT segment, COUNT(*) AS n FROM customers WHERE segment = 'new' GROUP BY segment", 2),
    ],
)
def test_what_is_asked_twice_is_measured_once(second: str, releases: int) -> None:
    first = "SELECT segment, COUNT(*) AS n FROM customers GROUP BY segment"
    plan = planned(f"SELECT * FROM ({first}) AS a JOIN ({second}) AS b USING (segment)")
    assert len(plan.releases) == releases
    assert plan.loss.epsilon == pytest.approx(0.5)


@pytest.mark.parametrize("negated", ["", "NOT "])
@pytest.mark.parametrize("condition", ["city = 'Bern'", "customers.age > 5", "city = 'Bern' AND customers.age > 5"])
def test_whether_any_row_exists_is_counted(negated: str, condition: str) -> None:
    """An engine was seen to repeat rows of a SEMI JOIN … ON TRUE: that would multiply what one unit contributes."""
    plan = planned(f"SELECT COUNT(*) FROM customers WHERE {negated}EXISTS (SELECT 1 FROM shops WHERE {condition})")
    ((statement,),) = (r.statements for r in plan.releases)
    assert "COUNT(*) AS n" in statement.sql and "SEMI JOIN" not in statement.sql and "ANTI JOIN" not in statement.sql
