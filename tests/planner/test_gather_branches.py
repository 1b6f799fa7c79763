"""Branches of a UNION over the same rows: which are read as one, what that costs, and that the rows are the same."""

from __future__ import annotations

from typing import Any

import pytest

from dpsql.core.ir.nodes import Scan, SetOperation
from dpsql.core.ir.walk import walk
from tests.support.planning import planned, policy

COLUMNS = "  columns: {k: {type: integer}, v: {type: integer, bounds: [0, 9]}, w: {type: varchar}, b: {type: boolean}}"
POLICY = policy(
    f"""
rows:
  unit: {{rows: 1}}
{COLUMNS}
others:
  unit: {{rows: 1}}
{COLUMNS}
visits:
  unit: {{of: person, column: k}}
  max_rows_per_unit: 5
{COLUMNS}
places:
  public: true
  primary_key: [k]
  columns: {{k: {{type: integer}}, city: {{type: varchar}}}}
"""
)


def read(sql: str) -> tuple[int, int, object]:
    """Tables that are read, set operations, and the l1 of the first number."""
    plan = planned(sql, POLICY)
    nodes = list(walk(plan.tree.node))
    (release,) = plan.releases
    tables = [n for n in nodes if isinstance(n, Scan)]
    first = release.measured.measurements[0]
    l1 = first.sensitivity.l1 / first.component.weight
    return len(tables), sum(isinstance(n, SetOperation) for n in nodes), l1


def union(*branches: str, every: bool = True) -> str:
    both = " UNION ALL " if every else " UNION "
    return f"SELECT COUNT(*) FROM ({both.join(f'SELECT {b}' for b in branches)})"


@pytest.mark.parametrize(
    ("branches", "found"),
    [
        (("v FROM rows WHERE v < 3", "v FROM rows WHERE v >= 3"), (1, 0, 1)),
        (("v FROM rows WHERE b", "k FROM rows WHERE NOT b"), (1, 0, 1)),
        (("v FROM rows WHERE v < 3", "v FROM rows WHERE v <= 3"), (2, 1, 2)),
        (("v FROM rows", "v FROM rows WHERE v < 3"), (2, 1, 2)),
        (("v FROM rows WHERE v < 3", "v FROM others WHERE v >= 3"), (2, 1, 1)),
        (("w FROM rows WHERE v = 1", "w FROM rows WHERE v = 2", "w FROM rows WHERE v = 3"), (1, 0, 1)),
        (("w FROM rows WHERE v = 1", "w FROM others WHERE b", "w FROM rows WHERE v = 3"), (2, 1, 1)),
        (("w FROM rows WHERE v = 1", "w FROM rows WHERE b", "w FROM rows WHERE v = 3"), (2, 1, 2)),
        (("v + 1 FROM rows WHERE upper(w) = 'A'", "2 FROM rows WHERE upper(w) = 'B'"), (1, 0, 1)),
        (("v FROM (SELECT * FROM rows WHERE b) WHERE v < 3", "v FROM rows WHERE v >= 3 AND b"), (1, 0, 1)),
        (("v FROM visits WHERE v < 3", "v FROM visits WHERE v >= 3"), (1, 0, 5)),
        (("v FROM visits WHERE v < 3", "v FROM visits WHERE b"), (2, 1, 10)),
        (
            (
                "v FROM rows JOIN places ON rows.k = places.k WHERE city = 'x'",
                "v FROM places JOIN (SELECT * FROM rows WHERE b) r ON r.k = places.k WHERE city = 'y'",
            ),
            (2, 0, 1),
        ),
        # a row has its partners, or stands once
        (("v FROM rows WHERE v < 3", "v FROM rows JOIN places ON rows.k = places.k WHERE v >= 3"), (2, 0, 1)),
        (("v FROM rows JOIN places ON places.k = rows.k AND city <> w WHERE b", "k FROM rows WHERE NOT b"), (2, 0, 1)),
        (("v FROM rows WHERE v < 3", "v FROM rows JOIN places ON rows.k = places.k WHERE v >= 2"), (3, 1, 2)),
        (("v FROM rows WHERE v < 3", "v FROM rows JOIN places ON rows.k = places.k WHERE city = 'x'"), (3, 1, 2)),
        (("v FROM rows WHERE v < 3", "v FROM others JOIN places ON others.k = places.k WHERE v >= 3"), (3, 1, 1)),
    ],
)
def test_branches_that_are_read_as_one(branches: tuple[str, ...], found: tuple[Any, ...]) -> None:
    assert read(union(*branches)) == found


def test_groups_keep_the_lists_of_their_branches() -> None:
    both = union("w FROM rows WHERE b", "city FROM rows JOIN places ON rows.k = places.k WHERE NOT b")
    assert read(both)[1:] == (0, 1) and read(f"{both.replace('COUNT', 'w, COUNT')} GROUP BY w")[1:] == (1, 2)


def test_distinct_rows_of_branches() -> None:
    halves = "v FROM rows WHERE b", "v FROM rows WHERE NOT b"
    assert read(union(*halves, every=False)) == (1, 0, 1)
    # DISTINCT rows of each branch, or of two of them: those of the whole are what counts.
    assert read(f"SELECT COUNT(*) FROM (SELECT DISTINCT {halves[0]} UNION SELECT {halves[1]})") == (1, 0, 1)
    assert read(f"SELECT COUNT(*) FROM (SELECT DISTINCT {halves[0]} UNION ALL SELECT {halves[1]})") == (2, 1, 2)


def test_many_branches() -> None:
    """More than there are cases of a condition; none is looked at twice for each that it stands in."""
    assert read(union(*(f"w FROM rows WHERE v = {n}" for n in range(60)))) == (1, 0, 1)
    different = [f"v + {n} FROM {'rows' if n % 2 else 'others'} WHERE v = {n}" for n in range(40)]
    assert read(union(*different)) == (2, 1, 1)


def test_columns_that_tell_branches_apart_become_too_long() -> None:
    long = (f"v * {n} + v * {n} - {n} FROM rows WHERE v = {n}" for n in range(90))
    assert read(union(*long)) == (90, 89, 90)
