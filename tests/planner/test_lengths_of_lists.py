"""How long lists are is clipped to the most elements that their policy lets count, as columns are to their bounds."""

from __future__ import annotations

import pyarrow
import pytest

import dpsql
from dpsql.policy.policy import Policy
from tests.support.planning import planned, policy

TABLE = """
people:
  unit: {{column: id}}
  primary_key: [id]
  columns:
    id: {{type: bigint}}
    tags: {{type: "bigint[]"{}}}
"""
KNOWN, UNKNOWN = (policy(TABLE.format(more)) for more in (", max_length: 3", ""))
LISTS = [[], [1], [1, 2], [1, 2, 3], [None, 1, 2, 3, 4, 5, 6, 7], None] * 50


def asked(sql: str) -> float:
    frame = pyarrow.table({"id": range(len(LISTS)), "tags": pyarrow.array(LISTS, pyarrow.list_(pyarrow.int64()))})
    loose = Policy.from_dict({**KNOWN.document, "budgets": {"total": {"epsilon": 1e12}}, "database": None})
    with dpsql.connect(loose, frames={"people": frame}, ledger=":memory:") as con:
        return float(con.sql(sql).run(epsilon=1e9).fetchall()[0][0])


def test_lengths_count_up_to_max_length() -> None:
    clipped = [min(3, len(tags)) for tags in LISTS if tags is not None]
    assert asked("SELECT SUM(len(tags)) FROM people") == pytest.approx(sum(clipped))
    assert asked("SELECT AVG(len(tags)) FROM people") == pytest.approx(sum(clipped) / len(clipped))
    assert asked("SELECT SUM(2 * len(tags) + 1) FROM people") == pytest.approx(sum(2 * n + 1 for n in clipped))


def test_one_person_moves_the_sum_by_max_length_at_most() -> None:
    plan = planned("SELECT SUM(len(tags)) AS s FROM people", KNOWN)
    (measurement,) = plan.releases[0].measured.measurements
    assert measurement.sensitivity.l1 == 3 and "list_length(tags) is clipped to [0, 3]" in plan.notes


def test_conditions_see_lengths_as_they_are() -> None:
    assert asked("SELECT COUNT(*) FROM people WHERE len(tags) > 3") == pytest.approx(50)


def test_a_length_that_nothing_bounds_is_refused() -> None:
    with pytest.raises(dpsql.Rejected) as refused:
        planned("SELECT SUM(len(tags)) AS s FROM people", UNKNOWN)
    assert refused.value.diagnostics[0].code == "DP202"
    (repair,) = refused.value.diagnostics[0].help
    assert planned(
        f"SELECT SUM({repair.partition(':  ')[2].replace('lower, upper', '0, 9')}) AS s FROM people", UNKNOWN
    )
