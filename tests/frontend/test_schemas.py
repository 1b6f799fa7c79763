"""`main.`, `public.` and `<policy>.main.` before a table: the schema of tables that are declared without one."""

from __future__ import annotations

import pytest

from dpsql.core.ledger.memory import MemoryLedger
from dpsql.diagnostics.errors import Rejected
from dpsql.planner.explain.explain_text import as_text
from dpsql.policy.load import parse_policy
from dpsql.policy.policy import Policy
from dpsql.service.checks.check import check
from tests.support.planning import planned, scans

COLUMNS = "columns: {id: {type: bigint, nullable: false}, x: {type: integer, bounds: [0, 9]}}"


def named(*tables: str, name: str = "Shop") -> Policy:
    """A policy with private tables of these names."""
    listed = "".join(f"  {t}: {{unit: {{rows: 1}}, {COLUMNS}}}\n" for t in tables)
    data = "database: somewhere/Files.duckdb"
    return parse_policy(f"version: 1\nname: {name}\n{data}\nbudgets: {{total: {{epsilon: 10}}}}\ntables:\n{listed}")


@pytest.mark.parametrize(
    ("written", "table"),
    [
        ("orders", "orders"),
        ("public.orders", "orders"),
        ('"public"."orders"', "orders"),
        ("PUBLIC.Orders", "orders"),
        ("shop.public.orders", "orders"),
        ('"SHOP".public."ORDERS"', "orders"),
        ("sales.orders", "sales.orders"),
        ("public.stores", "main.stores"),
        ("shop.public.stores", "main.stores"),
        ("main.orders", "orders"),
        ('Main."orders"', "orders"),
        ("shop.main.orders", "orders"),
        ("shop.orders", "orders"),
        ("stores", "main.stores"),
        ("shop.stores", "main.stores"),
        ("main.stores", "main.stores"),
        ("files.orders", "orders"),
        ("files.main.stores", "main.stores"),
        ('"FILES".public.orders', "orders"),
    ],
)
def test_the_main_schema(written: str, table: str) -> None:
    policy = named("orders", "sales.orders", "main.stores")
    assert scans(planned(f"SELECT COUNT(*) FROM {written}", policy)) == [table]
    assert check(f"SELECT COUNT(*) FROM {written} AS o WHERE o.x > 3", policy) == []


@pytest.mark.parametrize(
    "written",
    ["other.orders", "other.public.orders", "public.public.orders", "main.main.orders", "shop.sales",
     "main.shop.orders", "public.missing", "shop.public.sales.orders", "public.sales", "duckdb.orders",
     "shop.files.orders"],
)  # fmt: skip
def test_no_other_schema(written: str) -> None:
    with pytest.raises(Rejected) as refusal:
        planned(f"SELECT COUNT(*) FROM {written}", named("orders", "sales.orders"))
    assert refusal.value.diagnostics[0].code in ("DP102", "DP101")


@pytest.mark.parametrize(
    ("tables", "written", "table"),
    [
        (("orders", "public.stores"), "public.stores", "public.stores"),
        (("orders", "public.stores"), "shop.public.stores", "public.stores"),
        (("orders", "public.orders"), "public.orders", "public.orders"),
        (("orders", "public.orders"), "shop.public.orders", "public.orders"),
        (("orders", "shop.public.orders"), "shop.public.orders", "shop.public.orders"),
        (("orders", "shop.public.orders"), "public.orders", "orders"),
        (("orders", "shop.orders"), "shop.public.orders", "orders"),
        (("shop",), "shop.public.shop", "shop"),
        (("orders", "publicity.x"), "public.orders", "orders"),
        (("orders", "shop.orders"), "shop.orders", "shop.orders"),
        (("orders", "main.orders"), "main.orders", "main.orders"),
        (("orders", "main.orders"), "orders", "orders"),
        (("orders", "main.stores"), "main.orders", "orders"),
    ],
)
def test_what_the_policy_declares_comes_first(tables: tuple[str, ...], written: str, table: str) -> None:
    assert scans(planned(f"SELECT COUNT(*) FROM {written}", named(*tables))) == [table]


@pytest.mark.parametrize(
    ("tables", "written"),
    [
        (("orders", "public.stores"), "public.orders"),
        (("orders", "public.stores"), "shop.public.orders"),
        (("orders", "PUBLIC.stores"), "public.orders"),
        (("orders", "public"), "public.orders"),
        (("orders", "public.x.stores"), "public.orders"),
        (("orders", "shop.public.stores"), "shop.public.orders"),
        (("orders", "shop.stores"), "shop.orders"),
        (("orders", "shop.main.stores"), "shop.main.orders"),
    ],
)
def test_a_schema_or_table_of_that_name_stands_for_itself(tables: tuple[str, ...], written: str) -> None:
    with pytest.raises(Rejected) as refusal:
        planned(f"SELECT COUNT(*) FROM {written}", named(*tables))
    assert [d.code for d in refusal.value.diagnostics] == ["DP102"]


@pytest.mark.parametrize(
    "sql",
    [
        'SELECT COUNT("public"."orders"."x") FROM "public"."orders"',
        "SELECT COUNT(shop.public.orders.x) FROM orders",
        "SELECT COUNT(x) FROM shop.public.orders WHERE public.orders.x > 3",
        "SELECT COUNT(*) FROM public.orders, sales.stores WHERE public.orders.x = sales.stores.id AND stores.x > 3",
        "SELECT public.orders.* FROM public.orders LIMIT 0",
        "SELECT public.orders.x AS x, COUNT(*) FROM public.orders GROUP BY public.orders.x ORDER BY public.orders.x",
        "SELECT COUNT(*) FROM public.orders WHERE EXISTS (SELECT 1 FROM cities WHERE cities.x = public.orders.x)",
        "SELECT COUNT(*) FROM public.orders JOIN cities ON public.orders.x = public.cities.x",
        "SELECT COUNT(*) FROM public.orders AS o JOIN orders ON o.id = public.orders.id",
        "SELECT COUNT(main.orders.x) FROM orders",
        "SELECT COUNT(*) FROM shop.orders WHERE shop.orders.x > 3 AND shop.main.orders.x < 9 AND orders.x > 1",
    ],
)
def test_a_column_may_have_its_tables_schema_in_front(sql: str) -> None:
    policy = parse_policy(
        "version: 1\nname: shop\nbudgets: {total: {epsilon: 10, delta: 1e-6}}\nunits: {p: {}}\ntables:\n"
        f"  orders: {{unit: {{of: p, column: id}}, max_rows_per_unit: 3, {COLUMNS}}}\n"
        f"  sales.stores: {{public: true, unique: [[id]], {COLUMNS.replace('bigint', 'integer')}}}\n"
        f"  cities: {{public: true, unique: [[x]], {COLUMNS}}}\n"
    )
    assert "cost:" in as_text(planned(sql, policy))


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT COUNT(other.orders.x) FROM orders",
        "SELECT COUNT(public.o.x) FROM public.orders AS o",
        "SELECT COUNT(public.orders.x) FROM stores AS orders",
        "SELECT COUNT(public.orders.x) FROM (SELECT * FROM public.orders) AS orders",
        "SELECT other.orders.* FROM orders LIMIT 0",
        "WITH o AS (SELECT * FROM orders) SELECT COUNT(public.o.x) FROM o",
        # the nearest table of that name is meant, or none
        "SELECT COUNT(*) FROM orders WHERE EXISTS (SELECT 1 FROM stores AS orders WHERE public.orders.x > 3)",
    ],
)
def test_no_other_table_answers_to_it(sql: str) -> None:
    with pytest.raises(Rejected) as refusal:
        planned(sql, named("orders", "stores"))
    (found,) = refusal.value.diagnostics
    assert found.code == "DP102" and "no table is called" in found.message and found.help


def test_it_is_one_question() -> None:
    """However a table is called, the stored answer is the same."""
    from dpsql.api.connection import Connection
    from dpsql.core.engine import RawTable
    from tests.support.fake_engine import FakeEngine

    engine = FakeEngine([RawTable(("m0",), ([7],))], tables=("orders",))
    with Connection(named("orders"), engine, ledger=MemoryLedger("Shop", "approx_dp")) as con:
        first = con.sql("SELECT COUNT(*) FROM orders").run(epsilon=1)
        for written in ("public.orders", "shop.public.orders", "public.orders AS o", "main.orders", "shop.orders"):
            again = con.sql(f"SELECT COUNT(*) FROM {written}").run(epsilon=1)
            assert again.rows == first.rows and not again.spent.epsilon
