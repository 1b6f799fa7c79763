"""The bar: where it is drawn and where not, that it only grows, and that nothing about it can stop a query."""

from __future__ import annotations

import contextlib
import io
import re
import subprocess
import sys
import threading
import time
import types
from typing import Any

import pytest

from dpsql.core.engine import guarded
from dpsql.engines import progress
from dpsql.engines.progress import watched


class Screen(io.StringIO):
    """A stream that says it is a terminal."""

    def __init__(self, terminal: bool = True) -> None:
        super().__init__()
        self.terminal = terminal

    def isatty(self) -> bool:
        return self.terminal


@pytest.fixture
def screen(monkeypatch: pytest.MonkeyPatch) -> Screen:
    """What standard error is redirected to; a bar from the first look on."""
    found = Screen()
    monkeypatch.setattr(progress, "QUIET", 0.0)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    return found


def shown(screen: Screen, percents: list[float]) -> list[int]:
    """What a bar shows of these, and that there is nothing when it has gone."""
    left = list(percents)
    with contextlib.redirect_stderr(screen), watched(lambda: left.pop(0)) as look:
        for _ in percents:
            look()
    text = screen.getvalue()
    assert not text or text.endswith("\r\x1b[2K")
    assert "\n" not in text
    return [int(n) for n in re.findall(r"(\d+)%", text)]


def test_it_grows_and_never_goes_back(screen: Screen) -> None:
    assert shown(screen, [-1.0, 0.0, 10.0, 8.0, 40.4, -1.0, 99.6, 250.0]) == [10, 10, 40, 40, 100, 100]


def test_a_short_query_shows_nothing(screen: Screen, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "QUIET", 100.0)
    assert shown(screen, [50.0, 60.0]) == [] and screen.getvalue() == ""


@pytest.mark.parametrize("setting", [("NO_COLOR", "1"), ("TERM", "dumb"), None])
def test_nothing_where_nobody_looks_or_wants_it(
    screen: Screen, setting: tuple[str, str] | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    if setting is None:
        screen.terminal = False
    else:
        monkeypatch.setenv(*setting)
    assert shown(screen, [50.0, 60.0]) == [] and screen.getvalue() == ""


def test_what_breaks_in_the_bar_breaks_no_query(screen: Screen) -> None:
    def broken() -> float:
        raise RuntimeError

    for percent in (broken, lambda: "half"):
        with contextlib.redirect_stderr(screen), watched(percent) as look:  # type: ignore[arg-type]
            look()
            look()
    screen.close()
    for stream in (screen, None):
        with contextlib.redirect_stderr(stream), watched(lambda: 50.0) as look:
            look()


def test_in_a_notebook_an_output_of_the_cell_is_updated(screen: Screen, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a Jupyter kernel offers, without one: the bar renders itself as HTML, and its output is empty in the end."""
    outputs: list[dict[str, Any]] = []

    class Handle:
        def update(self, thing: Any, raw: bool = False) -> None:
            outputs.append(thing if raw else thing._repr_mimebundle_((), ()))

    def display(thing: Any, display_id: bool) -> Handle:
        Handle().update(thing)
        return Handle()

    kernel, showing = types.ModuleType("IPython"), types.ModuleType("IPython.display")
    shell = type("ZMQInteractiveShell", (), {})()
    kernel.get_ipython, showing.display = lambda: shell, display  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "IPython", kernel)
    monkeypatch.setitem(sys.modules, "IPython.display", showing)
    left = [20.0, 60.0]
    with contextlib.redirect_stderr(screen), watched(lambda: left.pop(0)) as look:
        look()
        look()
    assert ["20%" in outputs[0]["text/html"], "60%" in outputs[1]["text/html"]] == [True, True]
    assert outputs[2] == {"text/plain": ""} and len(outputs) == 3 and screen.getvalue() == ""


def test_a_terminal_session_of_ipython_is_no_notebook(screen: Screen, monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = types.ModuleType("IPython")
    kernel.get_ipython = lambda: type("TerminalInteractiveShell", (), {})()  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "IPython", kernel)
    assert not progress.in_notebook() and shown(screen, [30.0]) == [30]


def test_it_is_looked_at_while_the_query_runs_and_not_after() -> None:
    """The query lasts until it has been looked at twice, however busy the machine is."""
    looks: list[float] = []
    twice = threading.Event()

    def look() -> None:
        looks.append(1)
        if len(looks) == 2:
            twice.set()

    assert guarded(lambda: twice.wait(600), lambda: None, look)
    before = len(looks)
    assert before >= 2
    time.sleep(0.2)
    assert len(looks) == before


def test_rich_is_loaded_when_there_is_something_to_show() -> None:
    code = (
        "import sys, duckdb; from dpsql.engines.duckdb.engine import DuckDBEngine;"
        "e = DuckDBEngine.wrap(duckdb.connect(), progress=True, optimizers='ours'); e.fetch('SELECT 1');"
        "print('rich' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=600, check=True)
    assert done.stdout.strip() == "False"
