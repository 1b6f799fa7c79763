"""Probes of rivals that need much data: rows that fail, views, NaNs, files."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path

import duckdb
import pytest

import dpsql
from tests.support.checklist_clinic import DELTA, POLICY, Call, Clinic

Command = Callable[..., Call]


# --- errors and failing casts ----------------------------------------------------------------------------------------

FAILING = ("CAST(zip AS INTEGER)", "zip::DATE", "CAST(income AS TINYINT)", "CAST(big AS INTEGER)", "1 // (age - 50)",
           "big * big * big", "CAST(zip AS DOUBLE)", "ln(age - 50)", "sqrt(-income)",
           "CAST(zip AS BOOLEAN)")  # fmt: skip


@pytest.mark.parametrize("expression", FAILING)
def test_probe_what_fails_on_one_row_fails_on_none(make: Callable[..., Clinic], expression: str) -> None:
    """In each clause that reads rows, with bob and without: an answer, never an error."""
    typed = f"CAST({expression} AS VARCHAR)"
    for statements in ((), ("DELETE FROM patients WHERE name = 'bob'",)):
        with make(*statements).connect() as con:
            for sql in (
                f"SELECT COUNT({expression}) FROM patients",
                f"SELECT COUNT(*) FROM patients WHERE {expression} IS NOT NULL",
                f"SELECT COUNT(*) FILTER (WHERE {expression} IS NULL) FROM patients",
                f"SELECT COUNT(DISTINCT {typed}) FROM patients",
                f"SELECT {typed}, COUNT(*) FROM patients GROUP BY 1",
                f"SELECT SUM(CASE WHEN {expression} IS NULL THEN 1 ELSE 0 END) FROM patients",
                f"SELECT COUNT(*) FROM patients JOIN (SELECT diag AS d FROM grid) AS g ON {typed} = d",
                f"SELECT COUNT(*) FROM (SELECT pid, {expression} AS x FROM patients) WHERE x IS NOT NULL",
                f"SELECT COUNT(*) FROM visits SEMI JOIN (SELECT pid FROM patients WHERE {expression} IS NULL) "
                "USING (pid)",
            ):
                assert con.execute(sql, epsilon=1, delta="1e-12", fresh=True).spent.epsilon == 1, sql


# --- what the policy does not name -----------------------------------------------------------------------------------


def test_probe_views_nobody_registered(make: Callable[..., Clinic], dpsql_command: Command) -> None:
    """A view or macro over private rows is no table of the policy, in whosever connection it is."""
    made = (
        "CREATE VIEW everyone AS SELECT * FROM patients",
        "CREATE MACRO all_rows() AS TABLE SELECT * FROM patients",
        "CREATE SCHEMA s",
        "CREATE VIEW s.pub AS SELECT name AS diag, income AS cost FROM patients",
        "CREATE TABLE copied AS SELECT * FROM patients",
    )
    clinic = make(*made)
    names = ("everyone", "all_rows()", "s.pub", "copied", "main.everyone", '"everyone"')
    for name in names:
        for sql in (f"SELECT * FROM {name}", f"SELECT COUNT(*) FROM {name}"):
            call = dpsql_command("query", clinic.policy, sql, "--epsilon", "1")
            assert call.status == 4 and re.search(r"error\[DP10[12]\]", call.err) and call.out == "", call.err
    with duckdb.connect(str(clinic.folder / "d.duckdb")) as mine:
        mine.execute("CREATE TEMP VIEW pub AS SELECT name AS diag, income AS cost FROM patients")
        mine.execute("CREATE TEMP VIEW mine AS SELECT * FROM patients")
        with dpsql.connect(mine, policy=clinic.policy, optimizers="ours") as con:
            assert sorted(con.execute("SELECT diag FROM pub", epsilon=1).rows) == [("flu",), ("flu",), ("rare",)]
            with pytest.raises(dpsql.Rejected):
                con.execute("SELECT COUNT(*) FROM mine", epsilon=1)


# --- rows with NaN, far numbers, nobody's rows -----------------------------------------------------------------------

STATISTICS = ("SUM(income)", "AVG(income)", "COUNT(income)", "VAR_POP(income)", "STDDEV_SAMP(income)",
              "SUM(income * 2 - 1)", "COUNT(DISTINCT income)", "SUM(CLIP(income, 10, 20))")  # fmt: skip


@pytest.mark.parametrize("value", ["'NaN'", "'inf'", "'-inf'"])
def test_probe_one_nan_row_poisons_nothing(make: Callable[..., Clinic], value: str) -> None:
    """Each statistic stays finite and as far from the truth without that row as one row may move it."""
    with make("UPDATE patients SET income = NULL WHERE pid = 2").connect() as con:
        truth = [con.execute(f"SELECT {s} FROM patients", epsilon=10**6).rows[0][0] for s in STATISTICS]
    with make(f"UPDATE patients SET income = {value} WHERE pid = 2").connect() as con:
        for statistic, expected in zip(STATISTICS, truth, strict=True):
            ((found,),) = con.execute(f"SELECT {statistic} FROM patients", epsilon=10**6).rows
            assert math.isfinite(found)
            slack = 1 if statistic == "COUNT(DISTINCT income)" else 10**6 if "VAR" in statistic else 50
            assert abs(found - expected) <= slack, statistic


# --- one file under two names ---------------------------------------------------------------------------------------

TWICE = """
version: 1
name: twice
tables:
  people:
    source: read_parquet('p.parquet')
    unit: {rows: 1}
    columns: {name: {type: varchar}}
  again:
    source: SOURCE
    unit: {rows: 1}
    columns: {name: {type: varchar}}
budgets: {total: {epsilon: 10}}
"""


@pytest.mark.parametrize("path", ["p.parquet", "./p.parquet", "x/../p.parquet"])
def test_item_66_one_file_has_one_budget(tmp_path: Path, path: str) -> None:
    """Read under a second name it would be public, or have a budget of its own."""
    duckdb.execute(f"COPY (SELECT 'bob' AS name) TO '{tmp_path}/p.parquet'")
    duckdb.execute(f"COPY (SELECT 'bob' AS name) TO '{tmp_path}/q.parquet'")
    policy = tmp_path / "twice.yaml"
    text = TWICE.replace("SOURCE", f"read_parquet('{path}')")
    for second in (text, "public: true".join(text.rsplit("unit: {rows: 1}", 1))):
        policy.write_text(second)
        with pytest.raises(dpsql.CannotOpen) as caught:
            dpsql.connect(policy)
        assert caught.value.diagnostics[0].code == "DP003" and "one unit" in str(caught.value)
    for fine in (
        text.replace("{rows: 1}", "{column: name}\n    max_rows_per_unit: 1"),
        TWICE.replace("SOURCE", "read_parquet('q.parquet')"),
    ):
        policy.write_text(fine)  # the twin: the same unit, or another file
        with dpsql.connect(policy, ledger=":memory:") as con:
            con.execute("SELECT COUNT(*) FROM people", epsilon=1)
            budgets = con.budget
        assert len(budgets) == (1 if "column: name" in fine else 2)


# --- files without a schema ------------------------------------------------------------------------------------------

FILES = """
version: 1
name: files
tables:
  people:
    source: SOURCE
    unit: {rows: 1}
    columns: {name: {type: varchar}, code: {type: varchar}}
budgets: {total: {epsilon: 1000000}}
"""
TOLD = "columns = {'name': 'VARCHAR', 'code': 'VARCHAR'}"


@pytest.mark.parametrize(
    ("file", "sources"),
    [
        ("p.csv", ("read_csv('p.csv')", "read_csv('p.csv', header = true)", f"read_csv('p.csv', header = true, {TOLD})",
                   f"read_csv('p.csv', header = true, auto_detect = true, {TOLD})",
                   "read_csv('p.csv', auto_detect = false, header = true)", "read_csv('p.csv', all_varchar = true)")),
        ("p.json", ("read_json('p.json')", "read_json('p.json', sample_size = -1)",
                    f"read_json('p.json', auto_detect = true, {TOLD})")),
    ],
)  # fmt: skip
def test_probe_no_row_decides_what_a_file_looks_like(tmp_path: Path, file: str, sources: tuple[str, ...]) -> None:
    """All codes are numbers, until one row is added: a guessed type, and so the session, would depend on that row."""
    policy = tmp_path / "files.yaml"
    for source in sources:
        policy.write_text(FILES.replace("SOURCE", f'"{source}"'))
        with pytest.raises(dpsql.CannotOpen) as caught:
            dpsql.connect(policy)
        assert caught.value.diagnostics[0].code == "DP003" and "one row" in str(caught.value)
        policy.write_text(FILES.replace("SOURCE", f'"{source}"').replace("unit: {rows: 1}", "public: true"))
        dpsql.check("SELECT COUNT(*) FROM people", policy)  # the twin: what is public may be guessed
    told = f"read_csv('p.csv', auto_detect = false, header = true, {TOLD})"
    told = told if file == "p.csv" else f"read_json('p.json', {TOLD})"
    policy.write_text(FILES.replace("SOURCE", f'"{told}"'))
    shown, counts = [], []
    for codes in (("1", "2"), ("1", "2", "x"), ("1",), ()):
        if file == "p.csv":
            (tmp_path / file).write_text("name,code\n" + "".join(f"n,{c}\n" for c in codes))
        else:
            (tmp_path / file).write_text("".join(f'{{"name": "n", "code": "{c}"}}\n' for c in codes))
        with dpsql.connect(policy, ledger=":memory:") as con:
            query = con.sql("SELECT COUNT(*), COUNT(CAST(code AS INTEGER)) FROM people")
            shown.append(query.explain(1))
            counts.append(query.run(epsilon=1000, fresh=True).rows[0])
    assert len(set(shown)) == 1
    assert counts == [(2, 2), (3, 2), (1, 1), (0, 0)]


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


@pytest.mark.filterwarnings("ignore:.*are shown from:dpsql.UtilityWarning")
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
