"""What a copy carries, by which keys, and what the analysis takes to be its unit's own."""

from __future__ import annotations

from dpsql.core.ir.nodes import Scan
from dpsql.core.policy.carried import carried, not_carried
from dpsql.core.policy.prepared import as_prepared, copied_from, owner_column
from dpsql.core.policy.tables import Carry
from dpsql.core.value_classes import replace
from tests.support.planning import derived, named, policy

TABLES = """
people:
  unit: {column: id}
  primary_key: [id]
  prepared: true
  columns: {id: {type: bigint}, zone: {type: integer, domain: {table: zones, column: zone}}}
orders:
  unit: {column: buyer}
  max_rows_per_unit: 3
  unique: [[nr]]
  prepared: true
  carries: [people, zones, kinds]
  columns: {nr: {type: bigint}, buyer: {type: bigint}, kind: {type: integer, domain: {table: kinds, column: kind}}}
zones: {public: true, primary_key: [zone], columns: {zone: {type: integer}, name: {type: varchar}}}
kinds: {public: true, primary_key: [kind], columns: {kind: {type: integer}, name: {type: varchar}}}
"""
SHOP = policy(TABLES)


def test_rows_are_found_by_the_owner_by_what_was_carried_and_by_lists_of_keys() -> None:
    orders = as_prepared(SHOP).tables["orders"]
    assert orders.copied is not None
    assert [(c.table, c.links, c.keys) for c in orders.copied.carried] == [
        ("people", ("buyer",), ("id",)),
        ("zones", ("people.zone",), ("zone",)),
        ("kinds", ("kind",), ("kind",)),
    ]
    more = {c.name for c in orders.all_columns} - {*orders.columns}
    assert {"people.zone", "zones.name", "kinds.name"} < more


def test_rows_of_another_unit_are_not_carried() -> None:
    orders, people = SHOP.tables["orders"], SHOP.tables["people"]
    other = replace(people, protection=replace(people.protection, name="household"))
    owner = owner_column(orders, SHOP.tables)
    assert not_carried(orders, SHOP.tables, owner) is None
    found = not_carried(orders, {**SHOP.tables, "people": other}, owner)
    assert found is not None and found.place == 0 and "names `people`" in found.message


def test_what_does_not_stand_in_a_copy_is_carried_to_none() -> None:
    orders, people = SHOP.tables["orders"], replace(SHOP.tables["people"], prepared=None)
    tables = {**SHOP.tables, "people": people}
    assert carried(replace(orders, carries=(Carry("people"),)), tables, owner_column(orders, tables)) == ()


def test_what_is_carried_by_the_id_is_its_own_and_by_other_columns_is_not() -> None:
    """A unit is in one zone; its orders are of many kinds."""
    found = derived("SELECT * FROM orders", as_prepared(SHOP))
    scan = next(t for t in found.walk() if isinstance(t.node, Scan))
    own = named(scan.fact.by_id, scan.node)
    assert own == {"buyer", "people.id", "people.zone", "zones.zone", "zones.name"}


def test_copies_are_stale_when_what_they_carry_changes() -> None:
    assert set(copied_from(SHOP)) == {"people", "orders", "zones", "kinds"}


def test_a_key_that_is_declared_twice_is_one() -> None:
    twice = "  carries: [people, zones, kinds]\n  foreign_keys: [{columns: [buyer], references: people(id)}]"
    orders = as_prepared(policy(TABLES.replace("  carries: [people, zones, kinds]", twice))).tables["orders"]
    assert orders.copied is not None and [c.table for c in orders.copied.carried] == ["people", "zones", "kinds"]
