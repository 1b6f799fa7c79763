"""Ctrl-C while a transaction begins or ends: it is raised, nothing is left open, and no engine failure is told."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from typing import Any

import duckdb
import pytest

from dpsql.engines.duckdb.engine import DuckDBEngine

pytestmark = pytest.mark.skipif(os.name == "nt", reason="signals")


class Interrupted:
    """A connection whose user presses Ctrl-C beside one kind of statement, once."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, word: str, after: bool) -> None:
        self.inner, self.word, self.after, self.pressed = connection, word, after, False

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    def execute(self, sql: object, *arguments: Any) -> Any:
        press = str(sql).startswith(self.word) and not self.pressed
        if press and not self.after:
            self._press()
        found = self.inner.execute(sql, *arguments)  # type: ignore[call-overload]
        if press and self.after:
            self._press()
        return found

    def _press(self) -> None:
        self.pressed = True
        os.kill(os.getpid(), signal.SIGINT)


@pytest.fixture(autouse=True)
def listening() -> Iterator[None]:
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # jobs in a shell's background ignore it
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("word", ["BEGIN", "ROLLBACK"])
def test_it_is_raised_and_nothing_is_left_open(word: str, after: bool) -> None:
    engine = DuckDBEngine.wrap(duckdb.connect(), optimizers="ours")
    beside = engine._connection = Interrupted(engine._connection, word, after)  # type: ignore[assignment]
    with pytest.raises(KeyboardInterrupt):
        engine.in_snapshot(lambda: engine.fetch("SELECT 1 AS x"))
    assert beside.pressed
    assert engine.in_snapshot(lambda: engine.fetch("SELECT 2 AS x")).columns == ([2],)
    engine.close()
