"""Sentences of the checklist that no other file of this folder asserts, one test for each."""

from __future__ import annotations

import contextlib
import math
import re
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

import dpsql
from dpsql.core.noise import backends
from dpsql.core.release.noisy import exact_totals
from tests.planner.test_query_shapes import NEIGHBOURS
from tests.support.checklist_clinic import DELTA, POLICY, Attack, Clinic

COUNT = "SELECT COUNT(*) FROM patients"
DRAWING = re.compile(r"\b(random|uuid\w*|setseed|now|today|nextval|current_\w+|tablesample|using\s+sample)\b", re.I)


def test_item_01_no_engine_sql_draws_anything(attack: Attack) -> None:
    """Not for noise, not for truncation: the SQL of every shape is a function of rows and of the salt."""
    seen = 0
    for sql in NEIGHBOURS:
        try:
            plan = attack.con.sql(sql).plan(epsilon=1, delta=DELTA)
        except dpsql.Rejected:
            continue
        for release in plan.releases:
            for statement in release.statements:
                bare = re.sub(r"'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"", "''", statement.sql)
                assert not DRAWING.search(bare), bare
                seen += 1
    assert seen > 20 and DRAWING.search("SELECT Random() FROM t") and DRAWING.search("FROM t TABLESAMPLE 1%")


@pytest.mark.parametrize("poison", ["'NaN'", "'inf'"])
def test_item_02_opendp_is_given_integers_alone(make: Callable[..., Clinic], poison: str) -> None:
    """Its mechanisms over floating-point numbers take NaN for 0 without a word: they are never made."""
    source = Path(backends.__file__).read_text(encoding="utf-8")
    assert (
        set(re.findall(r'atom_domain\(T="(\w+)"', source)) == {"i64"} == set(re.findall(r'_domain.*T="(\w+)"', source))
    )
    policy = POLICY.replace("name: clinic\n", "name: clinic\nnoise: opendp\n")
    with make(f"UPDATE patients SET income = {poison} WHERE pid = 2", policy=policy).connect() as con:
        ((total, mean, n),) = con.execute(
            "SELECT SUM(income), AVG(income), COUNT(income) FROM patients", epsilon=10**6
        ).rows
        assert math.isclose(total, 80000, abs_tol=50) and math.isclose(mean, 40000, abs_tol=50) and n == 2


def test_item_03_neither_threads_nor_the_order_of_rows_move_a_sum(make: Callable[..., Clinic]) -> None:
    """One large number among many small ones, forwards and backwards: as a sum of DOUBLEs these differ by 10⁶."""
    policy = POLICY.replace("value: {type: double, bounds: [0, 10]}", f"value: {{type: double, bounds: [0, {2**54}]}}")
    sql = "SELECT SUM(value), AVG(value), VAR_POP(value) FROM events"
    found = []
    for order in ("i", "-i"):
        clinic = make(
            "DELETE FROM events",
            f"INSERT INTO events (kind, value) SELECT 'k', CASE i WHEN 0 THEN {2**54} ELSE 2.0 ** (i % 53) END "
            f"FROM range(200000) r(i) ORDER BY {order}",
            policy=policy,
        )
        for threads in (1, 4):
            with clinic.connect(threads=threads) as con:
                plan = con.sql(sql).plan(epsilon=1)
                found.append([exact_totals(r, con.service.engine, 5) for r in plan.releases])
    assert found[0] == found[1] == found[2] == found[3]
    assert any(abs(n) > 10**6 for totals in found[0] for row in totals.values() for n in row)


def test_item_11_statistics_of_nobody_are_numbers(make: Callable[..., Clinic]) -> None:
    """A variance over no rows would be NULL, which says so: it is a number within its bounds, as over any rows."""
    sql = (
        "SELECT diag, VAR_POP(age) v, STDDEV_POP(income) s, AVG(age) a, SUM(age) FILTER (WHERE age > 1) f "
        "FROM patients GROUP BY diag"
    )
    for private in (True, False):
        with make(private=private).connect() as con:
            for _ in range(3):
                for _, variance, deviation, mean, total in con.execute(sql, epsilon="0.1", fresh=True).rows:
                    assert 0 <= variance <= 55**2 and 0 <= deviation <= 50_000
                    assert 0 <= mean <= 110 and math.isfinite(total)


def test_item_51_a_list_is_cut_to_the_length_that_is_declared(make: Callable[..., Clinic]) -> None:
    """Fifty elements where three are declared; without a declaration nothing bounds them, and it is refused."""
    lists = (
        "\n  lists:\n    unit: {column: pid}\n    max_rows_per_unit: 3\n    columns:\n      pid: {type: bigint}\n"
        "      tags: {type: 'varchar[]', max_length: 3}\n      free: {type: 'varchar[]'}\n"
    )
    made = (
        "CREATE TABLE lists (pid BIGINT, tags VARCHAR[], free VARCHAR[])",
        "INSERT INTO lists SELECT i, [('k' || j) for j in range(50)], ['x'] FROM range(4) r(i)",
        "INSERT INTO lists VALUES (9, NULL, NULL), (NULL, ['a'], NULL)",
    )
    with make(*made, policy=POLICY + lists).connect() as con:
        hostile = Attack(con)
        sql = "SELECT COUNT(*) FROM lists, UNNEST(tags) AS u(tag)"
        assert hostile.sensitivities(sql) == [(3, 3)]
        assert hostile.answer(sql) == [(12,)]
        for form in ("lists, UNNEST(free) AS u(tag)", "(SELECT pid, unnest(free) AS tag FROM lists)"):
            hostile.refused(f"SELECT COUNT(*) FROM {form}", "DP210")


@pytest.mark.parametrize(
    "key",
    ["z", "date_trunc('day', z)", "CAST(z AS DATE)", "CAST(z AS VARCHAR)", "hour(z)", "z AT TIME ZONE 'Asia/Tokyo'"],
)
def test_item_55_no_key_depends_on_a_time_zone(make: Callable[..., Clinic], key: str) -> None:
    zoned = "\n  zoned:\n    unit: {rows: 1}\n    columns:\n      z: {type: timestamptz}\n"
    with make("CREATE TABLE zoned (z TIMESTAMPTZ)", policy=POLICY + zoned).connect() as con:
        Attack(con).refused(f"SELECT {key}, COUNT(*) FROM zoned GROUP BY 1", "DP301", "DP106", "DP101")
        Attack(con).refused(f"SELECT DISTINCT {key} FROM zoned", "DP301", "DP106", "DP101")


@pytest.mark.parametrize("budget", [".nan", ".inf", "-.inf", "-1", "true", '"x"', "[1]", "1/0"])
def test_item_64_a_budget_is_a_finite_number(tmp_path: Path, budget: str) -> None:
    """NaN is below no limit and above none: as a total it would let everything pass."""
    for policy in (
        POLICY.replace("epsilon: 1000000000", f"epsilon: {budget}"),
        POLICY.replace("delta: 0.9}}", f"delta: {budget}}}}}"),
        POLICY.replace("delta: 0.9}}", f"delta: 0.9}}, analysts: {{ana: {{epsilon: {budget}, delta: 0.1}}}}}}"),
    ):
        (tmp_path / "clinic.yaml").write_text(policy)
        with pytest.raises(dpsql.CannotOpen) as caught:
            dpsql.connect(tmp_path / "clinic.yaml")
        assert {d.code for d in caught.value.diagnostics} <= {"DP001", "DP003"}, caught.value


def test_item_65_a_ledger_serves_one_policy_and_no_entry_is_changed(make: Callable[..., Clinic]) -> None:
    """Another policy's name on the same file, and an entry whose charge or text was edited, are refused."""
    clinic = make()
    with clinic.connect() as con:
        con.execute(COUNT, epsilon=2)
    other = POLICY.replace("name: clinic\n", "name: other\n")
    clinic.policy.write_text(other)
    with clinic.connect() as con, pytest.raises(dpsql.Error) as caught:
        con.execute(COUNT, epsilon=1)
    assert "DP407" in str(caught.value) and "clinic" in str(caught.value)
    clinic.policy.write_text(POLICY)
    ledger = clinic.folder / "spent.sqlite"
    kept = ledger.read_bytes()
    for edit in (
        "UPDATE entries SET charges = replace(charges, '\"2\"', '\"1\"')",
        "UPDATE entries SET analyst = 'eve'",
        "UPDATE entries SET answers = '[]'",
        "UPDATE entries SET statement = ''",
        "DELETE FROM entries",
    ):
        with contextlib.closing(sqlite3.connect(ledger)) as file, file:
            for (trigger,) in file.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
                file.execute(f"DROP TRIGGER {trigger}")
            assert file.execute(edit).rowcount == 1
        with clinic.connect() as con, pytest.raises(dpsql.Error) as caught:
            con.execute(COUNT, epsilon=1)
        assert "DP407" in str(caught.value), edit
        ledger.write_bytes(kept)
    with clinic.connect() as con:  # the twin: unchanged it serves
        con.execute(COUNT, epsilon=1, fresh=True)


@pytest.mark.parametrize(
    "sql",
    [
        "FROM patients",
        "TABLE patients",
        "FROM patients SELECT name",
        "WITH RECURSIVE t(n) USING KEY (n) AS (SELECT pid FROM visits UNION SELECT n FROM t) SELECT COUNT(*) FROM t",
        "MERGE INTO patients USING visits ON patients.pid = visits.pid WHEN MATCHED THEN DELETE",
        "SET VARIABLE x = (SELECT MAX(age) FROM patients)",
        "SET search_path = 'x'",
        "DESCRIBE SELECT name FROM patients",
        "SUMMARIZE SELECT name FROM patients",
        "SELECT COUNT(COLUMNS(*)) FROM patients",
        "SELECT SUM(COLUMNS('a.*')) FROM patients",
        "SELECT list_transform([age], lambda x: x) FROM patients",
        "SELECT [x for x in [age]] FROM patients",
        "SELECT COUNT(*) FROM patients, LATERAL (SELECT * FROM visits WHERE visits.pid = patients.pid)",
        "SELECT COUNT(*) FROM patients WHERE age::VARIANT IS NULL",
        "SELECT union_value(k := age) FROM patients",
        "SELECT MAP {1: age}[1] FROM patients",
        "SELECT COUNT(*) FROM patients WHERE name SIMILAR TO '.*'",
        "SELECT COUNT(*) FROM patients GROUP BY #1",
        "SELECT COUNT(*) FROM (SELECT * FROM patients LIMIT 50%)",
        "SELECT COUNT(*) FROM patients WHERE TRY(error('x')) IS NULL",
        "SELECT COUNT(*) FROM patients ANTI JOIN visits ON TRUE",
        "SELECT COUNT(*) FROM (patients CROSS JOIN visits)",
        "SELECT COUNT(*) FROM patients WHERE age <> ALL (SELECT age FROM grid)",
    ],
)
def test_item_38_rare_syntax_over_private_rows_is_refused(attack: Attack, sql: str) -> None:
    attack.refused(sql, "DP010", "DP012", "DP101", "DP105", "DP106", "DP110", "DP111", "DP118", "DP230")
