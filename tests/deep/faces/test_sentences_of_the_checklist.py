"""Item 67: another parameter, policy or version of the data is another question."""

from __future__ import annotations

import contextlib
import math
import re
import sqlite3
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import pytest

import dpsql
from dpsql.core.noise import backends
from dpsql.core.release.noisy import exact_totals
from tests.planner.test_query_shapes import NEIGHBOURS
from tests.support.checklist_clinic import DELTA, POLICY, Attack, Clinic


def test_item_67_another_parameter_policy_or_data_version_is_another_question(make: Callable[..., Clinic]) -> None:
    """A stored answer is given for equal plans, parameters, policies and data versions, and for nothing else."""
    clinic = make()
    sql = f"{COUNT} WHERE age > ?"

    def paid(value: object) -> Fraction:
        with clinic.connect() as con:
            return con.execute(sql, parameters=[value], epsilon=1).spent.epsilon

    assert [paid(30), paid(30), paid(31), paid("30"), paid(30.5)] == [1, 0, 1, 0, 1]
    for old, new, price in (
        ("version: 1\n", 'version: 1\ndata_version: "2"\n', 1),
        ("bounds: [0, 110]", "bounds: [0, 111]", 0),  # which no clip of this question reads
        ("max_rows_per_unit: 3", "max_rows_per_unit: 4", 0),  # of a table that it does not read
    ):
        clinic.policy.write_text(clinic.policy.read_text().replace(old, new))
        assert [paid(30), paid(30)] == [price, 0], new


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


ZONED = "\n  zoned:\n    unit: {rows: 1}\n    columns:\n      z: {type: timestamptz}\n"


def test_item_55_no_key_is_a_moment(make: Callable[..., Clinic]) -> None:
    with make("CREATE TABLE zoned (z TIMESTAMPTZ)", policy=POLICY + ZONED).connect() as con:
        for sql in ("SELECT z, COUNT(*) FROM zoned GROUP BY 1", "SELECT DISTINCT z FROM zoned"):
            Attack(con).refused(sql, "DP301", "DP106", "DP101")


@pytest.mark.parametrize("policys", ["UTC", "Europe/Berlin"])
@pytest.mark.parametrize(
    "key", ["date_trunc('day', z)", "CAST(z AS DATE)", "CAST(z AS VARCHAR)", "hour(z)", "z AT TIME ZONE 'Asia/Tokyo'"]
)
def test_item_55_no_key_depends_on_a_sessions_time_zone(make: Callable[..., Clinic], key: str, policys: str) -> None:
    """What a statement groups by names the zone: the policy's, or the query's."""
    with make("CREATE TABLE zoned (z TIMESTAMPTZ)", policy=f"{POLICY}{ZONED}zone: {policys}\n").connect() as con:
        (release,) = (
            con.sql(f"SELECT {key} AS k, COUNT(*) AS n FROM zoned GROUP BY 1")
            .plan(epsilon="0.1", delta="1e-9")
            .releases
        )
        zone = "Asia/Tokyo" if "AT TIME ZONE" in key else policys
        texts = [statement.sql for statement in release.statements]
        assert texts and all(text.count("timezone(") == text.count(f"timezone('{zone}'") > 0 for text in texts)


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
