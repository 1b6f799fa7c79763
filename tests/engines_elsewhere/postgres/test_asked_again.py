"""A statement that a row makes fail on a real server: its answer is that of all other rows, of the same moment.

The spelling of + is made one that fails at the ends of BIGINT, as one would that believed too much of a column.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

import dpsql
from dpsql.core.engine import RawTable
from dpsql.core.policy.server_address import parse_server
from dpsql.core.printing.dialect import Dialect
from dpsql.core.printing.dialects import postgres_again
from dpsql.core.release.drawing import EngineAsk
from dpsql.core.release.noisy import _fetch
from dpsql.core.values.value import Args, Value
from dpsql.diagnostics.errors import EngineError
from dpsql.engines.postgres import asking_again
from dpsql.engines.postgres.asking_again import OF_VALUES, WITHOUT
from dpsql.engines.postgres.engine import PostgresEngine
from dpsql.engines.postgres.relations import Wanted
from dpsql.spelling.postgres_functions import POSTGRES
from tests.engines_elsewhere.postgres.servers import Server

FAR = 2**63 - 1
SCRIPT = """
CREATE TABLE log AS SELECT (g % 50)::bigint AS id, (g % 10)::bigint AS i FROM generate_series(0, 999) AS g;
CREATE TABLE far (id bigint, i bigint);
CREATE VIEW both_ AS SELECT * FROM log UNION ALL SELECT * FROM far;
"""
POLICY = """
version: 1
name: shop
database: ADDRESS
tables:
  log:
    source: both_
    unit: {of: customer, column: id}
    max_rows_per_unit: 60
    columns: {id: , i: }
budgets: {total: {epsilon: 1000000000}}
"""
COUNT = "SELECT COUNT(*) AS n FROM log WHERE i + 1 > 3"
SURE = 100_000
"""An ε of which the noise is 0."""


def narrow(d: Dialect, sql: Sequence[str], args: Args, result: Value) -> str:
    return f"CAST(CAST({sql[0]} AS bigint) + CAST({sql[1]} AS bigint) AS numeric)"


@pytest.fixture(autouse=True)
def _fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(POSTGRES, "spellings", {**POSTGRES.spellings, "add": narrow})
    monkeypatch.setattr(
        postgres_again, "TOTAL", {name: rule for name, rule in postgres_again.TOTAL.items() if name != "add"}
    )


@pytest.fixture
def world(server: Server, tmp_path: Path) -> Iterator[tuple[Server, str, Path]]:
    name = server.new_database(SCRIPT)
    file = tmp_path / "shop.yaml"
    file.write_text(POLICY.replace("ADDRESS", server.address(name)), encoding="utf-8")
    yield server, name, file
    server.drop(name)


def with_far_row(world: tuple[Server, str, Path]) -> None:
    server, name, _ = world
    with server.admin(name) as admin:
        admin.execute(f"INSERT INTO far VALUES (7, {FAR})")


def totals(con: Any, sql: str) -> list[Any]:
    """The exact integers of a query, asked as a run asks for them."""
    engine, plan = con.service.engine, con.sql(sql).plan(epsilon=1)
    engine.at_hand([f for r in plan.releases for s in r.statements if s.again is not None for f in s.again.functions])
    return engine.in_snapshot(  # type: ignore[no-any-return]
        lambda: [_fetch(r, EngineAsk(engine, 5, again=lambda: True)).rows() for r in plan.releases]
    )


def test_the_answer_is_that_of_all_other_rows(world: tuple[Server, str, Path]) -> None:
    with dpsql.connect(world[2]) as con:
        assert con.sql(COUNT).run(epsilon=SURE).rows == ((700,),)
        with_far_row(world)
        assert con.sql(f"{COUNT} AND i >= 0").run(epsilon=SURE).rows == ((700,),)
        assert WITHOUT not in con.service.engine.notes
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(asking_again, "OF_VALUES", ())
            with pytest.raises(EngineError):
                con.sql(f"{COUNT} AND i >= -1").run(epsilon=SURE)


def test_what_fails_after_a_release_was_drawn_is_not_asked_again(world: tuple[Server, str, Path]) -> None:
    with_far_row(world)
    with dpsql.connect(world[2]) as con:
        first = con.sql("SELECT COUNT(*) AS n FROM log WHERE i + 1 > 4 UNION ALL SELECT COUNT(*) FROM log WHERE i = 3")
        assert first.run(epsilon=SURE).rows[0] == (600,)  # and the function is at hand from now on
        with pytest.raises(EngineError):
            con.sql(f"SELECT COUNT(*) AS n FROM log UNION ALL {COUNT}").run(epsilon=SURE)


def test_a_query_that_does_not_fail_makes_its_functions_once(world: tuple[Server, str, Path]) -> None:
    with dpsql.connect(world[2]) as con:
        for least in (3, 3, 4):
            con.sql(f"SELECT COUNT(*) AS n FROM log WHERE i + 1 > {least}").run(epsilon=1)
        assert len(con.service.engine._made) == 1


SHAPES = [
    "SELECT COUNT(*) AS n FROM log WHERE i + 1 > 3",
    "SELECT COUNT(*) AS n FROM log WHERE NOT (i + 1 > 3) OR i > 5",
    "SELECT SUM(CLIP(i + 1, 0, 10)) AS n FROM log",
    "SELECT SUM(CLIP(i + 1, 0, 10)) AS n, COUNT(*) AS m FROM log WHERE i + 2 > 3",
    "SELECT COUNT(DISTINCT CLIP(i + 1, 0, 9)) AS n FROM log",
    "SELECT CASE WHEN i + 1 > 5 THEN 1 ELSE 0 END AS k, COUNT(*) AS n FROM log GROUP BY k",
    "SELECT AVG(CLIP(i + i, 0, 20)) AS n FROM log",
]


@pytest.mark.parametrize("sql", SHAPES)
def test_neighbours_lie_as_far_apart_as_their_rows(world: tuple[Server, str, Path], sql: str) -> None:
    """A failing row of one id: the integers move by what that row itself may add, and no other row's value moves."""
    server, name, file = world
    with dpsql.connect(file) as con:
        without = totals(con, sql)
        with server.admin(name) as admin:
            admin.execute("INSERT INTO far VALUES (7, 3)")
        ordinary = totals(con, sql)
        with server.admin(name) as admin:
            admin.execute(f"UPDATE far SET i = {FAR}")
        failing = totals(con, sql)
        measured = [m for r in con.sql(sql).plan(epsilon=1).releases for m in r.measured.measurements]
        for before, now in ((without, failing), (ordinary, failing), (without, ordinary)):
            moved = [0] * len(measured)
            at = 0
            for old, new in zip(before, now, strict=True):
                for key in old.keys() | new.keys():
                    empty = [0] * len(next(iter((old | new).values())))
                    for place, (a, b) in enumerate(zip(old.get(key, empty), new.get(key, empty), strict=True)):
                        moved[at + place] += abs(a - b)
                at += len(next(iter((old | new).values())))
            assert all(m <= each.sensitivity.l1 for m, each in zip(moved, measured, strict=True)), (moved, sql)


# --- the same moment --------------------------------------------------------------------------------------------------


def engine_of(server: Server, name: str) -> PostgresEngine:
    return PostgresEngine.open(parse_server(server.address(name)), [Wanted("log"), Wanted("far")])


def counted(engine: PostgresEngine, writes: Any) -> int:
    """Rows told where the first asking fails and, before the second, others write."""
    first, again = ("SELECT count(i + 1) FROM public.both_", "SELECT count(*) - 1 FROM public.both_")
    read = asking_again.read

    def reading(connection: Any, sql: str, stop: Any) -> RawTable:
        try:
            return read(connection, sql, stop)
        finally:
            if sql == first:
                writes()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(asking_again, "read", reading)
        (column,) = engine.in_snapshot(lambda: engine.fetch_again(first, again, ())).columns
    return int(column[0])


def grow(server: Server, name: str) -> None:
    with server.admin(name) as admin:
        admin.execute("INSERT INTO log SELECT 1000 + g, 1 FROM generate_series(1, 1000) AS g")


def test_both_askings_see_one_moment(world: tuple[Server, str, Path]) -> None:
    server, name, _ = world
    with_far_row(world)
    engine = engine_of(server, name)
    assert counted(engine, lambda: grow(server, name)) == 1000
    engine.close()


def test_in_a_newer_snapshot_one_row_would_move_a_thousand(
    world: tuple[Server, str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The twin: rolled back to where the transaction began, and begun anew."""
    server, name, _ = world

    def anew(connection: Any, sql: str, again: str, stop: Any) -> RawTable:
        try:
            return asking_again.read(connection, sql, stop)
        except Exception:
            connection.execute("ROLLBACK")
            connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
        return asking_again.read(connection, again, stop)

    monkeypatch.setattr("dpsql.engines.postgres.engine.read_again", anew)
    engine = engine_of(server, name)
    with_far_row(world)
    assert counted(engine, lambda: grow(server, name)) == 2000
    engine.close()


# --- where there is none ----------------------------------------------------------------------------------------------


def test_without_the_right_there_is_none_and_a_note_says_so(world: tuple[Server, str, Path]) -> None:
    server, name, file = world
    with server.admin(name) as admin:
        admin.execute(f"REVOKE TEMPORARY ON DATABASE {name} FROM PUBLIC")
    with_far_row(world)
    with dpsql.connect(file) as con:
        assert WITHOUT in con.service.engine.notes
        with pytest.raises(EngineError):
            con.sql(COUNT).run(epsilon=1)
        assert WITHOUT in con.sql("SELECT COUNT(*) AS n FROM log").run(epsilon=1).notes


def test_a_right_that_is_lost_leaves_the_failure(world: tuple[Server, str, Path]) -> None:
    server, name, file = world
    with_far_row(world)
    with dpsql.connect(file) as con:
        with server.admin(name) as admin:
            admin.execute(f"REVOKE TEMPORARY ON DATABASE {name} FROM PUBLIC")
        with pytest.raises(EngineError):
            con.sql(COUNT).run(epsilon=1)
        assert con.sql("SELECT COUNT(*) AS n FROM log").run(epsilon=SURE).rows == ((1001,),)


def test_on_a_standby_there_is_none(own_server: Server) -> None:
    name = own_server.new_database(SCRIPT)
    own_server.stop()
    signal = own_server.folder / "data" / "standby.signal"
    signal.touch()
    try:
        own_server.start()
        engine = engine_of(own_server, name)
        assert engine.notes[-1] == WITHOUT
        engine.at_hand([("f", "CREATE FUNCTION pg_temp.f() RETURNS integer LANGUAGE sql AS 'SELECT 1'")])
        assert engine.fetch("SELECT count(*) FROM public.log").rows().__next__() == (1000,)
        assert engine._made == set()
        engine.close()
    finally:
        own_server.stop()
        signal.unlink()


def test_what_is_no_value_is_not_asked_again(world: tuple[Server, str, Path]) -> None:
    """A time limit, a full disk and a lost right are no function of a row."""
    server, name, _ = world
    engine = engine_of(server, name)
    for sql in ("SELECT pg_sleep(9) FROM public.log", "SELECT count(*) FROM public.nothing"):
        with server.admin(name) as admin:
            admin.execute(f"ALTER ROLE reader IN DATABASE {name} SET statement_timeout = '300ms'")
        again = engine_of(server, name)
        with pytest.raises(EngineError):
            again.fetch_again(sql, "SELECT 1", ())
        again.close()
    assert engine.fetch_again("SELECT 1 / (i - i) FROM public.log", "SELECT 5", ()).columns == ([5],)
    engine.close()


def test_the_functions_catch_what_is_asked_again(server: Server) -> None:
    """The conditions of PL/pgSQL and the classes of codes are the same."""
    raised = {"22": ("22003", "22012", "22P02"), "0A": ("0A000",), "54": ("54000",)}
    assert tuple(raised) == OF_VALUES and len(postgres_again.CAUGHT) == len(OF_VALUES)
    caught = " OR ".join(postgres_again.CAUGHT)
    with server.admin() as admin:
        for code in (*(c for codes in raised.values() for c in codes), "53200", "57014", "58030", "XX001", "40001"):
            admin.execute(
                "CREATE OR REPLACE FUNCTION pg_temp.f() RETURNS integer LANGUAGE plpgsql AS "
                f"'BEGIN RAISE SQLSTATE ''{code}''; EXCEPTION WHEN {caught} THEN RETURN NULL; END'"
            )
            try:
                assert admin.execute("SELECT pg_temp.f()").fetchone() == (None,)
                assert code[:2] in OF_VALUES
            except Exception:
                assert code[:2] not in OF_VALUES, code


def test_many_functions_are_dropped_and_made_anew(
    world: tuple[Server, str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(asking_again, "MOST", 3)
    with_far_row(world)
    with dpsql.connect(world[2]) as con:
        for n in range(8):
            rows = con.sql(f"SELECT COUNT(*) AS n FROM log WHERE i + {n} > {n + 2} AND i < 100").run(epsilon=SURE).rows
            assert rows == ((700,),)
            assert len(con.service.engine._made) <= 3
