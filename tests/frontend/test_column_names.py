"""Columns without an alias are called by their text, as sqlglot writes it; the commonest are written without it."""

from __future__ import annotations

import pytest
import sqlglot
from sqlglot.errors import SqlglotError

from dpsql.diagnostics.errors import Rejected
from dpsql.frontend.bind.clauses.select import _plain_call
from dpsql.frontend.dialects import DIALECTS
from tests.support.planning import planned, policy

WRITTEN = (
    "*",
    "x",
    "P.x",
    "s.p.X",
    "c.s.p.x",
    '"x"',
    '"odd name"',
    "P.*",
    "x + 1",
    "DISTINCT x",
    "(x)",
    "x, y",
    "1",
    "NULL",
    "_x1",
    "a$b",
    "Ärzte",
    "weiß",
    "x" * 70,
    "date",
    "user",
    "struct",
    "map",
    "array",
    "timestamp",
    "key",
    "first",
    "row",
    "show",
    "to",
)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_plain_calls_are_named_as_sqlglot_writes_them(dialect: str) -> None:
    found = 0
    for function in ("COUNT", "sum", "Avg", "MIN", "max"):
        for argument in WRITTEN:
            try:
                select = sqlglot.parse_one(f"SELECT {function}({argument}) /* of all */ FROM t", read=dialect)
            except SqlglotError:
                continue
            (node,) = select.expressions
            ours = _plain_call(node)
            assert ours in (None, node.sql("duckdb", comments=False).lower()[:60])
            found += ours is not None
    assert found >= 40  # or all of them are left to sqlglot


OF_TEXTS = policy("t:\n  public: true\n  columns: {x: {type: integer}, y: {type: integer}, count: {type: integer}}")


@pytest.mark.parametrize(
    "sql, names",
    [
        ("SELECT s, c FROM (SELECT SUM(x), COUNT(*) FROM t) AS q(s, c)", ("s", "c")),
        ("SELECT sum, q.count FROM (SELECT SUM(x), COUNT(*) FROM t) AS q", ("sum", "count")),
        ('SELECT "count(*)" FROM (SELECT COUNT(*) FROM t) AS q', ("count(*)",)),
        ("WITH q AS (SELECT MAX(x) FROM t) SELECT max + 1 AS m FROM q", ("m",)),
        ("SELECT count FROM (SELECT count, SUM(x) FROM t GROUP BY count) AS q", ("count",)),
    ],
)
def test_a_column_without_a_name_answers_to_its_function(sql: str, names: tuple[str, ...]) -> None:
    """As PostgreSQL calls it. A column of that name comes first, and two that are called alike are ambiguous."""
    assert tuple(column.name for column in planned(sql, OF_TEXTS).post.columns) == names


@pytest.mark.parametrize("name, code", [("sum", "DP104"), ("avg", "DP103"), ("?column?", "DP103")])
def test_two_columns_of_one_function_are_ambiguous(name: str, code: str) -> None:
    with pytest.raises(Rejected, match=code):
        planned(f'SELECT "{name}" FROM (SELECT SUM(x), SUM(y), x + 1 FROM t GROUP BY x) AS q', OF_TEXTS)
