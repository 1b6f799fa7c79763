"""Whose rows a table may hold: the likeliest unit of tables that nobody made for dpsql, and a draft that says so."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest

from dpsql.core.policy.catalogue import Catalogue, CatalogueColumn, CatalogueKey, CatalogueTable
from dpsql.policy.load import parse_policy
from dpsql.policy.policy import Policy
from dpsql.policy.tools.draft import Decided, draft_policy
from dpsql.policy.tools.likely_units import NOBODY, ROW, FirstRows, own_columns, proposals


def table(name: str, columns: str, key: str = "", keys: Sequence[CatalogueKey] = ()) -> CatalogueTable:
    """columns: `name TYPE` each, BIGINT where no type is said."""
    made = [(*column.split(" ", 1), "BIGINT")[:2] for column in columns.split(", ")]
    found = tuple(CatalogueColumn(name, type_) for name, type_ in made)
    return CatalogueTable(name, found, (key,) if key else (), (), tuple(keys))


GROCERIES = Catalogue(
    (
        table("transactions", "household_id, basket_id, product_id, store_id, sales_value DOUBLE"),
        table("demographics", "household_id, age VARCHAR, kids DOUBLE"),
        table("campaigns", "household_id DOUBLE, campaign_id"),
        table("products", "product_id, manufacturer_id VARCHAR, department VARCHAR"),
    )
)
GROCERIES_SEEN = {
    "demographics": FirstRows(frozenset({"household_id"})),
    "campaigns": FirstRows(whole=frozenset({"household_id"})),
    "products": FirstRows(frozenset({"product_id"})),
}
ORDERS = Catalogue(
    (
        table("customer", "c_custkey, c_name VARCHAR, c_nationkey, c_comment VARCHAR"),
        table("orders", "o_orderkey, o_custkey, o_totalprice DOUBLE"),
        table("lineitem", "l_orderkey, l_partkey, l_suppkey, l_linenumber"),
        table("part", "p_partkey, p_comment VARCHAR"),
    )
)
ORDERS_SEEN = {
    "customer": FirstRows(frozenset({"c_custkey"})),
    "orders": FirstRows(frozenset({"o_orderkey"})),
    "part": FirstRows(frozenset({"p_partkey"})),
}
SHOP = Catalogue(
    (
        table("users", "id, name VARCHAR", "id"),
        table("orders", "id, user_id", "id", [CatalogueKey(("user_id",), "users", ("id",))]),
        table("items", "order_id, price DOUBLE", "", [CatalogueKey(("order_id",), "orders", ("id",))]),
    )
)


@pytest.mark.parametrize(
    ("catalogue", "seen", "units"),
    [
        (
            GROCERIES,
            GROCERIES_SEEN,
            {
                "transactions": "unit: {column: household_id}",
                "demographics": "unit: {column: household_id}",
                "campaigns": "unit: {column: household_id}",
                "products": "unit: {rows: 1}",
            },
        ),
        (
            ORDERS,
            ORDERS_SEEN,
            {
                "customer": "unit: {column: c_custkey}",
                "orders": "unit: {column: o_custkey}",
                "lineitem": 'unit: {path: [{column: l_orderkey, references: "orders(o_orderkey)"}]}',
                "part": "unit: {rows: 1}",
            },
        ),
        (
            SHOP,
            {},
            {
                "users": "unit: {column: id}",
                "orders": "unit: {column: user_id}",
                "items": 'unit: {path: [{column: order_id, references: "orders(id)"}]}',
            },
        ),
        (Catalogue((table("flights", "tailnum VARCHAR, dest VARCHAR"),)), {}, {"flights": "{column: tailnum}"}),
        (Catalogue((table("rides", "rider, year, paid"),)), {}, {"rides": "{column: rider}"}),
        (Catalogue((table("panel", "pid, jahr, einkommen DOUBLE"),)), {}, {"panel": "{column: pid}"}),
        (
            Catalogue((table("survey", "seqn, caseno, age"),)),
            {"survey": FirstRows(frozenset({"seqn"}))},
            {"survey": "unit: {rows: 1}"},
        ),
        (Catalogue((table("log", "paid, valid, level"),)), {}, {"log": "unit: {rows: 1}"}),
        (Catalogue((table("log", "user_id DOUBLE"),)), {}, {"log": "unit: {rows: 1}"}),
    ],
)  # fmt: skip
def test_the_likeliest_unit_comes_first(
    catalogue: Catalogue, seen: Mapping[str, FirstRows], units: Mapping[str, str]
) -> None:
    found = proposals(catalogue, seen)
    assert {name: unit in found[name][0].line() for name, unit in units.items()} == dict.fromkeys(units, True)
    assert all(ROW in each and each[-1] is NOBODY for each in found.values()), "a row and nobody can always be chosen"
    policy = parse_policy(draft_policy(catalogue, seen=seen))
    assert policy.draft and {name: policy.tables[name].public for name in units} == dict.fromkeys(units, False)
    assert decided(catalogue, seen).tables.keys() == policy.tables.keys()


def decided(catalogue: Catalogue, seen: Mapping[str, FirstRows]) -> Policy:
    """What comes of keeping each proposal."""
    chosen = {name: each[0] for name, each in proposals(catalogue, seen).items()}
    text = draft_policy(catalogue, seen=seen, decided=Decided(chosen, "3"))
    policy = parse_policy(text)
    assert "DECIDE" not in text and not policy.draft and not policy.warnings
    return policy


def test_one_person_has_one_unit_in_all_tables() -> None:
    policy = decided(GROCERIES, GROCERIES_SEEN)
    assert {t.unit for t in policy.tables.values()} == {"household", "products"}
    assert str(policy.tables["campaigns"].columns["household_id"].derived) == "household_id"
    assert policy.tables["campaigns"].columns["household_id"].type == "bigint"
    assert {t.unit for t in decided(ORDERS, ORDERS_SEEN).tables.values()} == {"cust", "part"}
    assert {t.unit for t in decided(SHOP, {}).tables.values()} == {"user"}


def test_what_is_promised_for_a_path_is_a_decision_of_its_own() -> None:
    text = draft_policy(ORDERS, seen=ORDERS_SEEN)
    assert "unique: [[o_orderkey]]   # DECIDE: is each o_orderkey in one row, now and later?" in text


def test_each_decision_is_a_line_and_only_those_are_open() -> None:
    text = draft_policy(GROCERIES, seen=GROCERIES_SEEN)
    assert sum("DECIDE" in line for line in text.splitlines()) == len(GROCERIES.tables) + 1
    first = {"transactions": proposals(GROCERIES, GROCERIES_SEEN)["transactions"][0]}
    text = draft_policy(GROCERIES, seen=GROCERIES_SEEN, decided=Decided(first))
    assert sum("DECIDE" in line for line in text.splitlines()) == len(GROCERIES.tables) and "draft: true" in text


def test_ids_that_are_texts_in_one_table_are_read_as_those_of_another() -> None:
    tables = (table("users", "user_id"), table("log", "user_id VARCHAR"))
    policy = decided(Catalogue(tables), {})
    assert {str(t.columns["user_id"].sql_type) for t in policy.tables.values()} == {"BIGINT"}


def test_units_of_several_names_are_told_and_none_is_called_like_a_table_of_rows() -> None:
    tables = (table("patient", "name VARCHAR"), table("visits", "patient_id"), table("staff", "employee_id"))
    text = draft_policy(Catalogue(tables))
    assert "Somebody who is in tables of several units has a budget in each" in text
    assert {t.unit for t in decided(Catalogue(tables), {}).tables.values()} == {"patient", "patient_id", "employee"}


def test_on_a_server_no_id_is_computed() -> None:
    found = proposals(GROCERIES, GROCERIES_SEEN, computing=False)
    assert found["campaigns"][0] is ROW and found["transactions"][0].column == "household_id"


def test_ids_of_one_person_each_are_proposed_as_such() -> None:
    seen = {**GROCERIES_SEEN, "transactions": FirstRows(own={"household_id": frozenset({"basket_id"})})}
    likely = proposals(GROCERIES, seen)
    asked = own_columns(GROCERIES.tables[0], likely["transactions"], seen["transactions"])
    assert asked["household_id"] == ["basket_id"], "no stores, and no products, which nobody has alone"
    assert decided(GROCERIES, seen).tables["transactions"].belongs_to_unit == ("basket_id",)
    assert "belongs_to_unit" not in draft_policy(GROCERIES, seen=GROCERIES_SEEN)


def test_the_first_column_of_a_panel_may_be_whom_a_time_follows() -> None:
    """Beside a row, which stands first: nothing says that it is an id. Not of things, and of no other tables."""
    found = proposals(
        Catalogue(
            (
                table("crime", "county, year, rate DOUBLE"),
                table("ports", "airport VARCHAR, day DATE"),
                table("survey", "age, sex VARCHAR"),
                table("one", "year"),
            )
        ),
        {},
    )
    crime, *others = (found[name] for name in ("crime", "ports", "survey", "one"))
    assert [p.line() for p in crime] == ["unit: {rows: 1}", "unit: {column: county}", "public: true"]
    assert all(each == (ROW, NOBODY) for each in others)
