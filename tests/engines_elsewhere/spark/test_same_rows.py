"""What plans ask of an engine gives the same rows in Spark as in DuckDB, or is refused by name.

The plans are those of all fixtures, over random rows that hold NULL, NaN, infinities and odd texts. Which groups of an
id are kept is decided by a hash; for these tests DuckDB computes Spark's.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import pytest

from dpsql.core.ir.types import DOUBLE
from dpsql.spelling.spark_functions import SPARK
from tests.engines_elsewhere.plan_rows import NAMES, compared, tables_of
from tests.engines_elsewhere.spark.bare import Bare
from tests.engines_elsewhere.spark.same_rows import PORTABLE, connection, load, xxhash64
from tests.fixtures.cases import policy

LONG = {"shop", "limits"}
"""Policies of which there are hundreds of plans."""


@pytest.fixture(
    scope="module",
    params=[pytest.param(name, marks=[pytest.mark.long_on_spark] if name in LONG else []) for name in NAMES],
)
def world(server: str, request: pytest.FixtureRequest) -> Iterator[tuple[str, Any, Bare]]:
    """The tables of one policy in both engines."""
    engine, con, rng = Bare(server, SPARK), connection(), random.Random(request.param)
    try:
        for table in tables_of(policy(request.param), rng):
            load(table, con, engine)
        yield request.param, con, engine
    finally:
        engine.close()


def test_plans_give_the_same_rows(world: tuple[str, Any, Bare]) -> None:
    name, con, engine = world
    found = compared(name, PORTABLE, SPARK, con, engine.fetch)
    print(name, found.compared, found.full, *found.refused, sep="\n")
    assert not found.wrong, f"{len(found.wrong)} of {found.compared}\n" + "\n\n".join(found.wrong[:12])


def test_the_hash_of_a_double_is_that_of_its_definition(server: str) -> None:
    engine = Bare(server, SPARK)
    numbers = [0.0, -0.0, 1.5, float("nan"), float("inf"), 5e-324, -1e300]
    asked = ", ".join(f"CAST(xxhash64({SPARK.constant(x, DOUBLE)}) AS STRING) AS c{i}" for i, x in enumerate(numbers))
    assert [c[0] for c in engine.fetch(f"SELECT {asked}").columns] == [xxhash64(x) for x in numbers]
    engine.close()
