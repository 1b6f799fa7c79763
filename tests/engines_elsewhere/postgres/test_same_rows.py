"""What plans ask of an engine gives the same rows in PostgreSQL as in DuckDB, or is refused by name.

The plans are those of all fixtures, over random rows that hold NULL, NaN, infinities and odd texts. Which groups of an
id are kept is decided by a hash; for these tests DuckDB computes PostgreSQL's.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import pytest

from dpsql.diagnostics.errors import Rejected
from dpsql.spelling.postgres_functions import POSTGRES
from tests.engines_elsewhere.plan_rows import (
    CASES,
    NAMES,
    bag,
    compared,
    duckdb_connection,
    planned,
    releases_asked,
    tables_of,
    texts,
)
from tests.engines_elsewhere.postgres.bare import Bare
from tests.engines_elsewhere.postgres.same_rows import PORTABLE, load
from tests.engines_elsewhere.postgres.servers import Server
from tests.fixtures.cases import policy


@pytest.fixture(scope="module", params=NAMES)
def world(server: Server, request: pytest.FixtureRequest) -> Iterator[tuple[str, Any, Bare]]:
    """The tables of one policy in both engines."""
    database = server.new_database()
    engine, con, rng = Bare(server, POSTGRES, database), duckdb_connection(), random.Random(request.param)
    try:
        engine.connection.execute("SET search_path = public, pg_catalog")
        for table in tables_of(policy(request.param), rng):
            load(table, con, engine)
        yield request.param, con, engine
    finally:
        engine.close()
        server.drop(database)


def test_plans_give_the_same_rows(world: tuple[str, Any, Bare]) -> None:
    name, con, engine = world
    found = compared(name, PORTABLE, POSTGRES, con, engine.fetch)
    print(name, found.compared, found.full, *found.refused, sep="\n")
    assert not found.wrong, f"{len(found.wrong)} of {found.compared}\n" + "\n\n".join(found.wrong[:12])


def test_second_texts_give_the_rows_of_the_first_ones(world: tuple[str, Any, Bare]) -> None:
    """What is asked where a statement fails, of all that does not fail."""
    name, _, engine = world
    made, wrong, asked = set[str](), list[str](), 0
    for case in CASES:
        if case.settings["policy"] != name:
            continue
        try:
            plan = planned(case, POSTGRES)
        except Rejected:
            continue
        statements = [s for r in releases_asked(plan) for s in r.statements]
        both = (texts(plan, POSTGRES, second) for second in (False, True))
        for statement, text, again in zip(statements, *both, strict=False):
            if statement.again is None:
                continue
            asked += 1
            for function, making in statement.again.functions:
                if function not in made:
                    made.add(function)
                    engine.connection.execute(making.encode())
            first, second = (engine.fetch(sql) for sql in (text, again))
            if bag(list(first.rows())) != bag(list(second.rows())):
                wrong.append(f"{case.id}\n{text}\n{again}")
    print(name, asked, len(made))
    assert not wrong, "\n\n".join(wrong[:5])
