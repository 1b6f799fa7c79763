"""Cells, as many as a quantile has at the most."""

from __future__ import annotations

from tests.core.numbers.test_cells import LOGARITHMIC, RANGE, one_cell_each, same_in_the_engine


@RANGE
@LOGARITHMIC
def test_each_integer_lies_in_one_cell(lo: int, hi: int, logarithmic: bool) -> None:
    one_cell_each(lo, hi, 2**16, logarithmic)


@RANGE
@LOGARITHMIC
def test_the_engine_finds_the_same_cell(lo: int, hi: int, logarithmic: bool) -> None:
    same_in_the_engine(lo, hi, 2**16, logarithmic)
