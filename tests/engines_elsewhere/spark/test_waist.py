"""The waist is a projection of its own in what Spark runs: no aggregate computes anything of a table's columns.

Spark merges a projection into what reads it where that computes nothing twice; the forms would still be true.
"""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from dpsql.core.printing.shapes import direct
from dpsql.spelling.spark_functions import SPARK
from tests.engines_elsewhere.spark.bare import Bare
from tests.support.waist_queries import REPEATING, WRITTEN_ONCE, of_dialect, read_once

TABLES = (
    "CREATE TABLE SCHEMA.log (x int, y double, p decimal(9,2), t string, d date) USING parquet",
    "CREATE TABLE SCHEMA.ids (id bigint, x int, y double, t string) USING parquet",
    "CREATE TABLE SCHEMA.owners (id bigint, land string) USING parquet",
)
QUERIES = [q for q in (*REPEATING, *WRITTEN_ONCE) if " log" in q and "MEDIAN" not in q]


def merged(bare: Bare, statement: str) -> list[str]:
    """What aggregates compute of a table's columns."""
    (plan,) = bare.fetch(f"EXPLAIN {statement}").columns[0]
    aggregates = re.findall(r"Aggregate\(keys=.*", plan)
    assert aggregates
    return [text for text in aggregates if re.search(r"\b[xypd]#\d", text)]


def test_the_waist_is_a_projection_of_its_own(
    server: str, schema: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    name, bare = schema(*TABLES), Bare(server, SPARK)
    bare.session.sql(f"USE {name}")
    assert {q: found for q in QUERIES for s in of_dialect(q, SPARK) if (found := merged(bare, s))} == {}
    monkeypatch.setattr(direct, "waist", lambda block, listed: (listed(block.names), block))
    twin = [q for q in QUERIES if any(merged(bare, s) for s in of_dialect(q, SPARK))]
    assert len(twin) > len(QUERIES) / 2, "the broken twin: aggregates compute what they read"
    bare.close()


def test_what_is_weighed_is_read_once(server: str, schema: Callable[..., str]) -> None:
    """Spark keeps no rows of a WITH: a statement that named its rows twice would compute them twice."""
    name, bare = schema(*TABLES), Bare(server, SPARK)
    bare.session.sql(f"USE {name}")
    statements = list(read_once(SPARK))
    assert [s for s in statements if read(bare, s) != 1] == []
    assert read(bare, "WITH r AS (SELECT id FROM ids) SELECT * FROM r JOIN (SELECT COUNT(*) AS n FROM r) AS p") == 2
    bare.close()


def read(bare: Bare, statement: str) -> int:
    """How often it reads a table in what Spark runs."""
    (plan,) = bare.fetch(f"EXPLAIN {statement}").columns[0]
    return len(re.findall(r"Scan parquet", plan))
