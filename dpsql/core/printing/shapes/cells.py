"""Histograms that quantiles and modes are chosen by: a row for each group and public cell of values with rows in it.

r: the rows, each with its keys and its value y: in grid units, or, of a MODE, as it is; NULL if it does not count
result: for each group and cell the number of rows, or Σ of their weights (weighed_rows.py); of a LARGEST the number
    of ids
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from dpsql.core.ir.components import KeySource, ListChoice, QuantileChoice
from dpsql.core.ir.nodes import Release
from dpsql.core.ir.types import BIGINT
from dpsql.core.measures.all_measures import rule
from dpsql.core.measures.quantile import cells_of
from dpsql.core.numbers.cells import Cells
from dpsql.core.printing.dialect import Dialect
from dpsql.core.printing.expressions import Block, Names
from dpsql.core.printing.forms.clip import only_if, within
from dpsql.core.printing.forms.key_lists import member
from dpsql.core.printing.forms.sliced import Sets, unfiltered, with_numbers
from dpsql.core.printing.grid_integers import clipped_below, quantized
from dpsql.core.printing.shapes.release_statement import Statement
from dpsql.core.printing.waist import conditions, text, waist

Weighed = Callable[[str], tuple[str, str, str]]
"""The SELECT of r → a WITH, or nothing; r with the weights of its rows; the weight of one."""


def histogram(
    block: Block,
    node: Release,
    numbers: tuple[int, ...],
    unit: Sequence[int] = (),
    weighed: Weighed | None = None,
    sets: Sets = (),
) -> Statement:
    """One histogram. unit: of the id at most, where rows have weights, or ids are counted: its column.

    numbers: of the components that are chosen by it. sets: the one that they are in slices of: r has its number as s.
    """
    d, names = block.names.dialect, [f"k{i}" for i in range(len(node.keys))]
    c = unfiltered(node.components, sets)[numbers[0]]
    cells: Cells | KeySource
    if isinstance(c, QuantileChoice):
        cells = cells_of(c)
        cell = start(d, "r.y", cells)
    else:
        assert isinstance(c, ListChoice) and c.choices is not None
        cells, cell = c.choices, "r.y"
    ids = rule(c).counts == "ids"
    unit = unit if weighed is not None or ids else ()
    held: list[str] = []

    def counting(over: Names) -> list[str]:
        assert c.arg is not None
        terms = conditions(c, over)
        if isinstance(cells, KeySource) and not cells.covers:
            value, known = text(c.arg, over)
            terms.append(member(d, value, known.type, cells))
        return terms

    def listed(over: Names) -> list[str]:
        assert c.arg is not None
        if isinstance(c, QuantileChoice):
            near = clipped_below(c, over)
            value = d.cast(quantized(c, over) if near is None else near, BIGINT)
            held.append("r.y IS NOT NULL" if near is None else within("r.y", str(c.lo), str(c.hi)))
        else:
            value = text(c.arg, over)[0]
        shown = [f"{over.sql[k.uid]} AS {name}" for k, name in zip(node.keys, names, strict=True)]
        shown += [f"{over.sql[-1]} AS s"] if sets else []
        # Rows that do not count have weights, too: they are rows of their id.
        value = only_if(counting(over), value) if weighed is not None else value
        return [*shown, f"{value} AS y", *(f"{over.sql[uid]} AS u" for uid in unit)]

    if weighed is None:
        block = block.filtered(*counting(block.names))
    items, block = waist(block, with_numbers(listed, sets, node.components))
    rows = f"SELECT {', '.join(items)}\n{block.clause()}"
    if weighed is not None:
        head, source, weight = weighed(rows)
        counted = d.total(weight, BIGINT)
    else:
        head, source, counted = "", f"({rows}) AS r", "COUNT(DISTINCT r.u)" if ids else "COUNT(*)"
    groups = [*(f"r.{name}" for name in names), *(["r.s"] if sets else []), f"{cell} AS c"]
    shown, by = [*groups, f"{counted} AS m"], ", ".join(str(i + 1) for i in range(len(groups)))
    present = "" if ids else f"\nWHERE {held[0] if held else 'r.y IS NOT NULL'}"  # NULL can be a key, and no value
    slices = tuple(sets[0].members[i] for i in numbers) if sets else ()
    present += f" AND r.s IN ({', '.join(map(str, sorted(set(slices))))})" if slices else ""
    sql = f"{head}SELECT {', '.join(shown)}\nFROM {source}{present}\nGROUP BY {by}"
    weights = "histogram by cells, weights per id"
    shape = "units by value" if ids else "histogram by cells" if weighed is None else weights
    return Statement(sql, numbers, shape, cells, slices)


def start(d: Dialect, y: str, cells: Cells) -> str:
    """SQL of the first integer of the cell of a BIGINT of lo … hi: the later one of both cuts."""
    if cells.width == 1:
        return y
    above = f"({y} - {cells.lo})" if cells.lo else y
    equal = f"({y} - {above} % {cells.width})"
    if not cells.digits:
        return equal
    arms = []
    if cells.lo < 0:
        beyond = str(cells.lo) if -cells.lo > cells.top else ""
        arms.append(f"WHEN {y} < 0 THEN {_up(f'(-{y} - 1)', -cells.lo - 1, cells, '-', beyond)}")
    if cells.hi >= 0:
        arms.append(f"ELSE {_up(y, cells.hi, cells, '', str(cells.top) if cells.hi >= cells.top else '')}")
    growing = arms[0].removeprefix("ELSE ") if len(arms) == 1 and cells.lo >= 0 else f"CASE {' '.join(arms)} END"
    return d.greatest(d.greatest(equal, growing), str(cells.lo))


def _up(v: str, most: int, cells: Cells, sign: str, beyond: str) -> str:
    """The first integer of the growing cell of v ≥ 0, at most `most`; with a sign, that of the mirrored cell.

    beyond: what it is from `cells.top` on, if v is ever there.
    """

    def among(low: int, high: int) -> str:
        """Of a v whose last low … high - 1 digits, one of these numbers, are not looked at: half of them at a time."""
        if high - low > 1:
            half = (low + high) // 2
            end = 1 << (cells.digits + half - 1)
            return f"CASE WHEN {v} < {end} THEN {among(low, half)} ELSE {among(half, high)} END"
        first = v if low == 0 else f"({v} & {-(1 << low)})"
        return f"-({first} + {1 << low})" if sign else first

    found = among(0, max(1, min(most, cells.top - 1).bit_length() - cells.digits + 1))
    return f"CASE WHEN {v} < {cells.top} THEN {found} ELSE {beyond} END" if beyond else found
