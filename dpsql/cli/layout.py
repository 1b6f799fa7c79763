"""Tables of text: aligned and plain like psql's, drawn by rich on a terminal, or Markdown."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, TextIO

from dpsql.cli.exits import wants_color
from dpsql.diagnostics.layout import one_line, width
from dpsql.release.cells import Cell

if TYPE_CHECKING:
    from rich.text import Text

Row = Sequence[Cell]


def print_table(header: Sequence[str], rows: Sequence[Row], out: TextIO) -> None:
    """A table for people: lines and colours on a terminal, plain text otherwise."""
    if wants_color(out):
        _draw(header, rows, out)
    else:
        print(plain_table(header, rows), file=out)


def plain_table(header: Sequence[str], rows: Sequence[Row]) -> str:
    """Aligned columns with ` | ` between them and a line below the header; numbers to the right."""
    names = [one_line(name) for name in header]
    right = _right(len(names), rows)
    lines = [names, *([c.text for c in row] for row in rows)]
    sizes = [max(_wide(line[i]) for line in lines) for i in range(len(names))]
    head = " " + " | ".join(_centred(name, size) for name, size in zip(names, sizes, strict=True))
    rule = "+".join("-" * (size + 2) for size in sizes)
    body = [
        " " + " | ".join(_padded(text, size, r) for text, size, r in zip(line, sizes, right, strict=True))
        for line in lines[1:]
    ]
    return "\n".join(line.rstrip() for line in (head, rule, *body))


def markdown_table(header: Sequence[str], rows: Sequence[Row]) -> str:
    """A pipe table."""
    right = _right(len(header), rows)
    lines = [
        _piped([one_line(name) for name in header]),
        _piped(["---:" if r else "---" for r in right]),
        *(_piped([c.text for c in row]) for row in rows),
    ]
    return "\n".join(lines)


def _piped(texts: Sequence[str]) -> str:
    cells = (text.replace("\\", "\\\\").replace("|", "\\|") for text in texts)
    return f"| {' | '.join(cells)} |"


def _right(columns: int, rows: Sequence[Row]) -> list[bool]:
    return [bool(rows) and all(row[i].numeric or row[i].text == "NULL" for row in rows) for i in range(columns)]


def _wide(text: str) -> int:
    return sum(map(width, text))


def _padded(text: str, size: int, right: bool) -> str:
    space = " " * (size - _wide(text))
    return space + text if right else text + space


def _centred(text: str, size: int) -> str:
    space = size - _wide(text)
    return " " * (space // 2) + text + " " * (space - space // 2)


def _draw(header: Sequence[str], rows: Sequence[Row], out: TextIO) -> None:
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=SIMPLE_HEAD, header_style="bold", pad_edge=False)
    for name, right in zip(header, _right(len(header), rows), strict=True):
        table.add_column(Text(one_line(name)), justify="right" if right else "left", overflow="fold")
    for row in rows:
        table.add_row(*map(_painted, row))
    Console(file=out, highlight=False).print(table)


def _painted(cell: Cell) -> Text:
    from rich.text import Text

    number, sign, around = cell.text.partition(" ± ")
    if not sign or not cell.numeric:
        return Text(cell.text, style="dim" if cell.text == "NULL" else "")
    return Text(number).append(f"{sign}{around}", style="dim")
