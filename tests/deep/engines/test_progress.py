"""Only who asks gets a bar."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pytest

from dpsql.engines import progress
from dpsql.engines.duckdb.engine import DuckDBEngine
from tests.engines.test_progress import Screen


@pytest.fixture
def screen(monkeypatch: pytest.MonkeyPatch) -> Screen:
    """What standard error is redirected to; a bar from the first look on."""
    found = Screen()
    monkeypatch.setattr(progress, "QUIET", 0.0)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    return found


def settings(engine: DuckDBEngine) -> list[tuple[Any, ...]]:
    names = ("enable_progress_bar", "enable_progress_bar_print")
    ((counting,), (drawing,)) = engine.fetch(
        "SELECT " + ", ".join(f"CAST(current_setting('{n}') AS BOOLEAN) AS {n}" for n in names)
    ).columns
    return [counting, drawing]


def opened(folder: Path, on: bool) -> DuckDBEngine:
    return DuckDBEngine.open(Path("clinic.duckdb"), {}, folder, progress=on)


def wrapped(folder: Path, on: bool) -> DuckDBEngine:
    con = duckdb.connect()
    con.execute("SET enable_progress_bar = true")  # as notebooks have it
    return DuckDBEngine.wrap(con, progress=on, optimizers="ours")


@pytest.mark.parametrize("make", [opened, wrapped])
def test_only_who_asks_gets_it_and_duckdb_never_draws(
    make: Callable[[Path, bool], DuckDBEngine], folder: Path, screen: Screen
) -> None:
    for on in (False, True):
        engine = make(folder, on)
        counting, drawing = settings(engine)
        assert counting == on and not (counting and drawing)
        screen.truncate(0)
        with contextlib.redirect_stderr(screen):
            engine.fetch("SELECT COUNT(*) FROM range(60000000) a(i) WHERE (i * 7) % 11 = 3")
        assert ("query" in screen.getvalue()) == on
        engine.close()
