"""Who asks for rows is told so; who joins rows with noisy groups is told that, too."""

from __future__ import annotations

import pytest

from dpsql.diagnostics.errors import Rejected
from tests.support.planning import planned, policy

TABLES = policy(
    "log:\n  unit: {rows: 1}\n  columns: {x: {type: integer, bounds: [0, 9], nullable: false}, y: {type: integer}}\n"
    '"an odd name":\n  unit: {rows: 1}\n  columns: {x: {type: integer}}\n'
)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM log LIMIT 5",
        "SELECT x FROM log WHERE y > 3 ORDER BY x",
        "FROM log LIMIT 1",
        'SELECT * FROM "an odd name" AS o LIMIT 2',
    ],
)
def test_rows_are_refused_as_rows_with_a_repair_that_works(sql: str) -> None:
    with pytest.raises(Rejected) as refusal:
        planned(sql, TABLES)
    (found,) = refusal.value.diagnostics
    assert found.code == "DP110"
    assert planned(found.help[0].partition("as in  ")[2], TABLES).releases


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT x FROM log WHERE x > (SELECT AVG(x) FROM log) ORDER BY x",
        "WITH t AS (SELECT x, COUNT(*) AS n FROM log GROUP BY x) SELECT y FROM log JOIN t ON t.x = log.x LIMIT 3",
    ],
)
def test_rows_beside_an_aggregate_are_refused_as_rows_too(sql: str) -> None:
    with pytest.raises(Rejected) as refusal:
        planned(sql, TABLES)
    (found,) = refusal.value.diagnostics
    assert found.code == "DP110" and found.message == "this query would return private rows"


def test_a_limit_below_an_aggregate_is_another_mistake() -> None:
    with pytest.raises(Rejected) as refusal:
        planned("SELECT COUNT(*) FROM (SELECT x FROM log LIMIT 5)", TABLES)
    assert [d.code for d in refusal.value.diagnostics] == ["DP112"]


def test_an_inner_aggregate_that_is_released_says_so() -> None:
    """`n = 1` compares a noisy number; groups that stay private are frequencies, and need no note."""
    inner = "(SELECT x, COUNT(*) AS n FROM log GROUP BY x)"
    joined = planned(f"SELECT COUNT(*) FROM log JOIN {inner} AS g ON g.x = log.x WHERE n = 1", TABLES)
    note = "COUNT(*) by x is released before private rows are joined with it: it is noisy"
    assert note in joined.notes
    assert not any(
        "released before" in n for n in planned(f"SELECT COUNT(*) FROM {inner} AS g WHERE n = 1", TABLES).notes
    )
