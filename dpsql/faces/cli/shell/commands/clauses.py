"""Help on SQL's clauses, from `clauses.json` beside this file, which `make generate` makes of the grammar."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from textwrap import indent


@dataclass(frozen=True, slots=True)
class ReferencePart:
    """A part of the reference. words: the keywords of its grammar. example: a query of the flights example."""

    heading: str
    words: frozenset[str]
    texts: tuple[str, ...]
    example: str


@cache
def parts() -> tuple[ReferencePart, ...]:
    """All of them, in the order of the reference."""
    found = json.loads((files("dpsql.faces.cli.shell.commands") / "clauses.json").read_text(encoding="utf-8"))
    return tuple(ReferencePart(p["heading"], frozenset(p["words"]), tuple(p["texts"]), p["example"]) for p in found)


def about(name: str) -> str:
    """What is said of a keyword, or of several together, as `GROUP BY`; empty where there is nothing.

    The first part whose grammar has all of them: what names them there, or all of it.
    """
    wanted = set(name.split())
    part = next((p for p in parts() if wanted and wanted <= p.words), None)
    if part is None:
        return ""
    said = [text for text in part.texts if f" {name} " in f" {text} ".translate(_SIGNS)] or list(part.texts)
    lines = "\n".join([f"{part.heading}, for example:", "", indent(part.example, "  ")]) if part.example else ""
    return "\n\n".join([lines or part.heading, *said]) + "\n\nAll of it: docs/reference/sql.md"


_SIGNS = str.maketrans(",.;:()", "      ")


def words() -> Iterator[str]:
    """Every keyword of which something is said."""
    for part in parts():
        yield from part.words
