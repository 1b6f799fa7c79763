"""From lines to what is to be done: statements that a semicolon ends, and meta-commands, in their order.

A meta-command is a line that begins with a backslash, where that backslash is no part of a string or a comment; or what
follows a semicolon. `\\g`, `\\gx` and `\\watch` may also stand behind a statement in the place of its
semicolon. A line that begins with a dot and a word, where no statement has begun, is one of another shell's.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from dpsql.diagnostics.errors import reject
from dpsql.faces.cli.inputs import MOST_BYTES
from dpsql.frontend.parse import MAX_LENGTH
from dpsql.frontend.text.split import TextStatement, lead_of, split_statements
from dpsql.frontend.text.unfinished import Looked, ends_outside, is_empty, scan

_GO: Final = re.compile(r"\\(?:gx?|watch)(?:[ \t][^\\]*)?$")
DOTTED: Final = re.compile(r"[ \t]*\.[A-Za-z]+\b")
"""A command as DuckDB's and SQLite's shells have it: no statement begins so."""


@dataclass(frozen=True, slots=True)
class InputPlace:
    """Where a statement or a command begins: in which input, and at which line and column of it, counted from 0."""

    name: str = "<sql>"
    line: int = 0
    column: int = 0


@dataclass(frozen=True, slots=True)
class Sql:
    """One statement, without its semicolon."""

    text: str
    place: InputPlace


@dataclass(frozen=True, slots=True)
class Meta:
    """One line that begins with a backslash, without its line end."""

    text: str
    place: InputPlace


Item = Sql | Meta


class Feed:
    """Takes an input in pieces and hands out what is complete. `pending`: the beginning of an unfinished statement.

    What is handed out may change `pending` (as `\\r` does) before the next item is asked for.
    """

    def __init__(self, name: str = "<sql>", dialect: str = "duckdb") -> None:
        self.name = name
        self.pending = ""
        self._dialect = dialect
        self._looked = Looked()
        self._scan_from = 0  # so long `pending` has to be before its end is looked for again
        self._line = 0  # the number of the next line
        self._start = InputPlace(name)  # of `pending`

    @property
    def place(self) -> InputPlace:
        """Where `pending` begins."""
        return self._start

    @property
    def waiting(self) -> bool:
        """Whether a statement has begun and is not finished."""
        return not is_empty(self.pending, self._dialect)

    def take(self, text: str) -> Iterator[Item]:
        """The items that some more lines complete. Raises Rejected DP903: one is longer than any file may be."""
        for line in text.split("\n"):
            yield from self._take_line(line)
            self._line += 1

    def finish(self) -> Iterator[Item]:
        """At the end of the input: what is left is one statement (or several, if the last lacks its semicolon)."""
        left, start = self.pending, self._start
        self.pending = ""
        for statement in split_statements(left, self._dialect):
            if not is_empty(statement.text, self._dialect):
                yield self._sql(left, statement, start)

    def drop(self) -> None:
        """Forget the unfinished statement."""
        self.pending, self._looked, self._scan_from = "", Looked(), 0

    def _take_line(self, line: str) -> Iterator[Item]:
        stripped = line.strip()
        if stripped.startswith("\\") and ends_outside(self.pending, self._dialect):
            yield Meta(stripped, InputPlace(self.name, self._line, len(line) - len(line.lstrip())))
            return
        if DOTTED.match(line) and not self.waiting:
            yield Meta(stripped, InputPlace(self.name, self._line, len(line) - len(line.lstrip())))
            return
        if not self.pending:
            self._start = InputPlace(self.name, self._line)
        before = len(self.pending)
        if before + len(line) > MOST_BYTES:
            raise reject("DP903", f"{self.name}: a statement is longer than {MOST_BYTES // 1_000_000} MB")
        self.pending += line + "\n"
        go = command_behind(line, self.pending[:before], self._dialect)
        if go is not None:
            self.pending = self.pending[: before + go] + "\n"
            yield from self._finished()
            yield Meta(line[go:].strip(), InputPlace(self.name, self._line, go))
        elif ";" in line and len(self.pending) >= self._scan_from:
            ends = self._looked.ends(self.pending, self._dialect)
            if ends:
                yield from self._finished()
            elif ends is None and len(self.pending) > MAX_LENGTH:
                self._scan_from = 2 * len(self.pending)  # nothing so long is accepted; its end is where the next begins

    def _finished(self) -> Iterator[Item]:
        found = scan(self.pending, self._dialect)
        self._looked, self._scan_from = Looked(), 0
        if found is None:
            return
        text, start = self.pending, self._start
        self.pending, self._start = self._cut(text, found.rest, start)
        for statement in found.statements:
            yield self._sql(text, statement, start)
        rest = self.pending.strip()
        if rest.startswith("\\"):
            place = self._start
            self.pending = ""
            yield Meta(rest, place)

    def _cut(self, text: str, at: int, start: InputPlace) -> tuple[str, InputPlace]:
        rest = text[at:]
        if is_empty(rest, self._dialect) and not lead_of(rest, 0, len(rest)):
            return "", start
        return rest, _moved(start, text, at + len(rest) - len(rest.lstrip()))

    def _sql(self, text: str, statement: TextStatement, start: InputPlace) -> Sql:
        whole = statement.whole
        return Sql(whole.text, _moved(start, text, whole.start))


def command_behind(line: str, before: str, dialect: str) -> int | None:
    """Where in a line a command begins that ends the statement before it; None if there is none."""
    go = _GO.search(line)
    return go.start() if go and ends_outside(before + line[: go.start()], dialect) else None


def _moved(start: InputPlace, text: str, offset: int) -> InputPlace:
    """The place of a character of a text that begins at `start`."""
    lines = text.count("\n", 0, offset)
    column = offset - (text.rfind("\n", 0, offset) + 1)
    return InputPlace(start.name, start.line + lines, column if lines else start.column + column)
