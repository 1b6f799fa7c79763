"""Values as text: what a reader sees of a number, a date, a NULL."""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsql.answers.results.cell_texts import Cell, cell, plain


@pytest.mark.parametrize(
    ("value", "half_width", "expected"),
    [
        (1234, 56.0, "1,234 ± 56"),
        (1234, 0.5, "1,234 ± 0.500"),
        (1234, None, "1234"),
        (-3, 12.4, "-3 ± 13"),
        (12.3456, 0.0345, "12.3456 ± 0.0345"),
        (12.3456, 3.449, "12.35 ± 3.45"),
        (12.3456, 120.01, "12 ± 121"),
        (-0.001, 5.0, "0.00 ± 5.00"),
        (0.1 + 0.2, None, "0.3"),
        (1e20, 5.0, "1e+20 ± 5.00"),
        (Decimal("1234.5678"), 1.5, "1,234.57 ± 1.50"),
        (Decimal("1E+3"), None, "1000"),
        (5, math.inf, "5"),
        (1797321.4, None, "1,797,321"),
        (12345.678, None, "12,345.7"),
        (1797321, 1500.0, "1,797,321 ± 1,500"),
        (5, 0.0, "5 ± 0"),
        (math.nan, 1.0, "NaN"),
        (-math.inf, None, "-Infinity"),
        (None, None, "NULL"),
        (True, None, "true"),
        (dt.date(2025, 2, 28), None, "2025-02-28"),
        ("a\x1b[31m\nb", None, "a\ufffd[31m b"),
    ],
)
def test_cells(value: Any, half_width: float | None, expected: str) -> None:
    assert cell(value, None if half_width is None else (half_width, half_width)).text == expected


@pytest.mark.parametrize(
    ("value", "reach", "expected"),
    [
        (5215, (115.0, None), "≥ 5,100 (too low)"),
        (5215, (114.2, None), "≥ 5,100 (too low)"),
        (5215, (None, 114.2), "≤ 5,330 (too high)"),
        (0.5, (0.25, None), "≥ 0.250 (too low)"),
        (Decimal("10.5"), (1.25, None), "≥ 9.25 (too low)"),
        (1e20, (1e19, None), "≥ 90,000,000,000,000,000,000 (too low)"),
    ],
)
def test_a_cell_with_one_end_shows_it_rounded_outwards(
    value: Any, reach: tuple[float | None, float | None], expected: str
) -> None:
    assert cell(value, reach, "too low" if reach[1] is None else "too high").text == expected


@pytest.mark.parametrize(
    ("reach", "expected"),
    [
        ((120.0, 620.0), "5,215 −120 / +620"),
        ((620.0, 120.0), "5,215 −620 / +120"),
        ((100.0, 110.0), "5,215 ± 110"),
        ((100.0, 110.1), "5,215 −100 / +111"),
        ((0.0, 3.0), "5,215 −0 / +3"),
        ((None, None), "5215"),
    ],
)
def test_sides_that_differ_by_more_than_a_tenth_are_both_shown(
    reach: tuple[float | None, float | None], expected: str
) -> None:
    assert cell(5215, reach).text == expected


def test_numbers_go_to_the_right() -> None:
    assert cell(1).numeric and cell(1.5, (2.0, 2.0)).numeric and cell(Decimal(1)).numeric
    assert not any(cell(v).numeric for v in (None, True, "1", dt.date(2025, 1, 1)))
    assert cell("1") == Cell("1")


@given(value=st.integers(-(10**9), 10**9), half_width=st.floats(1e-6, 1e9))
def test_a_shown_half_width_is_not_narrower_than_it_is(value: int, half_width: float) -> None:
    shown, _, around = cell(value, (half_width, half_width)).text.partition(" ± ")
    shown, around = shown.replace(",", ""), around.replace(",", "")
    assert Decimal(around) >= Decimal(half_width) * (1 - Decimal("1e-3"))
    assert Decimal(around) <= Decimal(half_width) * Decimal("1.011") + (1 if half_width >= 1 else Decimal("1e-8"))
    assert Decimal(shown) == value


def test_a_timestamp_in_a_table_is_written_as_in_sql() -> None:
    assert cell(dt.datetime(2025, 1, 2, 3, 4, 5)).text == "2025-01-02 03:04:05"
    assert cell(dt.date(2025, 1, 2)).text == "2025-01-02"


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, ""),
        (False, "false"),
        (10**40, str(10**40)),
        (0.1, "0.1"),
        (1e300, "1e+300"),
        (Decimal("0.10"), "0.10"),
        (dt.datetime(2025, 1, 2, 3, 4, 5), "2025-01-02T03:04:05"),
        (dt.time(3, 4), "03:04:00"),
        (dt.timedelta(days=1), "1 day, 0:00:00"),
    ],
)
def test_plain_text_is_exact(value: Any, expected: str) -> None:
    assert plain(value) == expected
