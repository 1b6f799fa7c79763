"""Ctrl-C where a `with` begins or ends, and somebody who keeps the traceback, as notebooks do.

Conditions, and so Events, take their lock in a method of Python's: KeyboardInterrupt in it leaves it taken for ever.
Between the `yield` of a generator and the body of its `with`, and between the body and the rest of the generator,
KeyboardInterrupt leaves the generator suspended for as long as its frames live: whatever it holds stays held.
"""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from dpsql import connect
from dpsql.api.connection import Connection
from dpsql.engines.duckdb.engine import DuckDBEngine
from tests.support.small_shop import MEANS, Shop

pytestmark = pytest.mark.skipif(os.name == "nt", reason="signals")


class Contexts:
    """Counts where generators and conditions are entered and left; presses Ctrl-C at one, and keeps the traceback."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        kind = contextlib._GeneratorContextManager
        enter, leave = kind.__enter__, kind.__exit__
        self.left = 0
        self.kept: list[KeyboardInterrupt] = []

        def entered(manager: Any) -> Any:
            found = enter(manager)
            self._press()
            return found

        def leaving(manager: Any, *arguments: Any) -> Any:
            self._press()
            return leave(manager, *arguments)

        monkeypatch.setattr(kind, "__enter__", entered)
        monkeypatch.setattr(kind, "__exit__", leaving)
        take = threading.Condition.__enter__

        def taken(condition: Any) -> Any:
            found = take(condition)
            self._press()
            return found

        monkeypatch.setattr(threading.Condition, "__enter__", taken)

    def _press(self) -> None:
        if self.left and threading.get_ident() == threading.main_thread().ident:
            self.left -= 1
            if not self.left:
                signal.raise_signal(signal.SIGINT)

    def stop_each(self, action: Callable[[], object]) -> Iterator[None]:
        """Run it again and again, stopped one entry or exit later each time, until it comes to its end."""
        for at in range(1, 1000):
            self.left = at
            try:
                action()
                assert self.left
                return
            except KeyboardInterrupt as stopped:
                self.kept.append(stopped)
            finally:
                self.left = 0
            yield


@pytest.fixture
def contexts(monkeypatch: pytest.MonkeyPatch) -> Iterator[Contexts]:
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield Contexts(monkeypatch)
    signal.signal(signal.SIGINT, before)


def asked(con: Connection, *, fresh: bool = True) -> int:
    return len(con.execute(MEANS, epsilon="0.1", fresh=fresh).rows)


def asked_in_a_thread(con: Connection, seconds: float) -> tuple[threading.Thread, list[int]]:
    rows: list[int] = []
    thread = threading.Thread(target=lambda: rows.append(asked(con)), daemon=True)
    thread.start()
    thread.join(seconds)
    return thread, rows


@pytest.mark.parametrize("fresh", [True, False], ids=["new noise", "stored answers"])
def test_this_thread_others_and_other_sessions_go_on(shop: Shop, contexts: Contexts, fresh: bool) -> None:
    number = iter(range(1000))
    with connect(shop.policy) as con:
        asked(con)

        def ask() -> object:
            # Another ε each time, so that the answer is not there already.
            return con.execute(MEANS, epsilon=f"0.1{next(number):03}", fresh=fresh)

        for _ in contexts.stop_each(ask):
            assert asked(con) == 3
            _thread, rows = asked_in_a_thread(con, 600)
            assert rows == [3]
            with connect(shop.policy) as other:
                assert asked(other) == 3
        assert len(contexts.kept) > 5
    shop.serves()


def test_a_generator_that_holds_the_engine_is_found(
    shop: Shop, contexts: Contexts, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The twin: the engine's transaction as a context manager, which is how it was."""
    in_snapshot = DuckDBEngine.in_snapshot

    @contextlib.contextmanager
    def holding(engine: DuckDBEngine) -> Iterator[None]:
        with engine._lock:
            yield

    def held(engine: DuckDBEngine, action: Callable[[], Any]) -> Any:
        with holding(engine):
            return in_snapshot(engine, action)

    monkeypatch.setattr(DuckDBEngine, "in_snapshot", held)
    with connect(shop.policy) as con:
        asked(con)
        blocked = []
        for _ in contexts.stop_each(lambda: asked(con)):
            thread, rows = asked_in_a_thread(con, 0.3)
            blocked.append(thread.is_alive())
            contexts.kept.clear()  # and with the tracebacks what holds the lock
            thread.join(600)
            assert rows == [3]
    assert any(blocked)
