"""Many rows through the scratch database."""

from __future__ import annotations

import math
from datetime import date
from decimal import Decimal
from typing import Any

import numpy as np
import pytest

from dpsql.core.ir.types import (
    BOOLEAN,
    DATE,
    DOUBLE,
    HUGEINT,
    INTEGER,
    VARCHAR,
    SqlType,
    decimal,
)
from dpsql.diagnostics.errors import EngineError
from dpsql.engines.duckdb.scratch import Scratch


def test_many_rows_keep_their_order_across_chunks() -> None:
    scratch, n = Scratch(), 250_001
    scratch.load_columns("t", [("i", HUGEINT), ("x", DOUBLE)], [list(range(n)), np.arange(n) / 7])
    table, _ = scratch.fetch(f"SELECT i, x FROM {scratch.table_sql('t')} ORDER BY i")
    assert table.columns[0] == list(range(n)) and table.columns[1] == (np.arange(n) / 7).tolist()
    scratch.close()


MANY: list[tuple[SqlType, list[Any]]] = [
    (HUGEINT, [2**63 - 1, -(2**63), 0, -1]),
    (INTEGER, [-(2**31), 2**31 - 1, 0, 7]),
    (DOUBLE, [0.1, 1e308, -5e-324, -math.inf]),
    (BOOLEAN, [True, False, False, True]),
    (VARCHAR, ["", "null", 'it\'s "q" \\ \n é 😀', "a\x00b\x00"]),
]
ODD: list[tuple[SqlType, Any]] = [
    (HUGEINT, 2**63), (HUGEINT, None), (DOUBLE, math.nan), (DOUBLE, None), (VARCHAR, None), (DATE, date(2024, 2, 29)),
    (decimal(5, 2), Decimal("1.50")), (BOOLEAN, None),
]  # fmt: skip


@pytest.mark.parametrize("odd", [None, *ODD], ids=str)
def test_many_plain_values_are_the_same_as_few(odd: tuple[SqlType, Any] | None) -> None:
    """Through numpy, and beside a column that cannot go through it: the same values of the same classes, in order."""
    scratch, times = Scratch(), 2_500
    types = [type_ for type_, _ in MANY] + ([odd[0]] if odd else [])
    plain = dict(MANY)
    values = [values * times for _, values in MANY]
    if odd:
        values.append([odd[1], *(plain.get(odd[0], [odd[1]] * 4) * times)[1:]])
    columns = [(f"c{i}", type_) for i, type_ in enumerate(types)] + [("n", INTEGER)]
    scratch.load_columns("t", columns, [*values, list(range(4 * times))])
    table, found = scratch.fetch(f"SELECT * FROM {scratch.table_sql('t')} ORDER BY n")
    assert found[:-1] == tuple(types)
    for expected, got in zip(values, table.columns, strict=False):
        assert list(map(repr, got)) == list(map(repr, expected))
    with pytest.raises(EngineError):  # the arrays are gone
        scratch.fetch("SELECT * FROM loaded_arrays")
    scratch.close()
