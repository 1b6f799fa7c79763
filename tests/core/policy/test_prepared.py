"""What a policy says of its copies: owners in a column, limits made true, and nothing where it must not be prepared."""

from __future__ import annotations

import pytest

from dpsql.core.numbers.cap import finite
from dpsql.core.policy.prepared import as_prepared, owner_column, prepared_tables
from dpsql.core.policy.units import IdUnit
from dpsql.diagnostics.errors import CannotOpen, Rejected
from tests.support.planning import below_release, planned, policy

TABLES = """
people: {unit: {column: id}, primary_key: [id], prepared: true, columns: {id: {type: bigint}, age: {type: integer}}}
orders:
  unit: {column: buyer}
  max_rows_per_unit: 3
  unique: [[nr]]
  prepared: true
  columns: {nr: {type: bigint}, buyer: {type: bigint}, price: {type: double, bounds: [0, 9]}}
lines:
  unit: {path: [{column: nr, references: orders(nr)}]}
  max_rows_per_unit: 5
  prepared: true
  columns: {nr: {type: bigint, nullable: false}, qty: {type: integer, bounds: [0, 9]}}
codes: {public: true, columns: {code: {type: integer}}}
"""
SHOP = policy(TABLES)


def test_owners_stand_in_the_rows_of_copies() -> None:
    lines = as_prepared(SHOP).tables["lines"]
    assert lines.protection == IdUnit("person", "buyer of orders", "add_remove")
    assert [c.name for c in lines.all_columns] == ["nr", "qty", "buyer of orders", "rows in all"]
    assert list(lines.columns) == ["nr", "qty"]
    assert owner_column(SHOP.tables["orders"], SHOP.tables).name == "buyer"


def test_tables_come_after_those_that_tell_their_owners() -> None:
    names = [t.name for t in prepared_tables(SHOP)]
    assert names.index("orders") < names.index("lines") and sorted(names) == ["lines", "orders", "people"]


def test_each_copy_is_another_policy() -> None:
    hashes = {SHOP.hash, as_prepared(SHOP).hash, as_prepared(SHOP, "a").hash, as_prepared(SHOP, "b").hash}
    assert len(hashes) == 4


def test_where_nothing_is_prepared_the_policy_is_the_same() -> None:
    plain = policy(TABLES.replace("prepared: true", "prepared: false").replace(", prepared: false,", ","))
    assert as_prepared(plain) is plain


def test_auto_is_as_the_data_is_until_there_is_a_copy() -> None:
    auto = policy(TABLES.replace("prepared: true", "prepared: auto"))
    assert as_prepared(auto) is auto
    assert as_prepared(auto, "a").tables["lines"].copied is not None


@pytest.mark.parametrize(
    ("sql", "most"),
    [
        ("SELECT COUNT(*) FROM orders", 3),
        ("SELECT SUM(qty) FROM lines", 5),
        ("SELECT SUM(qty) FROM lines l JOIN orders o ON l.nr = o.nr", 5),
        ("SELECT COUNT(*) FROM people JOIN orders ON id = buyer", 3),
    ],
)
def test_nothing_is_bounded_by_the_query(sql: str, most: int) -> None:
    plan = planned(sql, SHOP)
    facts = below_release(plan)
    assert facts.rows_of_an_id() == finite(most)
    assert "weight" not in "".join(s.sql for r in plan.releases for s in r.statements)
    assert {s.shape for r in plan.releases for s in r.statements} == {"direct"}


def test_a_lower_limit_of_the_query_is_enforced_by_it() -> None:
    plan = planned("SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (max_rows_contributed = 2) COUNT(*) FROM orders", SHOP)
    assert {s.shape for r in plan.releases for s in r.statements} != {"direct"}


def test_rows_that_a_join_multiplies_are_bounded_by_the_query() -> None:
    plan = planned("SELECT COUNT(*) FROM lines a JOIN lines b ON a.nr = b.nr", SHOP)
    assert {s.shape for r in plan.releases for s in r.statements} != {"direct"}


def test_the_owner_of_a_copy_cannot_be_named() -> None:
    for sql in (
        'SELECT COUNT("buyer of orders") FROM lines',
        'SELECT SUM("rows in all") FROM lines WHERE "buyer of orders" = 1',
        'SELECT COUNT(*) FROM lines GROUP BY lines."buyer of orders"',
    ):
        with pytest.raises(Rejected, match="buyer of orders"):
            planned(sql, SHOP)


def test_notes_name_every_table_of_which_rows_are_missing() -> None:
    kept = [n for n in planned("SELECT SUM(qty) FROM lines", SHOP).notes if "when the data was prepared" in n]
    assert [n.split(" were kept")[0] for n in kept] == [
        "of each person at most 5 rows of lines", "of each person at most 3 rows of orders"
    ]  # fmt: skip
    assert not [n for n in planned("SELECT COUNT(*) FROM people", SHOP).notes if "prepared" in n]


def test_groups_of_one_owner_are_refused_as_without_copies() -> None:
    with pytest.raises(Rejected, match="each group of nr belongs to one person"):
        planned("SELECT nr, COUNT(*) FROM lines GROUP BY nr", SHOP)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("codes: {public: true,", "codes: {public: true, prepared: true,", "the table is public"),
        ("primary_key: [id], prepared: true", "primary_key: [id]", "must be said alike"),
        ("primary_key: [id], prepared: true", "primary_key: [id], prepared: auto", "must be said alike"),
        ("  max_rows_per_unit: 3\n", "", "needs max_rows_per_unit"),
        ("max_rows_per_unit: 3", "max_rows_per_unit: search", "searched by each query"),
        ("prepared: true", "prepared: maybe", "must be true, false or auto"),
        ("qty: {", '"BUYER of orders": {type: bigint}, qty: {', "what the owner is called"),
        ("qty: {", '"Rows in all": {type: bigint}, qty: {', "what the number of an owner's rows is called"),
    ],
)
def test_what_cannot_be_prepared_is_refused_by_name(old: str, new: str, said: str) -> None:
    assert old in TABLES
    with pytest.raises(CannotOpen, match=said):
        policy(TABLES.replace(old, new, 1))
