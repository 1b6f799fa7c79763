"""Which versions of DuckDB are let in, and what one has to show that nobody tested."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path

import duckdb
import pytest

import dpsql
from dpsql.diagnostics.errors import CannotOpen
from dpsql.engines.duckdb.engine import DuckDBEngine
from dpsql.engines.duckdb.locked import battery, optimizers, versions
from dpsql.engines.duckdb.locked.optimizers import ALLOWED, disable, restricted, unwanted
from dpsql.policy.load import parse_policy
from tests.engines.test_clips_stay import MADE, POLICY


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], None]]:
    """Let DuckDB say that it is another version."""
    versions._passes.cache_clear()
    yield lambda version: monkeypatch.setattr(duckdb, "__version__", version)
    versions._passes.cache_clear()


def test_the_version_that_runs_here_was_tested() -> None:
    assert duckdb.__version__ in versions.TESTED and not [*versions.untested()]


def test_what_is_installed_with_dpsql_is_what_is_let_in() -> None:
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text(encoding="utf-8"))
    assert versions._WANTED in project["project"]["dependencies"]


@pytest.mark.parametrize(
    "version", ["1.4.4", "1.5.0", "1.5.3", "2.0.0", "2.1.0", "3.0.1", "2.0.2.dev3", "2.0.10rc1", ""]
)
def test_others_are_refused_by_name_wherever_data_is_opened(
    version: str, installed: Callable[[str], None], tmp_path: Path
) -> None:
    installed(version)
    with duckdb.connect() as own:
        own.execute(MADE)
        for open_it in (
            lambda: DuckDBEngine.open(None, {}, tmp_path),
            lambda: dpsql.connect(own, policy=parse_policy(POLICY), optimizers="ours"),
        ):
            with pytest.raises(CannotOpen) as refused:
                open_it()
            said = str(refused.value)
            assert refused.value.code == "DP006" and f"DuckDB {version} is installed" in said
            assert "pip install 'duckdb>=2.0.1,<2.1'" in said and "environment of its own" in said


def test_a_patch_that_nobody_tested_passes_the_battery_once_and_is_named(
    installed: Callable[[str], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs: list[object] = []
    original = versions.broken
    monkeypatch.setattr(versions, "broken", lambda connection: (runs.append(connection), original(connection))[1])
    installed("2.0.17")
    for _ in range(3):
        engine = DuckDBEngine.open(None, {}, tmp_path)
        assert any("tested with DuckDB 2.0.1; 2.0.17" in note for note in engine.notes)
        engine.close()
    assert len(runs) == 1
    with duckdb.connect() as own:
        own.execute(MADE)
        with dpsql.connect(own, policy=parse_policy(POLICY), optimizers="ours") as con:
            assert any("2.0.17" in note for note in con.execute("SELECT COUNT(*) FROM log", epsilon=1).notes)


def test_one_that_computes_something_else_is_refused(
    installed: Callable[[str], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A version that says that all is off, and goes on rewriting."""
    monkeypatch.setattr(optimizers, "holds", lambda _: True)
    monkeypatch.setattr(optimizers, "disable", lambda *_: None)
    installed("2.0.17")
    for _ in range(2):
        with pytest.raises(CannotOpen, match=r"DuckDB 2\.0\.17 computes something else"):
            DuckDBEngine.open(None, {}, tmp_path)


def test_one_that_does_not_turn_them_off_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(optimizers, "disable", lambda *_: None)
    with pytest.raises(CannotOpen, match="does not turn its optimizers off"):
        DuckDBEngine.open(None, {}, tmp_path)


def test_one_that_cannot_run_the_battery_is_refused(
    installed: Callable[[str], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(battery, "_MADE", "CREATE TABLE nothing AS SELECT")
    installed("2.0.17")
    with pytest.raises(CannotOpen, match="computes something else"):
        DuckDBEngine.open(None, {}, tmp_path)


# --- the battery -----------------------------------------------------------------------------------------------------


def test_nothing_of_it_is_broken_under_our_optimizers_nor_without_any() -> None:
    with restricted({}) as connection:
        assert battery.broken(connection) == []
    with duckdb.connect() as connection:
        disable(connection, unwanted(connection) | ALLOWED)
        assert battery.broken(connection) == []


@pytest.mark.parametrize("back", ["expression_rewriter", "statistics_propagation", "aggregate_function_rewriter"])
def test_each_of_these_breaks_it(back: str) -> None:
    with duckdb.connect() as connection:
        disable(connection, unwanted(connection) - {back})
        assert battery.broken(connection)


def test_the_twin_with_all_optimizers_on_breaks_much_of_it() -> None:
    with duckdb.connect() as connection:
        assert len(battery.broken(connection)) > 10
