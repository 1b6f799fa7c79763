"""Probes that break the nearest rivals: systems that rewrite SQL, and believe what the text seems to say."""

from __future__ import annotations

import re
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path

import pytest

import dpsql
from tests.support.checklist_clinic import DELTA, LARGE, POLICY, Attack, Clinic

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
    attack.refused(
        f"SELECT COUNT(DISTINCT pid) FROM (SELECT pid, big FROM patients {operator} SELECT big, pid FROM patients)",
        "DP220",
    )
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


def test_probe_no_epsilon_buys_more_than_the_policy_sells(make: Callable[..., Clinic]) -> None:
    """A limit for each query holds whatever is asked for, by option, clause or accuracy."""
    own = "delta: 0.9}, analysts: {'*': {epsilon: 100, delta: 0.1, per_query: {max_epsilon: 1}}}}"
    policy = POLICY.replace("delta: 0.9}}", own)
    with make(policy=policy).connect() as con:
        count = "SELECT COUNT(*) AS n FROM patients"
        for ask in (
            lambda: con.execute(count, epsilon=2),
            lambda: con.execute(count.replace("SELECT", "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (epsilon = 2)")),
            lambda: con.sql(count).run(max_error={"n": "0.001"}),
        ):
            with pytest.raises(dpsql.Rejected):
                ask()
        assert con.budget["unit"].total_spent.epsilon == 0
        con.execute(count, epsilon=1)


def test_probe_units_are_not_declared_twice(make: Callable[..., Clinic]) -> None:
    """Neither a query nor a second declaration of a table or column makes another unit of the same rows."""
    for old, new in (
        ("tables:\n", "tables:\n  Patients:\n    public: true\n    columns: {name: {type: varchar}}\n"),
        ("    unit: {column: pid}\n    primary", "    unit: {column: pid}\n    public: true\n    primary"),
        ("    unit: {column: pid}\n    primary", "    unit: {column: pid}\n    unit: {rows: 1}\n    primary"),
        ("      pid: {type: bigint, nullable: false}\n",
         "      pid: {type: bigint, nullable: false}\n      PID: {type: bigint}\n"),
    ):  # fmt: skip
        assert old in POLICY
        with pytest.raises(dpsql.CannotOpen) as caught:
            make(policy=POLICY.replace(old, new, 1)).connect()
        assert caught.value.diagnostics[0].code in ("DP001", "DP002", "DP003"), caught.value
    clinic = make()
    with clinic.connect() as con:
        for sql in (
            "SELECT COUNT(*) FROM (SELECT diag AS pid, age FROM patients)",
            "SELECT COUNT(*) FROM (SELECT 1 AS pid, amt FROM visits)",
            "SELECT COUNT(*) FROM (SELECT pid AS diag, amt AS pid FROM visits)",
        ):
            plan = con.sql(sql).plan(epsilon=1, delta=DELTA)
            most = 1 if "patients" in sql else 3
            assert [m.sensitivity.l1 * m.unit for r in plan.releases for m in r.measured.measurements] == [most]
            assert plan.cost["unit"].epsilon == 1


def test_probe_sums_beyond_64_bits_are_right(make: Callable[..., Clinic]) -> None:
    """Forty rows at the end of BIGINT: their sum is what it is, in either direction, and wraps nowhere."""
    top = 2**63 - 1
    for sign, value in ((1, top), (-1, -top)):
        clinic = make(f"INSERT INTO patients (pid, big) SELECT i, {value} FROM range(10, 50) r(i)")
        with clinic.connect() as con:
            sql = f"SELECT SUM(CLIP(big, -{top}, {top})) FROM patients WHERE pid >= 10"
            ((total,),) = con.execute(sql, epsilon=10**6).rows
            assert abs(Decimal(total) - sign * 40 * top) < Decimal(10) ** 15


def test_probe_null_units_of_a_left_join_are_nobodys(make: Callable[..., Clinic]) -> None:
    """A thousand rows without an id change no answer, on whichever side of which join they are."""
    sqls = (
        "SELECT COUNT(*) FROM visits v LEFT JOIN patients p ON v.pid = p.pid",
        "SELECT COUNT(*) FROM patients p LEFT JOIN visits v ON v.pid = p.pid",
        "SELECT COUNT(v.amt), SUM(v.amt) FROM patients p LEFT JOIN visits v USING (pid)",
        "SELECT COUNT(*) FROM visits v LEFT JOIN visits w ON v.pid = w.pid",
        "SELECT COUNT(*) FROM visits v LEFT JOIN patients p ON v.pid = p.pid WHERE p.pid IS NULL",
        "SELECT v.pid IS NULL, COUNT(*) FROM patients p LEFT JOIN visits v ON v.pid = p.pid GROUP BY 1",
    )
    answers = []
    for rows in (0, 1000):
        with make(f"INSERT INTO visits SELECT NULL, 99 FROM range({rows})").connect() as con:
            answers.append([con.execute(sql, epsilon=10**5, delta="1e-12").rows for sql in sqls])
    for ours, theirs in zip(*answers, strict=True):
        for row, other in zip(ours, theirs, strict=True):
            assert all(a == b or abs(a - b) < 1 for a, b in zip(row, other, strict=True))
    assert answers[0][0] == ((4,),) and answers[0][4] == ((0,),)


# --- DECIMAL columns and NULL group keys -----------------------------------------------------------------------------

MONEY = (
    POLICY
    + """
  bills:
    unit: {column: pid}
    max_rows_per_unit: 2
    columns:
      pid: {type: bigint}
      price: {type: "decimal(18,3)", bounds: [-100, 100]}
      wide: {type: "decimal(38,10)"}
      word: {type: varchar}
"""
)


def test_probe_decimals_and_null_keys(make: Callable[..., Clinic]) -> None:
    """Sums of DECIMAL are exact and clipped; NULL is a key like any other, shown when enough units have it."""
    clinic = make(
        "CREATE TABLE bills (pid BIGINT, price DECIMAL(18,3), wide DECIMAL(38,10), word VARCHAR)",
        "INSERT INTO bills SELECT i, 0.125, 9999999999999999999999999999.9999999999, NULL FROM range(100, 200) r(i)",
        "INSERT INTO bills VALUES (1, 999999999999999.999, 1, 'lone'), (2, -999999999999999.999, -1, NULL), "
        "(3, NULL, NULL, NULL)",
        policy=MONEY,
    )
    with clinic.connect() as con:
        ((total,),) = con.execute("SELECT SUM(price) FROM bills WHERE pid > 2", epsilon=10**7).rows
        assert total == Decimal("12.5")
        ((total,),) = con.execute("SELECT SUM(price) FROM bills WHERE pid <= 2 AND price > 0", epsilon=10**7).rows
        assert total == 100
        with pytest.raises(dpsql.Rejected) as caught:
            con.execute("SELECT SUM(wide) FROM bills", epsilon=1)
        assert caught.value.diagnostics[0].code == "DP201"
        ((total,),) = con.execute("SELECT SUM(CLIP(wide * wide, 0, 1)) FROM bills", epsilon=10**6).rows
        assert abs(total - 102) < 1
        shown = con.execute("SELECT word, COUNT(*) FROM bills GROUP BY word", epsilon=10, delta="1e-12").rows
        assert len(shown) == 1 and shown[0][0] is None and abs(shown[0][1] - 102) < 20
        keys = con.execute("SELECT price, COUNT(*) FROM bills GROUP BY price", epsilon=10, delta="1e-12").rows
        assert [k for k, _ in keys] == [Decimal("0.125")]
        # Few have it: then neither NULL nor another key is shown.
        few = con.execute(
            "SELECT word, COUNT(*) FROM bills WHERE pid < 100 GROUP BY word", epsilon=1, delta="1e-12"
        ).rows
        assert few == ()


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
