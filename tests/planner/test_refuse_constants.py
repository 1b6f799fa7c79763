"""A CLIP that leaves one value is refused; where its argument is one value anyway, nothing is said."""

from __future__ import annotations

import pytest

import dpsql
from tests.support import planning as plans
from tests.support.checked_files import policy

BOUNDS = "lies outside of the bounds of cost, [0, 5000]: every value would be"


@pytest.mark.parametrize(
    ("clip", "message"),
    [
        ("CLIP(cost, 6000, 9000)", f"CLIP(cost, 6000, 9000) {BOUNDS} 6000"),
        ("CLIP(cost, 5000, 9000)", f"CLIP(cost, 5000, 9000) {BOUNDS} 5000"),
        ("CLIP(cost, -2, -1)", f"CLIP(cost, -2, -1) {BOUNDS} -1"),
        ("CLIP(cost, -2, 0)", f"CLIP(cost, -2, 0) {BOUNDS} 0"),
        ("CLIP(cost, 3, 3)", "CLIP(cost, 3, 3) is one value, whatever cost is"),
        ("CLIP(fee, 3, 3)", "CLIP(fee, 3, 3) is one value, whatever fee is"),
        (
            "CLIP(-cost, 1, 2)",
            "CLIP(-cost, 1, 2) lies outside of the bounds of -cost, [-5000, 0]: every value would be 1",
        ),
        ("CLIP(cost * cost, -2, -1)", "[0, 25000000]: every value would be -1"),
        ("CLIP(ABS(fee), -2, -1)", "of abs(fee), 0 and more: every value would be -1"),
        ("CLIP(cost, 4999.999, 9000)", None),
        ("CLIP(cost, -1, 0.001)", None),
        ("CLIP(fee, 6000, 9000)", None),
        ("CLIP(3, 6000, 9000)", None),
        ("CLIP(cost * 0, 6000, 9000)", None),
    ],
)
def test_a_clip_leaves_more_than_one_value(clip: str, message: str | None) -> None:
    found = [d for d in dpsql.check(f"SELECT AVG({clip}) AS a FROM visits", policy()) if d.severity == "error"]
    assert [d.code for d in found] == ([] if message is None else ["DP204"])
    assert message is None or message in found[0].message


DAYS = plans.policy("""
t:
  unit: {rows: 1}
  columns:
    d: {type: date, bounds: [2024-01-01, 2024-12-31]}
    s: {type: timestamp, bounds: [2024-01-01, 2024-12-31]}
""")


@pytest.mark.parametrize(
    ("column", "kind", "inside"),
    [
        ("d", "DATE", "CLIP(d, DATE '2024-01-01', DATE '2024-12-31')"),
        ("s", "TIMESTAMP", "CLIP(s, TIMESTAMP '2024-01-01 00:00:00', TIMESTAMP '2024-12-31 00:00:00')"),
    ],
)
def test_dates_and_times_are_shown_as_they_are_written(column: str, kind: str, inside: str) -> None:
    """The repair can be pasted."""
    sql = f"SELECT COUNT(DISTINCT CLIP({column}, {kind} '2025-01-01', {kind} '2025-02-01')) FROM t"
    (found,) = (d for d in dpsql.check(sql, DAYS) if d.severity == "error")
    assert found.code == "DP204" and f"every value would be {kind} '2025-01-01" in found.message
    assert found.help == (f"clip to a range within them:  {inside}",)
    assert not [d for d in dpsql.check(f"SELECT COUNT(DISTINCT {inside}) FROM t", DAYS) if d.severity == "error"]
