"""Stored group keys: each once, as the engine gives them."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import duckdb
import pytest

from dpsql.answers.stored.distinct_keys import are_keys
from dpsql.core.ir.types import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    HUGEINT,
    INTEGER,
    TIME,
    TIMESTAMP,
    UUID,
    VARCHAR,
    SqlType,
    decimal,
)

NOON = dt.datetime(2024, 1, 1, 12)
CODE = "0000000a-0000-0000-0000-00000000000a"

GOOD: list[tuple[SqlType, list[Any]]] = [
    (VARCHAR, ["a", "A", "", "1", None]),
    (BIGINT, [1, 0, -1, 1 << 62, None]),
    (HUGEINT, [1 << 100, 0]),
    (BOOLEAN, [True, False, None]),
    (decimal(9, 2), [Decimal("1.25"), Decimal("1.20"), Decimal("0.00"), None]),
    (decimal(9, 0), [Decimal(1), Decimal(0)]),
    (DATE, [dt.date(2024, 1, 1), None]),
    (TIMESTAMP, [NOON, NOON.replace(microsecond=1)]),
    (TIME, [dt.time(12), dt.time(12, 0, 1)]),
    (UUID, [CODE, CODE.replace("a", "b")]),
]
BAD: list[tuple[SqlType, list[Any]]] = [
    (VARCHAR, ["a", "b", "a"]),
    (VARCHAR, [None, None]),
    (VARCHAR, ["1", 1]),
    (VARCHAR, [b"a"]),
    (INTEGER, [1, True]),
    (INTEGER, [1, "1"]),
    (INTEGER, ["1", " 1"]),
    (INTEGER, [1.0]),
    (BOOLEAN, [1]),
    (decimal(9, 2), [Decimal("1.001"), Decimal("1.002")]),
    (decimal(9, 2), [Decimal("1e9"), Decimal("0.00")]),
    (decimal(9, 2), [Decimal("0.00"), Decimal("-0.00")]),
    (decimal(9, 2), [Decimal("NaN")]),
    (decimal(9, 2), [Decimal("sNaN")]),
    (decimal(9, 2), [1]),
    (DATE, [NOON, dt.date(2024, 1, 1)]),
    (TIMESTAMP, [NOON, NOON.replace(tzinfo=dt.UTC)]),
    (TIMESTAMP, [NOON.replace(fold=1)]),
    (TIME, [dt.time(12, tzinfo=dt.UTC)]),
    (UUID, [CODE, CODE.upper()]),
    (UUID, [CODE, f"{{{CODE}}}"]),
    (DOUBLE, [1.0]),
]


@pytest.mark.parametrize(("type_", "values"), GOOD, ids=lambda x: str(x)[:40])
def test_keys_as_the_engine_gives_them(type_: SqlType, values: list[Any]) -> None:
    assert are_keys([(v,) for v in values], [type_])
    with duckdb.cursor() as engine:
        given = [engine.execute(f"SELECT CAST(? AS {type_})", [v]).fetchall()[0][0] for v in values]
    assert are_keys([(str(v) if type_ == UUID and v is not None else v,) for v in given], [type_])


@pytest.mark.parametrize(("type_", "values"), BAD, ids=lambda x: str(x)[:40])
def test_what_could_be_one_key_twice(type_: SqlType, values: list[Any]) -> None:
    assert not are_keys([(v,) for v in values], [type_])


def test_several_columns() -> None:
    types = [VARCHAR, BIGINT]
    assert are_keys([("a", 1), ("a", 2), ("b", 1), (None, None)], types)
    assert are_keys([], types) and are_keys([()], [])
    assert not are_keys([("a", 1), ("a", 1)], types) and not are_keys([(), ()], [])
    assert not are_keys([("a",)], types) and not are_keys([("a", 1, 1)], types)
