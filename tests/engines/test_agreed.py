"""On a connection of the user's, optimizers of ours alone work while a statement of ours runs, and then his again."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path

import duckdb
import pytest

import dpsql
from dpsql.diagnostics.errors import CannotOpen, EngineError, Rejected
from dpsql.engines.duckdb.engine import DuckDBEngine
from dpsql.engines.duckdb.locked import agreed
from dpsql.engines.duckdb.locked.optimizers import ALLOWED, disable, disabled, holds, unwanted
from dpsql.policy.load import parse_policy
from tests.engines.test_clips_stay import MADE, POLICY


@pytest.fixture
def own() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as opened:
        opened.execute(MADE)
        yield opened


def mine(own: duckdb.DuckDBPyConnection) -> frozenset[str]:
    """What is off now, as another connection of the user's sees it."""
    with own.cursor() as other:
        return disabled(other)


def engine_of(own: duckdb.DuckDBPyConnection) -> DuckDBEngine:
    return DuckDBEngine.wrap(own, optimizers="ours")


# --- who has to agree ------------------------------------------------------------------------------------------------


def test_without_agreement_it_is_refused_with_both_ways_out(own: duckdb.DuckDBPyConnection) -> None:
    with pytest.raises(CannotOpen) as refused:
        dpsql.connect(own, policy=parse_policy(POLICY))
    said = str(refused.value)
    assert refused.value.code == "DP006" and "optimizers='ours'" in said and "dpsql.connect('policy.yaml')" in said
    assert mine(own) == frozenset()
    with pytest.raises(CannotOpen, match="DP006"):
        dpsql.verify_policy(own, policy=parse_policy(POLICY))
    with pytest.raises(Rejected, match="DP903"):
        dpsql.connect(own, policy=parse_policy(POLICY), optimizers="mine")


def test_where_they_are_off_already_nobody_has_to_agree(own: duckdb.DuckDBPyConnection) -> None:
    for more in (frozenset[str](), ALLOWED):
        disable(own, unwanted(own) | more)
        before = mine(own)
        with dpsql.connect(own, policy=parse_policy(POLICY)) as con:
            assert con.sql("SELECT SUM(x) AS s FROM log").run(epsilon=1e20).rows == ((50,),)
        assert mine(own) == before
    own.execute("SET lock_configuration = true")
    DuckDBEngine.wrap(own).close()


def test_each_of_them_has_to_be_off(own: duckdb.DuckDBPyConnection) -> None:
    each_has_to_be_off(own, sorted(unwanted(own))[::8])


def each_has_to_be_off(own: duckdb.DuckDBPyConnection, names: Sequence[str]) -> None:
    """With one of these on, nothing is opened."""
    every = unwanted(own)
    for name in names:
        disable(own, every - {name})
        with pytest.raises(CannotOpen, match="optimizers on"):
            DuckDBEngine.wrap(own)


def test_a_locked_connection_is_refused_though_the_user_agrees(own: duckdb.DuckDBPyConnection) -> None:
    own.execute("SET lock_configuration = true")
    with pytest.raises(CannotOpen, match="is locked with optimizers on"):
        engine_of(own)


# --- while something of ours runs ------------------------------------------------------------------------------------


def test_they_are_off_while_a_statement_runs_and_then_what_they_were(own: duckdb.DuckDBPyConnection) -> None:
    own.execute("SET disabled_optimizers = 'join_order'")
    with closing(engine_of(own)) as engine:
        assert mine(own) == {"join_order"}
        ours = engine.in_snapshot(lambda: mine(own))
        assert ours == {"join_order", *unwanted(own)}
        assert engine.in_snapshot(lambda: engine.in_snapshot(lambda: mine(own))) == ours
        seen = engine.in_snapshot(
            lambda: (engine.fetch("SELECT 1"), mine(own), engine.sibling().fetch("SELECT 1"), mine(own))
        )
        assert seen[1] == seen[3] == ours
        assert engine.fetch("SELECT current_setting('disabled_optimizers') AS s").columns[0][0].count(",") > 30
        assert mine(own) == {"join_order"}
    assert mine(own) == {"join_order"}


def test_what_opening_looks_at_is_planned_with_ours_too(
    own: duckdb.DuckDBPyConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    own.execute("CREATE VIEW seen AS SELECT * FROM log")
    planned: list[bool] = []
    original = DuckDBEngine._rows

    def spied(self: DuckDBEngine, sql: str) -> object:
        planned.append(not sql.startswith("SELECT *") or original(self, AS_SET)[0][0].count(",") > 30)
        return original(self, sql)

    monkeypatch.setattr(DuckDBEngine, "_rows", spied)
    with closing(engine_of(own)) as engine:
        engine.describe()
        assert engine.table_sql("seen") and len(planned) > 3 and all(planned)
    assert mine(own) == frozenset()


AS_SET = "SELECT current_setting('disabled_optimizers')"


def test_of_several_engines_the_last_one_gives_it_back(own: duckdb.DuckDBPyConnection) -> None:
    with (
        duckdb.connect() as beside,
        closing(engine_of(own)) as one,
        closing(engine_of(own.cursor())) as other,
        closing(engine_of(beside)) as third,
    ):

        def inside() -> None:
            other.fetch("SELECT 1")
            third.fetch("SELECT 1")
            assert holds(own) and holds(beside)
            other.sibling().fetch("SELECT 1")
            assert holds(own)

        one.in_snapshot(inside)
        assert mine(own) == mine(beside) == frozenset()


def test_of_many_threads_none_finds_another_setting(own: duckdb.DuckDBPyConnection) -> None:
    engines = [engine_of(own.cursor()) for _ in range(2)]
    everyone = [each for engine in engines for each in (engine, engine.sibling())]
    seen: list[str] = []

    def ask(engine: DuckDBEngine) -> None:
        for _ in range(25):
            seen.extend(engine.fetch(f"{AS_SET} AS s").columns[0])

    threads = [threading.Thread(target=ask, args=(engine,)) for engine in everyone]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(seen) == 100 and all(unwanted(own) <= set(found.split(",")) for found in seen)
    assert mine(own) == frozenset()
    for engine in engines:
        engine.close()


def test_what_goes_wrong_gives_it_back(own: duckdb.DuckDBPyConnection) -> None:
    def fail() -> None:
        raise KeyboardInterrupt

    with closing(engine_of(own)) as engine:
        with pytest.raises(EngineError):
            engine.fetch("SELECT error('no')")
        assert mine(own) == frozenset()
        with pytest.raises(KeyboardInterrupt):
            engine.in_snapshot(fail)
        assert mine(own) == frozenset()


def test_one_that_was_broken_off_gives_it_back_at_the_next_or_when_it_is_closed(own: duckdb.DuckDBPyConnection) -> None:
    """As after a Ctrl-C between the last statement and its end."""
    with closing(engine_of(own)) as engine:
        for after in (lambda: engine.fetch("SELECT 1"), engine.close):
            agreed.begin(engine, engine._connection)
            assert holds(own)
            after()
            assert mine(own) == frozenset()


def test_what_the_user_sets_meanwhile_stays_and_is_looked_at_before_the_next(own: duckdb.DuckDBPyConnection) -> None:
    with closing(engine_of(own)) as engine:
        engine.in_snapshot(lambda: own.execute("SET disabled_optimizers = 'top_n'"))
        assert mine(own) == {"top_n"}
        assert unwanted(own) <= engine.in_snapshot(lambda: mine(own))

        def twice() -> None:
            own.execute("SET disabled_optimizers = 'unused_columns'")
            engine.sibling().in_snapshot(lambda: None)  # looks, and finds it too weak
            assert holds(own)

        engine.in_snapshot(twice)
        assert mine(own) == {"unused_columns"}


def test_nothing_is_run_once_the_user_has_locked_it(own: duckdb.DuckDBPyConnection) -> None:
    with closing(engine_of(own)) as engine:
        own.execute("SET lock_configuration = true")
        with pytest.raises(EngineError):
            engine.fetch("SELECT 1")
        with pytest.raises(EngineError):
            engine.table_sql("log")


def test_a_file_that_two_connections_share(tmp_path: Path) -> None:
    with duckdb.connect(str(tmp_path / "d.duckdb")) as one, duckdb.connect(str(tmp_path / "d.duckdb")) as other:
        with closing(engine_of(one)) as first, closing(engine_of(other)) as second:
            assert first.in_snapshot(lambda: second.in_snapshot(lambda: holds(one)) and holds(other))
        assert disabled(one) == disabled(other) == frozenset()
