"""An answer as notebooks show it. Every text in it is escaped: group keys are values of the data."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from dpsql.answers.results.cell_texts import cell
from dpsql.diagnostics.layout import one_line

if TYPE_CHECKING:
    from dpsql.answers.results.answer import Release

MOST_ROWS = 60
"""More rows than this are shortened to the first `SHOWN`."""
SHOWN = 20


def as_html(release: Release) -> str:
    """One table: names, rows with the ± of each number at 95 %, and below it the rows left out and what was spent."""
    from dpsql.answers.results.answer import first_rows, reaches, remarks, unique_names

    height = len(release)
    shown = height if height <= MOST_ROWS else SHOWN
    names = unique_names(release.columns)
    lines = ["<table>", "<thead><tr>", *(f"<th>{_text(name)}</th>" for name in release.columns), "</tr></thead>"]
    lines.append("<tbody>")
    beside = reaches(release, most=shown), remarks(release, most=shown)
    for row, widths, why in zip(first_rows(release, shown), *beside, strict=True):
        cells = [cell(value, widths.get(n), why.get(n, "")) for n, value in zip(names, row, strict=True)]
        parts = (f'<td style="text-align: {"right" if c.numeric else "left"}">{escape(c.text)}</td>' for c in cells)
        lines.append(f"<tr>{''.join(parts)}</tr>")
    lines += ["</tbody>", "</table>"]
    counted = f"{height} row{'' if height == 1 else 's'}"
    if shown < height:
        counted += f", of which the first {shown} are shown"
    lines.append(f"<p>{counted}; ± at 95 %; spent {_text(str(release.spent))}</p>")
    return "\n".join(lines)


def _text(text: str) -> str:
    return escape(one_line(text))
