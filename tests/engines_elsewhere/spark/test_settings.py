"""Settings are set and read back before each run; what differs from what dpsql relies on is named."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dpsql.core.engine import engine_failed
from dpsql.core.policy.server_address import parse_server
from dpsql.diagnostics.errors import CannotOpen, EngineError
from dpsql.engines.public_facts import row_count
from dpsql.engines.spark import connecting, settings
from dpsql.engines.spark.engine import SparkEngine
from tests.engines_elsewhere.spark.servers import Server, running
from tests.engines_elsewhere.spark.test_engine_contract import files_opened, opened

Make = Callable[..., str]
OTHERWISE = {
    "spark.sql.ansi.enabled": "false", "spark.sql.session.timeZone": "America/New_York",
    "spark.sql.timestampType": "TIMESTAMP_LTZ", "spark.sql.caseSensitive": "true",
    "spark.sql.decimalOperations.allowPrecisionLoss": "true", "spark.sql.variable.substitute": "true",
    "spark.sql.functionResolution.sessionOrder": "first", "spark.sql.ansi.doubleQuotedIdentifiers": "true",
    "spark.sql.files.ignoreCorruptFiles": "true", "spark.sql.files.ignoreMissingFiles": "true",
    "spark.sql.parquet.inferTimestampNTZ.enabled": "false", "spark.sql.orderByOrdinal": "false",
}  # fmt: skip
QUESTION = """SELECT try_cast('x' AS INT) AS a, current_timezone() AS b, typeof(TIMESTAMP'2024-01-01 00:00:00') AS c,
  CAST(CAST(0.1 AS DECIMAL(38, 10)) * CAST(0.1 AS DECIMAL(38, 10)) AS STRING) AS d, '${spark.app.name}' AS e"""
ANSWER = [None, "UTC", "timestamp_ntz", "0.01000000000000000000", "${spark.app.name}"]


def test_what_a_statement_means_here(cluster: Server, schema: Make) -> None:
    engine = opened(cluster, schema("CREATE TABLE SCHEMA.t USING parquet AS SELECT 1 AS i"), "t")
    assert [c[0] for c in engine.fetch(QUESTION).columns] == ANSWER
    for attempt in ("SELECT CAST('x' AS INT) AS a", "SELECT CAST(1 AS INT) div CAST(0 AS INT) AS a"):
        with pytest.raises(EngineError):
            engine.fetch(attempt)
    engine.close()


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=[pytest.mark.long_on_spark] if i > 2 else []) for i, n in enumerate(OTHERWISE)]
)
def test_a_setting_that_changes_behind_our_back_is_noticed_before_the_next_run(
    cluster: Server, schema: Make, name: str
) -> None:
    """As if hostile code had got hold of our own session: no other can reach it."""
    engine = opened(cluster, schema("CREATE TABLE SCHEMA.t USING parquet AS SELECT 1 AS i"), "t")
    engine._session.conf.set(name, OTHERWISE[name])
    with pytest.raises(CannotOpen) as caught:
        engine.in_snapshot(pytest.fail)
    assert name in str(caught.value) and caught.value.diagnostics[0].code == "DP006"
    engine._session.conf.set(name, settings.SET[name])
    assert row_count(engine, "t") == 1
    engine.close()


def test_a_setting_that_changes_while_a_statement_runs_fails_it(
    cluster: Server, schema: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a run, whose statements are paid: the constant error; the next run says what is wrong."""
    import dpsql.engines.spark.engine as module

    engine = opened(cluster, schema("CREATE TABLE SCHEMA.t USING parquet AS SELECT 1 AS i"), "t")
    read = module.read

    def reading(session: Any, sql: str, stop: Any) -> Any:
        found = read(session, sql, stop)
        session.conf.set("spark.sql.ansi.enabled", "false")
        return found

    with monkeypatch.context() as patch:
        patch.setattr(module, "read", reading)
        with pytest.raises(EngineError) as caught:
            engine.in_snapshot(lambda: row_count(engine, "t"))
    assert str(caught.value) == str(engine_failed())
    with pytest.raises(CannotOpen, match=r"spark\.sql\.ansi\.enabled"):
        row_count(engine, "t")
    engine.close()


@pytest.mark.parametrize(
    "name", ["spark.sql.parser.escapedStringLiterals", "spark.sql.legacy.castComplexTypesToString.enabled"]
)
def test_a_setting_that_is_not_known_is_refused_by_name(cluster: Server, schema: Make, name: str) -> None:
    engine = opened(cluster, schema("CREATE TABLE SCHEMA.t USING parquet AS SELECT 1 AS i"), "t")
    with pytest.warns(UserWarning) if "parser" in name else pytest.MonkeyPatch.context():
        engine._session.conf.set(name, "true")
    with pytest.raises(CannotOpen, match=name):
        row_count(engine, "t")
    engine.close()


def test_a_query_cannot_set_anything(cluster: Server, schema: Make) -> None:
    name = schema("CREATE TABLE SCHEMA.t USING parquet AS SELECT 1 AS i", "CREATE TABLE SCHEMA.o AS SELECT 1 AS i")
    engine = opened(cluster, name, "t")
    table = engine.table_sql("t")
    for attempt in (
        f"WITH w AS (SELECT 7 AS i) INSERT INTO spark_catalog.{name}.o SELECT i FROM w",
        "SET spark.sql.ansi.enabled = false", f"WITH w AS (SELECT 1 AS i) INSERT INTO {table} SELECT i FROM w",
        f"FROM {table} INSERT INTO {table} SELECT i", "SELECT 1) ; SET TIME ZONE 'CET' ; (SELECT 1",
        f"(SELECT 1 AS i) UNION (INSERT INTO {table} VALUES (2))", "WITH w AS (DROP VIEW x) SELECT 1", "SHOW TABLES",
        f"SELECT i FROM {table}) AS q; DROP TABLE t; --",
    ):  # fmt: skip
        with pytest.raises(EngineError):
            engine.fetch(attempt)
    assert engine.fetch(QUESTION).columns[1] == ["UTC"] and row_count(engine, "t") == 1
    with cluster.admin() as other:
        assert other.table(f"spark_catalog.{name}.o").count() == 1
    engine.close()


@pytest.mark.parametrize("condition", ["x > 10", "NOT x <= 10", "z = 0", "x BETWEEN 6 AND DOUBLE('NaN')"])
def test_statistics_of_files_decide_about_no_row(cluster: Server, tmp_path: Path, condition: str) -> None:
    """They leave NaNs out and tell zeros apart: a row would be seen or not by what other rows of its file hold."""
    pq.write_table(pa.table({"x": [1.0, float("nan"), 5.0]}), tmp_path / "arrow.parquet")
    with cluster.admin() as other:
        rows = "SELECT explode(array(1.0D, DOUBLE('NaN'), 5.0D)) AS x, -0.0D AS z"
        other.sql(rows).coalesce(1).write.parquet(str(tmp_path / "spark"))
        file = tmp_path / ("spark" if "z" in condition else "arrow.parquet")
        found = [other.read.parquet(str(file)).where(condition).count()]
        assert found == [0]  # Spark by itself
    engine = files_opened(cluster, file, "t")
    rows_seen = engine.fetch(f"SELECT COUNT(*) AS n FROM {engine.table_sql('t')} AS t0 WHERE {condition}").columns
    assert rows_seen == ([3 if "z" in condition else 1],)
    engine.close()


def test_buckets_of_a_table_are_not_believed(cluster: Server, schema: Make) -> None:
    """A file under the name of another bucket's: its keys would be groups twice."""
    name = schema(
        "CREATE TABLE SCHEMA.t (k BIGINT) USING parquet CLUSTERED BY (k) INTO 2 BUCKETS",
        "INSERT INTO SCHEMA.t SELECT id FROM range(100)",
    )
    folder = cluster.folder / "warehouse" / f"{name}.db" / "t"
    for file in folder.glob("*_00000.*.parquet"):
        shutil.copy(file, file.with_name(file.name.replace("_00000.", "_00001.").replace("part-", "part-9")))
    groups = "SELECT COUNT(*) AS n FROM (SELECT k FROM {} AS t0 GROUP BY k) AS q"
    with cluster.admin() as other:
        other.conf.set("spark.sql.sources.bucketing.autoBucketedScan.enabled", "false")
        ((believed,),) = [c.to_pylist() for c in other.sql(groups.format(f"{name}.t")).toArrow().columns]
        assert believed > 100
    engine = opened(cluster, name, "t")
    assert engine.fetch(groups.format(engine.table_sql("t"))).columns == ([100],)
    engine.close()


def test_every_setting_and_every_expression_that_is_tried_can_be_wrong() -> None:
    assert settings.unset(settings.SET) == ()
    for name in settings.SET:
        assert settings.unset({**settings.SET, name: "other"}) == (name,)
        assert settings.unset({n: v for n, v in settings.SET.items() if n != name}) == (name,)
    right = tuple(settings.TRIED.values())
    assert settings.unlike(right) == ()
    for i, text in enumerate(settings.TRIED):
        assert settings.unlike((*right[:i], f"{right[i]}x", *right[i + 1 :])) == (text,)


FOREIGN = {
    "spark.sql.extensions": "org.example.Rules", "spark.plugins": "org.apache.gluten.GlutenPlugin",
    "spark.shuffle.manager": "org.apache.spark.shuffle.sort.ColumnarShuffleManager",
    "spark.comet.enabled": "true", "spark.rapids.sql.enabled": "true", "spark.databricks.photon.enabled": "true",
    "spark.sql.legacy.negativeIndexInArray": "true", "spark.sql.optimizer.excludedRules": "x",
    "spark.sql.catalog.system": "org.example.Catalogue", "spark.sql.nobody.knows": "this",
}  # fmt: skip
HARMLESS = {
    "spark.sql.extensions": "", "spark.shuffle.manager": "sort", "spark.comet.enabled": "false", "spark.app.name": "x",
    "spark.sql.shuffle.partitions": "1", "spark.sql.adaptive.enabled": "false", "spark.sql.warehouse.dir": "/w",
    "spark.sql.catalog.lake": "org.example.Catalogue", "spark.executor.memory": "4g", "spark.hadoop.fs.s3a.x": "y",
    "spark.sql.autoBroadcastJoinThreshold": "-1", "spark.sql.catalogImplementation": "hive",
}  # fmt: skip


def test_what_computes_in_sparks_place_is_refused() -> None:
    assert settings.foreign({**settings.SET, **HARMLESS}) == ()
    for name, value in FOREIGN.items():
        assert settings.foreign({**settings.SET, **HARMLESS, name: value}) == (name,)


def test_versions(cluster: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = SparkEngine.open(parse_server(cluster.address), [])
    assert engine.version.startswith("4.3.") and not any("not tested" in note for note in engine.notes)
    monkeypatch.setattr(connecting, "TESTED", ((4, 9),))
    assert f"dpsql is not tested with Spark {engine.version}" in engine.notes
    engine.close()
    for old in ("4.2.0", "3.5.9", "4.2.1-SNAPSHOT", "nonsense", ""):
        with pytest.raises(CannotOpen, match="the cluster is Spark"):
            connecting.check_version(old)
    for new in ("4.3.0", "4.10.1", "5.0.0-amzn-1"):
        connecting.check_version(new)
    monkeypatch.setattr(connecting, "LEAST_VERSION", (4, 4))
    with pytest.raises(CannotOpen, match=r"the cluster is Spark 4\.3"):
        SparkEngine.open(parse_server(cluster.address), [])


def test_why_there_is_no_connection(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    for address, said in {"sc://127.0.0.1:1": "cannot be reached", "SC://127.0.0.1:1/;user_id=reader": ""}.items():
        with pytest.raises(CannotOpen) as caught:
            SparkEngine.open(parse_server(address), [])
        assert f"the cluster {address} {said}" in caught.value.diagnostics[0].message
        assert caught.value.diagnostics[0].code == "DP006" and "127.0.0.1:1" in str(caught.value)
    shown = capfd.readouterr()
    assert "Traceback" not in shown.out + shown.err and "RETRIES" not in shown.err


@pytest.mark.long_on_spark
def test_defaults_of_the_cluster_do_not_count() -> None:
    """A cluster that is set otherwise throughout: without us it means something else, and to us the same."""
    with running(OTHERWISE) as cluster:
        with cluster.admin() as other:
            found = other.sql(QUESTION.replace("try_cast", "CAST")).toArrow()
            assert [c.to_pylist()[0] for c in found.columns] != ANSWER
        cluster.run("CREATE TABLE default.t USING parquet AS SELECT 1 AS i")
        engine = opened(cluster, "default", "t")
        assert [c[0] for c in engine.fetch(QUESTION).columns] == ANSWER and row_count(engine, "t") == 1
        engine.close()


@pytest.mark.long_on_spark
def test_a_cluster_with_extensions_is_refused() -> None:
    wrong = {"spark.sql.extensions": "org.example.Rules", "spark.gluten.enabled": "true"}
    with running(wrong) as cluster, pytest.raises(CannotOpen) as caught:
        SparkEngine.open(parse_server(cluster.address), [])
    assert all(name in str(caught.value) for name in wrong)
