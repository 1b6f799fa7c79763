"""`database: postgresql://…`: addresses that hold no secret, and places of tables."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

import dpsql
from dpsql.core.policy.server_address import Server, ServerError, Stored, names_server, parse_server, parse_stored
from dpsql.diagnostics.errors import CannotOpen
from dpsql.engines.open import dialect_of
from dpsql.policy.load import load_policy
from dpsql.policy.tools.show import describe, show_policy

SECRET = "xyzzy-31415"
POLICY = """
version: 1
name: shop
database: ADDRESS
tables:
  orders:
    source: Sales."Orders"
    unit: {of: customer, column: customer}
    max_rows_per_unit: 3
    columns: {customer: {type: bigint}, day: {type: date}, note: {type: varchar}}
budgets: {total: {epsilon: 10}}
"""


def written(folder: Path, address: str, **changes: str) -> Path:
    text = POLICY.replace("ADDRESS", address)
    for old, new in changes.items():
        assert old in text
        text = text.replace(old, new)
    (folder / "shop.yaml").write_text(text, encoding="utf-8")
    return folder / "shop.yaml"


def refused(path: Path) -> CannotOpen:
    with pytest.raises(CannotOpen) as caught:
        load_policy(path)
    return caught.value


ADDRESSES = [
    ("postgresql://reader@db.example.org/shop", "shop"),
    ("postgres://reader@db.example.org:5432/my%20shop?sslmode=verify-full", "my shop"),
    ("postgresql://a:1,b:2/shop?target_session_attrs=any", "shop"),
    ("postgresql://?service=shop", None),
    ("postgresql:///shop?host=/var/run/postgresql", "shop"),
    ("postgresql://reader@[::1]/", None),
    ("POSTGRESQL://h?dbname=x", "x"),
]


@pytest.mark.parametrize(("address", "database"), ADDRESSES)
def test_addresses(tmp_path: Path, address: str, database: str | None) -> None:
    assert names_server(address) and parse_server(f" {address} ") == Server(address, database)
    policy = load_policy(written(tmp_path, f"'{address}'"))
    assert policy.server == Server(address, database) and policy.database_path is None
    assert dialect_of(policy).name == "postgresql"
    assert describe(policy)["database"] == address and address in show_policy(policy)
    assert policy.tables["orders"].stored == Stored("sales", "Orders") and policy.tables["orders"].source is None
    assert describe(policy)["tables"]["orders"]["source"] == '"sales"."Orders"'


def test_files_are_no_servers(tmp_path: Path) -> None:
    for name in ("shop.duckdb", "postgresql", "postgresql:/x", "./postgresql://x"):
        assert not names_server(name)
    policy = load_policy(written(tmp_path, "shop.duckdb", **{'Sales."Orders"': "read_parquet('x.parquet')"}))
    assert policy.server is None and policy.tables["orders"].stored is None and dialect_of(policy).name == "duckdb"


@pytest.mark.parametrize(
    "address",
    [
        f"postgresql://reader:{SECRET}@h/shop",
        f"postgresql://:{SECRET}@h/shop",
        f"postgresql://h/shop?password={SECRET}",
        f"postgresql://h/shop?sslmode=require&sslpassword={SECRET}",
        f"postgresql://h/shop?pass%77ord={SECRET}",
        f"postgresql://reader:{SECRET}@h1:1,h2:2/shop",
    ],
)
def test_a_password_is_refused_by_name_and_shown_nowhere(tmp_path: Path, address: str) -> None:
    error = refused(written(tmp_path, f"'{address}'"))
    shown = str(error) + repr(error) + "".join(map(str, error.diagnostics))
    assert "password" in shown and "which stands in no policy" in shown and "~/.pgpass" in shown
    assert SECRET not in shown


@pytest.mark.parametrize(
    "parameter",
    ["options=-c%20search_path%3Dx", "replication=database", "client_encoding=latin1", "other=1", "fail"],
)
def test_other_parameters_are_refused_by_name(tmp_path: Path, parameter: str) -> None:
    shown = str(refused(written(tmp_path, f"'postgresql://h/shop?{parameter}'")))
    assert parameter.partition("=")[0] in shown or "name=value" in shown


def test_places_of_tables() -> None:
    for text, place in {
        "orders": Stored("public", "orders"), "Sales.Orders": Stored("sales", "orders"),
        '"Sales"."Or""ders"': Stored("Sales", 'Or"ders'), 'sales."a.b"': Stored("sales", "a.b"),
    }.items():  # fmt: skip
        assert parse_stored(text) == place
    assert str(Stored("a", 'b"c')) == '"a"."b""c"'
    for text in ("", "a.b.c", "a.", ".a", "a b", "read_csv('x')", '"a', "a;b", "1a", "a--", '""'):
        with pytest.raises(ServerError):
            parse_stored(text)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (
            "    max_rows_per_unit: 3\n",
            "    max_rows_per_unit: 3\n    prepared: true\n",
            "prepared is for data that DuckDB or Spark reads",
        ),
        ("column: customer}", "column: customer, as: bigint}", "as is not computed on a server"),
        ('Sales."Orders"', "read_parquet('x.parquet')", "names no table of the server"),
    ],
)
def test_what_a_server_does_not_do_is_refused_by_name(tmp_path: Path, old: str, new: str, said: str) -> None:
    assert said in str(refused(written(tmp_path, "postgresql://h/shop", **{old: new})))


def test_answers_of_one_engine_are_no_answers_of_another(tmp_path: Path) -> None:
    """They stand under the policy's hash, in which the place of the data is."""
    addresses = ("shop.duckdb", "postgresql://h/shop", "postgresql://h/other", "postgresql://?service=shop")
    hashes = {load_policy(written(tmp_path, a, **{'    source: Sales."Orders"\n': ""})).hash for a in addresses}
    assert len(hashes) == len(addresses)


def test_queries_may_name_the_servers_database(tmp_path: Path) -> None:
    policy = load_policy(written(tmp_path, "postgresql://h/shop"))
    for name in ("orders", "public.orders", "shop.public.orders"):
        assert dpsql.check(f"SELECT COUNT(*) AS n FROM {name}", policy) == []
    assert dpsql.check("SELECT COUNT(*) AS n FROM elsewhere.public.orders", policy) != []


def test_the_check_knows_the_engine_without_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What has no exact spelling there is refused by name, where neither server nor client is at hand."""
    monkeypatch.setitem(sys.modules, "psycopg", None)
    queries: dict[str, Any] = {
        "SELECT COUNT(*) AS n FROM orders WHERE note = 'a'": [],
        "SELECT COUNT(*) AS n FROM orders WHERE reverse(note) = 'a'": ["DP105"],
    }
    here = load_policy(written(tmp_path, "shop.duckdb", **{'    source: Sales."Orders"\n': ""}))
    there = load_policy(written(tmp_path, "postgresql://h/shop"))
    for sql, codes in queries.items():
        assert [d.code for d in dpsql.check(sql, here)] == []
        found = dpsql.check(sql, there)
        assert [d.code for d in found] == codes
    with pytest.raises(CannotOpen, match=r"pip install 'dpsql\[postgres\]'"):
        dpsql.connect(there)
