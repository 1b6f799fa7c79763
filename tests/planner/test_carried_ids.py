"""UNION ALL without the id, and FULL joins on it: with next to no noise, the answers are DuckDB's own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import duckdb
import pytest

import dpsql
from dpsql.core.ir.nodes import JoinKind
from dpsql.planner.rewrites.joins.carry_ids import Ids
from tests.support.checklist_clinic import POLICY, Clinic

ROWS = (
    "DELETE FROM visits",
    "INSERT INTO visits VALUES (1, 10), (1, 20), (2, 30), (9, 5), (9, 6), (8, 7)",
    "CREATE TABLE calls (pid BIGINT, line INTEGER)",
    "INSERT INTO calls VALUES (1, 1), (3, 2), (9, 2), (7, 1)",
)
CALLS = """
  calls:
    unit: {column: pid}
    max_rows_per_unit: 3
    columns:
      pid: {type: bigint}
      line: {type: integer, domain: [1, 2]}
"""
QUESTIONS = (
    "SELECT COUNT(*) FROM visits FULL JOIN calls ON visits.pid = calls.pid",
    "SELECT COUNT(amt), COUNT(line) FROM visits FULL JOIN calls USING (pid)",
    "SELECT COUNT(*) FROM visits v FULL JOIN calls c ON v.pid = c.pid AND v.amt > 5 WHERE v.pid IS NULL",
    "SELECT SUM(amt) FROM calls c FULL JOIN visits v ON v.pid = c.pid WHERE c.pid IS NULL",
    "SELECT AVG(n) FROM (SELECT pid, COUNT(*) AS n FROM visits FULL JOIN calls USING (pid) GROUP BY pid)",
    "SELECT COUNT(DISTINCT COALESCE(v.pid, c.pid)) FROM visits v FULL JOIN calls c ON v.pid = c.pid",
    "SELECT SUM(CASE WHEN a IS NULL THEN 1 ELSE 0 END), SUM(CASE WHEN b IS NULL THEN 1 ELSE 0 END) FROM "
    "(SELECT pid AS a FROM visits GROUP BY pid) FULL JOIN (SELECT pid AS b, line FROM calls GROUP BY pid, line) "
    "ON a = b",
    "SELECT COUNT(*), COUNT(age), COUNT(amt), COUNT(line) FROM patients FULL JOIN visits USING (pid) "
    "FULL JOIN calls USING (pid)",
    "SELECT COUNT(*), COUNT(line) FROM visits v FULL JOIN patients p ON v.pid = p.pid "
    "FULL JOIN calls c ON COALESCE(v.pid, p.pid) = c.pid WHERE v.pid IS NULL",
    "SELECT COUNT(DISTINCT COALESCE(c.pid, v.pid, p.pid)) FROM visits v FULL JOIN patients p ON v.pid = p.pid "
    "FULL JOIN calls c ON COALESCE(v.pid, p.pid) = c.pid",
    "SELECT COUNT(DISTINCT pid), COUNT(age) FROM visits FULL JOIN calls USING (pid) LEFT JOIN patients USING (pid)",
    "SELECT AVG(n + m) FROM (SELECT pid, COUNT(amt) AS n, COUNT(line) AS m FROM visits FULL JOIN calls USING (pid) "
    "FULL JOIN patients USING (pid) GROUP BY pid)",
    "SELECT COUNT(*), SUM(x) FROM (SELECT amt AS x FROM visits UNION ALL SELECT 1.5 FROM calls "
    "UNION ALL SELECT age FROM patients)",
    "SELECT x, COUNT(*) FROM (SELECT line AS x FROM calls UNION ALL SELECT line FROM calls WHERE line = 1) "
    "GROUP BY x ORDER BY x",
)


@pytest.fixture
def clinic(make: Callable[..., Clinic]) -> Clinic:
    """With a person in each table, in two, and in all."""
    return make(*ROWS, policy=POLICY + CALLS)


@pytest.mark.parametrize("sql", QUESTIONS)
def test_the_answer_is_duckdbs(clinic: Clinic, sql: str) -> None:
    with clinic.connect() as con:
        found = [tuple(round(float(v or 0), 2) for v in row) for row in con.sql(sql).run(epsilon=10**8).fetchall()]
    with duckdb.connect(str(clinic.folder / "d.duckdb")) as plain:
        rows = plain.execute(sql).fetchall()
    if "line AS x" in sql:
        found = [row for row in found if row[1]]
    assert found == [tuple(round(float(v or 0), 2) for v in row) for row in rows]


def test_rows_that_only_the_right_side_has_are_missed_by_a_left_join(
    clinic: Clinic, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The twin: without the second part of the union, the comparison above fails."""
    monkeypatch.setattr(Ids, "parted", lambda _, node: replace(node, kind=JoinKind.LEFT))
    with pytest.raises(AssertionError):
        test_the_answer_is_duckdbs(clinic, QUESTIONS[0])


@pytest.mark.parametrize(
    ("sql", "code"),
    [
        ("SELECT COUNT(*) FROM patients p FULL JOIN pub ON p.diag = pub.diag", "DP220"),
        ("SELECT COUNT(*) FROM (SELECT amt FROM visits UNION SELECT line FROM calls)", "DP220"),
        ("SELECT COUNT(*) FROM (SELECT amt FROM visits UNION ALL SELECT cost FROM pub)", "DP220"),
        ("SELECT COUNT(*) FROM calls v FULL JOIN calls c ON v.line = c.line", "DP230"),
        ("SELECT COUNT(*) FROM patients p FULL JOIN visits v USING (pid) FULL JOIN calls c ON v.pid = c.pid", "DP230"),
        ("SELECT pid, COUNT(*) FROM visits FULL JOIN calls USING (pid) GROUP BY pid", "DP301"),
    ],
)
def test_what_has_no_owner_is_refused(clinic: Clinic, sql: str, code: str) -> None:
    with clinic.connect() as con, pytest.raises(dpsql.Rejected) as caught:
        con.sql(sql).plan(epsilon=1)
    assert caught.value.diagnostics[0].code == code
