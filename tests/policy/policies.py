"""Shared by the policy tests: the sample policies, and a good policy that each test spoils in one place."""

from __future__ import annotations

from pathlib import Path

from dpsql.diagnostics.diagnostic import Diagnostic
from dpsql.diagnostics.errors import CannotOpen
from dpsql.policy.load import parse_policy
from dpsql.policy.policy import Policy

SAMPLES = Path(__file__).parents[1] / "fixtures" / "policies"

GOOD = """\
version: 1
name: good
units: {person: {table: people, key: id}}
tables:
  towns:
    public: true
    unique: [[code]]
    columns: {code: {type: varchar, nullable: false}, area: {type: double}}
  people:
    unit: {column: id}
    primary_key: [id]
    columns: {id: {type: bigint}, age: {type: integer, bounds: [0, 110]}, town: {type: varchar}}
  visits:
    unit: {column: person_id}
    max_rows_per_unit: 20
    unique: [[visit_id]]
    columns:
      visit_id: {type: bigint, nullable: false}
      person_id: {type: bigint}
      day: {type: date, bounds: [2024-01-01, 2024-12-31]}
  items:
    unit: {path: [{column: visit_id, references: visits(visit_id)}]}
    columns: {visit_id: {type: bigint}, price: {type: 'decimal(5,2)', bounds: [0, 99.5]}}
  log:
    unit: {rows: 2}
    columns: {level: {type: tinyint, domain: [1, 2, 3]}}
budgets: {total: {epsilon: 10, delta: 1e-6}}
"""


def good(old: str = "", new: str = "") -> Policy:
    """The good policy, with one passage exchanged; the passage must be there once."""
    return parse_policy(spoiled(old, new), "good.yaml", SAMPLES)


def spoiled(old: str, new: str) -> str:
    """The text of the good policy with one passage exchanged."""
    if not old:
        return GOOD
    assert GOOD.count(old) == 1, old
    return GOOD.replace(old, new)


def mistakes(text: str) -> list[Diagnostic]:
    """All findings of a policy text that must not load."""
    try:
        parse_policy(text, "bad.yaml", SAMPLES)
    except CannotOpen as error:
        return list(error.diagnostics)
    raise AssertionError("the policy loaded")
