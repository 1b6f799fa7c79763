"""Conditions on a time shorten the public list of its days: no key is lost, and none outside is shown as mere noise."""

from __future__ import annotations

import datetime as dt
from pathlib import Path

import pytest

from dpsql.core.ir.nodes import BoundContributions, GroupKeys
from dpsql.diagnostics.diagnostic import Source
from dpsql.policy.load import load_policy
from dpsql.service.checks.check import static_plan

POLICY = Path(__file__).resolve().parents[2] / "examples" / "flights" / "flights-rows.yaml"
FIRST, LAST = dt.date(2013, 1, 1), dt.date(2014, 1, 2)


def days(condition: str) -> list[dt.date]:
    sql = f"SELECT date_trunc('day', time_hour) AS d, COUNT(*) FROM flights WHERE {condition} GROUP BY 1"
    node = static_plan(Source(sql), load_policy(POLICY)).releases[0].measured.node.input
    keyed = node.input if isinstance(node, BoundContributions) else node
    assert isinstance(keyed, GroupKeys) and keyed.sources is not None
    return [key.date() for (key,) in keyed.sources[0].keys]


@pytest.mark.parametrize(
    ("condition", "first", "last"),
    [
        ("time_hour >= '2013-07-01' AND time_hour < '2013-07-04'", dt.date(2013, 7, 1), dt.date(2013, 7, 3)),
        ("time_hour > '2013-07-01' AND time_hour <= '2013-07-04'", dt.date(2013, 7, 1), dt.date(2013, 7, 4)),
        ("time_hour BETWEEN DATE '2013-07-01' AND DATE '2013-07-04'", dt.date(2013, 7, 1), dt.date(2013, 7, 4)),
        ("DATE '2013-07-04' > time_hour AND '2013-07-01' <= time_hour", dt.date(2013, 7, 1), dt.date(2013, 7, 3)),
        ("time_hour < '2013-01-01 05:00:00' AND month = 1", FIRST, FIRST),
    ],
)
def test_days_between(condition: str, first: dt.date, last: dt.date) -> None:
    assert days(condition) == [first + dt.timedelta(days=i) for i in range((last - first).days + 1)]


def test_a_contradiction_still_has_keys() -> None:
    """Nothing satisfies it, so any list will do."""
    assert days("time_hour > '2013-12-31' AND time_hour < '2013-02-03'")


@pytest.mark.parametrize(
    "condition",
    [
        "time_hour > '2010-01-01' AND time_hour < '2020-01-01'",
        "time_hour > '2013-07-01' OR month = 3",
        "NOT time_hour > '2013-07-01'",
        "time_hour + INTERVAL 1 DAY > '2013-07-01'",
        "time_hour > '9999-12-31 23:59:59.999999'",
        "time_hour < '0001-01-01'",
    ],
)
def test_other_conditions_shorten_nothing(condition: str) -> None:
    found = days(condition)
    assert (found[0], found[-1], len(found)) == (FIRST, LAST, 367)
