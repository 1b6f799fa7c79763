"""Redefined built-in functions and hidden tables: without effect, or refused where they would have one."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from dpsql.diagnostics.errors import CannotOpen
from dpsql.engines.public_facts import row_count
from tests.engines_elsewhere.spark.servers import Server
from tests.engines_elsewhere.spark.test_engine_contract import opened

Make = Callable[..., str]
FUNCTIONS = {
    "abs": "(x INT) RETURNS INT RETURN 42", "sum": "(x BIGINT) RETURNS BIGINT RETURN 42",
    "greatest": "(x INT, y INT) RETURNS INT RETURN 42", "md5": "(x STRING) RETURNS STRING RETURN 'forty-two'",
    "coalesce": "(x INT, y INT) RETURNS INT RETURN 42",
}  # fmt: skip
QUESTION = "SELECT abs(-1), greatest(1, 2), coalesce(1, 2), md5('a') = 'forty-two', sum(i) FROM {} AS t0"
RIGHT = [1, 2, 1, False, 3]


def _asked(session: object, sql: str) -> list[object]:
    return [c.to_pylist()[0] for c in session.sql(sql).toArrow().columns]  # type: ignore[attr-defined]


def test_functions_of_users_shadow_nothing(cluster: Server, schema: Make) -> None:
    name = schema("CREATE TABLE SCHEMA.t USING parquet AS SELECT id AS i FROM range(3)")
    for schema_ in (f"spark_catalog.{name}", "spark_catalog.default"):
        cluster.run(*(f"CREATE FUNCTION IF NOT EXISTS {schema_}.{f} {body}" for f, body in FUNCTIONS.items()))
    with cluster.admin() as session:  # they are there
        assert _asked(session, f"SELECT spark_catalog.{name}.abs(-1)") == [42]
    engine = opened(cluster, name, "t")
    question = QUESTION.format(engine.table_sql("t"))
    assert [c[0] for c in engine.fetch(question).columns] == RIGHT
    # As if hostile code had got to our own session.
    for f, body in FUNCTIONS.items():
        engine._session.sql(f"CREATE TEMPORARY FUNCTION {f} {body}")
    assert _asked(engine._session, "SELECT system.session.abs(-1)") == [42]
    assert [c[0] for c in engine.fetch(question).columns] == RIGHT
    engine.close()
    cluster.run(*(f"DROP FUNCTION spark_catalog.default.{f}" for f in FUNCTIONS))


def test_temporary_functions_that_would_come_first_are_refused_with_the_setting_that_puts_them_there(
    cluster: Server, schema: Make
) -> None:
    """The twin of the one above: what the setting holds off is there."""
    name = schema("CREATE TABLE SCHEMA.t USING parquet AS SELECT id AS i FROM range(3)")
    with cluster.admin() as session:
        session.sql(f"CREATE TEMPORARY FUNCTION abs {FUNCTIONS['abs']}")
        assert _asked(session, "SELECT abs(-1)") == [1]
        session.conf.set("spark.sql.functionResolution.sessionOrder", "first")
        assert _asked(session, "SELECT abs(-1)") == [42]
    engine = opened(cluster, name, "t")
    engine._session.conf.set("spark.sql.functionResolution.sessionOrder", "first")
    with pytest.raises(CannotOpen, match="sessionOrder"):
        row_count(engine, "t")
    engine.close()


def test_a_built_in_function_that_does_something_else_is_named(
    cluster: Server, schema: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    """None does here: one is expected to give something else."""
    from dpsql.engines.spark import settings

    name = schema("CREATE TABLE SCHEMA.t USING parquet AS SELECT id AS i FROM range(3)")
    monkeypatch.setitem(settings.TRIED, "md5(a.a)", "2")
    with pytest.raises(CannotOpen, match=r"md5\(a\.a\)"):
        opened(cluster, name, "t")


def test_views_and_tables_of_users_hide_none_of_ours(cluster: Server, schema: Make) -> None:
    name = schema("CREATE TABLE SCHEMA.t USING parquet AS SELECT id AS i FROM range(3)")
    engine = opened(cluster, name, "t")
    view = engine.table_sql("t").rpartition(".")[2].strip("`")
    cluster.run(
        "CREATE SCHEMA IF NOT EXISTS session", "CREATE SCHEMA IF NOT EXISTS system",
        *(f"CREATE TABLE spark_catalog.{s}.{view} USING parquet AS SELECT 7 AS i" for s in ("session", "system", name)),
        f"CREATE GLOBAL TEMPORARY VIEW {view} AS SELECT 7 AS i",
    )  # fmt: skip
    with cluster.admin() as other:  # nobody sees another session's views
        other.sql(f"CREATE TEMPORARY VIEW {view} AS SELECT 7 AS i")
        for _ in range(2):
            assert engine.fetch(f"SELECT i FROM {engine.table_sql('t')} AS t0 ORDER BY i").columns == ([0, 1, 2],)
            engine._session.sql(f"USE spark_catalog.{name}")
    cluster.run("DROP SCHEMA session CASCADE", "DROP SCHEMA system CASCADE")
    engine.close()


def test_a_view_of_ours_that_is_replaced_is_noticed(cluster: Server, schema: Make) -> None:
    """As if hostile code had got to our own session."""
    from dpsql.diagnostics.errors import EngineError

    name = schema("CREATE TABLE SCHEMA.t USING parquet AS SELECT id AS i FROM range(3)")
    engine = opened(cluster, name, "t")
    view = engine.table_sql("t").rpartition(".")[2]

    def inside() -> None:
        engine._session.sql(f"CREATE OR REPLACE TEMPORARY VIEW {view} AS SELECT 7 AS i")
        row_count(engine, "t")

    with pytest.raises(EngineError):
        engine.in_snapshot(inside)
    engine.close()
