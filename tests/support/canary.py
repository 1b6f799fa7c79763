"""Planted values show nowhere: a pytest plugin that looks at what the whole session puts out.

`NUMBER` and `MARKER` are in private data only. Whatever leaves dpsql during any test is searched for them: captured
streams and log lines of every phase, what `capsys` and `capfd` hand to tests, both streams of every process that a test
started and waited for, warnings, the words of every exception of dpsql, and, when the session has ended, every file
that it left in its temporary folder, which holds `TMPDIR` as well, except the data files themselves. A test during
which one is seen fails; a file makes the session fail. Workers of pytest-xdist report like any process; files are
searched once, by the process that started them.

tests/deep/meta/test_canary.py runs sessions in which a planted value gets out on each of these ways.
"""

from __future__ import annotations

import contextlib
import logging
import sqlite3
import struct
import subprocess
import tempfile
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import Any

import pytest

NUMBER = 271828182
CANARY = str(NUMBER)
MARKER = "zqxmarker"

DATA = frozenset({".duckdb", ".wal", ".parquet"})
"""Files that hold private rows because a test has put them there."""

PLANTED = frozenset({"secret.csv", "secret.json", "people.csv", "bad.csv"})
"""Files of other kinds that tests have written as data, or next to the data where no query may reach them."""

_PATTERNS = tuple(
    pattern
    for text in (CANARY, MARKER)
    for pattern in (text.encode(), text.encode("utf-16-le"), text.encode("utf-16-be"))
) + tuple(struct.pack(form, NUMBER) for form in ("<q", ">q", "<d", ">d"))


def holds(shown: object) -> bool:
    """Whether a planted value is in a text, in bytes or in how another object prints."""
    if isinstance(shown, bytes):
        return any(p in shown for p in _PATTERNS)
    text = shown if isinstance(shown, str) else repr(shown)
    return CANARY in text or MARKER in text


def files_with_planted_values(folder: Path) -> list[Path]:
    """Every file below that is no data file and holds one; SQLite files are searched value by value as well."""
    found = []
    for path in sorted(folder.rglob("*")):
        if path.suffix in DATA or path.name in PLANTED or path.is_symlink() or not path.is_file():
            continue
        with contextlib.suppress(OSError):
            raw = path.read_bytes()
            if holds(raw) or (raw.startswith(b"SQLite format 3") and any(map(holds, _values(path)))):
                found.append(path)
    return found


def _values(path: Path) -> Iterator[object]:
    """All values of all tables of a SQLite file."""
    with (
        contextlib.suppress(sqlite3.Error),
        contextlib.closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as con,
    ):
        for (name,) in con.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
            for row in con.execute(f'SELECT * FROM "{name}"'):
                yield from row


class Watch(logging.Handler):
    """The plugin: collects what was seen since the last report, and undoes its taps at the end."""

    def __init__(self, config: pytest.Config) -> None:
        super().__init__(logging.DEBUG)
        self.config = config
        self.seen: list[str] = []
        self.files: list[Path] = []
        self.undo = pytest.MonkeyPatch()

    def look(self, where: str, *shown: object) -> None:
        """Remember the place if something shown holds a planted value."""
        if any(map(holds, shown)):
            self.seen.append(where)

    def emit(self, record: logging.LogRecord) -> None:
        """A log line of any level."""
        self.look("a log line", record.getMessage(), record.args, record.exc_text or "")

    def start(self) -> None:
        """Set up the taps, and make the session's own folder the place of temporary files."""
        logging.getLogger().addHandler(self)
        logging.getLogger("dpsql").setLevel(logging.DEBUG)
        self._tap(pytest.CaptureFixture, "readouterr", "captured streams", lambda caught: caught)
        self._tap(subprocess.Popen, "communicate", "the streams of a process", lambda caught: [x or "" for x in caught])
        from dpsql.diagnostics.errors import Error

        self._tap(Error, "__init__", "an exception", None)
        folder = Path(self.config._tmp_path_factory.getbasetemp()) / "tmp"  # type: ignore[attr-defined]
        folder.mkdir(mode=0o700, exist_ok=True)
        self.undo.setenv("TMPDIR", str(folder))
        self.undo.setattr(tempfile, "tempdir", None)

    def _tap(self, owner: type, name: str, where: str, shown: Callable[[Any], Any] | None) -> None:
        original = getattr(owner, name)

        def tapped(self_: Any, *args: Any, **options: Any) -> Any:
            result = original(self_, *args, **options)
            if shown is not None:
                self.look(where, *shown(result))
            else:  # the text that findings point into is the user's own
                for d in self_.diagnostics:
                    self.look(where, self_.args, d.code, d.message, d.label, d.help, d.notes)
            return result

        self.undo.setattr(owner, name, tapped)

    def stop(self) -> None:
        """Undo the taps."""
        logging.getLogger().removeHandler(self)
        self.undo.undo()

    # --- hooks -------------------------------------------------------------------------------------------------------

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Fails the phase during which something was seen."""
        report = yield
        for title, text in report.sections:
            if title.endswith(report.when):  # those of the phases before it were looked at
                self.look(title.lower(), text)
        if self.seen:
            places, self.seen = ", ".join(dict.fromkeys(self.seen)), []
            report.outcome = "failed"
            report.longrepr = f"a planted value was seen in: {places}"
        return report

    def pytest_warning_recorded(self, warning_message: Any, nodeid: str) -> None:
        """A warning shown at the end."""
        if holds(str(warning_message.message)):
            self.files.append(Path("a warning"))

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Search what the session leaves on disk."""
        if hasattr(self.config, "workerinput"):
            return
        self.files += files_with_planted_values(Path(self.config._tmp_path_factory.getbasetemp()))  # type: ignore[attr-defined]
        if self.files and session.exitstatus in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED):
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Name the files."""
        if self.files:
            terminalreporter.section("planted values", red=True)
            for path in self.files:
                terminalreporter.write_line(f"a planted value is in: {path}", red=True)

    def pytest_unconfigure(self) -> None:
        """The session is over."""
        self.stop()


@pytest.hookimpl(trylast=True)  # after the plugin of temporary folders
def pytest_configure(config: pytest.Config) -> None:
    """Start watching, once."""
    if not config.pluginmanager.has_plugin("canary-watch"):
        watch = Watch(config)
        watch.start()
        config.pluginmanager.register(watch, "canary-watch")
