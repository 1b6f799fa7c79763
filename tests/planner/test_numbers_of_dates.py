"""Ages and durations: bounds that follow from those of the dates, and are enforced."""

from __future__ import annotations

import pytest

from dpsql.diagnostics.errors import Rejected
from tests.support.planning import planned, policy

TABLES = policy(
    """
people:
  unit: {column: id, of: person}
  primary_key: [id]
  columns:
    id: {type: bigint, nullable: false}
    born: {type: date, bounds: [1920-01-01, 2019-12-31]}
    seen: {type: timestamp, bounds: [2024-01-01, 2024-01-02]}
    left: {type: timestamp, bounds: [2024-01-01, 2024-01-02]}
    free: {type: date}
"""
)


@pytest.mark.parametrize(
    ("number", "ends"),
    [
        ("date_diff('year', born, DATE '2024-06-01')", (5, 104)),
        ("DATE '2020-01-01' - born", (1, 36525)),
        ("date_diff('hour', seen, left)", (-24, 24)),
        ("CLIP(date_diff('hour', seen, left), 0, 12)", (0, 12)),
        ("hour(seen)", (0, 23)),
    ],
)
def test_the_bounds_of_the_dates(number: str, ends: tuple[int, int]) -> None:
    (release,) = planned(f"SELECT SUM({number}) FROM people", TABLES).releases
    (component,) = release.measured.node.components
    assert (
        (component.lo + component.center) * component.grid,
        (component.hi + component.center) * component.grid,
    ) == ends
    clipped = any(day in release.statements[0].sql for day in ("1920-01-01", "2024-01-02"))
    assert clipped == ("hour(seen)" not in number)


def test_a_condition_sees_the_date_itself() -> None:
    (release,) = planned("SELECT SUM(CASE WHEN born > DATE '1900-01-01' THEN 1 END) FROM people", TABLES).releases
    assert "1920-01-01" not in release.statements[0].sql


def test_a_date_without_bounds_has_none() -> None:
    with pytest.raises(Rejected) as refusal:
        planned("SELECT SUM(DATE '2024-01-01' - free) FROM people", TABLES)
    assert {d.code for d in refusal.value.diagnostics} <= {"DP201", "DP202"}
