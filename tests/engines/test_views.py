"""What a view reads: through other views, macros, CTEs and files, in the spelling of each DuckDB."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest

from dpsql.engines.duckdb.engine import DuckDBEngine
from dpsql.engines.duckdb.views.views import Rows, file_identity, identity, reads_of

SETUP = """
CREATE SCHEMA s;
CREATE TABLE orders (a INT, b INT);
CREATE TABLE codes (a INT);
CREATE TABLE s.orders (b INT);
CREATE TABLE s.other (a INT);
CREATE TABLE "odd ""name" (a INT);
CREATE MACRO rows_of(x) AS TABLE SELECT * FROM s.other WHERE a = x;
CREATE MACRO most(x) AS (SELECT max(a) FROM main.codes WHERE a > x), (x, y) AS x + y;
CREATE MACRO inner_most(x) AS most(x);
"""


@pytest.fixture
def connection() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as opened:
        opened.execute(SETUP)
        yield opened


def rows_of(connection: duckdb.DuckDBPyConnection) -> Rows:
    def rows(sql: str) -> list[tuple[Any, ...]]:
        return connection.execute(sql).fetchall()

    return rows


def reads(connection: duckdb.DuckDBPyConnection, view: str = "v") -> set[str]:
    """What the view reads besides itself: `schema.table`, or a path."""
    places = connection.execute(
        "SELECT database_name, schema_name, table_name FROM duckdb_tables() UNION ALL "
        "SELECT database_name, schema_name, view_name FROM duckdb_views() WHERE NOT internal"
    ).fetchall()
    found = reads_of(rows_of(connection), places)
    ((own, *others),) = [bases for place, bases in found.items() if place[2] == view]
    assert own == identity(next(place for place in places if place[2] == view))
    return {base.removeprefix('"memory".').replace('"', "").replace("'", "") for base in others}


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("SELECT * FROM main.orders WHERE a > 1", {"main.orders"}),
        ("SELECT * FROM orders", {"main.orders", "s.orders"}),  # which of them is the search path's to say
        ("SELECT * FROM s.OTHER AS codes", {"s.other"}),
        ("SELECT * FROM memory.s.other", {"s.other"}),
        ('SELECT * FROM "odd ""name"', {"main.odd name"}),
        ("SELECT c.a FROM codes AS c JOIN s.other USING (a)", {"main.codes", "s.other"}),
        ("SELECT 1 AS x WHERE EXISTS (SELECT 1 FROM codes)", {"main.codes"}),
        ("SELECT (SELECT max(a) FROM s.other) AS x", {"s.other"}),
        ("SELECT * FROM codes WHERE 1 = 0", {"main.codes"}),
        ("SELECT count(*) AS n FROM codes", {"main.codes"}),
        ("(SELECT a FROM codes) UNION ALL (SELECT a FROM s.other)", {"main.codes", "s.other"}),
        ("WITH t AS (SELECT * FROM codes) SELECT * FROM t", {"main.codes"}),
        ("WITH RECURSIVE t AS (SELECT 1 AS a UNION ALL SELECT a + 1 FROM t WHERE a < 3) SELECT * FROM t", set()),
        ("WITH codes AS (SELECT a FROM codes) SELECT * FROM codes", {"main.codes"}),
        ("FROM codes PIVOT (count(*) FOR a IN (1, 2))", {"main.codes"}),
        ("SELECT * FROM codes, LATERAL (SELECT * FROM s.other AS o WHERE o.a = codes.a)", {"main.codes", "s.other"}),
        ("SELECT * FROM rows_of(1)", {"s.other"}),
        ("SELECT most(1) AS x", {"main.codes"}),
        ("SELECT inner_most(1) AS x", {"main.codes"}),
        ("SELECT * FROM query_table('codes')", {"main.codes"}),
        ("SELECT * FROM query('SELECT * FROM s.other')", {"s.other"}),
        ("SELECT * FROM range(3)", set()),
        ("VALUES (1)", set()),
        ("SELECT 'codes' AS orders", set()),
    ],
)  # fmt: skip
def test_tables(connection: duckdb.DuckDBPyConnection, sql: str, expected: set[str]) -> None:
    connection.execute(f"CREATE VIEW v AS {sql}")
    assert reads(connection) == expected


def test_views_of_views_and_long_names(connection: duckdb.DuckDBPyConnection) -> None:
    connection.execute('CREATE VIEW s."a as b" ("x y", "c"") AS d") AS SELECT a, b FROM main.orders')
    connection.execute('CREATE TEMP VIEW middle (q) AS SELECT "x y" FROM s."a as b"')
    connection.execute("CREATE VIEW v AS SELECT * FROM codes")
    connection.execute('CREATE OR REPLACE VIEW v AS SELECT * FROM s."a as b"')
    assert reads(connection) == {"s.a as b", "main.orders"}
    assert reads(connection, "middle") == {"s.a as b", "main.orders"}


def test_files(connection: duckdb.DuckDBPyConnection, tmp_path: Path) -> None:
    for name in "ab":
        (tmp_path / f"{name}.csv").write_text("x\n1\n")
    a, b = str(tmp_path / "a.csv"), str(tmp_path / "b.csv")
    (tmp_path / "linked").symlink_to(tmp_path)
    for sql, expected in (
        (f"read_csv('{a}', delim = ',', header = true)", {a}),
        (f"read_csv(['{a}', '{b}'], delim = ',')", {a, b}),
        (f"'{b}'", {b}),
        (f"read_csv('{tmp_path}/linked/a.csv')", {a}),
    ):
        connection.execute(f"CREATE OR REPLACE VIEW v AS SELECT * FROM {sql}")
        assert reads(connection) == expected
    assert file_identity("s3://bucket/a.csv") == "'s3://bucket/a.csv'"


@pytest.mark.parametrize("text", ["PIVOT codes ON a", "SELECT * FROM main.codes ??? 'data/a.csv' , ';'"])
def test_of_a_text_that_is_not_understood_each_name_counts(connection: duckdb.DuckDBPyConnection, text: str) -> None:
    place = ("memory", "main", "v")
    plain = rows_of(connection)

    def rows(sql: str) -> list[tuple[Any, ...]]:
        return [(*place, f"CREATE VIEW v AS {text};")] if "duckdb_views" in sql else plain(sql)

    found = reads_of(rows, [place, ("memory", "main", "codes"), ("memory", "s", "other")])[place]
    assert set(found) >= {identity(place), '"memory"."main"."codes"'} and '"memory"."s"."other"' not in found
    assert any(base.endswith("data/a.csv'") for base in found) == ("data/a.csv" in text) and "';'" not in found


def test_sources_and_stored_views_tell_it_in_the_catalogue(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("x\n1\n")
    with duckdb.connect(str(tmp_path / "d.duckdb")) as stored:
        stored.execute("CREATE TABLE raw (x INT); CREATE VIEW v AS SELECT * FROM raw")
    engine = DuckDBEngine.open(Path("d.duckdb"), {"a": "read_csv('*.csv', auto_detect = true)"}, tmp_path)
    try:
        tables = {t.name: t.reads for t in engine.describe().tables}
    finally:
        engine.close()
    assert tables == {
        "a": ('"memory"."main"."a"', file_identity(str(tmp_path / "a.csv"))),
        "raw": ('"data"."main"."raw"',),
        "v": ('"data"."main"."v"', '"data"."main"."raw"'),
    }
