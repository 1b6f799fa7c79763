"""Public cells: every integer of a range lies in exactly one, and DuckDB finds the same one."""

from __future__ import annotations

from itertools import pairwise

import duckdb
import pytest

from dpsql.core.numbers.cells import Cells
from dpsql.core.printing.shapes.cells import start
from dpsql.spelling.duckdb_functions import DUCKDB

TOP = 2**30
RANGES = [
    (0, 0), (0, 99), (-50, 49), (-7, -7), (0, 10**6), (1, 10**6), (-(10**6), -1), (-(10**6), 0), (-3, 10**6),
    (-(10**6), 3), (999_983, 2 * 10**6 + 3), (-2_000_003, -999_983), (-TOP, TOP), (0, TOP), (TOP - 10**5, TOP),
    (-TOP, -TOP + 10**5), (-12_345_678, 987_654_321), (-(2**60), 2**60), (-(2**60), -7),
]  # fmt: skip
RANGE = pytest.mark.parametrize(("lo", "hi"), RANGES)
MOST = pytest.mark.parametrize("most", [2, 7, 100, 2**12])
LOGARITHMIC = pytest.mark.parametrize("logarithmic", [False, True])


def around(lo: int, hi: int, cells: Cells) -> list[int]:
    """Ends of the range and of cells, and powers of two, each with its neighbours."""
    powers = {sign * 2**i for i in range(61) for sign in (-1, 1)}
    edges = {lo, hi, 0, *powers, *cells.starts[:: max(1, len(cells) // 60)], *cells.starts[-50:]}
    return sorted({v + by for v in edges for by in (-1, 0, 1) if lo <= v + by <= hi})


@RANGE
@MOST
@LOGARITHMIC
def test_each_integer_lies_in_one_cell(lo: int, hi: int, most: int, logarithmic: bool) -> None:
    one_cell_each(lo, hi, most, logarithmic)


def one_cell_each(lo: int, hi: int, most: int, logarithmic: bool) -> None:
    cells = Cells.of(lo, hi, most, logarithmic)
    starts = cells.starts
    assert len(cells) <= max(2, most) and starts[0] == lo and starts[-1] <= hi
    assert all(a < b for a, b in pairwise(starts))
    ends = [cells.ends(i) for i in range(len(cells))]
    assert [first for first, _ in ends] == list(starts) and ends[-1][1] == hi
    assert all(a[1] + 1 == b[0] for a, b in pairwise(ends))
    for value in around(lo, hi, cells):
        first, last = ends[cells.cell_of(value)]
        assert first <= value <= last and first <= cells.middle(cells.cell_of(value)) <= last
    if hi - lo < most:
        assert len(cells) == hi - lo + 1, "one for each value"


@RANGE
@MOST
@LOGARITHMIC
def test_the_engine_finds_the_same_cell(lo: int, hi: int, most: int, logarithmic: bool) -> None:
    same_in_the_engine(lo, hi, most, logarithmic)


def same_in_the_engine(lo: int, hi: int, most: int, logarithmic: bool) -> None:
    cells = Cells.of(lo, hi, most, logarithmic)
    values = around(lo, hi, cells)
    sql = start(DUCKDB, "y", cells)
    listed = ", ".join(f"({v}::BIGINT)" for v in values)
    found = duckdb.execute(f"SELECT y, {sql} FROM (VALUES {listed}) AS t(y)").fetchall()
    wrong = [(y, at, cells.starts[cells.cell_of(y)]) for y, at in found if at != cells.starts[cells.cell_of(y)]]
    assert not wrong and len(found) == len(values)


def test_growing_cells_mirror_each_other() -> None:
    cells = Cells.of(-1000, 999, 100, True)
    for value in range(1000):
        first, last = Cells(-1000, 999, 2000, cells.digits).ends(Cells(-1000, 999, 2000, cells.digits).cell_of(value))
        mirrored = Cells(-1000, 999, 2000, cells.digits)
        assert mirrored.ends(mirrored.cell_of(-value - 1)) == (-last - 1, -first - 1)


def test_growing_cells_are_fine_where_values_are_small() -> None:
    cells = Cells.of(0, 10**9, 2**16, True)
    for value in (1, 100, 10_000, 10**6, 10**8):
        first, last = cells.ends(cells.cell_of(value))
        assert (last - first) <= value / 500
    uniform = Cells.of(0, 10**9, 2**16, False)
    assert len({uniform.ends(i)[1] - uniform.ends(i)[0] for i in range(len(uniform) - 1)}) == 1


@pytest.mark.parametrize(("lo", "hi"), [(90_000, 10_500_000), (0, 10**8), (0, TOP)])
def test_most_cells_are_equal_ones(lo: int, hi: int) -> None:
    """So large values that lie close together are told apart, too."""
    cells = Cells.of(lo, hi, 2**16, True)
    assert (hi - lo) // cells.width > 54_000 and cells.digits
