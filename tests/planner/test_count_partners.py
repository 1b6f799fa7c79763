"""Public rows that private ones keep: counted as different keys where ids are the unit, and only there."""

from __future__ import annotations

import pytest

from dpsql.core.ir.components import Component, DistinctCount, RowCount
from dpsql.core.ir.nodes import Join, JoinKind, Release
from dpsql.core.ir.walk import walk
from dpsql.diagnostics.errors import Rejected
from tests.support.planning import planned, policy

POLICY = policy(
    """
visits:
  unit: {column: pid, of: person}
  max_rows_per_unit: 3
  columns: {pid: {type: bigint}, code: {type: bigint}, ward: {type: bigint}, cost: {type: double, bounds: [0, 9]}}
calls:
  unit: {rows: 1}
  columns: {code: {type: bigint}}
codes:
  public: true
  primary_key: [code]
  columns: {code: {type: bigint}, chapter: {type: varchar, domain: [a, b], nullable: false}, n: {type: integer}}
wards:
  public: true
  columns: {ward: {type: bigint}, name: {type: varchar}}
"""
)


def parts(sql: str) -> tuple[list[type[Component]], list[JoinKind]]:
    root = planned(sql, POLICY).tree.node
    (release,) = [n for n in walk(root) if isinstance(n, Release)]
    return [type(c) for c in release.components], [n.kind for n in walk(root) if isinstance(n, Join)]


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT COUNT(*) FROM codes c WHERE EXISTS (SELECT 1 FROM visits v WHERE v.code = c.code AND v.cost > c.n)",
        "SELECT chapter, COUNT(*) FROM codes WHERE code IN (SELECT code FROM visits) GROUP BY chapter",
        "SELECT COUNT(code), COUNT(DISTINCT n) FILTER (WHERE n > 2) FROM codes WHERE code IN (SELECT code FROM visits)",
        "SELECT COUNT(*) FROM codes SEMI JOIN visits USING (code) WHERE chapter = 'a'",
    ],
)
def test_keys_are_counted_of_the_joined_rows(sql: str) -> None:
    measures, kinds = parts(sql)
    assert set(measures) == {DistinctCount} and kinds == [JoinKind.INNER]


def test_rows_as_units_are_counted_as_before() -> None:
    """Each row that differs keeps or drops one row of the public side."""
    measures, kinds = parts("SELECT COUNT(*) FROM codes WHERE code IN (SELECT code FROM calls)")
    assert (measures, kinds) == ([RowCount], [JoinKind.SEMI])


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT COUNT(*) FROM wards w WHERE EXISTS (SELECT 1 FROM visits v WHERE v.ward = w.ward)",  # no key
        "SELECT SUM(n) FROM codes WHERE code IN (SELECT code FROM visits)",
        "SELECT COUNT(n) FROM codes WHERE code IN (SELECT code FROM visits)",  # n may be NULL
        "SELECT COUNT(*) FROM codes WHERE code NOT IN (SELECT code FROM visits WHERE code IS NOT NULL)",
    ],
)
def test_what_is_no_number_of_keys_is_refused(sql: str) -> None:
    with pytest.raises(Rejected, match="DP220"):
        planned(sql, POLICY)


def test_the_repair_is_accepted() -> None:
    refused = "SELECT COUNT(*) FROM wards w WHERE EXISTS (SELECT 1 FROM visits v WHERE v.ward = w.ward)"
    with pytest.raises(Rejected) as caught:
        planned(refused, POLICY)
    assert "use an inner join" in caught.value.diagnostics[0].help[0]
    assert planned("SELECT COUNT(DISTINCT name) FROM wards w JOIN visits v ON v.ward = w.ward", POLICY).releases
