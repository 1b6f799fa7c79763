"""DP508: durations with the bounds of both of their ends; a CLIP says how long one can be, and the warning is gone."""

from __future__ import annotations

import pytest

from dpsql.diagnostics.diagnostic import Diagnostic
from tests.support.planning import planned, policy

POLICY = policy(
    """
stays:
  unit: {column: guest, of: person}
  max_rows_per_unit: 5
  columns:
    guest: {type: bigint, nullable: false}
    came: {type: date, bounds: [2024-01-01, 2024-12-31]}
    gone: {type: date, bounds: [2024-01-01, 2024-12-31]}
    at: {type: timestamp, bounds: [2024-01-01, 2024-12-31]}
    paid: {type: timestamp, bounds: [2024-01-01, 2024-12-31]}
    cost: {type: double, bounds: [0, 9]}
"""
)


def warned(listed: str) -> list[Diagnostic]:
    return [w for w in planned(f"SELECT {listed} AS x FROM stays", POLICY).warnings if w.code == "DP508"]


@pytest.mark.parametrize(
    ("duration", "low", "high"),
    [
        ("gone - came", "-365", "365"),
        ("date_diff('day', came, gone)", "-365", "365"),
        ("date_diff('hour', at, paid)", "-8760", "8760"),
        ("date_diff('day', came, gone) * cost", "-3285", "3285"),
    ],
)
@pytest.mark.parametrize("call", ["AVG", "SUM", "VAR_POP"])
def test_it_is_told_and_repaired(call: str, duration: str, low: str, high: str) -> None:
    (found,) = warned(f"{call}({duration})")
    assert f"from {low} to {high}" in found.message and found.severity == "warning" and found.span is not None
    repair = found.help[0].partition(":  ")[2]
    inner = repair.removeprefix("CLIP(").removesuffix(", lower, upper)")
    assert inner in duration
    pasted = duration.replace(inner, repair.replace("lower, upper", "0, 30"))
    assert warned(f"{call}({pasted})") == []


@pytest.mark.parametrize(
    "listed",
    [
        "AVG(date_diff('day', came, DATE '2024-06-01'))",  # an age: of one date, as long as its bounds say
        "AVG(date_diff('day', came, current_date))",
        "COUNT(date_diff('day', came, gone))",
        "AVG(CLIP(date_diff('day', came, gone), 0, 30) * cost)",
        "AVG(date_diff('day', came, came))",
        "COUNT_IF(gone - came > 3)",
        "AVG(CASE WHEN gone - came > 3 THEN 1 ELSE 0 END)",
        "AVG(cost)",
    ],
)
def test_it_is_told_of_nothing_else(listed: str) -> None:
    assert warned(listed) == []
