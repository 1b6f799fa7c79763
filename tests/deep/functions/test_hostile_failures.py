"""Expressions printed from false beliefs on DuckDB: none fails, and a call that cannot be computed is NULL by itself.

Twins: without TRY, one around a whole AND in place of one around each call, and one function that has none.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import pytest

from dpsql.core.printing import expressions
from dpsql.core.printing.dialects import duckdb, duckdb_total
from tests.support.hostile import Hostile
from tests.support.hostile_checks import OURS, Table
from tests.support.hostile_failures import Printed, failures, logic

ATTEMPTED = duckdb_total.attempted
RARE = ("neg", "date_diff", "last_day", "lpad")
SEEDS = [0, *(pytest.param(s, marks=pytest.mark.exhaustive) for s in range(1, 21))]


class Engine:
    """DuckDB with the rows of hostile_checks."""

    def __init__(self) -> None:
        self.table = Table()

    def rows(self, printed: Sequence[Printed], chosen: Sequence[int] | None) -> list[tuple[Any, ...] | str]:
        found = self.table.values(
            printed, OURS, "" if chosen is None else f"WHERE n IN ({', '.join(map(str, chosen))})"
        )
        return [v.failure or v.rows for v in found]

    def hostile(self, seed: int) -> Hostile:
        return Hostile(random.Random(seed), self.table.columns)


@pytest.fixture(scope="module")
def engine() -> Engine:
    return Engine()


@pytest.mark.parametrize("seed", SEEDS)
def test_no_row_makes_an_expression_fail(engine: Engine, seed: int) -> None:
    found = failures(engine.hostile(seed), engine.table.names, engine.rows, seed, 2_000 if seed else 300)
    assert not found.problems, "\n".join(found.problems[:5])


@pytest.mark.parametrize("seed", SEEDS)
def test_logic_stands_outside(engine: Engine, seed: int) -> None:
    found = logic(engine.hostile(seed), engine.table.names, engine.rows, seed, 1_000 if seed else 100)
    assert not found.problems, "\n".join(found.problems[:5])


# --- twins ------------------------------------------------------------------------------------------------------------


def _never(sql: str, *rest: object) -> str:
    return sql


def _around_and(sql: str, function: str, *rest: Any) -> str:
    """One around all of it, and none within."""
    if function in ("and", "or", "case", "coalesce"):
        return f"TRY{sql.replace('TRY(', '(')}"
    return ATTEMPTED(sql, function, *rest)


def test_calls_without_a_try_are_found(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(duckdb, "attempted", _never)
    assert failures(engine.hostile(0), engine.table.names, engine.rows, 0, 5_000, until="fails").told("fails")


def test_a_try_around_the_whole_is_found(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(expressions, "admitted", lambda text, *_: text)  # which knows parts by their TRY
    monkeypatch.setattr(duckdb, "attempted", _around_and)
    assert logic(engine.hostile(0), engine.table.names, engine.rows, 0, 5_000, until="give").told("give")


@pytest.mark.parametrize(
    "function", ["add", "date_add", *(pytest.param(f, marks=pytest.mark.exhaustive) for f in RARE)]
)
def test_one_function_without_is_found(engine: Engine, monkeypatch: pytest.MonkeyPatch, function: str) -> None:
    monkeypatch.setattr(duckdb_total, "TOTAL", {**duckdb_total.TOTAL, function: duckdb_total._always})
    assert failures(engine.hostile(0), engine.table.names, engine.rows, 0, 20_000, until="fails").told("fails")
