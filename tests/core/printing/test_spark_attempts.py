"""Spark: what integers may not hold is tried, and no guard is spared because of what is known of values."""

from __future__ import annotations

from textwrap import indent

import pytest

from dpsql.policy.load import parse_policy
from tests.core.printing.test_attempts import LOG
from tests.support.planning import HEAD, UNITS, planned

POLICY = parse_policy(
    HEAD.replace("test.duckdb", "sc://cluster") + UNITS + "tables:\n" + indent(LOG, "  "),
    "test.yaml",
)
PLAIN = ["n + n > 3", "i BETWEEN 3 AND 9", "y * 2 + y > 1", "lower(s) = 'a'", "n % 3 = 1"]
TRIED = {
    "CLIP(i, 0, 9) + 1 > 3": "try_add(",
    "CLIP(i, 0, 9) - 1 > 3": "try_subtract(",
    "CLIP(i, 0, 9) * 2 > 3": "try_multiply(",
    "-CLIP(i, 0, 9) < 3": "try_subtract(",
    "abs(CLIP(i, 0, 9)) < 3": "try_subtract(",
    "CAST(i AS INTEGER) = 3": "try_cast(",
}
GUARDED = {
    "date_trunc('month', d) = d": "BETWEEN DATE '0001-01-01' AND DATE '9999-12-31'",
    "date_diff('hour', d, DATE '2024-06-01') > 3": "BETWEEN DATE '0001-01-01' AND DATE '9999-12-31'",
    "d + n > DATE '2024-06-01'": "BETWEEN -4000000 AND 4000000",
    "left(s, CLIP(i, 0, 9)) = 'a'": "BETWEEN -",
}


def printed(condition: str) -> str:
    (release,) = planned(f"SELECT COUNT(*) FROM log WHERE {condition}", POLICY).releases
    (statement,) = release.statements
    return statement.salted(7)


@pytest.mark.parametrize("condition", PLAIN)
def test_what_its_types_hold_is_computed_as_ever(condition: str) -> None:
    assert "try_" not in printed(condition).replace("try_validate_utf8", "")


@pytest.mark.parametrize("condition", TRIED)
def test_what_integers_may_not_hold_is_tried(condition: str) -> None:
    assert TRIED[condition] in printed(condition)


@pytest.mark.parametrize("condition", GUARDED)
def test_guards_do_not_rest_on_what_is_known_of_values(condition: str) -> None:
    assert GUARDED[condition] in printed(condition)
