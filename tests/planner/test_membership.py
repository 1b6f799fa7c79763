"""IN and EXISTS as values over private tables: whose rows a lookup can be of, and what it may not become."""

from __future__ import annotations

import pytest

from dpsql.diagnostics.errors import Rejected
from tests.support.planning import below_release, planned, policy

POLICY = policy(
    """
people:
  unit: {column: id, of: person}
  primary_key: [id]
  columns: {id: {type: bigint, nullable: false}, vip: {type: boolean}}
rides:
  unit: {column: person, of: person}
  max_rows_per_unit: 5
  columns: {person: {type: bigint, nullable: false}, station: {type: integer, domain: [1, 2], nullable: false}}
"""
)


@pytest.mark.parametrize(
    "condition",
    [
        "vip OR id IN (SELECT person FROM rides)",
        "vip OR EXISTS (SELECT 1 FROM rides WHERE person = id AND station = 1)",
        "CASE WHEN id IN (SELECT person FROM rides) THEN vip ELSE FALSE END",
    ],
)
def test_a_lookup_by_the_id_keeps_one_row_per_id(condition: str) -> None:
    facts = below_release(planned(f"SELECT COUNT(*) FROM people WHERE {condition}", POLICY))
    assert facts.ids and facts.is_key(facts.ids)


def test_everybody_is_in_one_group_of_a_lookup() -> None:
    plan = planned("SELECT id IN (SELECT person FROM rides) AS rode, COUNT(*) FROM people GROUP BY rode", POLICY)
    (release,) = plan.releases
    assert release.measured.node.keys and release.measured.contribution.most_groups == 1


def test_rows_of_everybody_are_no_release_without_a_word() -> None:
    """As a release the lookup would list all stations: the answer would be that of TRUE."""
    sql = "SELECT COUNT(*) FROM rides WHERE person = 1 OR station IN (SELECT station FROM rides WHERE person = 2)"
    with pytest.raises(Rejected) as caught:
        planned(sql, POLICY)
    assert [d.code for d in caught.value.diagnostics] == ["DP230"]
    assert "another column than the privacy unit's id" in caught.value.diagnostics[0].message
