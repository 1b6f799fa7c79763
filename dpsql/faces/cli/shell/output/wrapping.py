"""Lines and tables on a terminal that is narrower: what goes on in a next line is broken between words."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from dpsql.answers.results.cell_texts import Cell
from dpsql.diagnostics.layout import one_line
from dpsql.faces.cli.shell.output.output import line_width
from dpsql.faces.cli.table_layout import Row

_LEAST: Final = 14
"""Columns below which a cell is not folded any further."""
_SECOND: Final = re.compile(r"\s*\S.*?\s{2,}(?=\S)")
"""What stands before the second column of a line that has two, as a command and its meaning."""


def wrapped_lines(text: str, columns: int | None) -> list[str]:
    """One line as lines of at most so many columns; those that follow stand below its text, or its second column."""
    if columns is None or line_width(text) <= columns:
        return [text]
    indent = len(text) - len(text.lstrip())
    second = _SECOND.match(text)
    below = second.end() if second and second.end() <= columns // 2 else indent + 2
    return textwrap.wrap(
        text, columns, subsequent_indent=" " * below, break_long_words=False, break_on_hyphens=False,
        replace_whitespace=False, drop_whitespace=True,
    ) or [text]  # fmt: skip


def wrapped(header: Sequence[str], rows: Sequence[Row], columns: int) -> Sequence[Row]:
    """Rows whose widest cells go on below themselves until the table fits, or none can be narrower."""
    names = [line_width(one_line(name)) for name in header]
    sizes = [max([name, *(line_width(row[i].text) for row in rows)]) for i, name in enumerate(names)]
    while sum(sizes) + 3 * len(sizes) - 1 > columns:
        widest = max(range(len(sizes)), key=lambda i: sizes[i])
        if sizes[widest] <= max(_LEAST, names[widest]):
            return rows
        sizes[widest] -= 1
    return [part for row in rows for part in _folded(row, sizes)]


def _folded(row: Row, sizes: Sequence[int]) -> list[list[Cell]]:
    parts = [_parts(cell.text, size) for cell, size in zip(row, sizes, strict=True)]
    high = max(map(len, parts))
    return [
        [replace(cell, text=part[at] if at < len(part) else "") for cell, part in zip(row, parts, strict=True)]
        for at in range(high)
    ]


def _parts(text: str, size: int) -> list[str]:
    if line_width(text) <= size:
        return [text]
    return textwrap.wrap(text, size, break_long_words=False, break_on_hyphens=False) or [text]
