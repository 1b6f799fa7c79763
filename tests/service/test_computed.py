"""Columns that the policy computes of others: the numbers of the expression in a query, and declared as any column."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pyarrow
import pytest

import dpsql
from dpsql.answers.stored.address import Addresses
from dpsql.core.release.noisy import exact_totals
from dpsql.service.preparing.prepare import prepare
from tests.support.built_once import build

POLICY = """
version: 1
name: shop
database: shop.duckdb
units: {buyer: {}}
tables:
  orders:
    unit: {column: buyer, of: buyer}
    max_rows_per_unit: 4
    unique: [[nr]]
    columns:
      nr: {type: bigint}
      buyer: {type: bigint}
      mail: {type: varchar}
      price: {type: integer, bounds: [0, 1000]}
      off: {type: double, bounds: [0, 1]}
      day: {type: date, bounds: [2024-01-01, 2024-12-31]}
      profile: {type: varchar}
      city: {from: "profile ->> 'city'", type: varchar}
      low: {from: "lower(mail)", type: varchar}
      euros: {from: "price / 100", type: double}
      paid: {from: "price * (1 - off)", type: double}
      twice: {from: "price * 2", type: integer, bounds: [0, 500]}
      month: {from: "date_trunc('month', day)", type: date}
      kind: {from: "CASE WHEN price > 500 THEN 'much' ELSE 'little' END", type: varchar}
      site: {from: "split_part(lower(mail), '@', 2)", type: varchar, domain: [x.de, y.org], nullable: false}
      big: {from: "coalesce(price, 0) > 500", type: boolean}
      home: {from: "upper(city)", type: varchar}
      few: {from: "price % 3", type: integer}
      known: {from: "coalesce(price, 7)", type: integer}
  buyers:
    unit: {column: id, of: buyer}
    primary_key: [id]
    columns: {id: {type: bigint}}
  lines:
    unit: {path: [{column: nr, references: orders(nr)}], of: buyer}
    max_rows_per_unit: 5
    columns:
      nr: {type: bigint}
      qty: {type: integer, bounds: [0, 9]}
      pieces: {from: "qty * 2", type: integer, bounds: [0, 9]}
      packed: {from: "qty / 4", type: double}
  places:
    public: true
    columns:
      name: {type: varchar}
      area: {type: integer}
      code: {from: "upper(name)", type: varchar}
budgets: {total: {epsilon: 1e12, delta: 0.001}}
"""
DATA = """
CREATE TABLE orders AS SELECT i::BIGINT AS nr, (i % 9)::BIGINT AS buyer,
    CASE WHEN i % 3 = 0 THEN 'A@X.de' WHEN i % 3 = 1 THEN 'b@y.ORG' ELSE 'nobody' END AS mail,
    CASE WHEN i % 7 > 0 THEN (i * 53 % 1300 - 100)::INTEGER END AS price, (i % 5) / 4 AS off,
    DATE '2024-01-01' + (i * 11 % 400)::INTEGER AS day, '{"city": "bonn"}' AS profile, 'secret' AS note
    FROM range(60) t(i);
CREATE TABLE lines AS SELECT i % 80 AS nr, (i % 11)::INTEGER AS qty FROM range(90) t(i);
CREATE TABLE buyers AS SELECT i::BIGINT AS id FROM range(20) t(i);
CREATE TABLE places AS SELECT * FROM (VALUES ('Bonn', 3), ('Ulm', 4)) p(name, area);
"""
PREPARED = POLICY.replace("of: buyer}\n", "of: buyer}\n    prepared: true\n")


def made(folder: Path) -> Path:
    build(folder / "shop.duckdb", DATA)
    (folder / "shop.yaml").write_text(POLICY)
    return folder / "shop.yaml"


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    return made(tmp_path)


@pytest.fixture(scope="module")
def con(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dpsql.Connection]:
    shop = made(tmp_path_factory.mktemp("shop"))
    with dpsql.connect(shop, ledger=":memory:", epsilon=1, delta=1e-9) as connection:
        yield connection


def totals(con: dpsql.Connection, sql: str) -> list[Any]:
    """Exact totals of all releases of a query, before noise."""
    return [exact_totals(r, con.service.engine, 7) for r in con.sql(sql).plan().releases]


WRITTEN = {
    "euros": "(price / 100)", "paid": "(price * (1 - off))", "twice": "(price * 2)", "known": "coalesce(price, 7)",
    "month": "date_trunc('month', day)::DATE", "kind": "(CASE WHEN price > 500 THEN 'much' ELSE 'little' END)",
    "big": "(coalesce(price, 0) > 500)", "low": "lower(mail)", "home": "upper(city)", "few": "(price % 3)",
    "code": "upper(name)",
}  # fmt: skip
SAME = (
    "SELECT SUM({euros}) FROM orders",
    "SELECT AVG({paid}), SUM({paid}) FROM orders",
    "SELECT SUM({euros} * 2 + 1), COUNT({known}), SUM({known}) FROM orders",
    "SELECT SUM({euros}) FROM orders o",
    "SELECT {kind} AS k, SUM({euros}) FROM orders GROUP BY {kind}",
    "SELECT {month} AS m, COUNT(*) FROM orders GROUP BY {month}",
    "SELECT {big} AS b, COUNT(*) FROM orders GROUP BY {big}",
    "SELECT {low} AS l, COUNT(*) FROM orders GROUP BY {low}",
    "SELECT COUNT(*) FROM orders WHERE {low} = 'a@x.de'",
    "SELECT COUNT(*) FROM orders WHERE {home} = 'BONN' AND {twice} > 900",
    "SELECT SUM({euros}) FILTER (WHERE {twice} < 100) FROM orders WHERE {euros} > 0.5",
    "SELECT COUNT(DISTINCT {few}) FROM orders",
    "SELECT SUM(m) FROM (SELECT buyer, MAX({euros}) AS m FROM orders GROUP BY buyer)",
    "SELECT m, COUNT(*) FROM (SELECT buyer, MIN({month}) AS m FROM orders GROUP BY buyer) GROUP BY m",
    "SELECT SUM(CAST(extract(month FROM {month}) AS integer)) FROM orders",
    "SELECT area, COUNT(*) FROM orders JOIN places ON {home} = {code} GROUP BY area",
    "SELECT SUM({euros}) FROM buyers LEFT JOIN orders ON id = buyer",
)


@pytest.mark.parametrize("sql", SAME)
def test_it_has_the_numbers_of_the_expression_in_a_query(con: dpsql.Connection, sql: str) -> None:
    computed, written = sql.format(**{name: name for name in WRITTEN}), sql.format(**WRITTEN)
    assert totals(con, computed) == totals(con, written)
    own, other = con.sql(computed).plan(), con.sql(written).plan()
    assert [m.sensitivity for r in own.releases for m in r.measured.measurements] == [
        m.sensitivity for r in other.releases for m in r.measured.measurements
    ]


def test_sums_without_bounds_of_their_own_are_the_same_question(con: dpsql.Connection) -> None:
    plans = [con.sql(f"SELECT SUM({x}) AS s FROM orders").plan() for x in ("euros", "price / 100", "price / 50")]
    first, second, other = (
        Addresses(p, con.policy).of(0).address(p.releases[0].measured.node.components[0]) for p in plans
    )
    assert first == second != other


def test_bounds_clip_sums_and_leave_rows_out_of_groups(con: dpsql.Connection) -> None:
    """As those of any column: conditions see what it is."""
    (found,) = totals(con, "SELECT SUM(twice) FROM orders")
    with duckdb.connect() as own:
        own.execute(DATA)
        told = own.execute(
            """SELECT SUM(greatest(0, least(500, price * 2))), COUNT(*) FILTER (WHERE price * 2 > 500),
                COUNT(*) FILTER (WHERE price * 2 BETWEEN 0 AND 500) FROM orders WHERE price IS NOT NULL"""
        ).fetchone()
    assert told is not None
    answer = con.sql("SELECT SUM(twice) AS s, COUNT(*) FILTER (WHERE twice > 500) AS n FROM orders").run(epsilon=10**6)
    ((s, n),) = answer.rows
    assert found and s < told[0] + 1 and n <= told[1] + 1
    (groups,) = totals(con, "SELECT twice, COUNT(*) FROM orders GROUP BY twice")
    assert {k[0] for k in groups if k[0] is not None} <= set(range(501))


def test_rows_outside_of_the_domain_are_in_no_group(con: dpsql.Connection) -> None:
    (found,) = totals(con, "SELECT site, COUNT(*) FROM orders GROUP BY site")
    assert {k[0] for k in found} == {"x.de", "y.org"}  # the third part has no site, and NULL is promised not to be


def test_it_is_shown_as_a_column(con: dpsql.Connection) -> None:
    described = {row[0]: row[-1] for row in con.sql("DESCRIBE orders").run().rows}
    assert described["euros"] == "from price / 100"
    assert described["twice"] == "from price * 2, bounds [0, 500]"
    assert "site" in dict.fromkeys(c for row in con.sql("SHOW ALL TABLES").run().rows for c in row[3][1:-1].split(", "))
    assert "from price / 100" in str(con.describe("orders")) and "orders" in con.tables


def test_what_a_public_table_computes_is_public(con: dpsql.Connection) -> None:
    answer = con.sql("SELECT code, area FROM places ORDER BY code").run()
    assert list(answer.rows) == [("BONN", 3), ("ULM", 4)]
    (found,) = totals(con, "SELECT code, COUNT(*) FROM orders JOIN places ON home = code GROUP BY code")
    assert {k[0] for k in found} == {"BONN", "ULM"}  # the keys are read from it


def test_it_is_null_where_a_join_has_no_row(con: dpsql.Connection) -> None:
    """COALESCE of a row that is missing would be a value: the column is not written out there."""
    sql = "SELECT SUM(known) FROM buyers {} JOIN orders ON id = buyer"
    assert totals(con, sql.format("LEFT")) == totals(con, sql.format("INNER"))
    missing = "SELECT SUM(coalesce({}, 3)) FROM buyers LEFT JOIN orders ON id = buyer"
    written = "CASE WHEN nr IS NOT NULL THEN coalesce(price, 7) END"
    assert totals(con, missing.format("known")) == totals(con, missing.format(written))
    assert totals(con, sql.format("LEFT")) != totals(con, sql.format("LEFT").replace("known", "coalesce(price, 7)"))


def test_a_copy_holds_what_was_computed(shop: Path) -> None:
    bounded = PREPARED.replace(
        '{from: "price * (1 - off)", type: double}', '{from: "price * (1 - off)", type: double, bounds: [0, 9]}'
    )
    shop.write_text(bounded)
    prepare(shop)
    with duckdb.connect(str(shop.with_name("shop.prepared.duckdb")), read_only=True) as copy:
        columns = {n for (n,) in copy.execute("SELECT column_name FROM duckdb_columns()").fetchall()}
    assert {"euros", "site", "twice", "paid in units"} <= columns and "note" not in columns
    with dpsql.connect(shop, ledger=":memory:", epsilon=1, delta=1e-9) as con:
        for sql in SAME:
            if "paid" not in sql and "code" not in sql:  # bounds of its own; a key that is measured
                computed = sql.format(**{name: name for name in WRITTEN})
                assert totals(con, computed) == totals(con, sql.format(**WRITTEN)), sql
        bounds = "SELECT SUM(paid), COUNT(paid) FROM orders"
        assert totals(con, bounds) == totals(con, bounds.replace("paid", "CLIP(price * (1 - off), 0, 9)"))
        pieces = "SELECT SUM(pieces), COUNT(*) FROM lines"
        assert totals(con, pieces) == totals(con, pieces.replace("pieces", "CLIP(qty * 2, 0, 9)"))
        assert totals(con, "SELECT SUM(packed) FROM lines") == totals(con, "SELECT SUM(qty / 4) FROM lines")
    changed = bounded.replace("price / 100", "price / 10")
    shop.write_text(changed)
    with pytest.raises(dpsql.CannotOpen, match="prepare"):
        dpsql.connect(shop, ledger=":memory:")


def test_verify_looks_at_what_is_computed(shop: Path) -> None:
    shop.write_text(
        POLICY.replace(
            '{from: "lower(mail)", type: varchar}', "{from: \"nullif(mail, 'nobody')\", type: varchar, nullable: false}"
        )
    )
    found = {c.where: c for c in dpsql.verify_policy(shop).checks}
    assert found["tables.orders.columns.low.nullable"].status == "broken"
    assert found["tables.orders.columns.low.nullable"].measured == 20
    assert found["tables.orders.columns.site.nullable"].status == "ok"


def test_columns_of_frames_are_computed(tmp_path: Path) -> None:
    policy = dpsql.Policy.from_yaml("""
version: 1
name: frames
tables:
  t:
    unit: {column: who}
    max_rows_per_unit: 2
    columns:
      raw: {type: varchar}
      n: {type: double, bounds: [0, 9]}
      who: {from: "lower(trim(raw))", type: varchar}
      half: {from: "n / 2", type: double}
budgets: {total: {epsilon: 1000000}}
""")
    rows = {"raw": ["a", " A", "b", None], "n": [1.0, 2.0, 9.0, 5.0]}
    with dpsql.connect(policy, frames={"t": pyarrow.table(rows)}, ledger=":memory:", epsilon=60_000) as con:
        ((s, n),) = con.execute("SELECT SUM(half), COUNT(DISTINCT who) FROM t").fetchall()
        assert abs(s - 6) < 0.1 and n == 2


def test_a_column_of_the_data_that_is_called_so_is_not_seen(shop: Path) -> None:
    shop.write_text(POLICY.replace("known:", "note:"))
    with dpsql.connect(shop, ledger=":memory:", epsilon=1) as con:
        assert totals(con, "SELECT SUM(note) FROM orders") == totals(con, "SELECT SUM(coalesce(price, 7)) FROM orders")


def test_types_of_the_data_are_waited_for(shop: Path) -> None:
    untyped = POLICY.replace("mail: {type: varchar}", "mail: {}")
    shop.write_text(untyped)
    with dpsql.connect(shop, ledger=":memory:", epsilon=1) as con:
        assert totals(con, "SELECT COUNT(*) FROM orders WHERE low = 'a@x.de'")
    shop.write_text(untyped.replace("lower(mail)", "abs(mail)"))
    with pytest.raises(dpsql.CannotOpen, match=r"tables\.orders\.columns\.low\.from: abs: expects"):
        dpsql.connect(shop, ledger=":memory:")


def test_the_command_line_says_what_is_wrong(shop: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from dpsql.faces.cli.main import main

    shop.write_text(POLICY.replace("lower(mail)", "lowr(mail)"))
    query = shop.with_name("q.sql")
    query.write_text("SELECT COUNT(*) FROM orders")
    for words in ("policy check", "policy show", "policy verify", "query", f"check {query} --policy", "explain"):
        more = ["SELECT 1"] if words in ("query", "explain") else []
        assert main([*words.split(), str(shop), *more]) != 0
        told = capsys.readouterr()
        assert "function lowr is not supported" in told.err + told.out, words
