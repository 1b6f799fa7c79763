"""`database: sc://…`: addresses of Spark Connect that hold no secret, places of tables, and files of the cluster."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

import dpsql
from dpsql.core.policy.server_address import Server, ServerError, Stored, kind_of_server, parse_server, parse_stored
from dpsql.diagnostics.errors import CannotOpen
from dpsql.engines.open import dialect_of
from dpsql.policy.load import load_policy
from dpsql.policy.tools.show import describe, show_policy

SECRET = "xyzzy-31415"
POLICY = """
version: 1
name: shop
database: 'ADDRESS'
tables:
  orders:
    source: SOURCE
    unit: {of: customer, column: customer}
    max_rows_per_unit: 3
    columns: {customer: {type: bigint}, day: {type: date}, note: {type: varchar}}
budgets: {total: {epsilon: 10}}
"""
ADDRESS = "sc://spark.example.org:15002/;use_ssl=true;user_id=reader"


def written(folder: Path, address: str = ADDRESS, source: str = "main.sales.orders", **changes: str) -> Path:
    text = POLICY.replace("ADDRESS", address).replace("SOURCE", source)
    for old, new in changes.items():
        assert old in text
        text = text.replace(old, new)
    (folder / "shop.yaml").write_text(text, encoding="utf-8")
    return folder / "shop.yaml"


def refused(path: Path) -> str:
    with pytest.raises(CannotOpen) as caught:
        load_policy(path)
    assert SECRET not in str(caught.value) + repr(caught.value)
    return str(caught.value)


@pytest.mark.parametrize(
    "address",
    [
        "sc://localhost", "sc://h:15002", "SC://h:1/", ADDRESS, "sc://[::1]:15002/;use_ssl=false",
        "sc://dbc-1.cloud.databricks.com:443/;use_ssl=true;x-databricks-cluster-id=0123-456789-abc",
    ],
)  # fmt: skip
def test_addresses(tmp_path: Path, address: str) -> None:
    assert kind_of_server(f" {address}") == "spark" and parse_server(f" {address} ") == Server(address, kind="spark")
    policy = load_policy(written(tmp_path, address))
    assert policy.server == Server(address, kind="spark") and policy.database_path is None
    assert dialect_of(policy).name == "spark"
    assert describe(policy)["database"] == address and address in show_policy(policy)
    place = Stored("sales", "orders", "main")
    assert policy.tables["orders"].stored == place and policy.tables["orders"].source is None
    assert describe(policy)["tables"]["orders"]["source"] == '"main"."sales"."orders"' == str(place)
    assert parse_stored(str(place), "spark") == place


@pytest.mark.parametrize(
    ("address", "said"),
    [
        (f"sc://h:15002/;token={SECRET}", "token"), (f"sc://h/;use_ssl=true;Token={SECRET}", "token"),
        (f"sc://h/;Authorization={SECRET}", "authorization"),
        (f"sc://h/;x-authorization=Bearer {SECRET}", "authorization"),
        (f"sc://reader:{SECRET}@h:15002", "a user or a password"), (f"sc://{SECRET}@h", "a user or a password"),
        (f"sc://h/;password={SECRET}", "password"), ("sc://h/;session_id=00112233", "others could join"),
        ("sc://h/;spark.sql.ansi.enabled=false", "cannot give"), (f"sc://h/;{SECRET}", "no address"),
        (f"sc://h/{SECRET}", "no address"), ("sc://", "no address"), ("sc://h:port", "no address"),
        ("sc://h/;use_ssl=", "no address"), ("sc://h/;use_ssl", "no address"), ("sc://h;use_ssl=true", "no address"),
        ("sc://h h", "no address"), ("sc://h/;user_id=a;;", "no address"),
    ],
)  # fmt: skip
def test_addresses_that_hold_a_secret_or_more_than_a_policy_may_say(tmp_path: Path, address: str, said: str) -> None:
    with pytest.raises(ServerError) as caught:
        parse_server(address)
    assert said in str(caught.value) and caught.value.help and SECRET not in f"{caught.value} {caught.value.help}"
    assert said in refused(written(tmp_path, address))


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("orders", ("orders",)), ("Sales.Orders", ("Sales", "Orders")),
        ("main.sales.orders", ("main", "sales", "orders")),
        ("`a.b`.`c``d`.e", ("a.b", "c`d", "e")), ('main."Sales ""x"""."é"', ("main", 'Sales "x"', "é")),
        ("main.sales.2024", ("main", "sales", "2024")),
    ],
)  # fmt: skip
def test_places(text: str, parts: tuple[str, ...]) -> None:
    found = parse_stored(text, "spark")
    assert found.parts == parts and parse_stored(str(found), "spark") == found


@pytest.mark.parametrize("text", ["", "a.b.c.d", "a b", "a..b", ".a", "a.", "`a", "delta.`x`y", "a;b", "a.b.c -- x"])
def test_what_is_no_place(tmp_path: Path, text: str) -> None:
    with pytest.raises(ServerError) as caught:
        parse_stored(text, "spark")
    assert "catalogue.schema.table" in caught.value.help


@pytest.mark.parametrize(
    "path", ["s3a://bucket/folder", "hdfs://n:8020/x/*.parquet", "/data/[ab]/x.parquet", "dbfs:/x", "file:/x"]
)
def test_files_of_the_cluster(tmp_path: Path, path: str) -> None:
    table = load_policy(written(tmp_path, source=f"\"read_parquet('{path}')\"")).tables["orders"]
    assert table.source is not None and table.source.paths == (path,) and table.stored is None


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("read_parquet('orders.parquet')", "no path of the cluster"), ("read_csv('/x.csv')", "is not read on Spark"),
        ("read_parquet('/x', union_by_name = true)", "union_by_name"), ("read_parquet(/x)", "cannot read"),
        ("read_json('/x')", "is not read on Spark"), ("a b", "names no table of the cluster"),
    ],
)  # fmt: skip
def test_sources_that_a_cluster_does_not_read(tmp_path: Path, source: str, said: str) -> None:
    assert said in refused(written(tmp_path, source=f'"{source}"'))


def test_what_is_not_computed_on_a_cluster_is_refused_by_name(tmp_path: Path) -> None:
    for old, new, said in (
        ("max_rows_per_unit: 3", "max_rows_per_unit: 3\n    prepared: true", "prepared_at: s3a://bucket/prepared"),
        ("column: customer}", "column: customer, as: uuid}", """own_id: {from: 'lower("customer")', type: varchar}"""),
        ("column: customer}", "column: customer, as: bigint}", 'CAST("customer" AS bigint)'),
    ):
        found = refused(written(tmp_path, **{old: new}))
        assert said in found and "view" not in found.replace("prepared", "")  # a view is refused, too


@pytest.mark.parametrize(
    ("place", "said"),
    [
        ("copies", "no folder of the cluster"), ("s3a://b/*", "no plain path"), (f"s3a://key:{SECRET}@b/x", "a secret"),
        ("/data/../x", "no plain path"), ("'/data/{a,b}'", "no plain path"), ("/lake/orders", "files of a table"),
        ("/lake/orders/copies/", "files of a table"),
    ],
)  # fmt: skip
def test_places_where_no_copies_can_be(tmp_path: Path, place: str, said: str) -> None:
    source = "\"read_parquet('/lake/orders')\""
    assert said in refused(written(tmp_path, source=source, **{"name: shop": f"name: shop\nprepared_at: {place}"}))


def test_where_copies_are(tmp_path: Path) -> None:
    prepared = {"max_rows_per_unit: 3": "max_rows_per_unit: 3\n    prepared: true"}
    for place in ("s3a://bucket/folder", "/lake/orders2", "abfss://box@account.dfs.core.windows.net/x"):
        policy = load_policy(written(tmp_path, **prepared, **{"name: shop": f"name: shop\nprepared_at: {place}"}))
        assert policy.prepared_at == place and policy.tables["orders"].prepared == "true"
        assert describe(policy)["prepared_at"] == place and place in show_policy(policy)
    for address in ("postgresql://h/shop", "shop.duckdb"):
        text = {"name: shop": "name: shop\nprepared_at: /x", "    source: main.sales.orders\n": ""}
        assert "on a Spark cluster" in refused(written(tmp_path, address, **text))


def test_a_ledger_is_never_on_spark(tmp_path: Path) -> None:
    path = written(tmp_path, **{"budgets:": "ledger: sc://h\nbudgets:"})
    assert "no transactions" in refused(path)
    with pytest.raises(CannotOpen, match="no transactions"):
        from dpsql.service.accounts.ledgers import place_of

        place_of(load_policy(written(tmp_path)), "sc://h")


def test_the_client_is_asked_for_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "dpsql.engines.spark.connecting", None)
    with pytest.raises(CannotOpen, match="pyspark-client, which is not installed") as caught:
        dpsql.connect(written(tmp_path))
    assert caught.value.diagnostics[0].help[0] == "pip install 'dpsql[spark]'"


def test_the_check_knows_the_engine_without_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What has no exact spelling there is refused by name, where neither cluster nor client is at hand."""
    monkeypatch.setitem(sys.modules, "pyspark", None)
    policy = load_policy(written(tmp_path))
    for sql, codes in {
        "SELECT COUNT(*) AS n FROM orders WHERE note = 'a'": [],
        "SELECT COUNT(*) AS n FROM orders WHERE reverse(note) = 'a'": ["DP105"],
    }.items():
        assert [d.code for d in dpsql.check(sql, policy)] == codes


def test_answers_of_one_engine_are_no_answers_of_another(tmp_path: Path) -> None:
    """They stand under the policy's hash, in which the place of the data is."""
    places = (("sc://h", "a.b.c"), ("sc://i", "a.b.c"), ("sc://h", "a.b.d"), ("postgresql://h/x", "a.b"))
    assert len({load_policy(written(tmp_path, *place)).hash for place in places}) == len(places)
