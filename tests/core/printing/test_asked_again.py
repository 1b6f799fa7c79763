"""PostgreSQL's second text: what a row can make fail is asked of a function, what its types make total stands bare."""

from __future__ import annotations

import re
from textwrap import indent

import pytest

from dpsql.core.printing.shapes.release_statement import Statement
from dpsql.policy.load import parse_policy
from tests.core.printing.test_attempts import LOG
from tests.core.printing.test_attempts import POLICY as ON_DUCKDB
from tests.support.planning import HEAD, UNITS, planned

POLICY = parse_policy(
    HEAD.replace("test.duckdb", "postgresql://reader@server/shop") + UNITS + "tables:\n" + indent(LOG, "  "),
    "test.yaml",
)
BARE = [
    "n < 5 AND d >= DATE '2024-02-01' AND s = 'a' AND t < TIMESTAMP '2024-03-01' AND p > 1.5",
    "n + n > 3", "i BETWEEN 3 AND 9", "y * 2 + y > 1", "y / y > 1", "p + p > 1", "lower(s) = 'a'", "i + 1 > 3",
    "s LIKE 'a%'", "year(d) = 2024", "n % 3 = 1", "i IN (1, 2)", "COALESCE(n, 3) = 3", "hour(t) < 12",
]  # fmt: skip
ASKED = {
    "date_trunc('month', d) = d": 1,
    "COALESCE(date_trunc('month', d), d) = d": 1,
    "CAST(i AS INTEGER) = 3": 1,
    "CAST(i AS INTEGER) = 3 AND CAST(i AS SMALLINT) = 3": 2,
    "CAST(i AS INTEGER) = 3 OR CAST(i AS INTEGER) = 4": 1,
    "i * i > 3": 1,
    "week(d) = 3": 1,
    "hour(d) = 3": 1,
    "w = p": 1,
    "COALESCE(w, p) = 3": 1,
}


def printed(condition: str) -> Statement:
    (release,) = planned(f"SELECT COUNT(*) FROM log WHERE {condition}", POLICY).releases
    (statement,) = release.statements
    return statement


@pytest.mark.parametrize("condition", BARE)
def test_what_is_total_by_its_types_stands_bare(condition: str) -> None:
    assert printed(condition).again is None


@pytest.mark.parametrize("condition", ASKED)
def test_what_can_fail_is_asked_of_a_function(condition: str) -> None:
    again = printed(condition).again
    assert again is not None and again.again is None
    assert len(again.functions) == ASKED[condition]
    assert {name for name, _ in again.functions} == set(re.findall(r"pg_temp\.(\w+)", again.sql))
    for name, made in again.functions:
        assert made.startswith(f"CREATE FUNCTION pg_temp.{name}(") and "$1" in made and "THEN RETURN NULL" in made


def test_logic_stands_outside_of_functions() -> None:
    again = printed("CAST(i AS INTEGER) = 3 AND (CAST(i AS SMALLINT) = 3 OR n = 1)").again
    assert again is not None
    assert not any("= 3" in made for _, made in again.functions)
    assert " AND " in again.sql and " OR " in again.sql


def test_a_literal_stays_one_in_the_body() -> None:
    again = printed("lpad(s, 3, '''; DROP TABLE log; --') = 'x'").again
    assert again is not None
    ((_, made),) = again.functions
    assert made.count("'") % 4 == 2 and "''''''; DROP TABLE log; --''" in made


def test_no_other_engine_has_a_second_text() -> None:
    (release,) = planned("SELECT COUNT(*) FROM log WHERE CAST(i AS INTEGER) = 3", ON_DUCKDB).releases
    assert all(s.again is None for s in release.statements)
