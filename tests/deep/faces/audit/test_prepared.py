"""Copies are audited: made-up rows have owners in a column, and no more of each than the limit says."""

from __future__ import annotations

from typing import Any

import pytest

from dpsql.core.policy.prepared import as_prepared
from dpsql.diagnostics.diagnostic import Source
from dpsql.faces.audit import run_audit as run
from dpsql.faces.audit.audited_query import audit_query
from dpsql.planner.compile import compile_query
from dpsql.planner.plan import Plan
from dpsql.policy.policy import Policy
from tests.support.planning import policy

TABLES = """
orders:
  unit: {column: buyer}
  max_rows_per_unit: 3
  unique: [[nr]]
  prepared: true
  columns:
    nr: {type: bigint, nullable: false}
    buyer: {type: bigint}
    shop: {type: varchar, domain: [a, b], nullable: false}
lines:
  unit: {path: [{column: nr, references: orders(nr)}]}
  max_rows_per_unit: 5
  prepared: true
  columns: {nr: {type: bigint, nullable: false}, qty: {type: integer, bounds: [0, 9], nullable: false}}
"""
JOINED = "SELECT shop, COUNT(*) AS n, SUM(qty) AS s FROM lines l JOIN orders o ON l.nr = o.nr GROUP BY shop"


@pytest.mark.parametrize("sql", [JOINED, "SELECT COUNT(*) AS n, SUM(qty) AS s FROM lines"])
def test_plans_over_copies_are_not_refuted_and_reach_what_they_state(sql: str) -> None:
    found = audit_query(policy(TABLES), Source(sql), runs=200)
    assert not found.refuted, found
    assert [t.reached for t in found.tested if t.reached is not None] == [1, 1]


def test_a_copy_with_more_rows_than_the_limit_is_refuted(monkeypatch: pytest.MonkeyPatch) -> None:
    """The twin: data has five rows of a unit where the plan was made for two."""
    wide = policy(TABLES)
    narrow = policy(TABLES.replace("max_rows_per_unit: 5", "max_rows_per_unit: 2"))

    def plan_for_two(source: Source, _: Policy, *rest: Any) -> Plan:
        return compile_query(source, as_prepared(narrow), *rest)

    monkeypatch.setattr(run, "compile_query", plan_for_two)
    found = audit_query(wide, Source("SELECT COUNT(*) AS n FROM lines"), runs=200)
    assert found.refuted
