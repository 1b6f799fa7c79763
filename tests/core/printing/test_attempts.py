"""A call that can fail stands in a TRY of its own; what its types alone make total stands bare."""

from __future__ import annotations

import duckdb
import pytest

from dpsql.engines.duckdb.locked.optimizers import restrict
from tests.support.planning import planned, policy

LOG = """log:
  unit: {rows: 1}
  columns:
    i: {type: bigint}
    n: {type: integer, bounds: [0, 10]}
    y: {type: double, bounds: [-3, 3]}
    p: {type: "decimal(9,2)", bounds: [0, 50]}
    w: {type: "decimal(38,0)", bounds: [0, 9]}
    d: {type: date, bounds: [2024-01-01, 2024-12-31]}
    t: {type: timestamp}
    s: {type: varchar}
"""
"""A table whose columns have the types that can fail."""
POLICY = policy(LOG)
BARE = [
    "n < 5 AND d >= DATE '2024-02-01' AND s = 'a' AND t < TIMESTAMP '2024-03-01' AND p > 1.5",
    "n + n > 3", "n * n > 3", "i BETWEEN 3 AND 9", "y * 2 + y > 1", "y / y > 1", "p + p > 1", "lower(s) = 'a'",
    "-i * i > 3", "i + 1 > 3",
    "s LIKE 'a%'", "year(d) = 2024", "n % 3 = 1", "i IN (1, 2)", "COALESCE(n, 3) = 3", "CAST(s AS INTEGER) = 3",
]  # fmt: skip
TRIED = {
    "CLIP(i, 0, 9) + 1 > 3": 1,
    "CLIP(i, 0, 9) + 1 > 3 OR n < 2": 1,
    "CLIP(i, 0, 9) + 1 > 3 AND CLIP(i, 0, 9) - 1 < 5": 2,
    "CLIP(CLIP(w, 0, 9), 0.5, 1.5) > 1": 1,
    "date_trunc('month', d) = d": 1,
    "COALESCE(date_trunc('month', d), d) = d": 1,
    "CASE WHEN CLIP(i, 0, 9) + 1 > 2 THEN CLIP(i, 0, 9) - 1 ELSE 0 END > 3": 2,
}


def printed(condition: str) -> str:
    (release,) = planned(f"SELECT COUNT(*) FROM log WHERE {condition}", POLICY).releases
    (statement,) = release.statements
    return statement.salted(7)


@pytest.mark.parametrize("condition", BARE)
def test_what_is_total_by_its_types_stands_bare(condition: str) -> None:
    assert "TRY(" not in printed(condition)


@pytest.mark.parametrize("condition", TRIED)
def test_each_call_that_can_fail_has_a_try_of_its_own(condition: str) -> None:
    assert printed(condition).count("TRY(") == TRIED[condition]


@pytest.mark.parametrize(
    ("condition", "rows"),
    [
        ("date_trunc('month', d) = d", 0), ("date_trunc('month', d) = d OR n = 1", 2),
        ("NOT (date_trunc('month', d) = d AND n = 5)", 2), ("COALESCE(date_trunc('month', d), d) = d", 2),
        ("CASE WHEN date_trunc('month', d) = d THEN 0 ELSE 1 END = 1", 2), ("i + 1 > 3", 1),
    ],
)  # fmt: skip
def test_logic_stands_outside_of_it(condition: str, rows: int) -> None:
    """At the ends of its type a term is NULL, and the others decide."""
    with duckdb.connect() as con:
        restrict(con)
        con.execute("CREATE TABLE log (i BIGINT, n INTEGER, y DOUBLE, p DECIMAL(9,2), d DATE, t TIMESTAMP, s VARCHAR)")
        ends = [[2**63 - 1], [-(2**63)]]
        con.executemany("INSERT INTO log VALUES (?, 1, 0, 0, 'infinity', 'infinity', 'x')", ends)
        assert con.execute(printed(condition)).fetchall() == [(rows,)]
