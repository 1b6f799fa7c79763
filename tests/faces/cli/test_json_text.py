"""JSON that loses nothing."""

from __future__ import annotations

import datetime as dt
import json
import math
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsql.faces.cli.json_text import document, dumps

LEAVES = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
VALUES = st.recursive(
    LEAVES, lambda v: st.lists(v, max_size=3) | st.dictionaries(st.text(), v, max_size=3), max_leaves=9
)


@given(value=VALUES, ascii_only=st.booleans())
def test_what_json_knows_comes_back(value: Any, ascii_only: bool) -> None:
    text = dumps(value, ascii_only)
    assert json.loads(text) == value
    assert text.isascii() or not ascii_only


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (Decimal("12345678901234567890.1200"), "12345678901234567890.1200"),
        (Decimal("1E-7"), "0.0000001"),
        (10**60, str(10**60)),
        (math.nan, '"NaN"'),
        (math.inf, '"Infinity"'),
        (-math.inf, '"-Infinity"'),
        (dt.date(2025, 1, 2), '"2025-01-02"'),
        ((1, "é"), '[1, "é"]'),
    ],
)
def test_the_rest(value: Any, expected: str) -> None:
    assert dumps(value) == expected
    json.loads(dumps(value))


def test_a_document_has_a_row_a_line() -> None:
    text = document({"columns": ["a"], "rows": [[1], [2]], "none": [], "spent": {"epsilon": 0.5}})
    assert text.split("\n") == [
        "{", '  "columns": ["a"],', '  "rows": [', "    [1],", "    [2]", "  ],", '  "none": [],',
        '  "spent": {"epsilon": 0.5}', "}",
    ]  # fmt: skip
    assert json.loads(text)["rows"] == [[1], [2]]
