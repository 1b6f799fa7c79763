"""Expressions in messages and EXPLAIN: one line, close to what was written."""

from __future__ import annotations

import pytest

from dpsql.core.ir.nodes import Filter
from dpsql.core.ir.short_text import expression, symbol
from tests.support.planning import derived, policy

TABLES = """
t:
  public: true
  columns:
    x: {type: integer}
    y: {type: double}
    s: {type: varchar}
    d: {type: date}
    at: {type: timestamp}
"""


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ("x > 3", "x > 3"),
        ("x + 1 >= y * 2", "(x + 1) >= (y * 2)"),
        ("NOT x = 1", "NOT (x = 1)"),
        ("-x < 0", "-x < 0"),
        ("s = 'it''s'", "s = 'it''s'"),
        ("s IN ('a', 'b')", "s IN ('a', 'b')"),
        ("s IS NULL OR x IS NOT NULL", "s IS NULL OR NOT x IS NULL"),
        ("s LIKE 'a%'", "s LIKE 'a%'"),
        ("d >= '2024-03-01'", "d >= DATE '2024-03-01'"),
        ("at < TIMESTAMP '2024-03-01 12:00:00'", "at < TIMESTAMP '2024-03-01 12:00:00'"),
        ("d + INTERVAL 3 DAY > d", "(d + INTERVAL 3 DAY) > d"),
        ("at + INTERVAL 90 MINUTE > at", "(at + INTERVAL 5400 SECOND) > at"),
        ("(x > 1) = TRUE", "(x > 1) = TRUE"),
        ("CAST(s AS INTEGER) = 1", "CAST(s AS INTEGER) = 1"),
        ("abs(x) = 1", "abs(x) = 1"),
    ],
)
def test_expressions(written: str, shown: str) -> None:
    tagged = derived(f"SELECT x FROM t WHERE {written}", policy(TABLES, ""))
    (filtered,) = [t.node for t in tagged.walk() if isinstance(t.node, Filter)]
    assert expression(filtered.predicate) == shown


def test_symbols() -> None:
    assert (symbol("eq"), symbol("intdiv"), symbol("abs")) == ("=", "//", "abs")
