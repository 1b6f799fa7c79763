"""Limits that need not be above another: brute force over the rows of one unit decides."""

from __future__ import annotations

import random
from itertools import combinations, permutations

import duckdb
import pytest

from dpsql.diagnostics.diagnostic import Source
from dpsql.planner.settings.query_settings import QuerySettings
from dpsql.policy.policy import Policy
from dpsql.service.checks.check import static_plan

POLICY = Policy.from_dict(
    {
        "version": 1,
        "name": "t",
        "units": {"u": {}},
        "tables": {
            "t": {
                "unit": {"column": "id"},
                "columns": {
                    "id": {"type": "bigint", "nullable": False},
                    "g": {"type": "integer", "domain": [0, 1], "nullable": False},
                    "f": {"type": "integer"},
                    "p": {"type": "integer", "bounds": [0, 9]},
                    "m": {"type": "integer", "bounds": [-9, 0]},
                    "s": {"type": "integer", "bounds": [-9, 9]},
                },
            }
        },
        "budgets": {"total": {"epsilon": 10}},
    }
)
MEASURES = [
    "COUNT(*)", "COUNT(f)", "COUNT(*) FILTER (WHERE f > 1)", "COUNT(p) FILTER (WHERE f > 1)",
    "COUNT(*) FILTER (WHERE f > 1 AND p > 2)", "COUNT(DISTINCT f)", "COUNT(DISTINCT p) FILTER (WHERE f > 1)",
    *(
        each.format(v=v)
        for v in "pms"
        for each in (
            "SUM({v})", "SUM({v}) FILTER (WHERE f > 1)", "SUM(CASE WHEN f > 1 THEN {v} ELSE 0 END)",
            "SUM(CASE WHEN f > 1 AND p > 2 THEN {v} END)", "SUM(CASE WHEN f > 1 THEN 0 ELSE {v} END)",
        )
    ),
]  # fmt: skip


def worlds() -> list[tuple[tuple[int | None, ...], ...]]:
    """Rows of one unit: all of up to two of a few, and some larger ones."""
    rng = random.Random(45)
    columns = [0, 1], [None, 0, 2], [None, 0, 4], [None, -4], [-4, 4, None]
    some = [tuple(map(rng.choice, columns)) for _ in range(12)]
    return [*combinations(some, 1), *combinations(some, 2), *(tuple(rng.choices(some, k=5)) for _ in range(60))]


@pytest.fixture(scope="module")
def totals() -> dict[str, list[int]]:
    """Measure → the total of each unit, groups taken together by their sizes."""
    con = duckdb.connect()
    con.execute("CREATE TABLE t (id BIGINT, g INTEGER, f INTEGER, p INTEGER, m INTEGER, s INTEGER)")
    for i, rows in enumerate(worlds()):
        con.executemany("INSERT INTO t VALUES (?, ?, ?, ?, ?, ?)", [(i, *row) for row in rows])
    found = {}
    for measure in MEASURES:
        per = f"SELECT id, g, abs(coalesce({measure}, 0)) AS x FROM t GROUP BY id, g"
        asked = con.execute(f"SELECT sum(x)::BIGINT FROM ({per}) GROUP BY id ORDER BY id")
        found[measure] = [n for (n,) in asked.fetchall()]
    return found


def claimed() -> set[tuple[str, str]]:
    """(a, b): the limit of a need not be above that of b."""
    found = set()
    for pair in combinations(MEASURES, 2):
        a, b = pair
        plan = static_plan(
            Source(f"SELECT g, {a} AS a, {b} AS b FROM t GROUP BY g"), POLICY, settings=QuerySettings(search=True)
        )
        assert plan.searches is not None
        limits = {i: s for s in plan.searches.limits for _, i in s.follow}
        if len(limits) == 2:
            for i, j in permutations((0, 1)):
                if limits[j].limit.label in limits[i].below:
                    found.add((pair[i], pair[j]))
    return found


def test_nobody_has_more_than_is_claimed(totals: dict[str, list[int]]) -> None:
    claims = claimed()
    for a, b in claims:
        assert all(x <= y for x, y in zip(totals[a], totals[b], strict=True)), (a, b)
    assert ("COUNT(*) FILTER (WHERE f > 1)", "COUNT(*)") in claims
    assert ("COUNT(DISTINCT f)", "COUNT(f)") in claims and ("COUNT(DISTINCT f)", "COUNT(*)") in claims
    assert ("SUM(CASE WHEN f > 1 THEN p ELSE 0 END)", "SUM(p)") in claims
    assert ("SUM(CASE WHEN f > 1 AND p > 2 THEN m END)", "SUM(m) FILTER (WHERE f > 1)") in claims
    assert not any("s" in b.split("(")[1] for _, b in claims)


def test_a_sum_of_both_signs_is_no_bound(totals: dict[str, list[int]]) -> None:
    """Twin: what a filter leaves out may be what brought the total down."""
    part, whole = totals["SUM(s) FILTER (WHERE f > 1)"], totals["SUM(s)"]
    assert any(x > y for x, y in zip(part, whole, strict=True))
