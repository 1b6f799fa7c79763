"""Stored views in a locked database: what they find, and why one is refused, with a repair that works."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest

import dpsql
from dpsql.diagnostics.errors import CannotOpen
from dpsql.engines.duckdb.engine import DuckDBEngine
from dpsql.engines.duckdb.views.stored_views import source_of

SETUP = """
CREATE TABLE orders AS SELECT i AS id, i % 5 AS k FROM range(100) t(i);
CREATE SCHEMA reporting;
CREATE VIEW reporting.big AS SELECT * FROM orders WHERE id > 49;
CREATE SCHEMA own;
CREATE TABLE own.lines AS SELECT i AS id FROM range(7) t(i);
USE d.own;
CREATE VIEW few AS SELECT * FROM lines;
CREATE VIEW joined AS SELECT o.k FROM lines JOIN main.orders AS o USING (id);
USE d.main;
"""
FILE = "'/d/it''s.parquet'"


def opened(folder: Path, *more: str) -> DuckDBEngine:
    with duckdb.connect(str(folder / "d.duckdb")) as con:
        con.execute(SETUP)
        for sql in more:
            con.execute(sql)
    return DuckDBEngine.open(Path("d.duckdb"), {}, folder)


def refusal(engine: DuckDBEngine, name: str) -> str:
    with pytest.raises(CannotOpen) as caught:
        engine.table_sql(name)
    (found,) = caught.value.diagnostics
    assert found.code == "DP006"
    return "\n".join((found.message, *found.help))


def test_views_find_tables_as_in_the_open_file(tmp_path: Path) -> None:
    engine = opened(tmp_path)
    for connection in (engine, engine.sibling()):
        for name, rows in (("reporting.big", 50), ("own.few", 7), ("own.joined", 7)):
            assert connection.fetch(f"SELECT COUNT(*) FROM {connection.table_sql(name)}").columns == ([rows],)
    engine.close()


def test_names_of_ours_are_not_looked_up_in_a_database_that_redefines_functions(tmp_path: Path) -> None:
    engine = opened(tmp_path, "CREATE MACRO round(x) AS 42")
    assert engine.fetch("SELECT round(1.4)").columns == ([1],)
    assert engine.sibling().fetch("SELECT round(1.4)").columns == ([1],)
    found = refusal(engine, "reporting.big")
    assert "redefines built-in functions: round" in found and "schema.table" in found
    engine.close()


def test_a_view_of_files_says_so(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("x\n1\n")
    over = f"CREATE VIEW loose AS SELECT x + 1 AS x FROM '{tmp_path}/a.csv'"
    engine = opened(tmp_path, over, "CREATE VIEW gone AS SELECT * FROM orders", "ALTER TABLE orders RENAME TO o2")
    assert f"reads files, and a locked database opens those alone that a policy names: {tmp_path}/a.csv" in refusal(
        engine, "loose"
    )
    assert "is not in its own database" in refusal(engine, "gone")
    repair = refusal(engine, "loose").rpartition(":  ")[2]
    engine.close()
    with duckdb.connect(str(tmp_path / "d.duckdb")) as con:
        con.execute(repair)
    engine = DuckDBEngine.open(Path("d.duckdb"), {}, tmp_path)
    assert engine.fetch(f"SELECT x FROM {engine.table_sql('loose_rows')}").columns == ([2],)
    engine.close()


def test_the_source_that_stands_for_a_view_of_parquet_files_works(tmp_path: Path) -> None:
    with duckdb.connect() as con:
        con.execute(f"COPY (SELECT 1 AS x FROM range(9)) TO '{tmp_path}/n.parquet'")
    engine = opened(
        tmp_path, f"CREATE VIEW n AS SELECT * FROM '{tmp_path}/n.parquet'", "CREATE VIEW m AS SELECT x + 1 AS x FROM n"
    )
    source = refusal(engine, "n").partition("source: ")[2].splitlines()[0]
    assert "CREATE TABLE m_rows AS FROM m" in refusal(engine, "m")
    assert {t.name: t.source for t in engine.describe().tables if t.source} == {"n": source}
    engine.close()
    policy = f"""
version: 1
name: v
database: {tmp_path}/d.duckdb
tables: {{n: {{source: "{source}", unit: {{rows: 1}}, columns: {{x: {{type: integer}}}}}}}}
ledger: ":memory:"
budgets: {{total: {{epsilon: 100000}}}}
"""
    with dpsql.connect(dpsql.Policy.from_yaml(policy)) as con:
        assert con.execute("SELECT COUNT(*) FROM n", epsilon=10_000).fetchall() == [(9,)]


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        (f"CREATE VIEW v AS SELECT * FROM {FILE};", f"read_parquet({FILE})"),
        (f"CREATE VIEW v AS FROM {FILE}", f"read_parquet({FILE})"),
        ('CREATE VIEW s."a AS b" AS SELECT * FROM "/d/x.parquet";', "read_parquet('/d/x.parquet')"),
        ("CREATE VIEW v AS SELECT * FROM parquet_scan(['/d/x', '/d/y'])", "read_parquet(['/d/x', '/d/y'])"),
        ("CREATE VIEW v AS SELECT * FROM read_parquet('/d/x', can_have_nan = true)", "read_parquet('/d/x')"),
        (
            "CREATE VIEW v AS SELECT * FROM read_parquet('/d/**/*.parquet', (hive_partitioning = true))",
            "read_parquet('/d/**/*.parquet', hive_partitioning = true)",
        ),
        (
            "CREATE VIEW v AS SELECT * FROM read_parquet('/d/(a = b)', (union_by_name = true))",
            "read_parquet('/d/(a = b)', union_by_name = true)",
        ),
        (f"CREATE VIEW v AS SELECT * FROM {FILE} WHERE x > 1", None),
        (f"CREATE VIEW v AS SELECT x FROM {FILE}", None),
        (f"CREATE VIEW v (y) AS SELECT * FROM {FILE}", None),
        ("CREATE VIEW v AS SELECT * FROM '/d/x.csv'", None),
        ("CREATE VIEW v AS SELECT * FROM read_parquet(getenv('x'))", None),
        ("CREATE VIEW v AS SELECT * FROM read_parquet('/d/x') UNION ALL SELECT * FROM read_parquet('/d/y')", None),
    ],
)  # fmt: skip
def test_views_that_are_nothing_but_files(sql: str, expected: str | None) -> None:
    assert source_of(sql, ("v", "'/d/x'")) == expected
    assert source_of(sql, ("v", '"data"."main"."t"')) is None and source_of(sql, ("v",)) is None
