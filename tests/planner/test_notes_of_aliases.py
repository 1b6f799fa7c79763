"""Notes about a table that is joined with itself say which of its rows they are about, in the query's own words."""

from __future__ import annotations

import pytest

from tests.support.planning import planned, policy

TABLES = """
v:
  unit: {column: id}
  max_rows_per_unit: 5
  columns: {id: {type: bigint}, visits: {type: bigint, bounds: [0, 50]}}
"""


@pytest.mark.parametrize(
    ("call", "note"),
    [
        ("SUM(b.visits - a.visits)", "b.visits - a.visits is clipped to [-50, 50]"),
        ("AVG(CLIP(b.visits - a.visits, -9, 9))", "b.visits - a.visits is clipped to [-9, 9]"),
        ("SUM(b.visits)", "visits is clipped to [0, 50]"),
    ],
)
def test_aliases_stand_where_names_are_alike(call: str, note: str) -> None:
    assert note in planned(f"SELECT {call} AS s FROM v a JOIN v b USING (id)", policy(TABLES)).notes
