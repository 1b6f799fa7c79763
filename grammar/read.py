"""Reads the grammar: as a parser, and as the text that documentation is made from. For tests and documentation only."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from lark import Lark
from lark.lexer import PatternRE, PatternStr

FOLDER = Path(__file__).resolve().parent
ACCEPTED = FOLDER / "dpsql.lark"
OUTSIDE = FOLDER / "outside.lark"


@cache
def parser(start: str = "start") -> Lark:
    """A parser for the accepted SQL. Its `parse` raises lark.exceptions.LarkError for what cannot be derived."""
    return lark(ACCEPTED.read_text(encoding="utf-8"), start)


def lark(text: str, start: str = "start") -> Lark:
    """A parser in which keywords are whole words: `INTERVAL` is not `IN` followed by a name."""
    return Lark(text, parser="lalr", start=start, maybe_placeholders=False, edit_terminals=_whole_words)


def _whole_words(terminal: Any) -> None:
    if isinstance(terminal.pattern, PatternStr) and terminal.pattern.value.replace("_", "a").isalpha():
        terminal.pattern = PatternRE(rf"{terminal.pattern.value}(?![A-Za-z0-9_])", ("i",))
        terminal.priority = 1


@dataclass(frozen=True, slots=True)
class Section:
    """A part of the grammar under one `// ##` heading: explanations and rules as they stand in the file."""

    heading: str
    parts: tuple[tuple[str, str], ...]
    """(comment, rules below it), in order; the comment may be empty."""


def sections() -> list[Section]:
    """The sections of the grammar file, in order."""
    _, *rest = re.split(r"^// ## (.*)\n", ACCEPTED.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return [
        Section(heading, tuple(_part(block) for block in re.split(r"\n{2,}", body.strip()) if block))
        for heading, body in zip(rest[::2], rest[1::2], strict=True)
    ]


def _part(block: str) -> tuple[str, str]:
    lines = block.splitlines()
    comments = [line for line in lines if line.startswith("//")]
    return _prose(comments), "\n".join(line for line in lines if not line.startswith("//"))


def _prose(lines: list[str]) -> str:
    comments = [line.removeprefix("//").strip() for line in lines if line.startswith("//")]
    paragraphs = "\n".join(comments).split("\n\n")
    return "\n\n".join(" ".join(p.split("\n")) for p in paragraphs).strip()
