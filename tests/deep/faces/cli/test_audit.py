"""`dpsql audit`: exit codes, what it prints, and that it neither reads private rows nor charges anything."""

from __future__ import annotations

import json
from fractions import Fraction

import pytest

from dpsql.core.noise.backends import ExactBackend
from dpsql.engines.duckdb.engine import DuckDBEngine
from tests.support.command_line import Call, Clinic

TOWNS = "SELECT town, COUNT(*) AS n FROM patients GROUP BY town"
CHAPTERS = "SELECT chapter, COUNT(*) AS n FROM visits JOIN icd10 USING (code) GROUP BY chapter"


@pytest.fixture(autouse=True)
def rarer_false_alarms(monkeypatch: pytest.MonkeyPatch) -> None:
    """Once in 1e12 audits instead of once in 1e6, which would be seen in a suite that runs every day."""
    monkeypatch.setattr("dpsql.faces.audit.run_audit.FALSE_ALARM", 1e-12)


def test_a_correct_build_is_not_refuted(dpsql: Call, clinic: Clinic) -> None:
    done = dpsql("audit", clinic.policy, TOWNS)
    assert done.status == 0 and done.err == ""
    lines = done.out.splitlines()
    assert lines[0] == f"audit of: {TOWNS}"
    assert lines[1].startswith("claimed: ε 1 δ 0.036") and "one patient" not in lines[1]
    assert any(line.startswith("  keys of one side alone  ") for line in lines)
    assert lines[-1].startswith("not refuted with 10,000 runs")


def test_a_broken_build_is_refuted(dpsql: Call, clinic: Clinic, monkeypatch: pytest.MonkeyPatch) -> None:
    laplace = ExactBackend.laplace
    monkeypatch.setattr(ExactBackend, "laplace", lambda self, scale, n: laplace(self, scale * Fraction(1, 2), n))
    done = dpsql("audit", clinic.policy, TOWNS)
    assert done.status == 1 and done.err == ""
    assert "REFUTED: the whole query: ε ≥ 1." in done.out
    assert "only in one of them: patients (1, " in done.out
    assert done.out.splitlines()[-1].startswith("refuted;")


def test_json(dpsql: Call, clinic: Clinic) -> None:
    done = dpsql("audit", clinic.policy, TOWNS, "--format", "json", "--runs", "2000", "--epsilon", "0.5")
    found = json.loads(done.out)
    assert done.status == 0 and found["refuted"] is False and found["runs"] == 2000
    assert found["claimed"]["patient"]["epsilon"] == 0.5
    assert found["shapes"] == ["direct"] and found["not_reached"] == found["violations"] == found["mispriced"] == []
    whole, keys = found["tested"]
    assert whole["quantity"] == "epsilon" and whole["certified"] < whole["claimed"] == 0.5
    assert keys["quantity"] == "delta" and keys["rarely"] == 0 < keys["often"]
    assert list(whole["databases"]["only_in_one"]) == ["patients"]


def test_json_tells_how_far_each_component_moves(dpsql: Call, clinic: Clinic) -> None:
    done = dpsql("audit", clinic.policy, "SELECT COUNT(*), SUM(age) FROM patients", "--format", "json", "--runs", "500")
    whole, *components = json.loads(done.out)["tested"]
    assert whole["moved"] is None and len(components) == 2
    assert [c["moved"] for c in components] == [c["stated"] for c in components]


def test_no_private_row_is_read_and_nothing_is_charged(
    dpsql: Call, clinic: Clinic, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    original = DuckDBEngine.fetch

    def watched(self: DuckDBEngine, sql: str) -> object:
        if self._locked:  # the custodian's data; the made-up database is a connection that was passed in
            asked.append(sql)
        return original(self, sql)

    monkeypatch.setattr(DuckDBEngine, "fetch", watched)
    assert dpsql("audit", clinic.policy, CHAPTERS, "--runs", "500").status == 0
    assert len(asked) == 1 and '"data"."main"."icd10"' in asked[0] and asked[0].count('"data"') == 1
    assert not clinic.ledger.exists()


def test_without_data_public_tables_are_made_up(dpsql: Call, clinic: Clinic) -> None:
    text = (clinic.folder / "clinic.yaml").read_text(encoding="utf-8")
    without = clinic.folder / "without.yaml"
    lines = [line if not line.startswith("database:") else "database: nowhere.duckdb" for line in text.splitlines()]
    without.write_text("\n".join(lines).replace(
        "    unique: [[code]] ",
        "    columns: {code: {type: varchar, nullable: false}, chapter: {type: varchar}}\n    unique: [[code]] ",
    ), encoding="utf-8")  # fmt: skip
    done = dpsql("audit", without, CHAPTERS, "--runs", "500")
    assert done.status == 0 and "note: public tables made up: icd10" in done.out


def test_a_query_of_public_data_has_nothing_to_test(dpsql: Call, clinic: Clinic) -> None:
    done = dpsql("audit", clinic.policy, "SELECT COUNT(*) FROM icd10")
    assert done.status == 0 and "nothing was tested" in done.out


@pytest.mark.parametrize(
    ("arguments", "status", "code"),
    [
        (["SELECT town FROM patients"], 4, "DP110"),
        (["SELECT COUNT("], 3, "DP010"),
        (["SELECT COUNT(*) FROM visits", "--runs", "5"], 2, "DP903"),
        (["SELECT COUNT(*) FROM visits", "--runs", "many"], 2, "DP903"),
        (["SELECT COUNT(*) FROM visits", "--epsilon", "0"], 2, "DP406"),
        (["SELECT COUNT(*) FROM visits", "--epsilon", "nan"], 2, "DP406"),
        (["SELECT COUNT(*) FROM visits", "--delta", "1"], 2, "DP406"),
        (["SELECT COUNT(*) FROM visits", "--seed", "1"], 2, "DP903"),
        ([TOWNS, "--delta", "0"], 4, "DP402"),
        ([], 2, "DP903"),
        (["-f", "missing.sql"], 2, "DP903"),
    ],
)
def test_what_cannot_be_audited(dpsql: Call, clinic: Clinic, arguments: list[str], status: int, code: str) -> None:
    done = dpsql("audit", clinic.policy, *arguments)
    assert (done.status, done.codes) == (status, {code}) and done.out == ""


def test_a_policy_that_is_not_there(dpsql: Call) -> None:
    assert dpsql("audit", "nothing.yaml", "SELECT 1").status == 2
