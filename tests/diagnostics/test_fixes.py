"""Repairs that a program makes: safe ones give the same rows in the engine, guesses are never safe."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import duckdb
import pytest

from dpsql.diagnostics.diagnostic import Diagnostic, Fix, Source
from dpsql.frontend.text import repairs
from dpsql.frontend.text.repairs import with_fixes
from dpsql.policy.load import load_policy
from dpsql.service.checks.check import examine

POLICY = load_policy(Path(__file__).parents[1] / "fixtures" / "policies" / "clinic.yaml")

SAFE = {
    "SELECT mean(cost) AS m FROM visits": "SELECT avg(cost) AS m FROM visits",
    "SELECT MEAN (cost) + 1 AS m FROM visits": "SELECT AVG (cost) + 1 AS m FROM visits",
    "SELECT code FROM visits GROUP BY code HAVING mean(cost) > 2":
        "SELECT code FROM visits GROUP BY code HAVING avg(cost) > 2",
    "SELECT COUNT_STAR() AS n FROM visits": "SELECT COUNT(*) AS n FROM visits",
    "WITH RECURSIVE w AS (SELECT cost FROM visits) SELECT SUM(cost) FROM w":
        "WITH w AS (SELECT cost FROM visits) SELECT SUM(cost) FROM w",
    "WITH RECURSIVE w(c) AS NOT MATERIALIZED (SELECT cost FROM visits) SELECT SUM(c) FROM w":
        "WITH w(c) AS NOT MATERIALIZED (SELECT cost FROM visits) SELECT SUM(c) FROM w",
    "SELECT COUNT(*) FROM (SELECT cost FROM visits -- here\n ORDER BY cost DESC NULLS LAST, code)":
        "SELECT COUNT(*) FROM (SELECT cost FROM visits -- here\n )",
    "WITH w AS (SELECT * FROM visits ORDER BY cost) SELECT COUNT(*) FROM w":
        "WITH w AS (SELECT * FROM visits) SELECT COUNT(*) FROM w",
    "SELECT region, COUNT(*) AS n FROM (SELECT * FROM patients ORDER BY age) GROUP BY region ORDER BY 2, 1 LIMIT 2":
        "SELECT region, COUNT(*) AS n FROM (SELECT * FROM patients) GROUP BY region ORDER BY 2, 1 LIMIT 2",
    "SELECT SUM(age ORDER BY age DESC) AS s FROM patients": "SELECT SUM(age) AS s FROM patients",
    "SELECT COUNT(DISTINCT age ORDER BY ABS(age)) AS s FROM patients": "SELECT COUNT(DISTINCT age) AS s FROM patients",
}  # fmt: skip
"""Queries that the engine knows and dpsql refuses, and what --fix makes of them."""

GUESSED = {
    "SELECT SUM(costt) FROM visits": "SELECT SUM(cost) FROM visits",
    "SELECT SUM(v.\"costt\") FROM visits AS v": "SELECT SUM(v.cost) FROM visits AS v",
    "SELECT SUM(cost) FROM visitss v": "SELECT SUM(cost) FROM visits v",
    "SELECT SUM(cost) FROM dbo.visits v": "SELECT SUM(cost) FROM visits v",
    "select smu(cost) from visits": "select sum(cost) from visits",
    "SELECT COUNT(*) FROM patients WHERE region = \"no'rth\"": "SELECT COUNT(*) FROM patients WHERE region = 'no''rth'",
    "SELECT COUNT(*) FROM patients WHERE region = \"regime\"": "SELECT COUNT(*) FROM patients WHERE region = 'regime'",
    "SELECT COUNT(*) FROM patients WHERE \"regio\" = 'x'": "SELECT COUNT(*) FROM patients WHERE region = 'x'",
    "SELCT COUNT(*) FROM visits": "SELECT COUNT(*) FROM visits",
    "select count(*) frm visits": "select count(*) from visits",
    "SELECT code, COUNT(*) FROM visits GROUPBY code": "SELECT code, COUNT(*) FROM visits GROUP BY code",
    "SELECT COUNT(*) FROM `visits`": 'SELECT COUNT(*) FROM "visits"',
    "SELECT TOP 3 code, COUNT(*) FROM visits GROUP BY code": "SELECT code, COUNT(*) FROM visits GROUP BY code LIMIT 3",
    # What the engine names the column by: the name changes.
    "SELECT mean(cost) FROM visits": "SELECT avg(cost) FROM visits",
    "SELECT SUM(cost ORDER BY cost) FROM visits": "SELECT SUM(cost) FROM visits",
}  # fmt: skip
"""Texts that are not what was meant, or not certainly, and the one thing that may be meant."""

NOTHING = (
    "SELECT SUM(visit_id) FROM visits",  # bounds are numbers that somebody has to know
    "SELECT SUM(xyzzy) FROM visits",
    "SELECT COUNT(*) FROM visits WHERE xyzzy(cost) > 1 AND cot > 1 AND costs_of > 1",
    "SELECT COUNT(*) FROM (SELECT * FROM visits LIMIT 10)",
    "SELECT COUNT(*) FROM (SELECT * FROM (SELECT * FROM visits ORDER BY cost) LIMIT 3)",
    "SELECT SUM(c) FROM (SELECT cost AS c, ROW_NUMBER() OVER () AS n FROM (SELECT * FROM visits ORDER BY cost))",
    "WITH RECURSIVE w AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM w) SELECT COUNT(*) FROM w",
    "SELECT COUNT(*) FROM visits FETCH FIRST 3 ROWS WITH TIES",
    "SELECT COUNT(*) FROM visits WHERE code COLLATE nocase = 'a'",
    "SELECT COUNT(*) FROM visits WHERE cost > 'mean(x)'",
)  # fmt: skip


def fixed(sql: str, safe: bool) -> str:
    """The text after every fix, the first wins where two overlap."""
    edits = [e for d in examine(Source(sql), POLICY).diagnostics if d.fix and d.fix.safe is safe for e in d.fix.edits]
    at, pieces = 0, []
    for edit in sorted(edits, key=lambda e: e.span):
        if edit.span.start >= at:
            pieces += [sql[at : edit.span.start], edit.text]
            at = edit.span.end
    return "".join([*pieces, sql[at:]])


@pytest.fixture(scope="module")
def engine() -> Iterator[duckdb.DuckDBPyConnection]:
    """The tables of the policy with 300 rows, NULLs and ties among them."""
    drawn = random.Random(8)
    with duckdb.connect() as connection:
        connection.execute("CREATE TABLE patients (patient_id BIGINT, age INTEGER, region VARCHAR)")
        connection.execute(
            "CREATE TABLE visits (visit_id BIGINT, patient_id BIGINT, cost DOUBLE, code VARCHAR, day DATE)"
        )
        for i in range(60):
            age, region = drawn.choice([None, 1, 2, 30, 44]), drawn.choice([None, "north", "south"])
            connection.execute("INSERT INTO patients VALUES (?, ?, ?)", [i, age, region])
        for i in range(300):
            cost, code = drawn.choice([None, 1, 2.5, 4]), drawn.choice([None, "a", "b", "c"])
            connection.execute("INSERT INTO visits VALUES (?, ?, ?, ?, '2024-03-04')", [i, i % 50, cost, code])
        yield connection


@pytest.mark.parametrize("sql", SAFE)
def test_a_safe_fix_changes_no_row(sql: str, engine: duckdb.DuckDBPyConnection) -> None:
    after = fixed(sql, safe=True)
    assert after != sql
    assert after == SAFE[sql]
    before_fix, after_fix = engine.execute(sql), engine.execute(after)
    names = [c[0] for c in after_fix.description or ()]
    rows = sorted(after_fix.fetchall(), key=repr)
    before_fix = engine.execute(sql)
    assert sorted(before_fix.fetchall(), key=repr) == rows
    assert [c[0] for c in before_fix.description or ()] == names


@pytest.mark.parametrize("sql", [*SAFE, *GUESSED])
def test_a_fixed_text_has_nothing_to_fix(sql: str) -> None:
    after = fixed(fixed(sql, safe=True), safe=True)
    assert fixed(after, safe=True) == after
    if sql in SAFE:
        assert not [d for d in examine(Source(after), POLICY).diagnostics if d.severity == "error"]


@pytest.mark.parametrize("sql", GUESSED)
def test_a_guess_is_not_safe(sql: str) -> None:
    assert fixed(sql, safe=True) == sql
    assert fixed(sql, safe=False) == GUESSED[sql]


def test_every_repair_still_finds_its_refusal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Repairs are found by code and mark: an upgrade of the parser must not lose one unnoticed."""
    refusals = [(sql, d) for sql in (*SAFE, *GUESSED) for d in examine(Source(sql), POLICY).diagnostics if d.fix]
    for entry in repairs._RULES:
        monkeypatch.setattr(repairs, "_RULES", (entry,))
        bare = ((sql, replace(d, fix=None)) for sql, d in refusals if d.code == entry[0])
        assert any(with_fixes([d], Source(sql))[0].fix is not None for sql, d in bare), entry
        monkeypatch.undo()


@pytest.mark.parametrize("sql", NOTHING)
def test_no_fix_where_there_is_no_clear_one(sql: str) -> None:
    diagnostics = examine(Source(sql), POLICY).diagnostics
    assert diagnostics
    assert not [d.fix for d in diagnostics if d.fix is not None and d.code != "DP103"]
    assert not [d.fix for d in diagnostics if d.fix is not None and d.fix.safe]


def test_what_points_elsewhere_or_is_fixed_already_stays() -> None:
    source, other = Source("SELECT mean(cost) FROM visits"), Source("another text")
    elsewhere = Diagnostic("DP105", "function mean is not supported", other)
    known = Diagnostic("DP105", "function mean is not supported", source, fix=Fix("as it was", ()))
    assert with_fixes((elsewhere, known), source) == (elsewhere, known)
    unreadable = Source("SELECT 'open")
    assert with_fixes((Diagnostic("DP105", "m", unreadable),), unreadable)[0].fix is None
