"""Expressions printed from false beliefs on Spark, in ANSI mode: none fails, on the farthest rows that it holds.

Twins: integers without try_add and its like, and guards that believe.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from dpsql.core.ir.expressions import Column
from dpsql.core.ir.types import Kind
from dpsql.core.printing.dialects.spark import Spark
from dpsql.core.printing.expressions import Names
from dpsql.core.values.value import Value
from dpsql.spelling.spark_functions import SPARK
from tests.engines_elsewhere.spark.bare import Bare
from tests.engines_elsewhere.spark.rows_of_functions import Both, held
from tests.support.function_rows import COLUMNS
from tests.support.hostile import Hostile
from tests.support.hostile_checks import ROWS
from tests.support.hostile_failures import Printed, failures, logic

LONG = [pytest.param(s, marks=pytest.mark.long_on_spark) for s in range(1, 5)]
AS_THEY_ARE = (Kind.BOOLEAN, Kind.INTEGER)


class Engine:
    """Spark with the rows of rows_of_functions, the farthest days and texts that are none among them."""

    def __init__(self, address: str) -> None:
        self.bare = Bare(address, SPARK)
        Both(20, self.bare)
        self.columns = [
            (Column(i, c.name, c.value.type), c.value) for i, c in enumerate(COLUMNS, 1) if held(c.name, c.value.type)
        ]
        env: dict[int, Value] = {c.uid: v for c, v in self.columns}
        self.names = Names({c.uid: SPARK.column(c.name, c.type) for c, _ in self.columns}, env, SPARK)

    def hostile(self, seed: int) -> Hostile:
        return Hostile(random.Random(seed), self.columns)

    def rows(self, texts: Sequence[Printed], chosen: Sequence[int] | None) -> list[tuple[Any, ...] | str]:
        if not texts:
            return []
        where = f"i < {ROWS}" if chosen is None else f"i IN ({', '.join(map(str, chosen))})"
        inner = ", ".join(f"{sql} AS r{at}" for at, (sql, _) in enumerate(texts))
        outer = ", ".join(
            f"r{at}" if t.kind in AS_THEY_ARE else f"hex(CAST(r{at} AS STRING))" for at, (_, t) in enumerate(texts)
        )
        try:
            found = self.bare.fetch(f"SELECT {outer} FROM (SELECT i, {inner} FROM far WHERE {where}) AS q ORDER BY i")
        except Exception as error:
            if len(texts) == 1:
                return [str(error).splitlines()[0]]
            half = len(texts) // 2
            return self.rows(texts[:half], chosen) + self.rows(texts[half:], chosen)
        return [tuple(column) for column in found.columns]


@pytest.fixture(scope="module")
def engine(server: str) -> Iterator[Engine]:
    opened = Engine(server)
    yield opened
    opened.bare.close()


@pytest.mark.parametrize("seed", [0, *LONG])
def test_no_row_makes_an_expression_fail(engine: Engine, seed: int) -> None:
    found = failures(engine.hostile(seed), engine.names, engine.rows, seed, 400 if seed else 32)
    assert not found.problems, "\n".join(found.problems[:5])


@pytest.mark.parametrize("seed", LONG)
def test_logic_stands_outside(engine: Engine, seed: int) -> None:
    found = logic(engine.hostile(seed), engine.names, engine.rows, seed, 60)
    assert not found.problems, "\n".join(found.problems[:5])


# --- twins ------------------------------------------------------------------------------------------------------------


@pytest.mark.long_on_spark
def test_integers_that_are_not_tried_are_found(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SPARK, "attempts", lambda d, sql, *rest: sql)
    assert failures(engine.hostile(0), engine.names, engine.rows, 0, 2_000, until="fails").told("fails")


@pytest.mark.long_on_spark
def test_guards_that_believe_are_found(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Spark, "believes", True)
    assert failures(engine.hostile(0), engine.names, engine.rows, 0, 2_000, until="fails").told("fails")
