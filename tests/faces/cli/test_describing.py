"""DESCRIBE, SHOW TABLES and SUMMARIZE: answered from the policy alone, for nothing, wherever a query can be asked."""

from __future__ import annotations

from pathlib import Path

import pytest

import dpsql
from dpsql.core.ir.nodes import Values
from dpsql.diagnostics.diagnostic import Source
from dpsql.policy.load import load_policy
from dpsql.service.checks.check import static_plan
from tests.support.canary import CANARY
from tests.support.command_line import Call, Clinic

POLICIES = Path(__file__).resolve().parents[2] / "fixtures" / "policies"
STATEMENTS = [
    "SHOW TABLES",
    "show all tables;",
    "DESCRIBE",
    "DESCRIBE patients",
    "DESC TABLE visits -- whose",
    'DESCRIBE "Patients";',
    "SUMMARIZE visits",
    "SUMMARIZE icd10",
    "DESCRIBE SELECT * FROM patients",
    "DESCRIBE WITH v AS (SELECT * FROM visits) SELECT day, COUNT(*) AS n FROM v GROUP BY day",
]


@pytest.fixture
def call(request: pytest.FixtureRequest) -> Call:
    """The command line; `dpsql` is the package here."""
    found: Call = request.getfixturevalue("dpsql")
    return found


@pytest.mark.parametrize("sql", STATEMENTS)
def test_it_costs_nothing_reads_nothing_and_is_the_same_everywhere(call: Call, clinic: Clinic, sql: str) -> None:
    done = call("query", clinic.policy, sql, "--format", "csv")
    assert done.status == 0 and "spent nothing" in done.err and CANARY not in done.out
    assert call("shell", clinic.policy, "-c", sql, "--csv").out == done.out
    assert dpsql.check(sql, clinic.policy) == []
    assert not clinic.ledger.exists()


def test_the_columns_are_those_of_duckdb(clinic: Clinic) -> None:
    with dpsql.connect(clinic.policy) as con:
        cursor = con.execute("DESCRIBE patients")
        assert cursor.columns == ("column_name", "column_type", "null", "key", "default", "extra")
        assert [row[0] for row in cursor.fetchall()] == list(con.policy.tables["patients"].columns)
        release = con.sql("DESCRIBE patients").run()
        assert release.spent == dpsql.PrivacyLoss()
        assert {row[0]: row[5] for row in release.rows}["age"] == "bounds [0, 110]"
        assert release.notes[0] == "patients: unit patient: all rows of one patient_id, add_remove"
        assert [row[0] for row in con.sql("SHOW TABLES").run().rows] == list(con.tables)
        assert con.budget.spent == dpsql.PrivacyLoss()


def test_the_rows_of_a_query_are_described_as_they_come_out(clinic: Clinic) -> None:
    sql = "SELECT region, COUNT(*) AS n, AVG(age) AS a FROM patients WHERE age < ? GROUP BY region"
    with dpsql.connect(clinic.policy, epsilon=0.1) as con:
        shown = con.sql(f"DESCRIBE {sql}", [50]).run()
        plan = con.plan(sql, [50])
        assert [(row[0], row[1]) for row in shown.rows] == [(c.name, c.type.name) for c in plan.columns]
        assert shown.spent == dpsql.PrivacyLoss()


@pytest.mark.parametrize("name", ["clinic", "flights", "shop", "takings"])
def test_what_a_summary_says_can_be_asked_is_planned(name: str) -> None:
    policy = load_policy(POLICIES / f"{name}.yaml")
    for table in policy.tables.values():
        if not table.columns:
            continue
        tree = static_plan(Source(f"SUMMARIZE {table.name}"), policy).tree.node
        assert isinstance(tree, Values)
        for row in tree.rows:
            codes = {d.code for d in dpsql.check(str(row[-1]), policy) if d.severity == "error"}
            assert codes <= {"DP211", "DP005"}, (row, codes)  # no limit of rows, which only the custodian can repair


@pytest.mark.parametrize(
    ("sql", "code", "helped"),
    [
        ("DESCRIBE patint", "DP102", "did you mean patients?"),
        ("SUMMARIZE nobody", "DP102", "tables of the policy"),
        ("DESCRIBE 'people.csv'", "DP012", "DESCRIBE table"),
        ("SUMMARIZE SELECT * FROM patients", "DP012", "SUMMARIZE table"),
        ("SHOW DATABASES", "DP012", "SHOW TABLES"),
        ("DESCRIBE patients; SELECT 1", "DP011", "one SELECT at a time"),
        ("DESCRIBE SELECT nothing FROM patients", "DP103", ""),
    ],
)
def test_what_is_refused(sql: str, code: str, helped: str) -> None:
    (found,) = dpsql.check(sql, POLICIES / "clinic.yaml")
    assert found.code == code and any(helped in text for text in (*found.help, ""))


def test_what_has_nothing_to_show_is_shown_without_rows(call: Call, tmp_path: Path) -> None:
    top = "version: 1\nname: bare\nbudgets: {total: {epsilon: 1}}\n"
    bare, counted = tmp_path / "bare.yaml", tmp_path / "counted.yaml"
    bare.write_text(f"{top}tables: {{}}\n")
    counted.write_text(f"{top}tables: {{t: {{unit: {{rows: 1}}, columns: {{}}}}}}\n")
    shown = call("query", bare, "SHOW TABLES")
    assert shown.status == 0 and "(0 rows)" in shown.out, shown.err
    for sql in ("DESCRIBE t", "SUMMARIZE t"):
        found = static_plan(Source(sql), load_policy(counted))
        assert isinstance(found.tree.node, Values) and found.tree.node.rows == ()
        assert any("only COUNT(*) can be asked" in note for note in found.notes)


def test_a_value_that_nothing_asks_for_is_refused() -> None:
    (found,) = dpsql.check("DESCRIBE patients", POLICIES / "clinic.yaml", [7])
    assert found.code == "DP013"
