"""Items 26 to 30: order, sampling and truncation, through whole sessions."""

from __future__ import annotations

import pytest

from tests.support.checklist_clinic import Attack, Clinic


@pytest.mark.parametrize(
    "inner",
    [
        "SELECT * FROM patients LIMIT 2",
        "SELECT * FROM patients ORDER BY age LIMIT 2",
        "SELECT * FROM patients OFFSET 1",
        "SELECT * FROM patients ORDER BY age",
        "(SELECT * FROM patients LIMIT 2)",
    ],
)
def test_item_26_no_limit_below_an_aggregate(attack: Attack, inner: str) -> None:
    attack.refused(f"SELECT COUNT(*) FROM ({inner})", "DP112", "DP101")
    attack.refused(f"WITH t AS ({inner}) SELECT SUM(age) FROM t", "DP112", "DP101")
    attack.refused(f"SELECT COUNT(*) FROM visits JOIN ({inner}) t USING (pid)", "DP112", "DP101")
    attack.refused(inner, "DP112", "DP110", "DP101")


def test_item_26_limits_of_released_rows_are_free(attack: Attack) -> None:
    rows = attack.answer("SELECT diag, COUNT(*) n FROM patients GROUP BY diag ORDER BY n DESC, diag LIMIT 1")
    assert rows == [("flu", 2)]


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT row_number() OVER () FROM patients",
        "SELECT COUNT(*) FROM (SELECT row_number() OVER () r FROM patients) WHERE r = 1",
        "SELECT COUNT(*) FROM (SELECT name FROM patients QUALIFY row_number() OVER () = 1)",
        "SELECT first(name) FROM patients",
        "SELECT last(name) FROM patients",
        "SELECT any_value(name) FROM patients",
        "SELECT arg_max(name, age) FROM patients",
        "SELECT arg_min(name, age) FROM patients",
        "SELECT mode(name) FROM patients",
        "SELECT list(name) FROM patients",
        "SELECT array_agg(name ORDER BY age) FROM patients",
        "SELECT string_agg(name, ',') FROM patients",
        "SELECT DISTINCT ON (diag) name FROM patients",
        "SELECT COUNT(*) FROM patients POSITIONAL JOIN pub",
        "SELECT COUNT(*) FROM patients ASOF JOIN pub ON patients.age >= pub.cost",
    ],
)
def test_item_27_nothing_depends_on_row_order(attack: Attack, sql: str) -> None:
    attack.refused(sql, "DP101", "DP105", "DP113", "DP118", "DP304")


@pytest.mark.parametrize(
    "column", ["rowid", "ctid", "_metadata", "filename", "file_row_number", "oid", '"rowid"', "patients.rowid"]
)
def test_item_27_no_pseudo_columns(attack: Attack, column: str) -> None:
    attack.refused(f"SELECT COUNT(*) FROM patients WHERE {column} = 2", "DP103", "DP102")
    attack.refused(f"SELECT COUNT(*) FROM pub WHERE {column} = 2", "DP103", "DP102")


@pytest.mark.parametrize(
    "clause", ["USING SAMPLE 10%", "TABLESAMPLE 10%", "TABLESAMPLE reservoir(2)", "USING SAMPLE 1 ROWS (system, 42)"]
)
def test_item_28_no_sampling(attack: Attack, clause: str) -> None:
    attack.refused(f"SELECT COUNT(*) FROM patients {clause}", "DP101", "DP010")


@pytest.mark.parametrize(
    "call",
    [
        "random()",
        "uuid()",
        "gen_random_uuid()",
        "setseed(0.5)",
        "get_current_time()",
        "nextval('s')",
        "txid_current()",
        "current_setting('threads')",
        "getvariable('x')",
        "version()",
        "current_user",
        "current_database()",
    ],
)
def test_item_29_no_volatile_functions(attack: Attack, call: str) -> None:
    attack.refused(f"SELECT COUNT(*) FROM patients WHERE {call} IS NOT NULL", "DP114", "DP105", "DP101")
    attack.refused(f"SELECT COUNT(*) FROM patients GROUP BY {call}", "DP114", "DP105", "DP101")
    attack.refused(f"SELECT {call}, COUNT(*) FROM patients", "DP114", "DP105", "DP101")


def test_item_30_the_salt_is_secret_and_the_ledgers(clinic: Clinic) -> None:
    with clinic.connect() as con:
        con.execute("SELECT COUNT(*) FROM visits", epsilon=1)
        salt = con.ledger.salt
        shown = con.sql("SELECT zip, COUNT(*) FROM visits JOIN patients USING (pid) GROUP BY zip").explain(
            1, 1e-3, engine_sql=True
        )
        assert salt > 2**32 and str(salt) not in shown + str(con.budget)
