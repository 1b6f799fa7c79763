"""All that is fetched in one snapshot is of the same files, or the statement that saw others fails."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import dpsql
from dpsql.core.engine import engine_failed
from dpsql.diagnostics.errors import CannotOpen, EngineError
from dpsql.engines.public_facts import row_count
from tests.engines_elsewhere.spark.servers import Server
from tests.engines_elsewhere.spark.test_engine_contract import files_opened, opened

Make = Callable[..., str]
ODD = "a [1] {b} %20 é*?.parquet"
"""Characters that mean something in patterns, in URIs or to nobody."""


def write(path: Path, *values: int) -> None:
    """A file in place of what is there. It appears as a whole."""
    beside = path.with_name(f".{os.getpid()}")
    pq.write_table(pa.table({"i": pa.array(values, pa.int64())}), beside)
    beside.rename(path)


def test_files_that_come_later_are_not_seen_before_the_next_snapshot(cluster: Server, tmp_path: Path) -> None:
    for name in (ODD, "b.parquet"):
        write(tmp_path / name, 1, 2)
    engine = files_opened(cluster, tmp_path, "t")

    def inside() -> tuple[int, int]:
        before = row_count(engine, "t")
        write(tmp_path / "c.parquet", 3)
        with cluster.admin() as other:  # who looks now sees it
            assert other.read.parquet(str(tmp_path)).count() == 5
        return before, row_count(engine, "t")

    assert engine.in_snapshot(inside) == (4, 4)
    assert row_count(engine, "t") == 5
    engine.close()


def _rewritten(path: Path) -> None:
    write(path, 7, 8, 9)


def _touched(path: Path) -> None:
    os.utime(path, ns=(0, path.stat().st_mtime_ns + 1_000_000_000))


CHANGES: dict[str, Callable[[Path], None]] = {
    "rewritten": _rewritten, "taken away": Path.unlink, "written again with the same size": _touched
}  # fmt: skip


@pytest.mark.parametrize("change", CHANGES)
def test_a_file_that_changes_is_noticed(cluster: Server, tmp_path: Path, change: str) -> None:
    for name in (ODD, "b.parquet"):
        write(tmp_path / name, 1, 2)
    engine = files_opened(cluster, tmp_path, "t")

    def inside() -> None:
        assert row_count(engine, "t") == 4
        CHANGES[change](tmp_path / ODD)
        assert engine.fetch("SELECT 1 AS x").columns == ([1],)  # of what reads no file
        row_count(engine, "t")

    with pytest.raises(EngineError) as caught:
        engine.in_snapshot(inside)
    assert str(caught.value) == str(engine_failed())
    assert row_count(engine, "t") == {"rewritten": 5, "taken away": 2}.get(change, 4)
    engine.close()


def test_a_table_of_partitions_that_grows_is_noticed(cluster: Server, schema: Make) -> None:
    """Of these Spark asks the catalogue for the files anew with each statement."""
    name = schema("CREATE TABLE SCHEMA.t (i BIGINT, p INT) USING parquet PARTITIONED BY (p)",
                  "INSERT INTO SCHEMA.t VALUES (1, 1), (2, 2)")  # fmt: skip
    engine = opened(cluster, name, "t")

    def inside() -> None:
        assert row_count(engine, "t") == 2
        cluster.run(f"INSERT INTO spark_catalog.{name}.t VALUES (3, 1), (4, 3)")
        row_count(engine, "t")

    with pytest.raises(EngineError):
        engine.in_snapshot(inside)
    assert row_count(engine, "t") == 4
    engine.close()


def test_a_table_that_is_written_is_of_one_moment(cluster: Server, schema: Make) -> None:
    name = schema(
        "CREATE TABLE SCHEMA.t USING parquet AS SELECT 1 AS k", "CREATE TABLE SCHEMA.o AS SELECT * FROM SCHEMA.t"
    )
    engine = opened(cluster, name, "t", "o")

    def inside() -> tuple[int, int]:
        before = row_count(engine, "t")
        cluster.run(*(f"INSERT INTO spark_catalog.{name}.{table} VALUES (2)" for table in ("t", "o")))
        return before, row_count(engine, "o")

    assert engine.in_snapshot(inside) == (1, 1)
    assert [row_count(engine, table) for table in ("t", "o")] == [2, 2]
    cluster.run(f"INSERT OVERWRITE spark_catalog.{name}.t VALUES (5)")
    assert row_count(engine, "t") == 1
    engine.close()


def test_another_schema_than_the_policy_was_checked_with_is_refused(cluster: Server, tmp_path: Path) -> None:
    write(tmp_path / "a.parquet", 1)
    engine = files_opened(cluster, tmp_path, "t")
    pq.write_table(pa.table({"i": ["x"]}), tmp_path / "a.parquet")
    for _ in range(2):
        with pytest.raises(CannotOpen, match="schema has changed") as caught:
            row_count(engine, "t")
        assert caught.value.diagnostics[0].help
    engine.close()


def test_a_table_that_has_become_something_else_is_refused(cluster: Server, schema: Make, tmp_path: Path) -> None:
    """Of the same columns: a view, and a folder that has versions now."""
    name = schema("CREATE TABLE SCHEMA.t USING parquet AS SELECT 1 AS i", "CREATE TABLE SCHEMA.o AS SELECT 2 AS i")
    engine = opened(cluster, name, "t")
    cluster.run(f"DROP TABLE {name}.t", f"CREATE VIEW {name}.t AS SELECT i FROM spark_catalog.{name}.o WHERE i > 0")
    with pytest.raises(CannotOpen, match="is a view"):
        row_count(engine, "t")
    cluster.run(f"DROP VIEW {name}.t")
    with pytest.raises(CannotOpen, match="is gone"):
        row_count(engine, "t")
    engine.close()
    write(tmp_path / "a.parquet", 1)
    engine = files_opened(cluster, tmp_path, "t")
    (tmp_path / "_delta_log").mkdir()
    (tmp_path / "_delta_log" / "0.json").write_text("{}")
    assert row_count(engine, "t") == 1  # the files are what they were
    write(tmp_path / "b.parquet", 1)
    with pytest.raises(CannotOpen, match="Delta"):
        row_count(engine, "t")
    engine.close()


def test_rows_that_another_session_has_cached_are_not_taken_for_the_files(cluster: Server, tmp_path: Path) -> None:
    write(tmp_path / "a.parquet", 1, 2)
    with cluster.admin() as other:
        held = other.read.parquet(str(tmp_path)).cache()
        assert held.count() == 2
        write(tmp_path / "a.parquet", 1, 2, 3, 4)
        assert held.count() == 2  # it is stale
        engine = files_opened(cluster, tmp_path, "t")
        assert row_count(engine, "t") == 4
        engine.close()
        held.unpersist()


POLICY = """
version: 1
name: shop
database: ADDRESS
tables:
  orders:
    source: read_parquet('FOLDER')
    unit: {of: customer, column: i}
    max_rows_per_unit: 1
    columns: {i: {bounds: [0, 100]}}
budgets: {total: {epsilon: 1000}}
ledger: ":memory:"
"""


def test_a_run_whose_files_change_between_its_statements_fails_and_is_paid(
    cluster: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import dpsql.engines.spark.engine as module

    data = tmp_path / "data"
    data.mkdir()
    write(data / "a.parquet", *range(50))
    policy = tmp_path / "shop.yaml"
    policy.write_text(POLICY.replace("ADDRESS", cluster.address).replace("FOLDER", str(data)), encoding="utf-8")
    read, asked = module.read, list[str]()

    def reading(session: object, sql: str, stop: object) -> object:
        found = read(session, sql, stop)  # type: ignore[arg-type]
        if "dpsql_" in sql:
            asked.append(sql)
            if len(asked) == 1 and change is not None:
                change()
        return found

    first, second = (f"SELECT COUNT(*) AS n FROM orders WHERE i {more}" for more in (">= 0", "> -1"))
    change: Callable[[], None] | None = None
    with dpsql.connect(policy) as con:
        monkeypatch.setattr(module, "read", reading)
        change = lambda: write(data / "b.parquet", *range(1000, 3000))  # noqa: E731
        answer = con.sql(f"{first} UNION ALL {second}").run(epsilon=90)
        assert len(asked) == 2 and all(abs(n - 50) < 40 for (n,) in answer.rows)  # noise of more: 1e-17
        asked.clear()
        change = lambda: write(data / "a.parquet", *range(60))  # noqa: E731
        with pytest.raises(EngineError) as caught:
            con.sql(f"{first} AND i < 7000 UNION ALL {second} AND i < 7000").run(epsilon=90)
        assert str(caught.value) == str(engine_failed()) and con.budget["customer"].spent.epsilon == 180
        change = None
        assert con.sql(f"{first} AND i < 7000 UNION ALL {second} AND i < 7000").run(epsilon=90).rows
        assert con.budget["customer"].spent.epsilon == 270  # what failed was not stored
