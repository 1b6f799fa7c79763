"""How an answer is printed: as a table with its ± and what it cost, or as data for another program."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Final, TextIO

from dpsql.answers.results.answer import Release, column_intervals, reaches, remarks, unique_names, with_ends
from dpsql.answers.results.cell_texts import Cell, cell, plain
from dpsql.core.numbers.confidence import LEVEL
from dpsql.core.privacy_loss import PrivacyLoss, left_text
from dpsql.diagnostics.layout import inert, one_line, printable
from dpsql.diagnostics.note import Note, foremost, note_records
from dpsql.faces.cli.exits import say
from dpsql.faces.cli.json_text import document, dumps
from dpsql.faces.cli.options import Format, Intervals
from dpsql.faces.cli.table_layout import (
    box_table,
    html_table,
    markdown_table,
    plain_table,
    print_table,
    unaligned_table,
    vertical_list,
)


@dataclass(frozen=True, slots=True)
class Style:
    """How values are shown. heading: with column names. separator: of `unaligned`. color: by ANSI codes.

    null: what stands for NULL where people read; a text that looks like it is put in quotes.
    """

    intervals: Intervals = Intervals.ON
    null: str = "NULL"
    heading: bool = True
    separator: str = "|"
    color: bool = False


PLAIN: Final = Style()


def print_answer(release: Release, format: Format, footer: str, out: TextIO, level: Fraction = LEVEL) -> None:
    """Print to `out`. A table ends with the footer; of the other formats only data goes to `out`.

    level: the confidence of the ± and of the intervals.
    Data formats put the footer on standard error; json has it in its keys.
    """
    if format is Format.TABLE:
        print_table(release.columns, table_cells(release, level), out)
    else:
        out.write(answer_text(release, format, PLAIN, level, out))
    if format in FOR_PEOPLE:
        print(footer, file=out)
    out.flush()
    if format not in FOR_PEOPLE and format is not Format.JSON:
        say(footer)


FOR_PEOPLE: Final = frozenset({Format.TABLE, Format.BOX, Format.VERTICAL, Format.UNALIGNED})
"""Formats that end with the footer; in the others nothing but data goes to standard output."""

WITH_WIDTHS: Final = frozenset({*FOR_PEOPLE, Format.MARKDOWN, Format.HTML})
"""Formats that show `value ± half-width`."""


def answer_text(release: Release, format: Format, style: Style, level: Fraction, out: TextIO) -> str:
    """The answer without its footer, for `out`, whose encoding counts; it ends with a line end, unless it is empty.

    What is shown on a terminal holds no control characters of the data.
    """
    match format:
        case Format.CSV:
            return _for_terminal(as_csv(release, style, level), out)
        case Format.JSON:
            return as_json(release, _ascii_only(out), level) + "\n"
        case Format.JSONL:
            return as_jsonl(release, _ascii_only(out), style, level)
        case _:
            text = inert(_for_people(release, format, style, level))
            return f"{text}\n" if text else ""


def _for_people(release: Release, format: Format, style: Style, level: Fraction) -> str:
    return cells_text(*columns_and_cells(release, style, level), format, style)


def cells_text(header: Sequence[str], rows: Sequence[Sequence[Cell]], format: Format, style: Style) -> str:
    """Cells as people read them: any of `WITH_WIDTHS`."""
    match format:
        case Format.BOX:
            return box_table(header, rows, heading=style.heading)
        case Format.HTML:
            return html_table(header, rows, heading=style.heading)
        case Format.VERTICAL:
            return vertical_list(header, rows, heading=style.heading, color=style.color)
        case Format.UNALIGNED:
            return unaligned_table(header, rows, style.separator, heading=style.heading)
        case Format.MARKDOWN:
            return markdown_table(header, rows)
        case _:
            return plain_table(header, rows, heading=style.heading, color=style.color)


def table_cells(release: Release, level: Fraction = LEVEL) -> list[list[Cell]]:
    """The rows with `± half-width` at this confidence wherever there is an interval."""
    return columns_and_cells(release, PLAIN, level)[1]


def columns_and_cells(release: Release, style: Style, level: Fraction) -> tuple[Sequence[str], list[list[Cell]]]:
    """The header and the rows as people read them."""
    null = null_cells(style.null)
    if style.intervals is not Intervals.ON:
        columns, rows = columns_and_rows(release, style, level)
        return columns, [[null(cell(value), value) for value in row] for row in rows]
    names = unique_names(release.columns)
    return release.columns, [
        [null(cell(value, around.get(name), why.get(name, "")), value) for name, value in zip(names, row, strict=True)]
        for row, around, why in zip(release.rows, reaches(release, level), remarks(release, level), strict=True)
    ]


def null_cells(shown: str) -> Callable[[Cell, Any], Cell]:
    """NULL as `shown`; texts that are it, or are it in quotes, get quotes (once more), so that they are told apart."""
    alike = re.compile(f"'*{re.escape(shown)}'*")

    def changed(found: Cell, value: Any) -> Cell:
        if found.null:
            return replace(found, text=one_line(shown) + found.remark)
        return replace(found, text=f"'{found.text}'") if type(value) is str and alike.fullmatch(value) else found

    return changed


def columns_and_rows(release: Release, style: Style, level: Fraction) -> tuple[Sequence[str], Sequence[Sequence[Any]]]:
    """The columns and their values; with `cols` each column that has intervals is followed by both ends of them."""
    if style.intervals is not Intervals.COLS:
        return release.columns, release.rows
    columns, _ = with_ends(release, level)
    return list(columns), list(zip(*columns.values(), strict=True))


def as_jsonl(release: Release, ascii_only: bool, style: Style = PLAIN, level: Fraction = LEVEL) -> str:
    """An object a line: column → value."""
    columns, rows = columns_and_rows(release, style, level)
    names = unique_names(columns)
    return "".join(dumps(dict(zip(names, row, strict=True)), ascii_only) + "\n" for row in rows)


def _for_terminal(text: str, out: TextIO) -> str:
    """Data as it is; on a terminal without characters that could write to it."""
    return printable(text) if out.isatty() else text


def as_csv(release: Release, style: Style = PLAIN, level: Fraction = LEVEL) -> str:
    """RFC 4180 with a header line and LF line ends; NULL is an empty field, an empty text is `""`.

    A text that a spreadsheet would take for a formula is left as it is: this is data for programs.
    """
    columns, rows = columns_and_rows(release, style, level)
    lines = [columns, *rows] if style.heading else rows
    return "".join(",".join(map(_field, line)) + "\n" for line in lines)


def _field(value: Any) -> str:
    text = plain(value)
    if value == "" or text.lstrip().startswith("::") or any(character in text for character in ',"\r\n'):
        return '"' + text.replace('"', '""') + '"'
    return text


def as_json(release: Release, ascii_only: bool = False, level: Fraction = LEVEL) -> str:
    """`{"columns", "rows", "intervals", "gaps", "spent", "notes"}`: one row a line.

    rows: lists in the order of columns. intervals: at `level`, one object per row: column → [low, high] or null; an
    end without a bound is null. gaps: one object per row: column → why it has no interval, though it has noise. spent:
    numbers. Repeated column names get a number.
    """
    return document(
        {
            "columns": unique_names(release.columns),
            "rows": [list(row) for row in release.rows],
            "intervals": as_json_bounds(release.intervals(level)),
            "gaps": release.gaps(level),
            "spent": loss_json(release.spent),
            "notes": note_records(release.notes),
        },
        ascii_only,
    )


def as_json_bounds(
    rows: Sequence[Mapping[str, tuple[float | None, float | None] | None]],
) -> list[dict[str, list[float | None] | None]]:
    """Intervals as JSON: column → [low, high] or null; an end without a bound is null."""
    return [{name: _ends(bounds) for name, bounds in row.items()} for row in rows]


def _ends(bounds: tuple[float | None, float | None] | None) -> list[float | None] | None:
    return None if bounds is None else [None if end is None or not math.isfinite(end) else end for end in bounds]


def footer_of(
    release: Release,
    left: PrivacyLoss | None,
    remarks: tuple[Note, ...] = (),
    level: Fraction | None = LEVEL,
    ends: str = "±",
    more: str = "--format json",
) -> str:
    """`(4 rows)  spent ε 0.2 δ 1e-9, left ε 2.15; ± at 95 %`, and below it at most three notes, dangers first.

    level: the confidence of the intervals; None if none are shown. ends: what is shown of them. more: what shows the
    other notes.
    """
    count = len(release)
    rows = f"({count} row{'' if count == 1 else 's'})"
    if release.spent == PrivacyLoss():
        price = f"{rows}  spent nothing"
    elif left is None:
        price = f"{rows}  spent {release.spent}"
    else:
        price = f"{rows}  spent {release.spent}, left {left_text(left, in_rho=bool(release.spent.rho))}"
    around = level is not None and any(
        b is not None for t in column_intervals(release, level).values() for b in t.bounds
    )
    about = f"; {ends} at {float(100 * (level or 0)):g} %" if around else ""
    shown, others = foremost((*remarks, *release.notes))
    about += f"; {others} more note{'s' * (others != 1)}: {more}" if others else ""
    return "\n".join([price + about, *(f"  {inert(note)}" for note in shown)])


def loss_json(loss: PrivacyLoss) -> Mapping[str, Any]:
    """A loss as JSON numbers."""
    return {"epsilon": float(loss.epsilon), "delta": float(loss.delta), "rho": float(loss.rho)}


def _ascii_only(out: TextIO) -> bool:
    return (getattr(out, "encoding", None) or "utf-8").lower().replace("-", "") not in ("utf8", "utf8sig")
