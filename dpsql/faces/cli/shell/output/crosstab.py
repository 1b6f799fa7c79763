"""`\\crosstabview`: an answer with the values of one column down, of another across, and of a third in the cells."""

from __future__ import annotations

from collections.abc import Sequence

from dpsql.answers.results.cell_texts import Cell, cell
from dpsql.diagnostics.errors import reject
from dpsql.diagnostics.note import NOTHING_RAN


def places(columns: Sequence[str], wanted: Sequence[str]) -> tuple[int, int, int]:
    """Which columns stand down, across and in the cells: by name or number, else the first three in order.

    Raises Rejected DP903: there is none of this name, two are the same, or too few or too many to guess from.
    """
    found = [_place(columns, name) for name in wanted]
    for place in range(len(columns)):
        if len(found) < 2 and place not in found:
            found.append(place)
    left = [place for place in range(len(columns)) if place not in found]
    if len(found) == 2 and len(left) == 1:
        found += left
    if len(set(found)) != 3:
        raise reject(
            "DP903", f"\\crosstabview needs three columns, down, across and in the cells; here are {len(columns)}",
            help=["name them:  \\crosstabview DOWN ACROSS CELLS"], notes=[NOTHING_RAN],
        )  # fmt: skip
    down, across, inside = found
    return down, across, inside


def _place(columns: Sequence[str], name: str) -> int:
    if name.isdecimal() and 1 <= int(name[:9]) <= len(columns):
        return int(name) - 1
    alike = [place for place, column in enumerate(columns) if column.casefold() == name.casefold()]
    if len(alike) != 1:
        raise reject(
            "DP903", f"the answer has {'no' if not alike else 'more than one'} column {name!r}",
            help=[f"its columns are {', '.join(columns)}; numbers count from 1"],
            notes=[NOTHING_RAN],
        )  # fmt: skip
    return alike[0]


def crossed(
    header: Sequence[str], rows: Sequence[Sequence[Cell]], at: tuple[int, int, int]
) -> tuple[Sequence[str], list[list[Cell]]]:
    """The answer crossed; values in the order in which they come.

    A pair that comes twice has both, one after the other. A place of which the answer says nothing stays empty: NULL is
    shown as NULL.
    """
    down, across, inside = at
    sides = list(dict.fromkeys(row[down].text for row in rows))
    heads = list(dict.fromkeys(row[across].text for row in rows))
    found: dict[tuple[str, str], list[Cell]] = {}
    for row in rows:
        found.setdefault((row[down].text, row[across].text), []).append(row[inside])
    first = {row[down].text: row[down] for row in rows}

    def shown(cells: Sequence[Cell]) -> Cell:
        return cells[0] if len(cells) == 1 else cell(", ".join(c.text for c in cells))

    empty = cell("")
    return (
        [header[down], *heads],
        [[first[side], *(shown(found[side, h]) if (side, h) in found else empty for h in heads)] for side in sides],
    )
