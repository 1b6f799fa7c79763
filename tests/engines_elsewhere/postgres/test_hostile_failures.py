"""Expressions printed from false beliefs on PostgreSQL: asked a second time, none fails.

The second text gives in every row what the first one gives, where that gives anything. Twins: calls without a
function, and single functions and casts that are taken for total.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from typing import Any

import psycopg
import pytest

from dpsql.core.ir.expressions import Call, Cast, Column, Literal
from dpsql.core.ir.types import DOUBLE, Kind, decimal
from dpsql.core.printing.dialects import postgres_again
from dpsql.core.printing.dialects.duckdb_total import _always
from dpsql.core.printing.dialects.postgres_again import PostgresAgain
from dpsql.core.printing.expressions import Names, spell
from dpsql.core.values.value import Value
from dpsql.spelling.postgres_functions import POSTGRES
from tests.engines_elsewhere.postgres.bare import Bare
from tests.engines_elsewhere.postgres.rows_of_functions import Both
from tests.engines_elsewhere.postgres.servers import Server
from tests.support.function_rows import COLUMNS
from tests.support.hostile import Hostile
from tests.support.hostile_checks import BATCH, ROWS, Found
from tests.support.hostile_failures import Printed, failures, logic, printed

SEEDS = [0, *(pytest.param(s, marks=pytest.mark.exhaustive) for s in range(1, 21))]
AS_THEY_ARE = (Kind.BOOLEAN, Kind.INTEGER)


class Engine:
    """PostgreSQL with the rows of hostile_checks, but for dates that its calendar does not hold."""

    def __init__(self, server: Server) -> None:
        self.bare = Bare(server, POSTGRES)
        self.made = set[str]()
        Both(20, self.bare)
        self.columns = [(Column(i, c.name, c.value.type), c.value) for i, c in enumerate(COLUMNS, 1)]
        self.again = PostgresAgain(POSTGRES)
        self.names, self.second = (self._names(d) for d in (POSTGRES, self.again))

    def _names(self, dialect: Any) -> Names:
        env: dict[int, Value] = {c.uid: v for c, v in self.columns}
        return Names({c.uid: dialect.column(c.name, c.type) for c, _ in self.columns}, env, dialect)

    def hostile(self, seed: int) -> Hostile:
        return Hostile(random.Random(seed), self.columns)

    def rows(self, texts: Sequence[Printed], chosen: Sequence[int] | None) -> list[tuple[Any, ...] | str]:
        if not texts:
            return []
        for name in self.again.functions.keys() - self.made:
            self.bare.connection.execute(self.again.functions[name].encode())
            self.made.add(name)
        where = f"i < {ROWS}" if chosen is None else f"i IN ({', '.join(map(str, chosen))})"
        inner = ", ".join(f"{sql} AS r{at}" for at, (sql, _) in enumerate(texts))
        outer = ", ".join(f"r{at}{'' if t.kind in AS_THEY_ARE else '::text'}" for at, (_, t) in enumerate(texts))
        try:
            found = self.bare.connection.execute(
                f"SELECT {outer} FROM (SELECT i, {inner} FROM t WHERE {where} OFFSET 0) AS q ORDER BY i".encode(),
                binary=True,
            ).fetchall()
        except psycopg.Error as error:
            if len(texts) == 1:
                return [str(error).splitlines()[0]]
            half = len(texts) // 2
            return self.rows(texts[:half], chosen) + self.rows(texts[half:], chosen)
        return list(zip(*found, strict=True))


@pytest.fixture(scope="module")
def engine(one_server: Server) -> Iterator[Engine]:
    opened = Engine(one_server)
    yield opened
    opened.bare.close()


@pytest.mark.parametrize("seed", SEEDS)
def test_no_row_makes_the_second_text_fail(engine: Engine, seed: int) -> None:
    found = failures(engine.hostile(seed), engine.second, engine.rows, seed, 2_000 if seed else 300)
    assert not found.problems, "\n".join(found.problems[:5])


@pytest.mark.parametrize("seed", SEEDS)
def test_logic_stands_outside(engine: Engine, seed: int) -> None:
    found = logic(engine.hostile(seed), engine.second, engine.rows, seed, 1_000 if seed else 50)
    assert not found.problems, "\n".join(found.problems[:5])


@pytest.mark.parametrize("value", [1e9, -1e9, 9.996, 9.99])
def test_a_constant_beyond_its_type_makes_no_text_fail(engine: Engine, value: float) -> None:
    told = Cast(Literal(value, DOUBLE), decimal(3, 2))
    inside = value == 9.99
    for names in (engine.names, engine.second):
        for expr in (told, Call("round", (told,), decimal(2, 0))):
            (found,) = engine.rows([(spell(expr, names)[0], expr.type)], [0])
            assert not isinstance(found, str) and (found[0] is not None) is inside, (expr, found)


def both_texts(engine: Engine, seed: int, number: int) -> Found:
    """What the second text gives is what the first one gives. compared: how many first ones failed."""
    rng, hostile, found = random.Random(seed), engine.hostile(seed), Found()
    while found.tried < number:
        drawn = [(hostile.any().expr, rng.randrange(2**32)) for _ in range(BATCH)]
        pairs = [[printed(e, names, lie) for names in (engine.names, engine.second)] for e, lie in drawn]
        texts = [(one, again) for one, again in pairs if one is not None and again is not None]
        first, second = (engine.rows(list(each), None) for each in zip(*texts, strict=True))
        for (one, again), had, has in zip(texts, first, second, strict=True):
            found.tried += 1
            if isinstance(had, str):
                found.compared += 1
            elif repr(had) != repr(has):
                found.problems.append(f"{one[0]}\n  {again[0]}\n  {had}\n  {has}")
    return found


@pytest.mark.parametrize("seed", SEEDS)
def test_the_second_text_gives_what_the_first_one_gives(engine: Engine, seed: int) -> None:
    found = both_texts(engine, seed, 2_000 if seed else 300)
    assert not found.problems, "\n".join(found.problems[:5])
    assert found.compared > found.tried / 10, "hardly any first text fails"


# --- twins ------------------------------------------------------------------------------------------------------------


def test_calls_without_functions_are_found(engine: Engine) -> None:
    assert failures(engine.hostile(0), engine.names, engine.rows, 0, 2_000, until="fails").told("fails")


def test_functions_that_catch_nothing_are_found(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(postgres_again, "CAUGHT", ("assert_failure",))
    assert failures(engine.hostile(0), engine.second, engine.rows, 0, 2_000, until="fails").told("fails")


@pytest.mark.parametrize(
    "function", ["add", *(pytest.param(f, marks=pytest.mark.exhaustive) for f in ("eq", "date_diff", "clip"))]
)
def test_one_function_that_is_taken_for_total_is_found(
    engine: Engine, monkeypatch: pytest.MonkeyPatch, function: str
) -> None:
    monkeypatch.setattr(postgres_again, "TOTAL", {**postgres_again.TOTAL, function: _always})
    assert failures(engine.hostile(0), engine.second, engine.rows, 0, 20_000, until="fails").told("fails")


def test_casts_that_are_taken_for_total_are_found(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(PostgresAgain, "convert", lambda self, sql, known, to: POSTGRES.convert(sql, known, to))
    assert failures(engine.hostile(0), engine.second, engine.rows, 0, 20_000, until="fails").told("fails")
