"""The waist is a projection of its own in what PostgreSQL runs: no aggregate computes anything of a table's columns."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import psycopg
import pytest

from dpsql.core.printing.dialects.postgres import Postgres
from dpsql.spelling.postgres_functions import POSTGRES
from tests.engines_elsewhere.postgres.servers import Server
from tests.support.waist_queries import REPEATING, WRITTEN_ONCE, of_dialect, read_once

TABLES = """
CREATE TABLE log (x integer, y double precision, p numeric(9,2), t text, d date);
CREATE TABLE ids (id bigint, x integer, y double precision, t text);
CREATE TABLE owners (id bigint PRIMARY KEY, land text);
"""


def computed(plan: Mapping[str, Any], below_an_aggregate: bool = False) -> Iterator[str]:
    """What is computed below the aggregates: columns of a projection, in a node of its own or in the scan itself.

    PostgreSQL leaves a node out that only shows columns; then the scan computes them, and an aggregate reads them.
    """
    kind = plan["Node Type"]
    if below_an_aggregate and kind == "Subquery Scan" and plan["Alias"] in ("c", "i", "e"):
        yield plan["Alias"]
    elif below_an_aggregate and kind != "Aggregate":
        yield from (text for text in plan.get("Output", ()) if not re.fullmatch(r"\w+\.\w+", text))
    for each in plan.get("Plans", ()):
        yield from computed(each, below_an_aggregate or kind == "Aggregate")


def apart(connection: psycopg.Connection[Any], statement: str) -> bool:
    """Whether some of a statement is computed before it is aggregated."""
    row = connection.execute(f"EXPLAIN (VERBOSE, FORMAT JSON) {statement}".encode()).fetchone()
    assert row is not None
    return any(computed(row[0][0]["Plan"]))


@pytest.fixture
def connection(server: Server, database: Callable[[str], str]) -> Iterator[psycopg.Connection[Any]]:
    found = server.admin(database(TABLES))
    yield found
    found.close()


def test_the_waist_is_a_projection_of_its_own(
    connection: psycopg.Connection[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    queries = [*REPEATING, *WRITTEN_ONCE]
    assert [q for q in queries if not all(apart(connection, s) for s in of_dialect(q, POSTGRES))] == []
    monkeypatch.setattr(Postgres, "barrier", "")
    merged = [q for q in queries if not all(apart(connection, s) for s in of_dialect(q, POSTGRES))]
    assert len(merged) > len(queries) / 4, "the broken twin: aggregates compute what they read"


def scans(plan: Mapping[str, Any]) -> int:
    """How often a table is read."""
    return ("Relation Name" in plan) + sum(map(scans, plan.get("Plans", ())))


def test_what_is_weighed_is_read_once(connection: psycopg.Connection[Any]) -> None:
    statements = list(read_once(POSTGRES))
    assert [s for s in statements if read(connection, s) != 1] == []
    assert read(connection, f"SELECT * FROM ({statements[0]}) AS a, ({statements[0]}) AS b") == 2


def read(connection: psycopg.Connection[Any], statement: str) -> int:
    """How often it reads a table in what PostgreSQL runs."""
    row = connection.execute(f"EXPLAIN (FORMAT JSON) {statement}".encode()).fetchone()
    assert row is not None
    return scans(row[0][0]["Plan"])
