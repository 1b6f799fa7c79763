"""Bare columns keep what is known of them; expressions lose it."""

from __future__ import annotations

import pytest

from dpsql.core.numbers.cap import Unbounded
from tests.support.planning import derived, named, policy, sets

TABLES = """
t:
  unit: {column: id}
  unique: [[id, g]]
  max_rows_per_unit: {rows: 7, enforce: assume}
  columns:
    id: {type: bigint, nullable: false}
    g: {type: integer, nullable: false}
    x: {type: integer}
"""


@pytest.mark.parametrize(
    ("items", "ids", "keys", "by_id"),
    [
        ("id, g, x", {"id"}, {frozenset({"id", "g"})}, {"id"}),
        ("id AS who, g", {"who"}, {frozenset({"who", "g"})}, {"who"}),
        ("id", {"id"}, set(), {"id"}),
        ("g, x", set(), set(), set()),
        ("id + 0 AS id, g", set(), set(), set()),
        ("-id AS a, id % 10 AS b, id, g", {"id"}, {frozenset({"id", "g"})}, {"id"}),
        ("-id AS a, id % 10 AS b, g", set(), set(), set()),
        ("CAST(id AS VARCHAR) AS id, g", set(), set(), set()),
        ("CASE WHEN x > 0 THEN id END AS id, g", set(), set(), set()),
        ("COALESCE(id, x) AS id, g", set(), set(), set()),
        ("id, g + 1 AS g", {"id"}, set(), {"id"}),
        ("id, id AS twin, g", {"id", "twin"}, {frozenset({"id", "g"}), frozenset({"twin", "g"})}, {"id", "twin"}),
        ("id + x AS y", set(), set(), set()),
        ("1 AS one, id", {"id"}, set(), {"id"}),
    ],
)
def test_what_is_carried(items: str, ids: set[str], keys: set[frozenset[str]], by_id: set[str]) -> None:
    tagged = derived(f"SELECT {items} FROM t", policy(TABLES))
    facts, node = tagged.fact, tagged.node
    assert named(facts.ids, node) == ids
    assert sets(facts.keys, node) == keys
    assert named(facts.by_id, node) == by_id
    # Rows without an id are counted one by one: seven of a person, who is one id.
    assert {u: str(c) for u, c in facts.stability.items()} == {"person": "1" if ids else "7"}
    for uid in facts.ids:
        assert str(facts.most_rows(frozenset({uid}))) == "7"
    assert ids or facts.most_rows(frozenset(facts.columns)) is None or keys


def test_filters_keep_everything() -> None:
    plain = derived("SELECT id, g FROM t", policy(TABLES)).inputs[0].fact
    filtered = derived("SELECT id, g FROM t WHERE x > 3 AND g > 1", policy(TABLES)).inputs[0].fact
    assert (filtered.ids, filtered.keys, filtered.frequency, filtered.by_id, filtered.stability) == (
        plain.ids, plain.keys, plain.frequency, plain.by_id, plain.stability,
    )  # fmt: skip


@pytest.mark.parametrize("limit", ["", "max_rows_per_unit: 7"])
def test_rows_that_lose_their_id_cannot_be_counted_without_a_promise(limit: str) -> None:
    tables = f"""
t:
  unit: {{column: id}}
  {limit}
  columns: {{id: {{type: bigint, nullable: false}}, g: {{type: integer}}}}
"""
    (cap,) = derived("SELECT g FROM t", policy(tables)).fact.stability.values()
    assert isinstance(cap, Unbounded) and cap.reasons[0].code == "DP220" and cap.reasons[0].help


def test_rows_that_are_nobodys_cannot_be_counted() -> None:
    tables = """
t:
  unit: {column: id}
  max_rows_per_unit: {rows: 7, enforce: assume}
  columns: {id: {type: bigint}, g: {type: integer}}
"""
    (cap,) = derived("SELECT g FROM t", policy(tables)).fact.stability.values()
    assert isinstance(cap, Unbounded)
    (cap,) = derived("SELECT g FROM t WHERE id IS NOT NULL", policy(tables)).fact.stability.values()
    assert str(cap) == "7"
