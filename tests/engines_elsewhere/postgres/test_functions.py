"""Every function that PostgreSQL spells gives DuckDB's value, to the bit, on every row of the function contract.

That DuckDB's value is that of the Python twin, and within all that is claimed, is tests/functions' to show. What
is not spelled is refused by name, and is written down here.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from dpsql.core.ir.types import parse_type
from dpsql.core.printing.dialect import CannotSpell
from dpsql.functions.cast import cast
from dpsql.functions.function import Function, SignatureError
from dpsql.spelling.duckdb_functions import DUCKDB
from dpsql.spelling.postgres_functions import POSTGRES
from tests.engines_elsewhere.postgres.bare import Bare
from tests.engines_elsewhere.postgres.rows_of_functions import Both, facts
from tests.engines_elsewhere.postgres.servers import Server
from tests.functions.test_function_contract import FUNCTIONS, TARGETS

CALLS = int(os.environ.get("FUNCTION_CALLS", "30"))
NESTED = 10 * CALLS


@pytest.fixture(scope="module")
def laboratory(server: Server) -> Iterator[Both]:
    engine = Bare(server, POSTGRES)
    yield Both(20, engine)
    engine.close()


@pytest.fixture
def both(laboratory: Both, request: pytest.FixtureRequest) -> Both:
    """What a test draws depends on its name alone, not on the tests before it in the same process."""
    laboratory.rng.seed(
        os.environ.get("FUNCTIONS_SEED", "") + request.node.originalname + str(request.node.callspec.id)
    )
    return laboratory


SPELLED = [f for f in FUNCTIONS if POSTGRES.spells(f.name)]


@pytest.mark.parametrize("function", SPELLED, ids=lambda f: f.name)
def test_every_function_gives_the_same_value_on_every_row(both: Both, function: Function) -> None:
    compared, wrong = 0, []
    for args, result in both.calls(function, CALLS):
        known = facts(args)
        other = DUCKDB.call(function.name, [a.sql for a in args], known, result)
        try:
            sql = POSTGRES.call(function.name, [both.printed(a) for a in args], known, result)
        except CannotSpell:
            continue
        compared += 1
        wrong += both.differences(sql, other, result)
    assert compared >= 3, "hardly any call is spelled"
    assert not wrong, "\n".join(wrong[:8])


def test_nested_expressions_give_the_same_value_on_every_row(both: Both) -> None:
    """What one function promises the next one relies on, and what is written once is read in its own scope."""
    compared, wrong = 0, []
    for _ in range(NESTED):
        made = both.nested(3)
        if made is None:
            continue
        sql, other, result = made
        compared += 1
        wrong += both.differences(sql, other, result)
    assert compared > NESTED // 3
    assert not wrong, "\n".join(wrong[:5])


@pytest.mark.parametrize("target", TARGETS)
def test_casts_give_the_same_value_on_every_row(both: Both, target: str) -> None:
    t = parse_type(target)
    assert t is not None
    compared, wrong = 0, []
    for a in [*both.columns[: len(both.columns) // 2], *both.constants]:
        try:
            result = cast(a.value, t)
            sql = POSTGRES.convert(both.printed(a), a.value, t)
        except (SignatureError, CannotSpell):
            continue
        compared += 1
        wrong += both.differences(sql, DUCKDB.convert(a.sql, a.value, t), result)
    assert compared >= 1
    assert not wrong, "\n".join(wrong[:8])
