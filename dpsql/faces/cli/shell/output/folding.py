"""EXPLAIN's text on a terminal that is narrower: lines go on below themselves, and the tree stays a tree."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from dpsql.faces.cli.shell.output.output import line_width

_FACTS_AT: Final = 59
"""Where EXPLAIN writes what it knows of a node, unless the node's name is longer."""
_BARS: Final = re.compile(r"(?:│  |   )*(?:[├└]─ )?")
_FACTS: Final = re.compile(r"(?:public\b|stability \S.*?=|always [\d,]+ rows|id |rule |as above).*")
_HEADER: Final = re.compile(r"  component +l1 .*")
_ROW: Final = re.compile(r"  (\S.*?)(?: +[\d.,/e+-]+){3} +\w+(?: +[\d.,/e+-]+){3}")
_LEAST_FACTS: Final = 28
"""Columns that facts must have beside the nodes; where there are fewer they stand below them."""
_LEAST_NAME: Final = 20
"""Columns that the names of components must have; where there are fewer the table stays as it is."""


@dataclass(frozen=True, slots=True)
class _Node:
    """A line of the tree. bars: before it. below: before what goes on under it. facts: what is known of it."""

    bars: str
    below: str
    name: str
    facts: str


def folded(text: str, columns: int) -> str:
    """The text in lines of at most that many columns (longer words apart); as it is if all fit."""
    if all(line_width(line) <= columns for line in text.split("\n")):
        return text
    tree, *parts = text.split("\n\n")
    lines = tree.split("\n")
    root = next((i for i, line in enumerate(lines) if line.startswith(("├", "└"))), len(lines)) - 1
    found = [*_plain(lines[:root], columns), *_tree(_nodes(lines[root:]), columns)]
    for part in parts:
        found += ["", *_part(part.split("\n"), columns)]
    return "\n".join(found)


# --- the tree --------------------------------------------------------------------------------------------------------


def _nodes(lines: Sequence[str]) -> list[_Node]:
    bars = ["", *(_before(line) for line in lines[1:]), ""]
    found = []
    for line, own, next_ones in zip(lines, bars, bars[1:], strict=False):
        below = own.replace("├─", "│ ").replace("└─", "  ") + ("│  " if len(next_ones) > len(own) else "   ")
        at = _facts_at(line)
        found.append(_Node(own, below, line[len(own) : at].rstrip(), line[at:]))
    return found


def _before(line: str) -> str:
    found = _BARS.match(line)
    return "" if found is None else found[0]


def _facts_at(line: str) -> int:
    """Where a node's facts begin."""
    for at in [_FACTS_AT, *(i + 1 for i, c in enumerate(line) if c == " " and i > _FACTS_AT)]:
        if line[at - 1 : at] == " " and _FACTS.match(line, at):
            return at
    return len(line)


def _tree(nodes: Sequence[_Node], columns: int) -> list[str]:
    at = min(_FACTS_AT, 2 + max(line_width(n.bars + n.name) for n in nodes))
    beside = columns - at >= _LEAST_FACTS
    lines: list[str] = []
    for node in nodes:
        head, facts = node.bars + node.name, re.split(r"(?<= ·) ", node.facts) if node.facts else []
        if beside and line_width(head) < at:
            first, *others = _filled(facts, columns - at) or [""]
            lines.append((_padded(head, at) + first).rstrip())
            lines += [_padded(node.below, at) + other for other in others]
        else:
            lines += _hung(node.bars, node.below + "  ", node.name.split(" "), columns)
            lines += [f"{node.below}  {line}" for line in _filled(facts, columns - line_width(node.below) - 2)]
    return lines


# --- what follows it -------------------------------------------------------------------------------------------------


def _part(lines: Sequence[str], columns: int) -> list[str]:
    start = next((i for i, line in enumerate(lines) if _HEADER.fullmatch(line)), None)
    if start is None:
        return _plain(lines, columns)
    end = start + 1
    while end < len(lines) and _ROW.fullmatch(lines[end]):
        end += 1
    table = _table(lines[start:end], columns)
    return [*_plain(lines[:start], columns), *table, *_plain(lines[end:], columns)]


def _table(lines: Sequence[str], columns: int) -> list[str]:
    """A release's components: long names go on below themselves."""
    names = ["component", *(found[1] for found in map(_ROW.fullmatch, lines[1:]) if found is not None)]
    cells = [line[2 + max(map(len, names)) :] for line in lines]
    room = columns - 2 - max(map(line_width, cells))
    if room < _LEAST_NAME:
        return list(lines)
    room = min(room, max(map(line_width, names)))
    found: list[str] = []
    for name, numbers in zip(names, cells, strict=True):
        first, *others = _filled(name.split(" "), room, room - 2)
        found += [f"  {_padded(first, room)}{numbers}", *(f"    {other}" for other in others)]
    return found


def _plain(lines: Iterable[str], columns: int) -> list[str]:
    found: list[str] = []
    for line in lines:
        indent = line[: len(line) - len(line.lstrip())]
        found += [line] if line_width(line) <= columns else _hung(indent, indent + "    ", line.split(), columns)
    return found


# --- filling ---------------------------------------------------------------------------------------------------------


def _hung(first: str, others: str, words: Sequence[str], columns: int) -> list[str]:
    """Words in lines of which the first begins in one way and the others in another."""
    filled = _filled(words, columns - line_width(first), columns - line_width(others))
    return [(others if i else first) + line for i, line in enumerate(filled)]


def _filled(pieces: Sequence[str], width: int, others: int | None = None) -> list[str]:
    """The pieces in as few lines of a width as they need. others: the width from the second line on.

    A piece that is too long for a line is broken at its spaces.
    """
    lines: list[str] = []
    for piece in pieces:
        room = width if len(lines) < 2 or others is None else others
        if lines and line_width(f"{lines[-1]} {piece}") <= room:
            lines[-1] += f" {piece}"
        elif " " in piece and line_width(piece) > (others or width):
            lines += _filled(piece.split(" "), others or width)
        else:
            lines.append(piece)
    return lines


def _padded(text: str, width: int) -> str:
    return text + " " * (width - line_width(text))
