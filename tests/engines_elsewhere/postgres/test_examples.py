"""All queries of the examples ask PostgreSQL and DuckDB for the same integers: flights, and TPC-H at scale 0.01."""

from __future__ import annotations

import re
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from shutil import copy
from typing import Any

import pytest

from dpsql.core.ir.types import parse_type
from dpsql.core.policy.policy import Policy
from dpsql.core.printing.dialect import Dialect
from dpsql.core.printing.dialects.postgres import POSTGRES
from dpsql.core.printing.dialects.postgres_casts import type_name
from dpsql.diagnostics.diagnostic import Source
from dpsql.diagnostics.errors import Rejected
from dpsql.engines.open import Options, open_engine
from dpsql.planner.compile import compile_query
from dpsql.planner.plan import Plan
from dpsql.planner.settings import Settings
from dpsql.policy.load import load_policy
from dpsql.service.public_facts import FactStore
from tests.engines_elsewhere.postgres.bare import Bare
from tests.engines_elsewhere.postgres.same_rows import PORTABLE, bag, texts
from tests.engines_elsewhere.postgres.servers import Server
from tests.support.example_data import EXAMPLES, make_tpch, open_tables

POLICIES = {"flights": ("flights", "flights-rows"), "tpch": ("tpch", "tpch-supplier", "tpch-rows")}
FEWEST = {"flights": 20, "flights-rows": 20, "tpch": 20, "tpch-supplier": 12, "tpch-rows": 20}
"""Statements that are compared at least."""


def _make(example: str, folder: Path) -> None:
    if example == "tpch":
        make_tpch(folder, "0.01")
        return
    from examples.flights.build import build  # takes a while to load

    build(folder / "data")
    for path in (EXAMPLES / "flights").glob("*.yaml"):
        copy(path, folder)


@pytest.fixture(scope="module", params=POLICIES)
def world(
    server: Server, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[str, Path, Any, Bare]]:
    """An example with its data, in DuckDB and in PostgreSQL."""
    folder = tmp_path_factory.mktemp(request.param)
    _make(request.param, folder)
    con, database = open_tables(folder), server.new_database()
    engine = Bare(server, POSTGRES, database)
    try:
        engine.connection.execute("SET search_path = public, pg_catalog")
        for (table,) in con.execute("SELECT table_name FROM duckdb_tables()").fetchall():
            _copy(table, con, engine, folder)
        engine.connection.execute("ANALYZE")
        yield request.param, folder, con, engine
    finally:
        engine.close()
        con.close()
        server.drop(database)


def _copy(table: str, con: Any, engine: Bare, folder: Path) -> None:
    described = con.execute(f'DESCRIBE "{table}"').fetchall()
    columns = [f"{POSTGRES.identifier(name)} {_type(written)}" for name, written, *_ in described]
    engine.connection.execute(f"CREATE TABLE {POSTGRES.identifier(table)} ({', '.join(columns)})".encode())
    file = folder / f"{table}.csv"
    con.execute(f"""COPY "{table}" TO '{file}' (HEADER false, NULLSTR '\\N', FORCE_QUOTE *)""")
    with engine.connection.cursor() as cursor, file.open("rb") as source:
        where = POSTGRES.identifier(table)
        with cursor.copy(f"COPY {where} FROM STDIN (FORMAT csv, NULL '\\N')".encode()) as copied:
            while chunk := source.read(1 << 20):
                copied.write(chunk)


def _type(written: str) -> str:
    known = parse_type(written)
    assert known is not None, written
    return type_name(known)


def _plan(sql: str, policy: Policy, facts: FactStore, d: Dialect) -> Plan:
    settings = Settings(Fraction(1), Fraction(1, 10**6))
    return facts.compile(lambda public: compile_query(Source(sql), policy, public, settings, (), d.identifier, d))


@pytest.mark.parametrize("which", range(3))
def test_the_examples_ask_for_the_same_integers(world: tuple[str, Path, Any, Bare], which: int) -> None:
    example, folder, con, engine = world
    if which >= len(POLICIES[example]):
        return
    name = POLICIES[example][which]
    text = (folder / f"{name}.yaml").read_text(encoding="utf-8")
    (folder / f"{name}.yaml").write_text(re.sub(r"max_keys: \d+", "max_keys: 100000", text), encoding="utf-8")
    policy = load_policy(folder / f"{name}.yaml")
    data = open_engine(policy, Options())
    facts, compared, wrong = FactStore(data), 0, []
    try:
        for path in sorted((EXAMPLES / example / "queries").glob("*.sql")):
            sql = path.read_text(encoding="utf-8")
            try:
                ours = texts(_plan(sql, policy, facts, PORTABLE), PORTABLE)
            except Rejected:
                continue
            theirs = texts(_plan(sql, policy, facts, POSTGRES), POSTGRES)
            for ask, other in zip(ours, theirs, strict=True):
                compared += 1
                wanted, found = bag(con.execute(ask).fetchall()), bag(list(engine.fetch(other).rows()))
                if found != wanted:
                    wrong.append(f"{path.stem}: {list(found - wanted)[:3]}, {list(wanted - found)[:3]}\n{other}")
    finally:
        data.close()
    assert compared >= FEWEST[name], compared
    assert not wrong, "\n".join(wrong[:5])
