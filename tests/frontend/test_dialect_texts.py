"""SUBSTR from before a text's beginning, as each dialect's manual says, over all short texts and places."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

import duckdb
import pytest

from dpsql.diagnostics.diagnostic import Source
from dpsql.service.checks.check import static_plan
from tests.support.planning import policy

POLICY = policy("t:\n  public: true\n  columns: {s: {type: varchar}, i: {type: integer}}")
TEXTS = ("", "a", "äbc", "abcdef")
PLACES, LENGTHS = range(-4, 4), (None, 0, 1, 2, 5)


def postgres(x: str, start: int, length: int | None) -> str:
    """Positions go on to the left of the first character."""
    end = len(x) + 1 if length is None else start + length
    return "".join(c for at, c in enumerate(x, 1) if start <= at < end)


def bigquery(x: str, start: int, length: int | None) -> str:
    """0 is 1; from the end where it is negative, and from 1 where that is before the text."""
    first = start - 1 if start > 0 else max(len(x) + start, 0) if start else 0
    return x[first:][: len(x) if length is None else length]


def mysql(x: str, start: int, length: int | None) -> str:
    """Nothing from 0, and nothing from before the text."""
    if start == 0 or -start > len(x):
        return ""
    return bigquery(x, start, length)


def spark(x: str, start: int, length: int | None) -> str:
    """From the end where it is negative; what would lie before the text counts."""
    first = start - 1 if start > 0 else len(x) + start if start else 0
    end = len(x) if length is None else first + length
    return x[max(first, 0) : max(end, 0)]


RULES: dict[str, Callable[[str, int, int | None], str]] = {
    "postgres": postgres, "tsql": postgres, "bigquery": bigquery, "mysql": mysql, "spark": spark
}  # fmt: skip


@pytest.mark.parametrize("dialect", RULES)
def test_parts_of_texts(dialect: str) -> None:
    with duckdb.connect() as plain:
        plain.execute("CREATE TABLE t (s VARCHAR, i INTEGER)")
        plain.executemany("INSERT INTO t VALUES (?, ?)", [(x, i) for x in (*TEXTS, None) for i in (*PLACES, None)])
        for place, length in product((*PLACES, "i"), LENGTHS):
            if place == "i" and dialect not in ("postgres", "tsql"):
                continue
            more = "" if length is None else f", {length}"
            if dialect == "tsql" and length is None:
                continue  # it takes three
            sql = f"SELECT s, i, SUBSTRING(s, {place}{more}) AS v FROM t"
            plan = static_plan(Source(sql), POLICY, dialect=dialect)
            for x, i, v in plain.execute(plan.post.sql).fetchall():
                at = i if place == "i" else place
                expected = None if x is None or at is None else RULES[dialect](x, at, length)
                assert v == expected, (sql, x, i)


@pytest.mark.parametrize("dialect", ["postgres", "snowflake", "spark", "mysql", "tsql"])
def test_trim_takes_away_spaces_and_nothing_else(dialect: str) -> None:
    """DuckDB's own takes others too, as one that breaks no line."""
    with duckdb.connect() as plain:
        plain.execute("CREATE TABLE t AS SELECT '  \u00a0\tx \u00a0 ' AS s, 1 AS i")
        for name, expected in (
            ("TRIM", "\u00a0\tx \u00a0"),
            ("LTRIM", "\u00a0\tx \u00a0 "),
            ("RTRIM", "  \u00a0\tx \u00a0"),
        ):
            plan = static_plan(Source(f"SELECT {name}(s) AS v FROM t"), POLICY, dialect=dialect)
            assert plain.execute(plan.post.sql).fetchall() == [(expected,)]
        assert plain.execute("SELECT trim(s) FROM t").fetchall() != [("\u00a0\tx \u00a0",)]
