"""Outer joins become inner ones only where rows without a partner are of no use: not where they make rows above."""

from __future__ import annotations

import pytest

from dpsql.core.ir.nodes import Join, JoinKind
from dpsql.core.ir.walk import walk
from tests.support.key_plans import plan

PER_PERSON = "SELECT people.pid, COUNT(trips.age) AS n FROM people LEFT JOIN people AS trips USING (pid) GROUP BY 1"
PER_CODE = (
    "SELECT codes.code, COUNT(visits.age) AS n FROM codes LEFT JOIN visits ON visits.code = codes.code GROUP BY 1"
)
PER_NATION = (
    "SELECT n_name, COUNT(people.age) AS n FROM nation LEFT JOIN people ON n_nationkey = people.nation GROUP BY 1"
)


def kinds(sql: str) -> list[JoinKind]:
    return [n.kind for n in walk(plan(sql).tree.node) if isinstance(n, Join)]


@pytest.mark.parametrize(
    ("sql", "kind"),
    [
        (
            "SELECT people.city, COUNT(trips.age) FROM people LEFT JOIN people AS trips USING (pid) GROUP BY 1",
            JoinKind.INNER,
        ),
        ("SELECT COUNT(*) FROM people LEFT JOIN people AS trips USING (pid) WHERE trips.age > 0", JoinKind.INNER),
        (PER_CODE, JoinKind.INNER),
        (PER_NATION, JoinKind.INNER),
        ("SELECT COUNT(*) FROM people LEFT JOIN people AS trips USING (pid)", JoinKind.LEFT),
    ],
)
def test_rows_of_no_use_are_left_out(sql: str, kind: JoinKind) -> None:
    assert kinds(sql) == [kind]


@pytest.mark.parametrize("sql", [PER_PERSON, PER_CODE])
def test_groups_of_padded_rows_are_rows_for_an_aggregate_above(sql: str) -> None:
    """People without trips count, as 0."""
    assert kinds(f"SELECT AVG(CLIP(n, 0, 5)) FROM ({sql}) AS t") == [JoinKind.LEFT]


def test_a_release_lists_its_groups_below_an_aggregate_too() -> None:
    assert kinds(f"SELECT MAX(n) FROM ({PER_NATION}) AS t") == [JoinKind.INNER]


def test_false_equals_false() -> None:
    """A condition that is FALSE for rows without a partner is a value that an equality may ask for."""
    flags = "(VALUES (TRUE), (FALSE)) AS flags(found)"
    tables = "people LEFT JOIN people AS trips USING (pid)"
    asked = f"SELECT COUNT(*) FROM {tables} JOIN {flags} ON (trips.age IS NOT NULL) = flags.found"
    assert kinds(asked) == [JoinKind.INNER, JoinKind.LEFT]
