"""A limit that no id seems to be above is enforced, and told to nobody as something that is missing."""

from __future__ import annotations

import pytest

from dpsql.core.ir.nodes import BoundContributions
from dpsql.planner.notes.notes import BIAS
from tests.support.planning import planned, policy

POLICY = policy(
    """
people:
  unit: {column: id}
  primary_key: [id]
  columns: {id: {type: bigint}, age: {type: integer, bounds: [0, 100]}, town: {type: varchar}}
visits:
  unit: {column: id}
  max_rows_per_unit: 12
  columns: {id: {type: bigint}, cost: {type: integer, bounds: [0, 9]}, flag: {type: boolean}}
"""
)
ONE_EACH = "FROM people JOIN (SELECT DISTINCT id AS d, 1 AS one FROM visits) v ON people.id = v.d"
FLAGS = "FROM (SELECT DISTINCT id, flag FROM visits)"


@pytest.mark.parametrize(
    ("sql", "most"), [(f"SELECT COUNT(*) {ONE_EACH}", 1), (f"SELECT COUNT(*), COUNT(flag) {FLAGS}", 3)]
)
def test_no_bias_is_told_where_no_row_can_be_cut(sql: str, most: int) -> None:
    plan = planned(sql, POLICY)
    bounding = plan.releases[0].measured.node.input
    assert isinstance(bounding, BoundContributions) and (bounding.rows or bounding.per_group) == most, (
        "the guess is enforced all the same"
    )
    assert not [note for note in plan.notes if "at most" in note] and BIAS not in plan.notes


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT COUNT(*) FROM visits",
        f"SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (max_rows_contributed = 2) COUNT(*) {FLAGS}",
        "SELECT COUNT(*) FROM (SELECT DISTINCT id, cost FROM visits)",
    ],
)
def test_a_bias_is_told_where_rows_can_be_cut(sql: str) -> None:
    plan = planned(sql, POLICY)
    assert [note for note in plan.notes if "at most" in note]
    assert any("how much limits cut is unknown" in note for note in plan.notes)


def test_clips_are_told_beside_a_limit_that_takes_nothing_away() -> None:
    notes = planned(f"SELECT AVG(age) {ONE_EACH}", POLICY).notes
    assert "age is clipped to [0, 100]" in notes and BIAS in notes
    assert not [note for note in notes if "at most" in note]


PAIRS = "(SELECT DISTINCT id, cost % 2 AS odd FROM visits)"


@pytest.mark.parametrize(
    "sql",
    [
        f"SELECT COUNT(*) FROM {PAIRS} q JOIN people p ON q.id = p.id",
        f"SELECT COUNT(*) FROM {PAIRS} q LEFT JOIN people p ON q.id = p.id",
        "SELECT COUNT(*) FROM (SELECT id, cost % 2 AS odd FROM visits GROUP BY id, odd) q JOIN people p ON q.id = p.id",
    ],
)
def test_what_is_computed_of_an_ids_own_rows_is_no_function_of_the_id(sql: str) -> None:
    """Each id has a row for each value: a limit of one would cut them, and nobody would be told."""
    bounding = planned(sql, POLICY).releases[0].measured.node.input
    assert not isinstance(bounding, BoundContributions) or bounding.rows != 1


def test_rows_that_an_outer_join_pads_are_no_functions_of_the_id() -> None:
    """Of an id that has a partner for some of its rows, both groups count it: no slices of one set."""
    joined = "FROM visits v LEFT JOIN people p ON v.id = p.id AND v.cost = p.age"
    kinds = "COUNT(DISTINCT v.id) FILTER (WHERE p.id IS NULL), COUNT(DISTINCT v.id) FILTER (WHERE p.id IS NOT NULL)"
    assert not planned(f"SELECT {kinds} {joined}", POLICY).releases[0].measured.node.slices
    alike = "FROM visits v LEFT JOIN people p ON v.id = p.id"
    assert planned(f"SELECT {kinds} {alike}", POLICY).releases[0].measured.node.slices
