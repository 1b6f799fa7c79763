"""How far a running query is, as a bar on the terminal or in the notebook of the custodian.

The share of rows that the engine has gone through depends on private rows, and so does the time that it shows: neither
is covered by ε. So there is a bar only where the caller switches it on, and only before somebody's eyes: nothing is
written to a pipe or a file, and nothing where NO_COLOR or TERM=dumb asks for plain text.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import sys
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Final, Protocol, TextIO

if TYPE_CHECKING:
    from rich.progress import Progress

QUIET: Final = 1.0
"""Seconds that a query runs before its bar appears: most end earlier."""
_TEXT: Final = "query"


class Display(Protocol):
    """A place for one bar."""

    def show(self, bar: Progress) -> None:
        """Draw the bar in the place of the last one."""
        ...

    def clear(self) -> None:
        """Leave nothing of it."""
        ...


class Terminal:
    """The last line of a terminal. The cursor is not hidden, so a process that is killed leaves a usable terminal."""

    def __init__(self, stream: TextIO) -> None:
        from rich.console import Console

        self._console = Console(file=stream, highlight=False)

    def show(self, bar: Progress) -> None:
        """Over the line that the cursor is in."""
        from rich.segment import Segments

        line = self._console.render_lines(bar.get_renderable(), pad=False)[0]
        self.clear()
        self._console.print(Segments(line), end="", overflow="crop", no_wrap=True)

    def clear(self) -> None:
        """An empty line, the cursor at its beginning."""
        from rich.control import Control
        from rich.segment import ControlType

        self._console.control(Control(ControlType.CARRIAGE_RETURN, (ControlType.ERASE_IN_LINE, 2)))


class Notebook:
    """An output of the running cell, which rich renders as HTML; it needs no widgets."""

    def __init__(self) -> None:
        self._handle: Any = None

    def show(self, bar: Progress) -> None:
        """Below what the cell has written so far, then always there."""
        display = importlib.import_module("IPython.display").display
        if self._handle is None:
            self._handle = display(bar, display_id=True)
        else:
            self._handle.update(bar)

    def clear(self) -> None:
        """An empty output."""
        if self._handle is not None:
            self._handle.update({"text/plain": ""}, raw=True)


def find_display() -> Display | None:
    """The notebook that this code runs in, or the terminal that standard error is; None if nobody is looking."""
    if in_notebook():
        return Notebook()
    stream = sys.stderr
    if stream is None or not stream.isatty() or os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        return None
    return Terminal(stream)


def in_notebook() -> bool:
    """Whether a Jupyter kernel runs this code; loads nothing."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return any(c.__name__ == "ZMQInteractiveShell" for c in type(shell).__mro__)


class _Bar:
    """The bar of one query. percent: 0 to 100 as the engine says it; less than 0 if it does not know."""

    def __init__(self, percent: Callable[[], float]) -> None:
        self._percent = percent
        self._began = time.monotonic()
        self._display: Display | None = None
        self._bar: Progress | None = None
        self._nobody = False

    def look(self) -> None:
        if self._nobody or time.monotonic() < self._began + QUIET:
            return
        try:
            if self._bar is None or self._display is None:
                self._display = find_display()
                if self._display is None:
                    self._nobody = True
                    return
                self._bar = _rich_bar(time.monotonic() - self._began)
            done = min(float(self._percent()), 100.0)
            (task,) = self._bar.tasks
            # Engines correct themselves; a bar that goes back looks like an error.
            if done > 0 and (task.total is None or done > task.completed):
                self._bar.update(task.id, completed=done, total=100.0)
            self._display.show(self._bar)
        except Exception:  # a terminal that is closed, a notebook that has gone: no reason to stop the query
            self._nobody = True

    def clear(self) -> None:
        if self._bar is not None and self._display is not None:
            with contextlib.suppress(Exception):
                self._display.clear()


def _rich_bar(elapsed: float) -> Progress:
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeElapsedColumn())
    bar = Progress(*columns, auto_refresh=False)  # never started: no thread, and nothing to be undone
    bar.add_task(_TEXT, total=None)
    bar.tasks[0].start_time = bar.get_time() - elapsed
    return bar


@contextlib.contextmanager
def watched(percent: Callable[[], float]) -> Iterator[Callable[[], None]]:
    """What is to be called a few times a second while a query runs; its bar is gone afterwards, however it ended.

    percent: see `_Bar`. Nothing that goes wrong with the bar leaves this.
    """
    bar = _Bar(percent)
    try:
        yield bar.look
    finally:
        bar.clear()
