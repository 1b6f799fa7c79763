"""Octaves at every power of two and its neighbours, on the engine and in Python, by the definition."""

from __future__ import annotations

from fractions import Fraction

import duckdb
import pytest

from dpsql.core.ir.types import BIGINT, HUGEINT, INTEGER, TINYINT, UBIGINT, SqlType
from dpsql.core.values.value import Value, type_range
from dpsql.functions.domains.octaves import LAST
from dpsql.functions.registry import REGISTRY, apply, evaluate
from dpsql.spelling.duckdb_functions import DUCKDB

EDGES = [sign * 2**i + d for i in range(127) for d in (-1, 0, 1) for sign in (1, -1)] + [0, -(2**127), 2**127 - 1]


def octave(x: int) -> int | None:
    """By comparisons with powers alone."""
    return next((b for b in range(LAST) if abs(x) <= 2**b), LAST) if x else None


@pytest.mark.parametrize("type_", [HUGEINT, BIGINT, UBIGINT, INTEGER, TINYINT])
def test_octaves_are_exact_at_all_edges(type_: SqlType) -> None:
    held = type_range(type_)
    assert held.lo is not None and held.hi is not None
    numbers: list[int | None] = [x for x in dict.fromkeys(EDGES) if held.lo <= x <= held.hi]
    known = Value(type_, range=held)
    rows = ", ".join(f"('{x}'::{type_.name})" for x in numbers) + f", (NULL::{type_.name})"
    for name in ("octave", "signed_octave"):
        result = apply(REGISTRY[name], [known])
        assert result.domain is not None and result.type == INTEGER
        printed = DUCKDB.call(name, ["x"], [known], result)
        for x, found in duckdb.execute(f"SELECT x, {printed} FROM (VALUES {rows}) AS t(x)").fetchall():
            wanted = None if x is None else octave(x)
            if name == "signed_octave" and x is not None:
                wanted = 0 if wanted is None else (wanted + 1 if x > 0 else -wanted - 1)
            assert found == wanted == evaluate(REGISTRY[name], [x], INTEGER), x
            assert found is None or (found in result.domain.values and Fraction(found) in result.interval)
