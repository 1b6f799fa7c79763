"""`source:` — one reader call with literal arguments, understood by a small strict grammar of its own.

    call     = reader "(" paths { "," name "=" literal } ")"
    reader   = "read_parquet" | "read_csv" | "read_json"
    paths    = string | "[" string { "," string } "]"
    literal  = string | number | true | false | null | "[" literals "]" | "{" key ":" literal … "}"

The call is printed again from what was understood; the custodian's text itself never reaches an engine.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, replace
from decimal import Decimal
from pathlib import Path

READERS = ("read_parquet", "read_csv", "read_json")


class SourceError(ValueError):
    """The text is no such call; the message says what was expected and `offset` where."""

    def __init__(self, message: str, offset: int = 0) -> None:
        super().__init__(message)
        self.offset = offset


@dataclass(frozen=True, slots=True)
class Struct:
    """`{'a': 1}` in an option."""

    items: tuple[tuple[str, Option], ...]


Option = str | int | Decimal | bool | None | tuple["Option", ...] | Struct


@dataclass(frozen=True, slots=True)
class SourceCall:
    """`reader(paths, name = value, …)`. Paths may be globs and are relative to the policy's folder until `absolute`."""

    reader: str
    paths: tuple[str, ...]
    options: tuple[tuple[str, Option], ...] = ()

    def absolute(self, directory: Path) -> SourceCall:
        """The same call with every path made absolute; globs stay globs."""
        return replace(self, paths=tuple(os.path.abspath(directory / Path(p).expanduser()) for p in self.paths))

    def with_paths(self, paths: tuple[str, ...]) -> SourceCall:
        """The same call over other files (a glob expanded)."""
        return replace(self, paths=paths)

    def with_options(self, more: tuple[tuple[str, Option], ...]) -> SourceCall:
        """The same call with further options."""
        return replace(self, options=(*self.options, *more))

    @property
    def tells_schema(self) -> bool:
        """Whether names and types of the columns are in the file's own schema or in the call, not guessed from rows."""
        options = {name.lower(): value for name, value in self.options}
        match self.reader:
            case "read_csv":
                return "columns" in options and options.get("auto_detect") is False
            case "read_json":
                return "columns" in options and options.get("auto_detect", False) is False
            case _:
                return True

    def sql(self) -> str:
        """The call as engine SQL (DuckDB's spelling)."""
        paths = _print(self.paths[0] if len(self.paths) == 1 else self.paths)
        return f"{self.reader}({', '.join([paths, *(f'{n} = {_print(v)}' for n, v in self.options)])})"

    def __str__(self) -> str:
        return self.sql()


def parse_source(text: str, remote: bool = False) -> SourceCall:
    """Understand a `source:` entry; raises SourceError with the words for the custodian.

    remote: whether a path may be a URI, which a cluster opens.
    """
    if _BARE.fullmatch(text):
        raise SourceError(f"must be one call of {', '.join(READERS)}, got {text.strip()!r}", 0)
    return _Parser(text, remote).call()


_TOKEN = re.compile(
    r"""\s*(?:(?P<string>'(?:[^']|'')*')|(?P<number>[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d{1,3})?)"""
    r"""|(?P<word>[A-Za-z_][A-Za-z0-9_]*)|(?P<mark>[(),=\[\]{}:]))"""
)
_BARE = re.compile(r"\s*[\w./\\:*~-]+\s*")
"""A path without a reader."""
_MAX_DEPTH = 8


class _Parser:
    def __init__(self, text: str, remote: bool) -> None:
        self.remote = remote
        self.tokens: list[tuple[str, str, int]] = []
        at, end = 0, len(text.rstrip())
        while at < end:
            found = _TOKEN.match(text, at)
            if found is None:
                at += len(text[at:]) - len(text[at:].lstrip())
                raise SourceError(f"cannot read {text[at : at + 12]!r}", at)
            kind = str(found.lastgroup)
            self.tokens.append((kind, found.group(kind), found.start(kind)))
            at = found.end()
        self.tokens.append(("end", "", end))
        self.at = 0

    def call(self) -> SourceCall:
        kind, reader, offset = self._next()
        if kind != "word" or reader.lower() not in READERS:
            raise SourceError(f"must be one call of {', '.join(READERS)}, got {reader or 'nothing'!r}", offset)
        self._mark("(", "after the reader's name")
        paths = self._paths()
        options: dict[str, Option] = {}
        while self._take(","):
            kind, name, offset = self._next()
            if kind != "word":
                raise SourceError("after the path only  name = value  options may stand", offset)
            self._mark("=", f"after option `{name}`")
            if name.lower() in options:
                raise SourceError(f"option `{name}` is given twice", offset)
            options[name.lower()] = self._literal(0)
        self._mark(")", "at the end of the call")
        kind, rest, offset = self._next()
        if kind != "end":
            raise SourceError(f"nothing may follow the call, got {rest!r}", offset)
        return SourceCall(reader.lower(), paths, tuple(options.items()))

    def _paths(self) -> tuple[str, ...]:
        if not self._take("["):
            return (self._path(),)
        paths = [self._path()]
        while self._take(","):
            paths.append(self._path())
        self._mark("]", "at the end of the list of paths")
        return tuple(paths)

    def _path(self) -> str:
        kind, text, offset = self._next()
        if kind != "string":
            raise SourceError(
                "the path must be a literal in single quotes, e.g. read_parquet('data/visits.parquet')", offset
            )
        path = _unquote(text)
        if not path.strip() or "\x00" in path:
            raise SourceError("the path is empty", offset)
        if "://" in path and not self.remote:
            raise SourceError("the path must be a local file: remote sources are not opened", offset)
        return path

    def _literal(self, depth: int) -> Option:
        kind, text, offset = self._next()
        if depth > _MAX_DEPTH:
            raise SourceError("the option is nested too deeply", offset)
        if kind == "string":
            return _unquote(text)
        if kind == "number":
            return int(text) if re.fullmatch(r"[-+]?\d{1,400}", text) else Decimal(text)
        if kind == "word" and text.lower() in ("true", "false", "null"):
            return {"true": True, "false": False, "null": None}[text.lower()]
        if text == "[":
            return self._list(depth)
        if text == "{":
            return self._struct(depth)
        raise SourceError(f"an option must be a literal, got {text or 'nothing'!r}", offset)

    def _list(self, depth: int) -> tuple[Option, ...]:
        items: list[Option] = []
        while not self._take("]"):
            if items:
                self._mark(",", "between two items")
            items.append(self._literal(depth + 1))
        return tuple(items)

    def _struct(self, depth: int) -> Struct:
        items: list[tuple[str, Option]] = []
        while not self._take("}"):
            if items:
                self._mark(",", "between two entries")
            kind, key, offset = self._next()
            if kind not in ("string", "word"):
                raise SourceError("an entry is  'name': value", offset)
            self._mark(":", "after an entry's name")
            items.append((_unquote(key) if kind == "string" else key, self._literal(depth + 1)))
        return Struct(tuple(items))

    def _next(self) -> tuple[str, str, int]:
        token = self.tokens[self.at]
        self.at = min(self.at + 1, len(self.tokens) - 1)
        return token

    def _take(self, mark: str) -> bool:
        kind, text, _ = self.tokens[self.at]
        if kind == "mark" and text == mark:
            self.at += 1
            return True
        return False

    def _mark(self, mark: str, where: str) -> None:
        if not self._take(mark):
            _, text, offset = self.tokens[self.at]
            raise SourceError(f"expected `{mark}` {where}, got {text or 'the end'!r}", offset)


def _unquote(text: str) -> str:
    return text[1:-1].replace("''", "'")


def _print(value: Option) -> str:
    match value:
        case None:
            return "NULL"
        case bool():
            return "true" if value else "false"
        case int() | Decimal():
            return str(value)
        case str():
            return "'" + value.replace("'", "''") + "'"
        case tuple():
            return "[" + ", ".join(_print(v) for v in value) + "]"
        case Struct(items=items):
            return "{" + ", ".join(f"{_print(k)}: {_print(v)}" for k, v in items) + "}"
