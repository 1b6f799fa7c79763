"""Ctrl-C while a result is converted: nothing more of it is, and the connection can be used again."""

from __future__ import annotations

import datetime
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

import duckdb
import pytest

from dpsql.core import engine as base
from dpsql.core.ir.types import parse_type
from dpsql.core.stopping import CHUNK, Stop, columns_of, until_stopped
from dpsql.engines.duckdb.engine import DuckDBEngine
from dpsql.engines.duckdb.locked.connections import open_scratch
from dpsql.engines.duckdb.scratch import Scratch

PATIENCE = 60.0
DATES = f"SELECT DATE '2020-01-01' + i::INTEGER AS d, i FROM range({5 * CHUNK}) s(i) ORDER BY i"
NUMBERS = "SELECT i, i + 1 AS j, i::HUGEINT * 1000000000000000000 AS h FROM range(3) s(i)"


@pytest.fixture
def listening() -> Iterator[None]:
    if os.name == "nt":
        pytest.skip("signals")
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # jobs in a shell's background ignore it
    yield
    signal.signal(signal.SIGINT, before)


class Pressed:
    """A connection whose user presses Ctrl-C at the second step of a conversion, which lasts until `stop` is set."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, stop: Stop) -> None:
        self.inner, self.stop, self.steps, self.lasted = connection, stop, 0, False

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    def execute(self, *arguments: Any) -> Pressed:
        self.inner.execute(*arguments)
        return self

    def interrupt(self) -> None:
        """Nothing: DuckDB's own interrupt ends a result that is still being read, not one that is there."""

    def fetchmany(self, rows: int) -> list[tuple[Any, ...]]:
        self._step()
        return self.inner.fetchmany(rows)

    def fetchnumpy(self) -> dict[str, Any]:
        return {name: Array(array, self._step) for name, array in self.inner.fetchnumpy().items()}

    def _step(self) -> None:
        self.steps += 1
        if self.steps == 2:
            os.kill(os.getpid(), signal.SIGINT)
            deadline = time.monotonic() + PATIENCE
            while not self.lasted and time.monotonic() < deadline:
                time.sleep(0.001)
                self.lasted = self.stop.is_set()


class Array:
    """A numpy column whose conversion is a step."""

    def __init__(self, array: Any, step: Callable[[], None]) -> None:
        self.array, self.step, self.dtype = array, step, array.dtype

    def tolist(self) -> list[Any]:
        self.step()
        found: list[Any] = self.array.tolist()
        return found


@pytest.mark.parametrize(
    ("sql", "height"),
    [(DATES, 5 * CHUNK), ("SELECT i / 2 AS i, i / 3 AS j, i / 4 AS k FROM range(3) s(i)", 3)],
    ids=["rows", "numpy"],
)
def test_no_further_step_of_an_engine(sql: str, height: int, listening: None) -> None:
    engine = DuckDBEngine.wrap(duckdb.connect(), optimizers="ours")
    beside = Pressed(engine._connection, engine._stop)
    engine._connection = beside  # type: ignore[assignment]
    with pytest.raises(KeyboardInterrupt):
        engine.fetch(sql)
    assert (beside.steps, beside.lasted) == (2, True)
    assert engine.fetch(sql).height == height
    engine.close()


def test_no_further_step_of_post_processing(listening: None) -> None:
    scratch = Scratch()
    beside = Pressed(open_scratch(), scratch._stop)
    scratch._connection = beside  # type: ignore[assignment]
    with pytest.raises(KeyboardInterrupt):
        scratch.fetch(DATES)
    assert (beside.steps, beside.lasted) == (2, True)
    assert scratch.fetch(DATES)[0].height == 5 * CHUNK
    scratch.close()


@pytest.mark.parametrize("height", [0, 1, CHUNK - 1, CHUNK, CHUNK + 1, 2 * CHUNK])
def test_every_row_once_and_in_order(height: int) -> None:
    engine = DuckDBEngine.wrap(duckdb.connect(), optimizers="ours")
    table = engine.fetch(f"SELECT DATE '2020-01-01' + i::INTEGER AS d, i AS n FROM range({height}) s(i) ORDER BY i")
    first = datetime.date(2020, 1, 1)
    assert table.columns == ([first + datetime.timedelta(i) for i in range(height)], list(range(height)))
    engine.close()


def test_an_interrupt_before_a_query_is_forgotten() -> None:
    engine, scratch = DuckDBEngine.wrap(duckdb.connect(), optimizers="ours"), Scratch()
    bigint = parse_type("BIGINT")
    assert bigint is not None
    scratch.load("t", [("i", bigint)], [(1,)])
    engine.interrupt()
    scratch.interrupt()
    assert engine.fetch(NUMBERS).columns == ([0, 1, 2], [1, 2, 3], [0, 10**18, 2 * 10**18])
    assert scratch.fetch(f"SELECT i FROM {scratch.table_sql('t')}")[0].columns == ([1],)
    engine.close()
    scratch.close()


def test_steps_until_then() -> None:
    stop, taken = Stop(), []
    with pytest.raises(InterruptedError):
        for step in until_stopped(stop, range(9)):
            taken.append(step)
            if step == 3:
                stop.set()
    assert taken == [0, 1, 2, 3]
    assert list(until_stopped(Stop(), range(4))) == [0, 1, 2, 3]


def test_a_result_without_rows_has_its_columns() -> None:
    assert columns_of(lambda rows: [], 3, Stop()) == ([], [], [])


def interrupted_at(line: int) -> tuple[bool, bool, int, int]:
    """Ctrl-C at a line, counted as they are run, of the function that waits for an engine.

    Whether there was that line, whether Ctrl-C was raised, and how often the action began and ended until then.
    """
    left, looks, stopped = line, 0, Stop()
    begun = ended = 0
    raised = False

    def action() -> None:
        nonlocal begun, ended
        begun += 1
        deadline = time.monotonic() + PATIENCE
        while looks < 3 and not stopped.is_set() and time.monotonic() < deadline:
            time.sleep(0.0005)
        ended += 1

    def look() -> None:
        nonlocal looks
        looks += 1

    def count(frame: FrameType, event: str, _: object) -> Any:
        nonlocal left
        if event == "line":
            left -= 1
            if left == 0:
                raise KeyboardInterrupt
        return count

    before = sys.gettrace()
    sys.settrace(lambda frame, event, _: count if frame.f_code is base._attended.__code__ else None)
    try:
        base.guarded(action, stopped.set, look)
    except KeyboardInterrupt:
        raised = True
    finally:
        sys.settrace(before)
    return left <= 0, raised, begun, ended


def test_ctrl_c_between_any_two_lines_of_the_wait_ends_the_query_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else it would run on, in a connection that is used again."""
    monkeypatch.setattr(base, "_PATIENCE", 0.001)
    for line in range(1, 1000):
        there, raised, begun, ended = interrupted_at(line)
        assert (raised, begun) in ((there, ended), (True, 0)), line
        if not there:
            break
    assert line > 10 and not there
