# ruff: noqa: E501
"""What a promise makes false is free, and said; what only looks so is paid for."""

from __future__ import annotations

import duckdb
import pytest

import dpsql
from dpsql.core.privacy_loss import PrivacyLoss
from tests.support.planning import planned, policy

POLICY = policy(
    """
orders: {unit: {of: person, column: id}, primary_key: [nr], max_rows_per_unit: 4, columns: {nr: {type: bigint}, id: {type: bigint, nullable: false}, x: {type: integer, bounds: [0, 9], nullable: false}, y: {type: integer, bounds: [0, 9]}, state: {type: varchar, domain: [a, b], nullable: false}, kind: {type: varchar, domain: [a, b]}}}
people: {unit: {of: person, column: id}, unique: [[id]], columns: {id: {type: bigint, nullable: false}, age: {type: integer, nullable: false, bounds: [0, 99]}}}
"""
)
DBT = "SELECT COUNT(*) AS failures, COUNT(*) <> 0 AS should_warn, COUNT(*) <> 0 AS should_error FROM ({}) AS dbt_internal_test"
UNIQUE = (
    "SELECT {0} AS unique_field, COUNT(*) AS n_records FROM {1} WHERE {0} IS NOT NULL GROUP BY {0} HAVING COUNT(*) > 1"
)
ACCEPTED = (
    "WITH all_values AS (SELECT {} AS value_field, COUNT(*) AS n_records FROM orders GROUP BY 1) "
    "SELECT * FROM all_values WHERE value_field NOT IN ('a', 'b')"
)
FREE = {
    "not_null": DBT.format("SELECT x FROM orders WHERE x IS NULL"),
    "unique": DBT.format(UNIQUE.format("nr", "orders")),
    "unique id": DBT.format(UNIQUE.format("id", "people")),
    "accepted_values": DBT.format(ACCEPTED.format("state")),
    "accepted_values or NULL": DBT.format(ACCEPTED.format("kind")),
    "of a key": "SELECT COUNT(*) FROM orders WHERE nr IS NULL",
    "turned": "SELECT COUNT(*) FROM orders WHERE NOT (x IS NOT NULL)",
    "either": "SELECT COUNT(*) FROM orders WHERE x IS NULL OR id IS NULL",
    "besides others": "SELECT COUNT(*) FROM orders WHERE y > 3 AND x IS NULL",
    "by groups": "SELECT state, COUNT(*) FROM orders WHERE x IS NULL GROUP BY state",
    "said before": "SELECT COUNT(*) FROM (SELECT * FROM orders WHERE y IS NOT NULL) WHERE y IS NULL",
    "filter": "SELECT COUNT(*) FILTER (WHERE x IS NULL) FROM orders",
    "case": "SELECT SUM(CASE WHEN x IS NULL THEN 1 ELSE 0 END) FROM orders",
    "two of one": "SELECT COUNT(*) FROM (SELECT nr FROM orders GROUP BY nr HAVING COUNT(*) = 2)",
    "renamed": "SELECT COUNT(*) FROM (SELECT nr AS k, COUNT(*) AS n FROM orders GROUP BY nr) WHERE n >= 2",
}
PAID = {
    "may be NULL": "SELECT COUNT(*) FROM orders WHERE y IS NULL",
    "a domain is no promise": "SELECT COUNT(*) FROM orders WHERE state NOT IN ('a', 'b')",
    "bounds are no promise": "SELECT COUNT(*) FROM orders WHERE x < 0",
    "padded": "SELECT COUNT(*) FROM orders LEFT JOIN people USING (id) WHERE age IS NULL",
    "padded on the left": "SELECT COUNT(*) FROM people LEFT JOIN orders USING (id) WHERE x IS NULL",
    "one of one": "SELECT state, COUNT(*) AS n FROM orders GROUP BY state HAVING COUNT(*) >= 1",
    "another group": "SELECT state, COUNT(*) AS n FROM orders GROUP BY state HAVING COUNT(*) > 1",
    "a listed key": "SELECT state, COUNT(*) AS n FROM orders GROUP BY state HAVING state <> 'a'",
    "the NULL key": "SELECT kind, COUNT(*) AS n FROM orders GROUP BY kind HAVING kind IS NULL",
    "one side of OR": "SELECT COUNT(*) FROM orders WHERE x IS NULL OR y > 3",
    "the others": "SELECT COUNT(*) FROM orders WHERE x IS NOT NULL",
}  # fmt: skip


@pytest.mark.parametrize("name", FREE)
def test_what_promises_make_false_is_free(name: str) -> None:
    plan = planned(FREE[name], POLICY)
    assert plan.loss == PrivacyLoss()
    if name not in ("filter", "case"):
        assert [note for note in map(str, plan.notes) if "never true" in note and "nothing is read or charged" in note]


@pytest.mark.parametrize("name", PAID)
def test_what_they_do_not_is_paid_for(name: str) -> None:
    assert planned(PAID[name], POLICY).loss != PrivacyLoss()


def test_why_is_said() -> None:
    promised = planned(FREE["not_null"], POLICY)
    listed = planned(FREE["accepted_values"], POLICY)
    written = planned("SELECT COUNT(*) FROM orders WHERE y > 3 AND NULL", POLICY)
    assert any("x IS NULL is never true, as the policy promises" in str(n) for n in promised.notes)
    assert any("never true of a group that is listed: other rows are left out" in str(n) for n in listed.notes)
    assert any("NULL is never true:" in str(n) for n in written.notes)


def test_the_answers_are_those_of_no_rows() -> None:
    own = duckdb.connect()
    own.execute(
        "CREATE TABLE orders AS SELECT i AS nr, i // 4 AS id, CAST(i % 10 AS INTEGER) AS x, 1 AS y, 'a' AS state, 'b' AS kind FROM range(40) AS t(i)"
    )
    own.execute("CREATE TABLE people AS SELECT i AS id, CAST(3 AS INTEGER) AS age FROM range(10) AS t(i)")
    with dpsql.connect(own, policy=POLICY, ledger=":memory:", optimizers="ours") as con:
        for name, sql in FREE.items():
            if name != "by groups":
                assert (
                    con.sql(sql).run(epsilon=1).fetchall()
                    == own.sql(sql.replace("SUM(", "COUNT(NULL) + SUM(")).fetchall()
                )
