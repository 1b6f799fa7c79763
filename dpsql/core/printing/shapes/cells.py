"""Histograms that quantiles and modes are chosen by: a row for each group and public cell of values with rows in it.

    r: the rows that count, each with its keys and its value y: in grid units, or, of a MODE, as it is
    w: the weight of each row of an (id, group) that is above a limit, or that is kept; only under a limit
    result: for each group and cell the number of rows, or Σ of their weights; of a LARGEST the number of ids

The weight of a row is ⌊F·C / max(rows of the id, C)⌋, or ⌊F·M·G / (max(n, M)·max(K, G))⌋: n the rows of the id in the
group, K its groups, of all rows of the relation, whatever a filter or a NULL leaves of them. So the rows of a group
weigh together at most what they do as a COUNT, wherever their values lie.
"""

from __future__ import annotations

from collections.abc import Sequence

from dpsql.core.ir.components import KeySource, ListChoice, QuantileChoice
from dpsql.core.ir.nodes import Release
from dpsql.core.ir.types import BIGINT
from dpsql.core.measures.all_measures import rule
from dpsql.core.measures.quantile import cells_of
from dpsql.core.numbers.cells import Cells
from dpsql.core.printing.block import Block
from dpsql.core.printing.dialect import Dialect
from dpsql.core.printing.expressions import Names, condition, spell
from dpsql.core.printing.grid_integers import quantized
from dpsql.core.printing.key_lists import member
from dpsql.core.printing.shapes.release_statement import Statement
from dpsql.core.printing.shapes.sliced import Sets, unfiltered, with_numbers
from dpsql.core.printing.waist import text, waist


def histogram(
    block: Block,
    node: Release,
    numbers: tuple[int, ...],
    unit: Sequence[int] = (),
    weights: Sequence[str] = (),
    full: int = 0,
    sets: Sets = (),
) -> Statement:
    """One histogram.

    numbers: of the components that are chosen by it. sets: the one that they are in slices of, whose numbers are a
    column. unit: of the id at most, where rows have weights, or ids are counted: its column. weights: steps of a
    WITH of which the last is w, with columns u, k0 … and ww. full: the weight of rows that w does not know; 0: they do
    not count.
    """
    d, keys = block.names.dialect, node.keys
    names = [f"k{i}" for i in range(len(keys))]
    c, *_ = (unfiltered(node.components, sets)[i] for i in numbers)
    if sets:
        block = with_numbers(block, sets, node.components)
    if c.filter is not None:
        block = block.filtered(condition(c.filter, block.names))
    cells: Cells | KeySource
    if isinstance(c, QuantileChoice):
        cells = cells_of(c)
        cell = start(d, "r.y", cells)
    else:
        assert isinstance(c, ListChoice) and c.choices is not None
        cells, cell = c.choices, "r.y"
        value, known = spell(c.arg, block.names)
        if not cells.covers:
            block = block.filtered(member(d, value, known.type, cells))
    ids = rule(c).counts == "ids"
    unit = unit if weights or ids else ()

    def listed(over: Names) -> list[str]:
        assert c.arg is not None
        value = d.cast(quantized(c, over), BIGINT) if isinstance(c, QuantileChoice) else text(c.arg, over)[0]
        shown = [f"{over.sql[k.uid]} AS {name}" for k, name in zip(keys, names, strict=True)]
        slice_ = [f"{over.sql[-1]} AS s"] if sets else []
        return [*shown, *slice_, f"{value} AS y", *(f"{over.sql[uid]} AS u" for uid in unit)]

    items, block = waist(block, listed)
    rows = f"(SELECT {', '.join(items)}\n{block.clause()}) AS r"
    counted = "COUNT(DISTINCT r.u)" if ids else "COUNT(*)"
    if weights:
        same = " AND ".join(["r.u = w.u", *(f"r.{name} IS NOT DISTINCT FROM w.{name}" for name in names)])
        rows += f"\n{'LEFT ' if full else ''}JOIN w ON {same}"
        counted = d.total(f"COALESCE(w.ww, {full})" if full else "w.ww", BIGINT)
    groups = [*(f"r.{name}" for name in names), *(["r.s"] if sets else []), f"{cell} AS c"]
    shown = [*groups, f"{counted} AS m"]
    by = ", ".join(str(i + 1) for i in range(len(groups)))
    present = "" if ids else "\nWHERE r.y IS NOT NULL"  # NULL can be a key, and no value
    if sets:
        own = sorted({sets[0].members[i] for i in numbers})
        present += f" AND r.s IN ({', '.join(map(str, own))})"
    steps = ",\n".join(weights)
    head = f"WITH {steps}\n" if weights else ""
    sql = f"{head}SELECT {', '.join(shown)}\nFROM {rows}{present}\nGROUP BY {by}"
    shape = "units by value" if ids else "histogram by cells, weights per id" if weights else "histogram by cells"
    return Statement(sql, numbers, shape, cells, tuple(sets[0].members[i] for i in numbers) if sets else ())


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
