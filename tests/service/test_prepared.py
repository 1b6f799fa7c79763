"""`dpsql prepare` on a small shop: what is copied, what is read, and when a copy is not believed."""

from __future__ import annotations

import os
from pathlib import Path

import duckdb
import pytest

import dpsql
from dpsql.diagnostics.errors import CannotOpen, Rejected
from dpsql.engines.open import read_manifest
from dpsql.service.open_data import open_data
from dpsql.service.preparing.manifest import Manifest
from dpsql.service.preparing.prepare import prepare

POLICY = """\
version: 1
name: shop
database: shop.duckdb
units: {buyer: {}}
tables:
  orders:
    unit: {column: buyer}
    max_rows_per_unit: 3
    unique: [[nr]]
    prepared: true
    columns: {nr: {type: bigint}, buyer: {type: bigint}, price: {type: double, bounds: [0, 9]}}
  lines:
    unit: {path: [{column: nr, references: orders(nr)}]}
    max_rows_per_unit: 4
    prepared: true
    columns: {nr: {type: bigint}, qty: {type: integer, bounds: [0, 9]}}
budgets: {total: {epsilon: 1e9}}
"""
DATA = """
CREATE TABLE orders AS SELECT i AS nr, CASE WHEN i % 10 = 0 THEN NULL ELSE i % 5 END AS buyer,
    (i % 7 + 0.5)::DOUBLE AS price, 'secret' AS note FROM range(1, 41) t(i);
CREATE TABLE lines AS SELECT i % 45 AS nr, (i % 9)::INTEGER AS qty FROM range(200) t(i);
"""


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    with duckdb.connect(str(tmp_path / "shop.duckdb")) as connection:
        connection.execute(DATA)
    (tmp_path / "shop.yaml").write_text(POLICY)
    return tmp_path / "shop.yaml"


def rows(policy: Path, sql: str) -> list[tuple[object, ...]]:
    with duckdb.connect(str(place_of_file(policy)), read_only=True) as connection:
        return connection.execute(sql).fetchall()


def place_of_file(policy: Path) -> Path:
    return policy.with_name("shop.prepared.duckdb")


def answer(policy: Path, sql: str) -> list[tuple[object, ...]]:
    with dpsql.connect(policy, ledger=":memory:") as connection:
        return list(connection.sql(sql).run(epsilon=10**8).rows)


def test_of_each_owner_the_limit_is_kept(shop: Path) -> None:
    made = prepare(shop)
    assert made.path == place_of_file(shop)
    kept = rows(shop, "SELECT buyer, COUNT(*) FROM orders GROUP BY 1 ORDER BY 1")
    assert kept == [(i, 3) for i in range(5)]
    assert made.tables["orders"].rows == 40 and made.tables["orders"].kept == 15 and made.tables["orders"].units == 5
    assert all(n == 4 for _, n in rows(shop, 'SELECT "buyer of orders", COUNT(*) FROM lines GROUP BY 1'))


@pytest.mark.parametrize("promised", ["max_rows_per_unit: 3", "max_rows_per_unit: 4"])
def test_promised_limits_need_no_cut_where_the_id_stands_in_the_row(shop: Path, promised: str) -> None:
    shop.write_text(POLICY.replace(promised, f"max_rows_per_unit: {{rows: {promised[-1]}00, enforce: assume}}"))
    made = prepare(shop)
    assert (made.tables["orders"].kept, made.tables["lines"].kept > 20) == (
        (36, False) if promised[-1] == "3" else (15, True)
    )
    dpsql.connect(shop, ledger=":memory:").close()


def test_lines_are_those_of_kept_orders_and_owners_are_sorted(shop: Path) -> None:
    prepare(shop)
    owners = [row[0] for row in rows(shop, 'SELECT "buyer of orders" FROM lines')]
    assert owners == sorted(owners)  # type: ignore[type-var]
    assert rows(
        shop,
        'SELECT COUNT(*) FROM lines l LEFT JOIN orders o USING (nr) WHERE o.buyer IS DISTINCT FROM l."buyer of orders"',
    ) == [(0,)]


def test_what_the_policy_does_not_declare_is_not_copied(shop: Path) -> None:
    prepare(shop)
    assert rows(shop, "SELECT COUNT(*) FROM duckdb_columns() WHERE column_name = 'note'") == [(0,)]
    assert b"secret" not in place_of_file(shop).read_bytes()


def test_queries_read_the_copy(shop: Path) -> None:
    prepare(shop)
    assert answer(shop, "SELECT COUNT(*) AS n FROM orders") == [(15,)]
    total = rows(shop, "SELECT SUM(qty) FROM lines JOIN orders USING (nr)")
    assert answer(shop, "SELECT SUM(qty) AS n FROM lines JOIN orders USING (nr)") == total


@pytest.mark.filterwarnings("ignore::dpsql.UtilityWarning")
def test_with_limits_that_cut_nothing_the_exact_integers_are_the_same(shop: Path) -> None:
    wide = POLICY.replace("max_rows_per_unit: 3", "max_rows_per_unit: 99").replace("unit: 4", "unit: 999")
    queries = [
        "SELECT COUNT(*) AS n, SUM(price) AS s, AVG(price) AS a FROM orders",
        "SELECT SUM(qty) AS s, COUNT(*) AS n FROM lines WHERE qty > 2",
        "SELECT SUM(qty) AS s FROM lines l JOIN orders o ON l.nr = o.nr WHERE price > 3",
        "SELECT COUNT(*) AS n FROM orders o WHERE EXISTS (SELECT 1 FROM lines l WHERE l.nr = o.nr AND qty > 5)",
        "SELECT COUNT(*) AS n, COUNT(qty) AS m FROM orders o LEFT JOIN lines l ON l.nr = o.nr",
        "SELECT COUNT(*) AS n FROM (SELECT * FROM lines UNION ALL SELECT * FROM lines)",
        "SELECT COUNT(*) AS n FROM (SELECT * FROM lines UNION ALL SELECT nr, qty + 1 FROM lines) WHERE qty > 3",
        "SELECT COUNT(*) AS n FROM (SELECT l.* FROM lines l WHERE qty > 2) t",
        "SELECT COUNT(DISTINCT buyer) AS n FROM orders",
        "SELECT COUNT(*) AS n FROM lines a JOIN lines b ON a.nr = b.nr AND a.qty < b.qty",
        "SELECT MEDIAN(qty) AS n FROM lines",
        "SELECT SUM(most) AS n FROM (SELECT buyer, LEAST(COUNT(*), 9) AS most FROM orders GROUP BY buyer) t",
        "SELECT COUNT(*) AS n FROM lines WHERE nr IN (SELECT nr FROM orders WHERE price > 3)",
    ]
    shop.write_text(wide.replace("    prepared: true\n", ""))
    plain = [answer(shop, sql) for sql in queries]
    shop.write_text(wide)
    prepare(shop)
    assert [answer(shop, sql) for sql in queries] == [
        [pytest.approx(row, rel=1e-3) for row in found] for found in plain
    ]


def test_without_a_copy_the_data_is_not_opened(shop: Path) -> None:
    with pytest.raises(CannotOpen, match=r"no file shop\.prepared\.duckdb") as refused:
        dpsql.connect(shop)
    assert refused.value.diagnostics[0].code == "DP008"
    assert any(f"dpsql prepare {shop}" in line for line in refused.value.diagnostics[0].help)


@pytest.mark.parametrize(
    "change",
    [
        POLICY.replace("max_rows_per_unit: 3", "max_rows_per_unit: 2"),
        POLICY.replace(
            "qty: {type: integer, bounds: [0, 9]}", "qty: {type: integer}, more: {type: integer, from: qty}"
        ),
        POLICY.replace("name: shop", "name: shop\ndata_version: 2"),
        POLICY.replace("  lines:", "  twice: {unit: {rows: 1}, columns: {nr: {type: bigint}}}\n  lines:"),
    ],
)
def test_a_copy_of_other_declarations_is_not_read(shop: Path, change: str) -> None:
    prepare(shop)
    assert change != POLICY
    shop.write_text(change)
    with pytest.raises(CannotOpen, match="the policy says something else"):
        dpsql.connect(shop)


def test_bounds_and_budgets_are_no_reason_to_prepare_again(shop: Path) -> None:
    prepare(shop)
    shop.write_text(POLICY.replace("bounds: [0, 9]", "bounds: [0, 5]").replace("1e9", "1e8"))
    assert answer(shop, "SELECT COUNT(*) AS n FROM orders") == [(15,)]


def test_a_copy_of_older_data_is_not_read(shop: Path) -> None:
    prepare(shop)
    with duckdb.connect(str(shop.with_name("shop.duckdb"))) as connection:
        connection.execute("INSERT INTO orders VALUES (99, 1, 1, '')")
    with pytest.raises(CannotOpen, match="the data has changed since"):
        dpsql.connect(shop)
    prepare(shop)
    dpsql.connect(shop).close()


def test_auto_falls_back_and_says_so(shop: Path) -> None:
    shop.write_text(POLICY.replace("prepared: true", "prepared: auto"))
    completed, engine = open_data(shop, None, None, None, None)
    engine.close()
    assert any("prepared tables are not read: there is no file" in note for note in engine.notes)
    assert all(t.copied is None for t in completed.tables.values())
    prepare(shop)
    completed, engine = open_data(shop, None, None, None, None)
    engine.close()
    assert not engine.notes and all(t.copied is not None for t in completed.tables.values())


def test_a_connection_of_the_callers_is_not_prepared(shop: Path) -> None:
    prepare(shop)
    with (
        duckdb.connect(str(shop.with_name("shop.duckdb")), read_only=True) as own,
        pytest.raises(CannotOpen, match="a connection is read, which is not prepared"),
    ):
        dpsql.connect(own, policy=shop)


def test_a_policy_that_prepares_nothing_is_told_how(shop: Path) -> None:
    shop.write_text(POLICY.replace("    prepared: true\n", ""))
    with pytest.raises(Rejected, match="no table of the policy is to be prepared"):
        prepare(shop)


def test_a_failed_preparation_leaves_the_last_copy(shop: Path) -> None:
    prepare(shop)
    before = place_of_file(shop).read_bytes()
    new = place_of_file(shop).with_name("shop.prepared.duckdb.new")
    new.mkdir()
    (new / "shop.prepared.duckdb").write_bytes(b"left by one that was killed")
    shop.write_text(POLICY.replace("qty: {type: integer, bounds: [0, 9]}", "nothing: {type: integer}"))
    with pytest.raises(CannotOpen):
        prepare(shop)
    assert place_of_file(shop).read_bytes() == before and not new.exists()


@pytest.mark.skipif(os.name != "posix", reason="modes of files")
def test_only_its_owner_may_read_the_file(shop: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    modes = []
    make = Path.mkdir

    def seen(folder: Path, mode: int = 0o777, **more: bool) -> None:
        make(folder, mode, **more)
        modes.append(folder.stat().st_mode & 0o777)

    monkeypatch.setattr(Path, "mkdir", seen)
    prepare(shop)
    assert modes == [0o700]
    assert place_of_file(shop).stat().st_mode & 0o777 == 0o600


def test_answers_of_one_copy_are_not_served_for_another(shop: Path) -> None:
    prepare(shop)
    first, engine = open_data(shop, None, None, None, None)
    engine.close()
    prepare(shop)
    second, engine = open_data(shop, None, None, None, None)
    engine.close()
    assert first.hash != second.hash


def test_a_manifest_of_another_format_is_not_believed(shop: Path) -> None:
    prepare(shop)
    text = read_manifest(place_of_file(shop))
    assert text is not None and Manifest.read(text) is not None
    assert Manifest.read(text.replace('"format": 1', '"format": 0')) is None
