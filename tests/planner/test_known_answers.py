"""Answers that are known before they are paid for: a CLIP that leaves one value, and the repair that would make one."""

from __future__ import annotations

import re

import pytest

import dpsql
from tests.support.checklist_clinic import Attack

OUTSIDE = {
    "CLIP(age, 200, 300)": "CLIP(age, 0, 110)",
    "CLIP(age, -9, -1)": "CLIP(age, 0, 110)",
    "CLIP(age, 110, 120)": "CLIP(age, 0, 110)",  # which touches the bounds
    "CLIP(age, -5, 0)": "CLIP(age, 0, 110)",
    "CLIP(age, 7, 7)": "CLIP(age, 0, 110)",
    "CLIP(age + 1, 200, 300)": "CLIP(age + 1, 1, 111)",
    "CLIP(CLIP(age, 0, 20), 30, 40)": "CLIP(CLIP(age, 0, 20), 0, 20)",
    "CLIP(CLIP(age, 200, 300), 0, 250)": "CLIP(age, 0, 110)",
    "LEAST(GREATEST(income, 200000), 300000)": "CLIP(income, 0, 100000)",
    "CLIP(income, 200000, 300000) / 2 + 1": "CLIP(income, 0, 100000)",
    "CASE WHEN diag = 'flu' THEN CLIP(age, 200, 300) END": "CLIP(age, 0, 110)",
}


@pytest.mark.parametrize("clip", OUTSIDE)
def test_probe_a_clip_outside_of_the_bounds_is_not_charged(attack: Attack, clip: str) -> None:
    before = attack.spent
    for sql in (
        f"SELECT AVG({clip}) AS a FROM patients",
        f"SELECT diag, SUM({clip}) AS a FROM patients GROUP BY diag",
        f"SELECT SUM(x) AS a FROM (SELECT {clip} AS x FROM patients) AS t",
        f"SELECT COUNT(*) AS n, VAR_SAMP({clip}) AS a FROM patients",
        f"SELECT AVG(s) AS a FROM (SELECT diag, SUM({clip}) AS s FROM patients GROUP BY diag) AS t",
    ):
        refusal = attack.refused(sql, "DP204")
        assert f"clip to a range within them:  {OUTSIDE[clip]}\n" in str(refusal)
        (repair,) = set(re.findall(r"within them:  (.+)", str(refusal)))
        dpsql.check(f"SELECT AVG({repair}) AS a FROM patients", attack.con.policy)
        attack.con.sql(f"SELECT AVG({repair}) AS a FROM patients").plan(epsilon=1)
    assert attack.spent == before


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT AVG(CLIP(age, 0, 110)) AS a FROM patients",
        "SELECT AVG(CLIP(age, -5, 1)) AS a FROM patients",
        "SELECT AVG(CLIP(age, 109, 500)) AS a FROM patients",
        "SELECT AVG(CLIP(big, 200, 300)) AS a FROM patients",  # nothing is declared of it
        "SELECT SUM(CLIP(1, 2, 3)) AS a FROM patients",  # a constant anyway
        "SELECT COUNT(*) AS n FROM patients WHERE CLIP(age, 200, 300) > 200",
        "SELECT CLIP(age, 200, 300) AS k, COUNT(*) AS n FROM grid GROUP BY k",
        "SELECT CLIP(COUNT(*), -5, -1) AS n FROM patients",
    ],
)
def test_probe_other_clips_are_left_alone(attack: Attack, sql: str) -> None:
    attack.con.sql(sql).plan(epsilon=1)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT SUM(big) AS a FROM patients",
        "SELECT AVG(pid) AS a FROM visits",
        "SELECT SUM(income / LN(big)) AS a FROM patients",
        "SELECT SUM(LN(age)) AS a FROM patients",
        "SELECT SUM(EXP(income)) AS a FROM patients",
        "SELECT SUM(POW(age, age)) AS a FROM patients",
        "SELECT SUM(CAST(zip AS INTEGER)) AS a FROM patients",
        "SELECT SUM(zip) AS a FROM patients",
        "SELECT AVG(date_diff('day', DATE '2024-01-01', day)) AS a FROM patients",
        "SELECT AVG(n) AS a FROM (SELECT kind, COUNT(*) AS n FROM events GROUP BY kind) AS t",
    ],
)
def test_probe_no_repair_names_bounds_that_nobody_declared(attack: Attack, sql: str) -> None:
    """`CLIP(x, 0, 100)`, pasted, makes 100 of each of a column's thousands, for ε 1. Pasted words are refused."""
    told = str(attack.refused(sql, "DP201", "DP202", "DP203", "DP101", "DP106"))
    repairs = re.findall(r"CLIP\(.*, ([^,()]+), ([^,()]+)\)", told)
    assert all(ends == ("lower", "upper") for ends in repairs), told
    assert repairs or "CLIP" not in told
