"""EXPLAIN's parts as text, with the width there is: lines go on below themselves, and the tree stays a tree."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import zip_longest
from typing import Final

from dpsql.diagnostics.layout import printable, text_width
from dpsql.planner.explain.rows import ComponentTable, Part, PlanRow, PlanTree

_FACTS_AT: Final = 59
"""Where what is known of a node begins, unless the node's name is longer."""
_LEAST_FACTS: Final = 28
"""Columns that facts must have beside the nodes; where there are fewer they stand below them."""
_LEAST_NAME: Final = 20
"""Columns that the names of components must have; where there are fewer the table stays as it is."""


def written(parts: Iterable[Part], columns: int | None = None) -> str:
    """Lines without control characters. columns: what they have on a screen, longer words apart; None: no end."""
    parts = [_printable(part) for part in parts]
    lines = [line for part in parts for line in _lines(part, None)]
    if columns is not None and any(text_width(line) > columns for line in lines):
        lines = [line for part in parts for line in _lines(part, columns)]
    return printable("\n".join(lines))


def _printable(part: Part) -> Part:
    match part:
        case PlanTree(rows):
            return PlanTree(tuple(PlanRow(r.ends, printable(r.operator), tuple(map(printable, r.facts))) for r in rows))
        case ComponentTable(cells):
            return ComponentTable(tuple(tuple(map(printable, row)) for row in cells))
    return printable(part)


def _lines(part: Part, columns: int | None) -> list[str]:
    match part:
        case PlanTree(rows):
            return _tree(rows, columns)
        case ComponentTable(cells):
            return _table(cells, columns)
    return [text for line in part.split("\n") for text in _line(line, columns)]


def _line(line: str, columns: int | None) -> list[str]:
    if columns is None or text_width(line) <= columns:
        return [line]
    indent = line[: len(line) - len(line.lstrip())]
    return _hung(indent, indent + "    ", line.split(), columns)


def _tree(rows: Sequence[PlanRow], columns: int | None) -> list[str]:
    if columns is None:
        return [f"{row.bars + row.operator:<{_FACTS_AT - 1}} {' · '.join(row.facts)}".rstrip() for row in rows]
    at = min(_FACTS_AT, 2 + max(text_width(row.bars + row.operator) for row in rows))
    lines: list[str] = []
    for row, following in zip_longest(rows, rows[1:]):
        head, below = row.bars + row.operator, row.below(following is not None and following.depth > row.depth)
        facts = [f"{fact} ·" for fact in row.facts[:-1]] + [*row.facts[-1:]]
        if columns - at >= _LEAST_FACTS and text_width(head) < at:
            first, *others = _filled(facts, columns - at) or [""]
            lines.append((_padded(head, at) + first).rstrip())
            lines += [_padded(below, at) + other for other in others]
        else:
            lines += _hung(row.bars, below + "  ", row.operator.split(" "), columns)
            lines += [f"{below}  {line}" for line in _filled(facts, columns - text_width(below) - 2)]
    return lines


def _table(cells: Sequence[Sequence[str]], columns: int | None) -> list[str]:
    """Names at the left, which go on below themselves, and numbers at the right."""
    widths = [max(len(row[i]) for row in cells) for i in range(1, len(cells[0]))]
    numbers = ["".join(f"  {c.rjust(w)}" for c, w in zip(row[1:], widths, strict=True)).rstrip() for row in cells]
    names = [row[0] for row in cells]
    if columns is None:
        widest = max(map(len, names))
        return [f"  {name.ljust(widest)}{told}".rstrip() for name, told in zip(names, numbers, strict=True)]
    room = columns - 2 - max(map(text_width, numbers))
    if room < _LEAST_NAME:
        return _table(cells, None)
    room = min(room, max(map(text_width, names)))
    found: list[str] = []
    for name, told in zip(names, numbers, strict=True):
        first, *others = _filled(name.split(" "), room, room - 2)
        found += [f"  {_padded(first, room)}{told}", *(f"    {other}" for other in others)]
    return found


# --- filling ---------------------------------------------------------------------------------------------------------


def _hung(first: str, others: str, words: Sequence[str], columns: int) -> list[str]:
    """Words in lines of which the first begins in one way and the others in another."""
    filled = _filled(words, columns - text_width(first), columns - text_width(others))
    return [(others if i else first) + line for i, line in enumerate(filled)]


def _filled(pieces: Sequence[str], width: int, others: int | None = None) -> list[str]:
    """The pieces in as few lines of a width as they need. others: the width from the second line on.

    A piece that is too long for a line is broken at its spaces.
    """
    lines: list[str] = []
    for piece in pieces:
        room = width if len(lines) < 2 or others is None else others
        if lines and text_width(f"{lines[-1]} {piece}") <= room:
            lines[-1] += f" {piece}"
        elif " " in piece and text_width(piece) > (others or width):
            lines += _filled(piece.split(" "), others or width)
        else:
            lines.append(piece)
    return lines


def _padded(text: str, width: int) -> str:
    return text + " " * (width - text_width(text))
