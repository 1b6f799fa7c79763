"""How an answer is printed: as a table with its ± and what it cost, or as data for another program."""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction
from typing import Any, TextIO, assert_never

from dpsql.cli.exits import say
from dpsql.cli.json_text import document, dumps
from dpsql.cli.layout import markdown_table, print_table
from dpsql.cli.options import Format
from dpsql.loss import PrivacyLoss, show_left
from dpsql.numbers.confidence import LEVEL
from dpsql.release.cells import Cell, cell, plain
from dpsql.release.result import Release, half_widths, unique_names


def print_answer(release: Release, format: Format, footer: str, out: TextIO, level: Fraction = LEVEL) -> None:
    """Print to `out`. A table ends with the footer; of the other formats only data goes to `out`.

    level: the confidence of the ± and of the intervals.
    csv, jsonl and markdown put the footer on standard error; json has it in its keys.
    """
    match format:
        case Format.TABLE:
            print_table(release.columns, table_cells(release, level), out)
            print(footer, file=out)
        case Format.MARKDOWN:
            print(markdown_table(release.columns, table_cells(release, level)), file=out)
        case Format.CSV:
            out.write(as_csv(release))
        case Format.JSON:
            print(as_json(release, _ascii_only(out), level), file=out)
        case Format.JSONL:
            names = unique_names(release.columns)
            for row in release.rows:
                print(dumps(dict(zip(names, row, strict=True)), _ascii_only(out)), file=out)
        case _:
            assert_never(format)
    out.flush()
    if format in (Format.MARKDOWN, Format.CSV, Format.JSONL):
        say(footer)


def table_cells(release: Release, level: Fraction = LEVEL) -> list[list[Cell]]:
    """The rows with `± half-width` at this confidence wherever there is an interval."""
    names = unique_names(release.columns)
    return [
        [cell(value, around.get(name)) for name, value in zip(names, row, strict=True)]
        for row, around in zip(release.rows, half_widths(release, level), strict=True)
    ]


def as_csv(release: Release) -> str:
    """RFC 4180 with a header line and LF line ends; NULL is an empty field, an empty text is `""`.

    A text that a spreadsheet would take for a formula is left as it is: this is data for programs.
    """
    lines = [release.columns, *release.rows]
    return "".join(",".join(map(_field, line)) + "\n" for line in lines)


def _field(value: Any) -> str:
    text = plain(value)
    if value == "" or any(character in text for character in ',"\r\n'):
        return '"' + text.replace('"', '""') + '"'
    return text


def as_json(release: Release, ascii_only: bool = False, level: Fraction = LEVEL) -> str:
    """`{"columns", "rows", "intervals", "spent", "notes"}`: one row a line.

    rows: lists in the order of columns. intervals: at `level`, one object per row: column → [low, high] or null; an
    end without a bound is null. spent: numbers. Repeated column names get a number.
    """
    return document(
        {
            "columns": unique_names(release.columns),
            "rows": [list(row) for row in release.rows],
            "intervals": [{n: _ends(b) for n, b in row.items()} for row in release.intervals(level)],
            "spent": loss_json(release.spent),
            "notes": list(release.notes),
        },
        ascii_only,
    )


def _ends(bounds: tuple[float, float] | None) -> list[float | None] | None:
    return None if bounds is None else [end if math.isfinite(end) else None for end in bounds]


def footer_of(
    release: Release, left: PrivacyLoss | None, remarks: tuple[str, ...] = (), level: Fraction | None = LEVEL
) -> str:
    """`(4 rows)  spent ε 0.2 δ 1e-9, left ε 2.15; at most 20 rows per patient counted; ± at 95 %`.

    level: the confidence of the ±; None if none is shown.
    """
    count = len(release)
    rows = f"({count} row{'' if count == 1 else 's'})"
    if release.spent == PrivacyLoss():
        price = f"{rows}  spent nothing"
    elif left is None:
        price = f"{rows}  spent {release.spent}"
    else:
        price = f"{rows}  spent {release.spent}, left {left_text(left, in_rho=bool(release.spent.rho))}"
    around = level is not None and any(b is not None for row in release.intervals(level) for b in row.values())
    return "; ".join([price, *remarks, *release.notes, *([f"± at {float(100 * (level or 0)):g} %"] if around else [])])


def left_text(left: PrivacyLoss, *, in_rho: bool = False) -> str:
    """What is left, rounded down, in ε or (zCDP) in ρ; δ only if there is any."""
    main = f"ρ {show_left(left.rho)}" if in_rho else f"ε {show_left(left.epsilon)}"
    return f"{main} δ {show_left(left.delta)}" if left.delta else main


def loss_json(loss: PrivacyLoss) -> Mapping[str, Any]:
    """A loss as JSON numbers."""
    return {"epsilon": float(loss.epsilon), "delta": float(loss.delta), "rho": float(loss.rho)}


def _ascii_only(out: TextIO) -> bool:
    return (getattr(out, "encoding", None) or "utf-8").lower().replace("-", "") not in ("utf8", "utf8sig")
