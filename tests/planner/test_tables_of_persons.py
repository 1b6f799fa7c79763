"""Of the table that `units` names as that of the ids, a missing limit is told the key that makes one needless."""

from __future__ import annotations

import dpsql
from dpsql.planner.plan import Plan
from tests.support.planning import planned, policy

HEAD = "units: {person: {table: people, key: id}}\n"
TABLES = """
people:
  unit: {column: id}
  columns: {id: {type: bigint}, x: {type: bigint, bounds: [0, 9]}}
visits:
  unit: {column: id}
  columns: {id: {type: bigint}}
"""
SQL = "SELECT COUNT(*) AS n FROM people"


def helps(sql: str, head: str = HEAD) -> tuple[str, ...]:
    (found,) = dpsql.check(sql, policy(TABLES, head))
    assert found.code == "DP211"
    return found.help


def test_the_key_is_told_first_and_works() -> None:
    first, second, *_ = helps(SQL)
    assert first == "where each person has one row, custodian: add to tables.people:  primary_key: [id]"
    assert "max_rows_per_unit" in second
    key = first.partition(":  ")[2]
    of = policy(TABLES.replace("people:\n", f"people:\n  {key}\n"), HEAD)
    assert dpsql.check(SQL, of) == [] and noise(planned(SQL, of)) == 1


def noise(plan: Plan) -> int:
    (measurement,) = plan.releases[0].measured.measurements
    return int(measurement.sensitivity.l1)


def test_of_other_tables_and_of_joins_nothing_is_known() -> None:
    for sql in ("SELECT COUNT(*) FROM visits", "SELECT COUNT(*) FROM people JOIN visits USING (id)"):
        assert not any("primary_key" in text for text in helps(sql))
    assert not any("primary_key" in text for text in helps(SQL, "units: {person: {}}\n"))
