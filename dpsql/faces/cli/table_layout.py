"""Tables of text: aligned and plain like psql's, one line a value, boxes, HTML, Markdown; or drawn by rich."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, TextIO

from dpsql.answers.results.cell_texts import Cell
from dpsql.diagnostics.layout import inert, one_line, width
from dpsql.faces.check.report.formats.texts import markdown
from dpsql.faces.cli.exits import wants_color

if TYPE_CHECKING:
    from rich.text import Text

Row = Sequence[Cell]
_BOLD, _DIM, _RESET = "\x1b[1m", "\x1b[2m", "\x1b[0m"


def print_table(header: Sequence[str], rows: Sequence[Row], out: TextIO) -> None:
    """A table for people: lines and colours on a terminal, plain text otherwise."""
    if wants_color(out):
        _draw(header, rows, out)
    else:
        print(plain_table(header, rows), file=out)


def plain_table(header: Sequence[str], rows: Sequence[Row], *, heading: bool = True, color: bool = False) -> str:
    """Aligned columns with ` | ` between them and a line below the header; numbers to the right.

    heading: whether header and line are there. color: header, NULL and ± stand out, by ANSI codes.
    """
    names = [one_line(name) for name in header]
    right = _right(len(names), rows)
    sizes = [max([_wide(names[i]) * heading, *(_wide(row[i].text) for row in rows)]) for i in range(len(names))]
    head = " " + " | ".join(_centred(n, size, _BOLD if color else "") for n, size in zip(names, sizes, strict=True))
    rule = "+".join("-" * (size + 2) for size in sizes)
    body = [
        " " + " | ".join(_padded_cell(c, size, r, color) for c, size, r in zip(row, sizes, right, strict=True))
        for row in rows
    ]
    return inert("\n".join(line.rstrip() for line in (*((head, rule) if heading else ()), *body)))


def unaligned_table(header: Sequence[str], rows: Sequence[Row], separator: str, *, heading: bool = True) -> str:
    """A line for each row, its values as they are with a separator between them."""
    names = [[one_line(name) for name in header]] if heading else []
    return "\n".join(separator.join(line) for line in (*names, *([c.text for c in row] for row in rows)))


def vertical_list(header: Sequence[str], rows: Sequence[Row], *, heading: bool = True, color: bool = False) -> str:
    """A line for each value, `name | value`, below a line for each row."""
    names = [one_line(name) for name in header]
    size = max(map(_wide, names), default=0)
    longest = max((_wide(c.text) for row in rows for c in row), default=0)
    lines: list[str] = []
    for number, row in enumerate(rows, 1):
        if heading:
            title = f"-[ RECORD {number} ]"
            joint = "+" if len(title) <= size + 1 else "-"
            line = f"{title.ljust(size + 1, '-')}{joint}".ljust(size + 3 + longest, "-")
            lines.append(_painted_ansi(line, _DIM, color))
        elif lines:
            lines.append("")
        for name, cell in zip(names, row, strict=True):
            shown = _padded_cell(cell, 0, False, color)
            lines.append(f"{_painted_ansi(_padded(name, size, False), _BOLD, color)} | {shown}".rstrip())
    return "\n".join(lines)


def box_table(header: Sequence[str], rows: Sequence[Row], *, heading: bool = True) -> str:
    """Aligned columns within lines."""
    right = _right(len(header), rows)
    names = [one_line(name) for name in header] if heading else [""] * len(header)
    sizes = [max([_wide(names[i]), *(_wide(row[i].text) for row in rows)]) for i in range(len(names))]
    body = [[_padded(c.text, size, r) for c, size, r in zip(row, sizes, right, strict=True)] for row in rows]
    lines = _formatted(names, body, "psql_unicode")
    return "\n".join(lines if heading else [lines[0], *lines[3:]])


def html_table(header: Sequence[str], rows: Sequence[Row], *, heading: bool = True) -> str:
    """A `<table>`, everything in it escaped."""
    lines = _formatted([one_line(name) for name in header], [[c.text for c in row] for row in rows], "html")
    text = "\n".join(lines)
    return text if heading else re.sub(r"<thead>.*?</thead>\n", "", text, flags=re.DOTALL)


def _formatted(names: Sequence[str], rows: Sequence[Sequence[str]], name: str) -> list[str]:
    from cli_helpers.tabular_output import TabularOutputFormatter

    keeping = {"preserve_whitespace": True, "disable_numparse": True}
    found = TabularOutputFormatter().format_output(list(rows), list(names), format_name=name, **keeping)
    return "\n".join(found).split("\n")


def markdown_table(header: Sequence[str], rows: Sequence[Row]) -> str:
    """A pipe table; a name or value that would be more than text in Markdown stands in it as code."""
    right = _right(len(header), rows)
    lines = [
        _piped(map(markdown, header)),
        _piped("---:" if r else "---" for r in right),
        *(_piped(markdown(c.text) for c in row) for row in rows),
    ]
    return "\n".join(lines)


def _piped(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _right(columns: int, rows: Sequence[Row]) -> list[bool]:
    return [bool(rows) and all(row[i].numeric or row[i].null for row in rows) for i in range(columns)]


def _wide(text: str) -> int:
    return sum(map(width, text))


def _padded(text: str, size: int, right: bool) -> str:
    space = " " * (size - _wide(text))
    return space + text if right else text + space


def _padded_cell(cell: Cell, size: int, right: bool, color: bool) -> str:
    space = " " * (size - _wide(cell.text))
    text = cell.text
    if cell.null:
        text = _painted_ansi(text, _DIM, color)
    elif cell.numeric and " ± " in text:
        number, sign, around = text.partition(" ± ")
        text = number + _painted_ansi(sign + around, _DIM, color)
    return space + text if right else text + space


def _painted_ansi(text: str, style: str, color: bool) -> str:
    return f"{style}{text}{_RESET}" if color and text else text


def _centred(text: str, size: int, style: str) -> str:
    space = size - _wide(text)
    return " " * (space // 2) + _painted_ansi(text, style, bool(style)) + " " * (space - space // 2)


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
        return Text(cell.text, style="dim" if cell.null else "")
    return Text(number).append(f"{sign}{around}", style="dim")
