"""Columns without an alias are called by their text, as sqlglot writes it; the commonest are written without it."""

from __future__ import annotations

import pytest
import sqlglot
from sqlglot.errors import SqlglotError

from dpsql.frontend.bind.clauses.select import _plain_call
from dpsql.frontend.dialects import DIALECTS

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
