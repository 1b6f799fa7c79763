"""What plans ask of an engine gives the same rows in PostgreSQL as in DuckDB, or is refused by name.

The plans are those of all fixtures, over random rows that hold NULL, NaN, infinities and odd texts. Which groups of an
id are kept is decided by a hash; for these tests DuckDB computes PostgreSQL's.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import pytest

from dpsql.core.ir.public_facts import PublicFacts
from dpsql.core.printing.dialect import Dialect
from dpsql.core.printing.dialects.postgres import POSTGRES
from dpsql.diagnostics.diagnostic import Source
from dpsql.diagnostics.errors import Rejected
from dpsql.planner.compile import compile_query
from dpsql.planner.plan import Plan
from dpsql.planner.rewrites.context import Limits
from dpsql.planner.settings import Settings
from dpsql.service.check import NOMINAL_DELTA, NOMINAL_EPSILON
from tests.engines_elsewhere.postgres.bare import Bare
from tests.engines_elsewhere.postgres.same_rows import PORTABLE, bag, duckdb_connection, load, tables_of, texts
from tests.engines_elsewhere.postgres.servers import Server
from tests.fixtures.cases import POLICIES, Case, files, policy

CASES = [case for file in files() for case in file.cases]
NAMES = sorted(path.stem for path in POLICIES.glob("*.yaml"))


def planned(case: Case, d: Dialect) -> Plan:
    """The plan of a case, printed for an engine. Raises Rejected."""
    given, loaded = case.settings, policy(case.settings["policy"])
    limits = Limits(*(int(given[name]) if name in given else None for name in ("rows", "per_group", "groups")))
    epsilon, delta = (Fraction(given[name]) if name in given else None for name in ("epsilon", "delta"))
    settings = Settings(
        epsilon or loaded.defaults.epsilon or NOMINAL_EPSILON, delta or loaded.defaults.delta or NOMINAL_DELTA, limits,
        given.get("dialect", "duckdb"), search=given.get("limits_are") == "search",
    )  # fmt: skip
    parameters = json.loads(given.get("parameters", "[]"))
    return compile_query(Source(case.sql), loaded, PublicFacts(), settings, parameters, dialect=d)


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
    compared, full, refused, wrong = 0, 0, [], []
    for case in CASES:
        if case.settings["policy"] != name:
            continue
        try:
            ours = texts(planned(case, PORTABLE), PORTABLE)
        except Rejected:
            continue
        try:
            theirs = texts(planned(case, POSTGRES), POSTGRES)
        except Rejected as refusal:
            refused.append(f"{case.id}: {refusal.diagnostics[0].message}")
            continue
        for sql, other in zip(ours, theirs, strict=True):
            wanted = bag(con.execute(sql).fetchall())
            try:
                found = bag(list(engine.fetch(other).rows()))
            except Exception as error:
                wrong.append(f"{case.id}: {str(error).splitlines()[0]}\n{other}")
                continue
            compared += 1
            full += any(cell not in ("0", "None") for row in found for cell in row)
            if found != wanted:
                wrong.append(f"{case.id}:\n{other}\n{list(found - wanted)[:3]}\n{list(wanted - found)[:3]}")
    print(name, compared, full, *refused, sep="\n")
    assert not wrong, f"{len(wrong)} of {compared}\n" + "\n\n".join(wrong[:12])
