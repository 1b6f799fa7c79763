"""Questions about no rows on the command line and in the shell: columns without rows, at no charge, and why."""

from __future__ import annotations

import json
from pathlib import Path

from tests.support.command_line import Call, Clinic

NONE = "SELECT * FROM patients WHERE 0 = 1"
ZEROS = "SELECT region, COUNT(*) AS n FROM patients WHERE 1 <> 1 GROUP BY region ORDER BY region"
WHY = "0 = 1 is never true: no rows; nothing is read or charged for them"


def test_query(dpsql: Call, clinic: Clinic) -> None:
    done = dpsql("query", clinic.policy, NONE, "--format", "json")
    found = json.loads(done.out)
    assert done.status == 0 and found["rows"] == [] and "region" in found["columns"]
    assert {"rank": "remark", "text": WHY} in found["notes"]
    assert found["spent"]["epsilon"] == 0
    assert dpsql("query", clinic.policy, NONE, "--format", "csv").out.startswith("patient_id,")
    zeros = dpsql("query", clinic.policy, ZEROS, "--format", "csv")
    assert [line.split(",")[1] for line in zeros.out.splitlines()[1:]] == ["0"] * 4
    assert not clinic.ledger.exists()


def test_explain_and_check(dpsql: Call, clinic: Clinic, tmp_path: Path) -> None:
    done = dpsql("explain", clinic.policy, NONE)
    assert done.status == 0 and "cost: nothing: no rows are asked for" in done.out and WHY in done.out
    (tmp_path / "probe.sql").write_text(f"{NONE};\n{ZEROS};\nSELECT * FROM patients LIMIT 0;\n", encoding="utf-8")
    assert dpsql("check", "--policy", clinic.policy, tmp_path / "probe.sql").status == 0
    (tmp_path / "probe.sql").write_text("SELECT * FROM patients LIMIT 1;\n", encoding="utf-8")
    assert "DP110" in dpsql("check", "--policy", clinic.policy, tmp_path / "probe.sql").out


def test_shell(dpsql: Call, clinic: Clinic) -> None:
    done = dpsql("shell", clinic.policy, stdin=f"{NONE};\nEXPLAIN {NONE};\n\\d public.patients\n".encode())
    assert done.status == 0 and "(0 rows)" in done.out and "spent nothing" in done.out
    assert done.out.count(WHY) == 2 and "patients: unit patient: all rows of one patient_id" in done.out
    assert not clinic.ledger.exists()
