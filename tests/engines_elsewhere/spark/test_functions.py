"""Every function that Spark spells gives DuckDB's value, to the bit, on every row of the function contract.

That DuckDB's value is that of the Python twin, and within all that is claimed, is tests/functions' to show. What
is not spelled is refused by name.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from dpsql.core.ir.types import parse_type
from dpsql.core.printing.dialect import CannotSpell
from dpsql.diagnostics.errors import Rejected
from dpsql.functions.cast import cast
from dpsql.functions.function import Function, SignatureError
from dpsql.spelling.duckdb_functions import DUCKDB
from dpsql.spelling.spark_functions import SPARK
from tests.engines_elsewhere.spark.bare import Bare
from tests.engines_elsewhere.spark.rows_of_functions import Both, Call
from tests.functions.test_function_contract import FUNCTIONS, TARGETS

CALLS = int(os.environ.get("FUNCTION_CALLS", "30"))
NESTED = 4 * CALLS


@pytest.fixture(scope="module")
def laboratory(server: str) -> Iterator[Both]:
    engine = Bare(server, SPARK)
    yield Both(20, engine)
    engine.close()


@pytest.fixture
def both(laboratory: Both, request: pytest.FixtureRequest) -> Both:
    """What a test draws depends on its name alone, not on the tests before it in the same process."""
    laboratory.rng.seed(os.environ.get("FUNCTIONS_SEED", "") + request.node.name)
    return laboratory


SPELLED = [f for f in FUNCTIONS if SPARK.spells(f.name)]


@pytest.mark.parametrize("function", SPELLED, ids=lambda f: f.name)
def test_every_function_gives_the_same_value_on_every_row(both: Both, function: Function) -> None:
    calls: list[Call] = []
    for args, result in both.calls(function, CALLS):
        try:
            calls.append(both.call(function, args, result))
        except (CannotSpell, Rejected):
            continue
    assert len(calls) >= 3, "hardly any call is spelled"
    print(f"{function.name}: {len(calls)} calls")
    wrong = both.differences(calls) + both.failures(calls)
    assert not wrong, "\n".join(wrong[:8])


def test_nested_expressions_give_the_same_value_on_every_row(both: Both) -> None:
    """What one function promises the next one relies on, and what is written once is read in its own scope."""
    made = [both.nested(3) for _ in range(NESTED)]
    calls = [call for call in made if call is not None]
    assert len(calls) > NESTED // 3
    print(f"nested: {len(calls)} calls")
    parts = [calls[start : start + 20] for start in range(0, len(calls), 20)]
    wrong = [w for part in parts for w in (*both.differences(part), *both.failures(part))]
    assert not wrong, "\n".join(wrong[:5])


@pytest.mark.parametrize("target", TARGETS)
def test_casts_give_the_same_value_on_every_row(both: Both, target: str) -> None:
    t = parse_type(target)
    assert t is not None
    calls: list[Call] = []
    for a in [*both.columns[: len(both.columns) // 2], *both.constants]:
        try:
            result = cast(a.value, t)
            calls.append((SPARK.convert(both.printed(a), a.value, t), DUCKDB.convert(a.sql, a.value, t), result))
        except (SignatureError, CannotSpell, Rejected):
            continue
    print(f"cast to {target}: {len(calls)} calls")
    wrong = both.differences(calls) + both.failures(calls) if calls else []
    assert not wrong, "\n".join(wrong[:8])
    assert calls or target in ("TIME", "UUID")
