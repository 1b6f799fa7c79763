"""`dpsql prepare` on a small shop: what is copied, what is read, and when a copy is not believed."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest

import dpsql
from dpsql.core.release.noisy import exact_totals
from dpsql.diagnostics.errors import CannotOpen, Rejected
from dpsql.engines.duckdb.copies import copies
from dpsql.engines.duckdb.copies.copies import read_manifest
from dpsql.engines.duckdb.copies.seals import log_of, seal_alone, seal_of
from dpsql.engines.open import OpenOptions, open_engine
from dpsql.policy.load import load_policy
from dpsql.service.checks.verify import Checked, verify_policy
from dpsql.service.open_data import open_data
from dpsql.service.preparing.find import find
from dpsql.service.preparing.manifest import Manifest
from dpsql.service.preparing.prepare import prepare
from tests.support.built_once import build

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
    build(tmp_path / "shop.duckdb", DATA)
    (tmp_path / "shop.yaml").write_text(POLICY)
    return tmp_path / "shop.yaml"


def rows(policy: Path, sql: str) -> list[tuple[object, ...]]:
    with duckdb.connect(str(place_of_file(policy)), read_only=True) as connection:
        return connection.execute(sql).fetchall()


def place_of_file(policy: Path) -> Path:
    return policy.with_name("shop.prepared.duckdb")


def answers(policy: Path, *queries: str) -> list[list[tuple[object, ...]]]:
    with dpsql.connect(policy, ledger=":memory:") as connection:
        return [list(connection.sql(sql).run(epsilon=10**8).rows) for sql in queries]


def answer(policy: Path, sql: str) -> list[tuple[object, ...]]:
    (found,) = answers(policy, sql)
    return found


def test_of_each_owner_the_limit_is_kept(shop: Path) -> None:
    made = prepare(shop)
    assert made.place == str(place_of_file(shop))
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
    wide = POLICY.replace("unit: 3", "unit: 99").replace("unit: 4", "unit: 999").replace("1e9", "1e12")
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
    plain = answers(shop, *queries)
    shop.write_text(wide)
    prepare(shop)
    assert answers(shop, *queries) == [[pytest.approx(row, rel=1e-3) for row in found] for found in plain]


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
        dpsql.connect(own, policy=shop, optimizers="ours")


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
    assert Manifest.read(text.replace('"format": 6', '"format": 5')) is None


# --- what was written ------------------------------------------------------------------------------------------------

MORE_OF_ONE = "INSERT INTO orders SELECT o.* FROM (FROM orders WHERE buyer = 1 LIMIT 1) AS o, range(5000)"


def checked(policy: Path) -> dict[tuple[str, str | None], Checked]:
    found = verify_policy(policy)
    return {(c.where, c.measures): c for c in found.checks if c.kind == "prepared"}


@pytest.mark.parametrize("change", [MORE_OF_ONE, "DELETE FROM orders WHERE buyer = 1", "CREATE TABLE more (a INTEGER)"])
def test_a_copy_that_was_changed_is_refused_by_name(shop: Path, change: str) -> None:
    prepare(shop)
    assert answer(shop, "SELECT COUNT(*) AS n FROM orders") == [(15,)]
    with duckdb.connect(str(place_of_file(shop))) as connection:
        connection.execute(change)
    with pytest.raises(CannotOpen, match=r"shop\.prepared\.duckdb were changed after they were prepared") as refused:
        dpsql.connect(shop, ledger=":memory:")
    (found,) = refused.value.diagnostics
    assert found.code == "DP008" and found.span is not None and "dpsql prepare" in found.help[0]
    assert {c.status for (_, measures), c in checked(shop).items() if measures == IN_COPY} == {"broken"}
    prepare(shop)
    assert answer(shop, "SELECT COUNT(*) AS n FROM orders") == [(15,)]


def test_a_change_that_duckdb_has_not_written_into_the_file_is_refused(shop: Path) -> None:
    prepare(shop)
    with duckdb.connect(str(place_of_file(shop))) as connection:
        connection.execute("SET checkpoint_threshold = '1TB'; SET wal_autocheckpoint = '1TB'")
        connection.execute("PRAGMA disable_checkpoint_on_shutdown")
        before = place_of_file(shop).read_bytes()
        connection.execute(MORE_OF_ONE)
    assert log_of(place_of_file(shop)).exists() and place_of_file(shop).read_bytes() == before
    with pytest.raises(CannotOpen, match="changed after they were prepared"):
        dpsql.connect(shop, ledger=":memory:")
    prepare(shop)
    assert answer(shop, "SELECT COUNT(*) AS n FROM orders") == [(15,)]


def test_who_opens_a_copy_that_changes_meanwhile_is_refused(shop: Path) -> None:
    """The engine looks, too: the file may change after the manifest was read."""
    prepare(shop)
    found = find(load_policy(shop))
    assert found.copies is not None
    with duckdb.connect(str(place_of_file(shop))) as connection:
        connection.execute(MORE_OF_ONE)
    with pytest.raises(CannotOpen, match="the prepared tables cannot be read"):
        open_engine(load_policy(shop), OpenOptions(copies=found.copies))


def test_with_auto_a_changed_copy_is_left_alone(shop: Path) -> None:
    shop.write_text(POLICY.replace("prepared: true", "prepared: auto"))
    prepare(shop)
    with duckdb.connect(str(place_of_file(shop))) as connection:
        connection.execute(MORE_OF_ONE)
    with dpsql.connect(shop, ledger=":memory:") as connection_of_ours:
        release = connection_of_ours.sql("SELECT COUNT(*) AS n FROM orders").run(epsilon=10**8)
    assert any("changed after they were prepared" in note for note in release.notes)
    seal_of(place_of_file(shop)).unlink()
    with dpsql.connect(shop, ledger=":memory:") as connection_of_ours:
        assert list(connection_of_ours.sql("SELECT COUNT(*) AS n FROM orders").run(epsilon=10**8).rows) == [(15,)]


def test_a_preparation_that_is_killed_leaves_a_copy_that_opens(shop: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """At each of its last steps; so does the next one."""
    prepare(shop)

    class Killed(BaseException):
        pass

    def killed(*_: object) -> None:
        raise Killed

    for step in ("seal", "seal_alone"):
        with monkeypatch.context() as patched, pytest.raises(Killed):
            patched.setattr(copies, step, killed)
            prepare(shop)
        assert answer(shop, "SELECT COUNT(*) AS n FROM orders") == [(15,)]
    with monkeypatch.context() as patched, pytest.raises(Killed):
        patched.setattr(os, "chmod", killed)
        prepare(shop)
    assert answer(shop, "SELECT COUNT(*) AS n FROM orders") == [(15,)]


IN_COPY = "rows of one unit in its copy"


def test_verify_counts_what_the_copy_holds(shop: Path) -> None:
    """Also where somebody has written the hash anew."""
    prepare(shop)
    found = checked(shop)
    assert {where: c.status for (where, measures), c in found.items() if measures == IN_COPY} == {
        "tables.orders.prepared": "ok",
        "tables.lines.prepared": "ok",
    }
    assert found["tables.orders.prepared", IN_COPY].measured == 3
    for change in (MORE_OF_ONE, "DELETE FROM orders WHERE buyer = 1"):
        prepare(shop)
        with duckdb.connect(str(place_of_file(shop))) as connection:
            connection.execute(change)
        seal_alone(place_of_file(shop))
        now = checked(shop)
        assert now["tables.orders.prepared", IN_COPY].status == "broken"
        assert now["tables.lines.prepared", IN_COPY].status == "ok"


def test_verify_says_nothing_of_a_copy_that_nobody_reads(shop: Path) -> None:
    prepare(shop)
    with duckdb.connect(str(shop.with_name("shop.duckdb"))) as connection:
        connection.execute("DELETE FROM orders WHERE nr = 1")
    found: set[str | None] = {measures for _, measures in checked(shop)}
    assert found == {"rows that its copy leaves out"}


# --- grid integers ---------------------------------------------------------------------------------------------------

MONEY = """\
version: 1
name: shop
database: shop.duckdb
units: {buyer: {}}
tables:
  paid:
    unit: {column: buyer}
    max_rows_per_unit: 50
    prepared: true
    columns:
      buyer: {type: bigint}
      price: {type: double, bounds: [0, 9]}
      cents: {type: 'decimal(12,3)', bounds: [-20, 30.5], nullable: false}
      wide: {type: double, bounds: [0, 16106127328]}
budgets: {total: {epsilon: 1e12}}
"""
PAID = """
CREATE OR REPLACE TABLE paid AS SELECT i % 7 AS buyer,
    CASE i % 11 WHEN 0 THEN NULL WHEN 1 THEN 'nan'::DOUBLE WHEN 2 THEN 'inf'::DOUBLE WHEN 3 THEN -1e300 WHEN 4 THEN -0.0
    ELSE i / 9.7 END AS price, (i % 61 - 30.125)::DECIMAL(12, 3) AS cents, (i * 40265312 + 8)::DOUBLE AS wide
    FROM range(200) t(i);
"""


PLAIN = MONEY.replace("    prepared: true\n", "").replace("50", "{rows: 50, enforce: assume}")


def make_paid(folder: Path) -> Path:
    build(folder / "shop.duckdb", PAID)
    (folder / "shop.yaml").write_text(MONEY)
    return folder / "shop.yaml"


@pytest.fixture
def paid(tmp_path: Path) -> Path:
    return make_paid(tmp_path)


@pytest.fixture(scope="module")
def read_and_computed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[dpsql.Connection, dpsql.Connection]]:
    """Over a copy with its integers, and over the data itself."""
    paid = make_paid(tmp_path_factory.mktemp("paid"))
    plain = paid.with_name("plain.yaml")
    plain.write_text(PLAIN)
    prepare(paid)
    with dpsql.connect(paid, ledger=":memory:") as read, dpsql.connect(plain, ledger=":memory:") as computed:
        yield read, computed


def statements_of(connection: dpsql.Connection, sql: str) -> str:
    return " ".join(s.sql for r in connection.sql(sql).plan(epsilon=1).releases for s in r.statements)


def statements(policy: Path, sql: str) -> str:
    with dpsql.connect(policy, ledger=":memory:") as connection:
        return statements_of(connection, sql)


def exactly_of(connection: dpsql.Connection, sql: str) -> object:
    """The exact integers of all components, for nobody to see."""
    plan = connection.sql(sql).plan(epsilon=1)
    return [exact_totals(planned, connection.service.engine, 0) for planned in plan.releases]


def exactly(policy: Path, sql: str) -> object:
    with dpsql.connect(policy, ledger=":memory:") as connection:
        return exactly_of(connection, sql)


READ = [
    "SELECT SUM(price) FROM paid",
    "SELECT SUM(price), COUNT(price), COUNT(*) FROM paid",
    "SELECT AVG(price) FROM paid WHERE cents > 0",
    "SELECT STDDEV(price) FROM paid",
    "SELECT MEDIAN(price) FROM paid",
    "SELECT SUM(cents), AVG(cents) FROM paid",
    "SELECT SUM(p) FILTER (WHERE c > 1) FROM (SELECT price AS p, cents AS c FROM paid) AS t",
]
COMPUTED = [
    "SELECT SUM(price + 1) FROM paid",
    "SELECT SUM(CLIP(price, 0, 5)) FROM paid",
    "SELECT SUM(LEAST(price, 5)) FROM paid",
    "SELECT CORR(price, price) FROM paid",
]


@pytest.mark.parametrize("sql", READ + COMPUTED)
def test_stored_integers_are_what_would_be_computed(
    read_and_computed: tuple[dpsql.Connection, dpsql.Connection], sql: str
) -> None:
    """NULL, NaN, infinities and values beyond the bounds among them; of every statement the same exact integers."""
    read, computed = read_and_computed
    assert ("in units" in statements_of(read, sql)) is (sql in READ)
    assert exactly_of(computed, sql) == exactly_of(read, sql) and "in units" not in statements_of(computed, sql)


def test_an_average_whose_middle_is_odd_is_computed(paid: Path) -> None:
    """Halves are rounded to even, before or after an odd number is taken off: of 8 in steps of 16 it would differ."""
    prepare(paid)
    assert "wide in units" in statements(paid, "SELECT SUM(wide) FROM paid")
    with dpsql.connect(paid, ledger=":memory:") as connection:
        (release,) = connection.sql("SELECT AVG(wide) FROM paid").plan(epsilon=1).releases
    assert [c.center % 2 for c in release.measured.node.components] == [1, 0]
    assert "in units" not in release.statements[0].sql


def test_integers_of_other_bounds_are_not_read(paid: Path) -> None:
    """Bounds may change without preparing again."""
    prepare(paid)
    paid.write_text(MONEY.replace("[0, 9]", "[0, 5]"))
    text = statements(paid, "SELECT SUM(price), SUM(cents) FROM paid")
    assert "price in units" not in text and "cents in units" in text
    (found,) = answer(paid, "SELECT SUM(price) FROM paid")
    assert found[0] == pytest.approx(sum(min(i / 9.7, 5) for i in range(200) if i % 11 > 4), abs=0.01)


def test_no_query_can_name_the_integers(paid: Path) -> None:
    prepare(paid)
    with dpsql.connect(paid, ledger=":memory:") as connection:
        with pytest.raises(Rejected) as refused:
            connection.sql('SELECT SUM("price in units") FROM paid').plan(epsilon=1)
        assert refused.value.diagnostics[0].code == "DP103"
        assert connection.sql("DESCRIBE paid").run(epsilon=1).fetchall()[1][0] == "price"
        assert len(connection.sql("DESCRIBE paid").run(epsilon=1).fetchall()) == 4


@pytest.mark.parametrize(
    "change",
    [
        'UPDATE paid SET "price in units" = 2000000000 WHERE cents = 4.875',
        'UPDATE paid SET "cents in units" = -20001 WHERE cents = 4.875',
        'ALTER TABLE paid DROP "cents in units"',
    ],
)
def test_a_copy_with_integers_beyond_their_ends_is_not_opened(paid: Path, change: str) -> None:
    """Statements add up what a copy holds as it is; somebody has changed this one."""
    prepare(paid)
    with dpsql.connect(paid, ledger=":memory:"):
        pass
    with duckdb.connect(str(place_of_file(paid))) as connection:
        assert connection.execute("SELECT COUNT(*) FROM paid WHERE cents = 4.875").fetchall() != [(0,)]
        connection.execute(change)
    seal_alone(place_of_file(paid))  # as if it had been written so
    with pytest.raises(CannotOpen, match="the prepared tables cannot be read") as refused:
        dpsql.connect(paid, ledger=":memory:")
    assert "dpsql prepare POLICY" in str(refused.value)


def test_a_row_without_a_stored_integer_counts_nowhere_whatever_is_declared(paid: Path) -> None:
    """That no value is NULL may be declared after the copy was made."""
    with duckdb.connect(str(paid.with_name("shop.duckdb"))) as connection:
        connection.execute("UPDATE paid SET cents = NULL WHERE cents < 0")
    paid.write_text(MONEY.replace(", nullable: false", ""))
    prepare(paid)
    paid.write_text(MONEY)
    read, text = exactly(paid, "SELECT SUM(cents), COUNT(*) FROM paid"), statements(paid, "SELECT SUM(cents) FROM paid")
    assert 'SUM(t1."cents in units")' in text
    paid.write_text(PLAIN)
    assert exactly(paid, "SELECT SUM(cents), COUNT(*) FROM paid") == read


def test_a_column_of_that_name_is_left_alone(paid: Path) -> None:
    with duckdb.connect(str(paid.with_name("shop.duckdb"))) as connection:
        connection.execute('ALTER TABLE paid ADD COLUMN "price in units" INTEGER DEFAULT 3')
    paid.write_text(MONEY.replace("      wide:", "      price in units: {type: integer, bounds: [0, 5]}\n      wide:"))
    prepare(paid)
    (found,) = answer(paid, 'SELECT SUM("price in units"), SUM(price) FROM paid')
    assert found[0] == pytest.approx(600, abs=0.01) and found[1] > 100


def test_coverage_counts_those_that_were_cut_in_the_whole_table(shop: Path) -> None:
    prepare(shop)
    with dpsql.connect(shop, ledger=":memory:") as con:
        answer = con.sql("SELECT COUNT(*) AS n FROM orders WHERE nr < 3").run(epsilon=10**6, coverage=True)
        (found,) = answer.coverage
    assert found.limits == ("more than 3 rows in the whole table orders",)
    assert [(c.above, c.number) for c in found.cells] == [((True,), 5), ((False,), 0)]


def test_coverage_tells_of_each_table_whose_rows_are_missing_once(shop: Path) -> None:
    prepare(shop)
    with dpsql.connect(shop, ledger=":memory:") as con:
        query = con.sql("SELECT (SELECT COUNT(*) FROM lines) AS a, (SELECT SUM(qty) FROM lines) AS b")
        answer = query.run(epsilon=10**6, coverage=True)
    assert [c.limits for c in answer.coverage] == [
        ("more than 4 rows in the whole table lines",),
        ("more than 3 rows in the whole table orders",),
    ]
    assert [[c.number for c in found.cells] for found in answer.coverage] == [[5, 0], [5, 0]]
