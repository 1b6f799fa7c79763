"""The scratch database: exact there and back, locked, closed for good."""

from __future__ import annotations

import math
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import pytest

from dpsql.core.ir.types import (
    BOOLEAN,
    DATE,
    DOUBLE,
    HUGEINT,
    INTEGER,
    NULL,
    TIMESTAMP,
    VARCHAR,
    SqlType,
    decimal,
    list_of,
)
from dpsql.diagnostics.errors import EngineError
from dpsql.engines.duckdb.scratch import Scratch

CASES: list[tuple[SqlType, list[Any]]] = [
    (HUGEINT, [2**127 - 1, -(2**127), 0, None, -1, 2**64]),
    (INTEGER, [1, None, -(2**31), 2**31 - 1, 0, 7]),
    (decimal(38, 4), [Decimal("0.0001"), Decimal("-" + "9" * 34), None, Decimal("1.5000"), 3, Decimal("-1E+3")]),
    (DOUBLE, [0.1, 1e308, -5e-324, math.inf, None, 1 / 3]),
    (BOOLEAN, [True, False, None, True, False, True]),
    (VARCHAR, ["", "null", None, 'it\'s "q" \\ \n é 😀', "a\x00b", "271828182"]),
    (DATE, [date(2024, 2, 29), None, date(1, 1, 1), date(9999, 12, 31), date(1970, 1, 1), date(1900, 3, 1)]),
    (TIMESTAMP, [datetime(2024, 2, 29, 23, 59, 59, 999999), None] + [datetime(1969, 12, 31, 0, 0, 1)] * 4),
    (NULL, [None] * 6),
]


def test_every_type_there_and_back() -> None:
    scratch = Scratch()
    columns = [(f"c {i}", type_) for i, (type_, _) in enumerate(CASES)]
    rows = list(zip(*(values for _, values in CASES), strict=True))
    scratch.load('odd "name"', columns, rows)
    table, types = scratch.fetch("SELECT * FROM " + scratch.table_sql('odd "name"'))
    assert table.names == tuple(name for name, _ in columns)
    assert types[:-1] == tuple(type_ for type_, _ in CASES[:-1])
    for (type_, values), got in zip(CASES, table.columns, strict=True):
        assert got == values, type_
    assert [type(v) for v in table.columns[0]] == [int, int, int, type(None), int, int]
    scratch.close()


def test_many_values_beyond_their_type_are_the_constant_error() -> None:
    scratch = Scratch()
    with pytest.raises(EngineError):
        scratch.load("t", [("a", INTEGER)], [[i] for i in range(2**31 - 1000, 2**31 + 1000)])
    with pytest.raises((TypeError, ValueError)):
        scratch.load("t", [("a", INTEGER)], [[0.5]] * 2000)
    scratch.load("t", [("a", INTEGER)], [[1]] * 2000)
    assert scratch.fetch(f"SELECT SUM(a) AS s FROM {scratch.table_sql('t')}")[0].columns == ([2000],)


def test_loading_again_replaces_and_nothing_is_a_table_too() -> None:
    scratch = Scratch()
    scratch.load("t", [("a", INTEGER)], [[1]])
    scratch.load("T", [("b", VARCHAR)], [])
    table, types = scratch.fetch(f"SELECT * FROM {scratch.table_sql('t')}")
    assert (table.names, table.columns, types) == (("b",), ([],), (VARCHAR,))
    scratch.drop("t")
    scratch.drop("t")
    with pytest.raises(EngineError):
        scratch.fetch(f"SELECT * FROM {scratch.table_sql('t')}")


@pytest.mark.parametrize(
    ("type_", "value"),
    [
        (INTEGER, 1.5),
        (decimal(5, 2), Decimal("0.001")),
        (decimal(5, 2), 0.5),
        (decimal(5, 2), Decimal("nan")),
        (BOOLEAN, 1),
        (NULL, 1),
        (list_of(INTEGER), [1]),
    ],
)
def test_what_would_be_rounded_is_refused(type_: SqlType, value: Any) -> None:
    with pytest.raises((TypeError, ValueError)):
        Scratch().load("t", [("a", type_)], [[value]])


def test_out_of_range_is_the_constant_error() -> None:
    with pytest.raises(EngineError):
        Scratch().load("t", [("a", INTEGER)], [[2**31]])


def test_types_of_expressions() -> None:
    scratch = Scratch()
    _, types = scratch.fetch("SELECT 1 AS a, 'x' AS b, 1.25 AS c, SUM(1::BIGINT) AS d, 1 > 2 AS e")
    assert types == (INTEGER, VARCHAR, decimal(3, 2), HUGEINT, BOOLEAN)


def test_scratch_is_locked_and_stays_closed() -> None:
    scratch = Scratch()
    for sql in ("SELECT * FROM read_text('/etc/passwd')", "SET threads = 1", "SELECT 1; SELECT 2", "INSTALL httpfs"):
        with pytest.raises(EngineError):
            scratch.fetch(sql)
    scratch.interrupt()
    scratch.close()
    scratch.close()
    with pytest.raises(EngineError):
        scratch.fetch("SELECT 1")
