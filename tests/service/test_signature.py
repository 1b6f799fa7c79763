"""The types of parameters that have no values yet, and the columns of what is asked with them."""

from __future__ import annotations

import datetime as dt
from pathlib import Path

import pytest

from dpsql.diagnostics.diagnostic import Source
from dpsql.diagnostics.errors import Rejected
from dpsql.frontend.bind.expressions.unknown_values import Unknowns, UnknownValue
from dpsql.policy.load import load_policy
from dpsql.policy.policy import Policy
from dpsql.service.checks.check import static_plan
from dpsql.service.planning.statement_signature import signature
from tests.support.small_shop import make_shop


@pytest.fixture
def policy(tmp_path: Path) -> Policy:
    return load_policy(make_shop(tmp_path).policy)


CASES = [
    ("SELECT COUNT(*) AS n FROM orders WHERE customer = $1", "BIGINT"),
    ("SELECT COUNT(*) AS n FROM orders WHERE $2 < amount AND city IN ($1, 'Rom')", "VARCHAR DOUBLE"),
    ("SELECT COUNT(*) AS n FROM orders WHERE amount BETWEEN $1 AND $2", "DOUBLE DOUBLE"),
    ("SELECT COUNT(*) AS n FROM orders WHERE note LIKE $1", "VARCHAR"),
    ("SELECT COUNT(*) AS n FROM orders WHERE $1 IS NULL OR customer = $1", "BIGINT"),
    ("SELECT SUM(CLIP(amount, $1, $2)) AS s FROM orders", "DOUBLE DOUBLE"),
    ("SELECT SUM(amount) * $1 AS s FROM orders HAVING COUNT(*) > $2", "DOUBLE BIGINT"),
    ("SELECT QUANTILE(amount, $1) AS q FROM orders", "DOUBLE"),
    ("SELECT city, COUNT(*) AS n FROM orders GROUP BY city LIMIT $1 OFFSET $2", "BIGINT BIGINT"),
    ("SELECT CAST($1 AS DATE) AS d, $2::int AS i, $3 AS t", "DATE INTEGER VARCHAR"),
    ("SELECT COUNT(*) AS n FROM orders WHERE substr(note, $1, $2) = 'a'", "BIGINT BIGINT"),
    ("SELECT COUNT(*) AS n FROM orders WHERE coalesce(amount, ?) > 3 AND city = ?", "DOUBLE VARCHAR"),
    ("SELECT COUNT(*) AS n FROM orders WHERE EXISTS (SELECT 1 FROM cities c WHERE c.city = orders.city "
     "AND country = $1)", "VARCHAR"),
    ("WITH a AS (SELECT * FROM orders WHERE amount > $1) SELECT COUNT(*) AS n FROM a WHERE city = $2",
     "DOUBLE VARCHAR"),
    ("SELECT COUNT(*) AS n FROM orders WHERE city = $2", "VARCHAR VARCHAR"),
    ("SELECT 1 AS one", ""),
]  # fmt: skip
VALUES = {"BIGINT": 2, "INTEGER": 2, "DOUBLE": 0.5, "VARCHAR": "Bonn", "DATE": dt.date(2020, 1, 1)}


@pytest.mark.parametrize(("sql", "types"), CASES)
def test_what_stands_beside_it_gives_its_type(policy: Policy, sql: str, types: str) -> None:
    assert " ".join(map(str, signature(Source(sql), policy).parameters)) == types


@pytest.mark.parametrize(("sql", "types"), [c for c in CASES if "$2" not in c[0] or "$1" in c[0]])
def test_values_of_these_types_are_taken_and_give_these_columns(policy: Policy, sql: str, types: str) -> None:
    """`CLIP` and BETWEEN want two that differ: the second is the larger."""
    values = [VALUES[t] for t in types.split()]
    if types.startswith("DOUBLE DOUBLE"):
        values[1] = 70.5
    found = signature(Source(sql), policy)
    plan = static_plan(Source(sql), policy, values)
    assert [c.name for c in plan.columns] == [c.name for c in found.columns]
    assert [c.type.kind for c in plan.columns] == [c.type.kind for c in found.columns]


def test_what_would_be_refused_has_columns_all_the_same(policy: Policy) -> None:
    sql = "SELECT customer, note FROM orders LIMIT 10"
    with pytest.raises(Rejected):
        static_plan(Source(sql), policy)
    assert [c.name for c in signature(Source(sql), policy).columns] == ["customer", "note"]


@pytest.mark.parametrize("sql", ["SELECT nothing FROM orders", "SELECT 1 FROM", "SELECT $1 + $2 FROM nothing"])
def test_what_cannot_be_bound_is_refused_where_it_stands(policy: Policy, sql: str) -> None:
    with pytest.raises(Rejected) as refusal:
        signature(Source(sql), policy)
    assert all(d.source is not None and d.source.text == sql for d in refusal.value.diagnostics)


def test_a_text_that_a_client_gives_is_never_a_value_that_is_unknown(policy: Policy) -> None:
    """A subclass of str that stands for a type would let a sample stand for a value."""
    fake = UnknownValue(Unknowns(), "1")
    plan = static_plan(Source("SELECT COUNT(*) AS n FROM orders WHERE city = $1"), policy, [fake])
    assert plan.columns[0].name == "n"
    with pytest.raises(Rejected, match="DP106"):
        static_plan(Source("SELECT COUNT(*) AS n FROM orders WHERE customer = $1"), policy, [fake])
