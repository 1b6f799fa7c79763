"""The real program in a pseudo-terminal: what is typed, what it writes, and the screen that a person would see."""

from __future__ import annotations

import os
import re
import sys
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pexpect
import pyte

LIMIT = 120.0
"""Seconds that anything may take on a loaded machine."""
ANSI = re.compile(r"\x1b(?:\[[0-9;?]*[A-Za-z]|[()][A-Z0-9]|[=>78])")
PROMPT = re.compile(r"=> *$")
_OFF, _ON = "\x1b[?2004l", "\x1b[?2004h"
"""Written (bracketed paste) when an input is handed over, and when the next one is waited for."""


class _Screen(pyte.HistoryScreen):
    """Answers what programs ask a terminal."""

    def __init__(self, columns: int, lines: int, send: Callable[[str], None]) -> None:
        super().__init__(columns, lines, history=5000)
        self._send = send

    def write_process_input(self, data: str) -> None:
        self._send(data)


class Terminal:
    """A program in a terminal of its own. Use as a context manager: the program is ended at the end."""

    def __init__(
        self,
        arguments: Sequence[str],
        folder: Path,
        environment: Mapping[str, str] | None = None,
        *,
        columns: int = 100,
        lines: int = 40,
    ) -> None:
        home = folder / "home"
        home.mkdir(exist_ok=True)
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("DPSQL_", "XDG_", "LESS"))}
        for name in ("NO_COLOR", "COLUMNS", "LINES", "PAGER", "EDITOR", "VISUAL", "PROMPT_TOOLKIT_NO_CPR"):
            kept.pop(name, None)
        defaults = {"HOME": str(home), "TERM": "xterm-256color", "LC_ALL": "C.UTF-8", "PAGER": "cat"}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # of forks in processes with threads
            self.child = pexpect.spawn(
                sys.executable, ["-m", "dpsql", *arguments], cwd=str(folder),
                env={**kept, **defaults, **(environment or {})}, dimensions=(lines, columns), encoding="utf-8",
                codec_errors="replace",
            )  # fmt: skip
        self.child.delaybeforesend = None
        self._screen = _Screen(columns, lines, self._answer)
        self._stream = pyte.Stream(self._screen)
        self.raw = ""
        self._shown: tuple[int, list[str]] = (-1, [])

    def __enter__(self) -> Terminal:
        return self

    def __exit__(self, *exception: object) -> None:
        self.child.close(force=True)

    # --- what is shown -----------------------------------------------------------------------------------------------

    @property
    def screen(self) -> str:
        """The lines of the screen, without spaces at their ends."""
        return "\n".join(line.rstrip() for line in self._lines()).rstrip()

    def _lines(self) -> list[str]:
        """The screen's lines; pyte puts them together anew each time, which takes a while."""
        if self._shown[0] != len(self.raw):
            self._shown = len(self.raw), self._screen.display
        return self._shown[1]

    @property
    def everything(self) -> str:
        """What was ever written, without codes."""
        return plain(self.raw)

    def read(self, seconds: float = 0.05) -> bool:
        """Take over what the program has written; whether it still runs."""
        try:
            text = self.child.read_nonblocking(65536, timeout=seconds)
        except pexpect.TIMEOUT:
            return True
        except pexpect.EOF:
            return False
        self.raw += text
        self._stream.feed(text)
        return True

    def wait(self, what: str | Callable[[], bool]) -> str:
        """Wait until a text stands on the screen, or something holds; the screen. Fails with what is seen."""
        holds = what if callable(what) else lambda: what in self.screen
        end = time.monotonic() + LIMIT
        while not holds():
            running = self.read()
            if not running and not holds():
                raise AssertionError(f"it ended without {what!r}:\n{self.screen}")
            if time.monotonic() > end:
                raise AssertionError(f"no {what!r} within {LIMIT} s:\n{self.screen}")
        return self.screen

    def wait_for_prompt(self) -> None:
        """Wait until the cursor stands behind a new prompt."""
        self.wait(lambda: self.at_prompt)

    @property
    def at_prompt(self) -> bool:
        """Whether the cursor stands behind a prompt with nothing typed."""
        y, x = self._screen.cursor.y, self._screen.cursor.x
        return bool(PROMPT.search(self._lines()[y][:x]))

    # --- what is typed -----------------------------------------------------------------------------------------------

    def type(self, text: str) -> None:
        """Press keys. Enter is \\r, Ctrl-C \\x03, Ctrl-D \\x04, Tab \\t."""
        self.child.send(text)

    def _answer(self, text: str) -> None:
        self.child.send(text)

    def ask(self, text: str) -> str:
        """Type an input and Enter at a prompt, wait for the next prompt; what the program wrote in between."""
        return self._handed_over(text.replace("\n", "\r") + "\r")

    def interrupt(self) -> str:
        """Press Ctrl-C at a prompt, whatever was typed there, and wait for the next one."""
        return self._handed_over("\x03")

    def clear(self) -> None:
        """Press Ctrl-L at a prompt: an empty screen with the prompt at its top."""
        self._handed_over("\x0c")

    def resize(self, columns: int, lines: int) -> None:
        """Another size, at a prompt, which is drawn again."""
        start = len(self.raw)
        if (columns, lines) == (self._screen.columns, self._screen.lines):
            return
        self._screen.resize(lines, columns)
        self._shown = (-1, [])
        self.child.setwinsize(lines, columns)
        self.wait(lambda: _ON in self.raw[start:] and self.at_prompt)

    def _handed_over(self, keys: str) -> str:
        """Keys that end an input: what is written until the next prompt.

        Nothing may be outstanding: whatever has the prompt drawn again looks like the end of an input.
        """
        start = len(self.raw)
        self.type(keys)

        def done() -> bool:
            written = self.raw[start:]
            handed = written.find(_OFF)
            return handed >= 0 and _ON in written[handed:] and self.at_prompt

        self.wait(done)
        written = self.raw[start:]
        handed = written.find(_OFF) + len(_OFF)
        return plain(written[handed : written.rfind(_ON)])

    def leave(self) -> int:
        """Type \\q, wait for the end; the exit code."""
        self.type("\\q\r")
        return self.ended()

    def ended(self) -> int:
        """Wait for the end; the exit code, negative for a signal."""
        end = time.monotonic() + LIMIT
        while self.read():
            assert time.monotonic() < end, f"it does not end:\n{self.screen}"
        self.child.close()
        status = self.child.exitstatus
        return status if status is not None else -(self.child.signalstatus or 0)


def plain(text: str) -> str:
    """A text without codes for terminals."""
    return ANSI.sub("", text).replace("\r\n", "\n").replace("\r", "")
