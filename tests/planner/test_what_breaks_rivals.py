"""Probes that break the nearest rivals: systems that rewrite SQL, and believe what the text seems to say."""

from __future__ import annotations

import re
from decimal import Decimal
from pathlib import Path

import pytest

import dpsql
from tests.support.checklist_clinic import DELTA, LARGE, Attack, Clinic

# --- a window across units -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "window",
    [
        "SUM(income) OVER ()",
        "SUM(income) OVER (ORDER BY pid ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING)",
        "MAX(income) OVER (PARTITION BY diag)",
        "lag(income) OVER (ORDER BY pid)",
        "rank() OVER (ORDER BY income)",
        "COUNT(*) OVER w",
        "first_value(income) OVER (PARTITION BY pid % 1 ORDER BY ts)",
        "SUM(SUM(income)) OVER (PARTITION BY pid)",
    ],
)
def test_probe_window_across_units(attack: Attack, window: str) -> None:
    """One person's row must not change what another's row says, wherever the window stands."""
    named = " WINDOW w AS (PARTITION BY diag)" if "OVER w" in window else ""
    for sql in (
        f"SELECT SUM(CLIP(x, 0, 1)) FROM (SELECT {window} AS x FROM patients{named})",
        f"SELECT COUNT(*) FROM (SELECT pid, {window} AS x FROM patients{named}) WHERE x > 5",
        f"SELECT SUM({window}) FROM patients{named}",
        f"WITH w1 AS (SELECT pid, {window} AS x FROM patients{named}) SELECT x, COUNT(*) FROM w1 GROUP BY x",
    ):
        attack.refused(sql, "DP113", "DP112", "DP101", "DP105", "DP109", "DP106")


def test_probe_window_over_released_numbers_is_no_measurement(attack: Attack) -> None:
    sql = "SELECT diag, COUNT(*) AS n, SUM(COUNT(*)) OVER () AS total FROM patients GROUP BY diag"
    plan = attack.con.sql(sql).plan(epsilon=1)
    assert len([m for r in plan.releases for m in r.measured.measurements]) == 1
    rows = attack.con.run(plan).rows
    assert all(total == sum(n for _, n, _ in rows) for _, _, total in rows)


# --- another name for a private table --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name",
    ["patients", "PATIENTS", '"patients"', '"Patients"', "`patients`", "[patients]", "main.patients",
     '"main"."patients"', "d.main.patients", '"d.main.patients"', '"main.patients"', "data.main.patients",
     "data.patients", "..patients", "temp.main.patients", '"patients "', '" patients"', "patіents", "pati\u200bents",
     '"patients\t"', "'patients'", "patients$", "@patients", "(patients)", "U&\"patients\"", "public.patients"],
)  # fmt: skip
@pytest.mark.parametrize("dialect", ["duckdb", "postgres", "snowflake", "bigquery", "mysql", "tsql"])
def test_probe_every_spelling_is_the_private_table_or_none(attack: Attack, name: str, dialect: str) -> None:
    """Never a table without a unit: rows are refused, and a count has the noise of one person's row."""
    for listed in (f"SELECT name FROM {name}", f"SELECT * FROM {name} LIMIT 1", f"SELECT MAX(name) FROM {name}"):
        with pytest.raises(dpsql.Rejected):
            attack.con.sql(listed, dialect=dialect).run(epsilon=LARGE, delta=DELTA)
    try:
        plan = attack.con.sql(f"SELECT COUNT(*) FROM {name}", dialect=dialect).plan(epsilon=1, delta=DELTA)
    except dpsql.Rejected as refusal:
        assert {d.code for d in refusal.diagnostics} <= {"DP102", "DP101", "DP010", "DP012", "DP108", "DP103"}
        return
    assert [m.sensitivity.l1 for r in plan.releases for m in r.measured.measurements] == [1]
    assert plan.cost["unit"].epsilon == 1


# --- UNION that swaps columns ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("operator", ["UNION", "UNION ALL"])
def test_probe_union_takes_bounds_by_position(attack: Attack, operator: str) -> None:
    """The name is the left side's, the values come from both: bounds, ids and domains must cover both."""
    swapped = f"(SELECT pid, age, income FROM patients {operator} SELECT pid, income, age FROM patients)"
    ((l1, _),) = attack.sensitivities(f"SELECT SUM(age) FROM {swapped}")
    assert l1 >= 100_000 + 110
    assert abs(attack.answer(f"SELECT SUM(age) FROM {swapped}")[0][0] - (120 + 180_000)) < 5000
    named = f"(SELECT pid, age, income FROM patients {operator} BY NAME SELECT pid, income, age FROM patients)"
    ((l1, _),) = attack.sensitivities(f"SELECT SUM(age) FROM {named}")
    assert l1 in (220, 110)
    attack.refused(
        f"SELECT SUM(age) FROM (SELECT pid, age, big FROM patients {operator} SELECT pid, big, age FROM patients)",
        "DP201",
    )
    mixed = f"SELECT COUNT(DISTINCT pid) FROM (SELECT pid, big FROM patients {operator} SELECT big, pid FROM patients)"
    if operator == "UNION":
        attack.refused(mixed, "DP220")
    else:  # not ids any more, but two values of each id at most
        assert attack.sensitivities(mixed) == [(2, 2)]
    # The left side's domain is not the keys' list: carol's name is no diagnosis that may be shown.
    listed = f"SELECT diag, COUNT(*) FROM (SELECT pid, diag FROM patients {operator} SELECT pid, name FROM patients)"
    with pytest.raises(dpsql.Rejected) as caught:
        attack.con.sql(f"{listed} GROUP BY diag").run(epsilon=LARGE)
    assert caught.value.diagnostics[0].code == "DP402"


# --- minus minus -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("expression", "total"),
    [
        ("age - -1", 123),
        ("age - (-1)", 123),
        ("age -(-age)", 240),
        ("- -age", 120),
        ("-(-(-age))", -120),
        ("age + -(-1)", 123),
        ("5 - -age - -5", 150),
        ("-1 - -1 - age", -120),
        ("age --1 is a comment\n", 120),
        ("age /*-*/-/**/-1", 123),
        ("CLIP(-age, -45, -1)", -115),
        ("CASE WHEN age > - -35 THEN - -1 ELSE -1 END", 1),
    ],
)
def test_probe_minus_minus_is_no_comment(attack: Attack, expression: str, total: int) -> None:
    """Printed as `--`, two signs would comment out the rest of our own SQL: a clip, a limit, a WHERE."""
    sql = f"SELECT SUM({expression}) FROM patients WHERE age > -1"
    plan = attack.con.sql(sql).plan(epsilon=100_000, delta=DELTA)
    for release in plan.releases:
        for statement in release.statements:
            assert "--" not in re.sub(r"'(?:[^']|'')*'", "''", statement.sql)
    assert attack.con.run(plan).rows == ((total,),)


def test_probe_negative_parameters_are_values(attack: Attack) -> None:
    for value in (-1, -1.0, Decimal("-1")):
        sql = "SELECT COUNT(*) FROM patients WHERE age - ? = 51 AND age > -?"
        assert attack.answer(sql, parameters=[value, value]) == [(1,)]


# --- noise parameters, units and limits chosen by the analyst --------------------------------------------------------


@pytest.mark.parametrize(
    "option",
    ["noise_scale = 0", "noise = 'none'", "sensitivity = 0", "noise_kind = NONE", "sigma = 0.001", "seed = 42",
     "privacy_unit_column = diag", "privacy_unit_column = pid", "delta = 1", "epsilon = -1",
     "epsilon = 0", "accountant = 'none'", "clamped = false", "contribution_bounds = (0, 1)",
     "max_groups_contributed = 0", "max_rows_contributed = -1", "min_privacy_units_per_group = -5"],
)  # fmt: skip
def test_probe_options_choose_no_noise(attack: Attack, option: str) -> None:
    """An option that is not the analyst's to choose is refused by name, not passed over."""
    before = attack.spent
    with pytest.raises(dpsql.Rejected) as caught:
        attack.con.sql(
            f"SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS ({option}) diag, COUNT(*) FROM patients GROUP BY diag"
        ).run(epsilon=1, delta=DELTA)
    assert caught.value.diagnostics[0].code in ("DP014", "DP406", "DP010")
    assert attack.spent == before


# --- DECIMAL columns and NULL group keys -----------------------------------------------------------------------------


def test_probe_a_private_null_key_needs_its_threshold(attack: Attack) -> None:
    """dave's NULL is as private as carol's name."""
    for key in ("name", "zip", "CASE WHEN name = 'bob' THEN NULL ELSE 'x' || zip END"):
        with pytest.raises(dpsql.Rejected) as caught:
            attack.con.sql(f"SELECT {key}, COUNT(*) FROM patients GROUP BY 1").run(epsilon=LARGE)
        assert caught.value.diagnostics[0].code == "DP402"
        assert attack.con.sql(f"SELECT {key}, COUNT(*) FROM patients GROUP BY 1").run(1, "1e-12").rows == ()


def test_probe_files_of_the_policy_stay_where_they_are(clinic: Clinic, tmp_path: Path) -> None:
    """Nothing that an analyst writes into a query makes a file."""
    before = sorted(p.name for p in clinic.folder.iterdir())
    with clinic.connect() as con:
        for sql in (f"COPY patients TO '{tmp_path}/x.csv'", f"SELECT COUNT(*) FROM patients INTO '{tmp_path}/x'"):
            with pytest.raises(dpsql.Rejected):
                con.execute(sql, epsilon=1)
    assert list(tmp_path.iterdir()) == []
    assert {p for p in (x.name for x in clinic.folder.iterdir()) if not p.startswith("spent")} <= set(before)
