"""What the formats for machines share: text any reader accepts, paths, places in UTF-16 units, and fingerprints.

Output is ASCII, so that the encoding of a console or of a redirected file (a code page on Windows) cannot damage it.
"""

from __future__ import annotations

import hashlib
import json
import os
import posixpath
import re
from collections import Counter
from collections.abc import Iterable
from pathlib import PureWindowsPath
from typing import Any, Final
from urllib.parse import quote

from dpsql.diagnostics.diagnostic import Diagnostic, Source, Span
from dpsql.diagnostics.layout import anchor, escaped, one_line
from dpsql.faces.check.report.finding import Finding

_DRIVE: Final = re.compile(r"[A-Za-z]:[\\/]|\\\\")
_HALVES: Final = re.compile("[\ud800-\udfff]")
_NOT_A_BYTE: Final = re.compile("[\ud800-\udc7f\udd00-\udfff]")
_ON_WINDOWS: Final = os.name == "nt"


def as_json(value: Any) -> str:
    """`value` as indented JSON in ASCII, for any reader."""
    return escaped(json.dumps(whole(value), indent=2))


def whole(value: Any) -> Any:
    """`value` with U+FFFD for halves of surrogate pairs, which readers of JSON refuse."""
    match value:
        case str():
            return _HALVES.sub("\ufffd", value)
        case dict():
            return {key: whole(inner) for key, inner in value.items()}
        case list() | tuple():
            return [whole(inner) for inner in value]
        case _:
            return value


def file_name(diagnostic: Diagnostic) -> str:
    """The file a finding is in, as the user knows it; empty if it is in none."""
    return diagnostic.source.name if diagnostic.source is not None else ""


def path_of(name: str, windows: bool = _ON_WINDOWS) -> str:
    """`name` as continuous integration wants it: forward slashes, and relative to the current folder where it lies in
    it. A path with a drive or a server is one of Windows wherever this runs."""
    here = os.getcwd()
    if windows or _DRIVE.match(name):
        name, here = PureWindowsPath(name).as_posix(), PureWindowsPath(here).as_posix()
    if not name:
        return ""
    name = posixpath.normpath(name)
    return name.removeprefix(here.rstrip("/") + "/")


def uri_of(name: str, windows: bool = _ON_WINDOWS) -> str:
    """`name` as a URI reference: a relative one, or `file://…` for a path outside the current folder's tree that is
    absolute. Every byte that a URI may not hold is percent-encoded; a relative one never looks like a scheme."""
    path = path_of(name, windows)
    if path.startswith("//"):
        return "file:" + _quoted(path)
    if path.startswith("/"):
        return "file://" + _quoted(path)
    if _DRIVE.match(path):
        return f"file:///{path[0]}:{_quoted(path[2:])}"
    return _quoted(path)


def _quoted(path: str) -> str:
    """The bytes of a name that is not UTF-8 arrive as halves of surrogate pairs, and are given back as bytes."""
    return quote(_NOT_A_BYTE.sub("\ufffd", path).encode("utf-8", "surrogateescape"), safe="/-._~")


def place(diagnostic: Diagnostic) -> tuple[int, int, int, int] | None:
    """Line, column, end line and end column (behind the last character) in characters from 1, None without a place."""
    source, span = diagnostic.source, diagnostic.span
    if source is None or span is None:
        return None
    span = anchor(source, span)
    return (*source.position(span.start), *source.position(span.end))


def utf16_region(source: Source, span: Span) -> dict[str, int]:
    """A SARIF region, its columns in UTF-16 code units."""
    start, end = _utf16(source, span.start), _utf16(source, span.end)
    return {"startLine": start[0], "startColumn": start[1], "endLine": end[0], "endColumn": end[1]}


def _utf16(source: Source, offset: int) -> tuple[int, int]:
    line, column = source.position(offset)
    before = source.text[offset - column + 1 : offset]
    return line, column + sum(character > "\uffff" for character in before)


def story(diagnostic: Diagnostic) -> list[str]:
    """What is to be said about a finding, a line each: the message, what stands under the caret, help and notes."""
    lines = [one_line(diagnostic.message)]
    if diagnostic.label:
        lines.append(one_line(diagnostic.label))
    lines += [f"help: {one_line(text)}" for text in diagnostic.help]
    lines += [f"note: {one_line(text)}" for text in diagnostic.notes]
    return lines


def fingerprints(findings: Iterable[Finding]) -> list[str]:
    """A hash for each finding, unique in the report, that stays when lines move or the SQL is laid out anew.

    It is of path, code and the statement's shape; equal ones of one statement are told apart by their number.
    """
    seen: Counter[tuple[str, str, str]] = Counter()
    found = []
    for finding in findings:
        shape = finding.shape or " ".join(finding.statement.split())
        key = (path_of(file_name(finding.diagnostic)), finding.diagnostic.code, shape)
        text = "\x00".join((*key, str(seen[key])))
        seen[key] += 1
        found.append(hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest())
    return found


def code_span(text: str, longest: int = 1000) -> str:
    """`text` on one line as Markdown's code, in which nothing has a meaning; empty for an empty one.

    CommonMark 0.31, section 6.1: it ends at a run of as many backticks as it began with, backslashes and entities
    are themselves. A pipe would end a cell of a GFM table even in code, and stands between two spans.
    """
    line = one_line(text)
    line = line if len(line) <= longest else line[: longest - 1] + "…"
    return "&#124;".join(_code(piece) for piece in line.split("|"))


_ACTIVE: Final = re.compile(r"[!<>`@*#~|&$\\]|\][(:\[]|://|www\.|(?<!\w)_|_(?!\w)", re.IGNORECASE)
"""What Markdown gives a meaning to, of what may stand in names and values."""


def markdown(text: str, mark: str = "") -> str:
    """One line of text with names or values in it, between two marks; as code if it could be anything else than text in
    Markdown: a link, a picture that is loaded from somewhere, a mention."""
    plain = text.isprintable() and _ACTIVE.search(text) is None
    return f"{mark}{text}{mark}" if plain else code_span(text)


def _code(text: str) -> str:
    if not text:
        return ""
    if not text.strip(" "):
        return " "
    fence = "`" * (max(map(len, re.findall("`+", text)), default=0) + 1)
    pad = " " if "`" in (text[0], text[-1]) or text[0] == text[-1] == " " else ""
    return f"{fence}{pad}{text}{pad}{fence}"


def no_command(line: str) -> str:
    """A line that begins with a path, so that the path is no workflow command to GitHub's runner, which looks for `::`
    behind white space."""
    return f"./{line}" if line.lstrip().startswith("::") else line
