"""`dpsql query` and `dpsql budget`: accounts, caps, other ledgers and older ones."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from tests.faces.cli.test_query import COUNT, REGIONS, spent
from tests.support.command_line import Call, Clinic


def test_a_largest_error_in_place_of_an_epsilon(dpsql: Call, clinic: Clinic) -> None:
    wish = ("--max-error", "n=30", "--confidence", "0.9")
    told = dpsql("explain", clinic.policy, REGIONS, *wish)
    first = told.out.splitlines()[0]
    assert told.status == 0 and first.startswith("epsilon 0.") and first.endswith(" for n ± 30 at 90 %")
    done = dpsql("query", clinic.policy, REGIONS, *wish, "--format", "json")
    spent = json.loads(done.out)["spent"]["epsilon"]
    assert done.status == 0 and 0 < spent <= float(first.split()[1]) < spent * 1.001
    intervals = json.loads(done.out)["intervals"]
    assert all(high - low <= 60 for row in intervals for low, high in [row["n"]])
    table = dpsql("query", clinic.policy, REGIONS, *wish)
    assert table.out.count("± 30 ") == 4 and "; ± at 90 %" in table.out
    usual = json.loads(dpsql("query", clinic.policy, REGIONS, "--epsilon", "0.01", "--format", "json").out)["intervals"]
    assert all(high - low > 60 for row in usual for low, high in [row["n"]])
    as_json = json.loads(dpsql("explain", clinic.policy, REGIONS, *wish, "--format", "json").out)
    assert as_json["max_error"] == {"n": 30} and as_json["confidence"] == 0.9
    errors = {c["name"]: c["expected_error"] for c in as_json["releases"][0]["components"]}
    assert 30 < errors["COUNT(*)"] <= 40  # EXPLAIN's own ± is at 95 %


def test_the_budget_runs_out(dpsql: Call, clinic: Clinic) -> None:
    """Three times 0.9 of 3 fit, a fourth does not; what is left can be spent to the last."""
    ask = ("query", clinic.policy, COUNT, "--analyst", "ana", "--fresh", "--epsilon")
    assert [dpsql(*ask, "0.9").status for _ in range(3)] == [0, 0, 0]
    refused = dpsql(*ask, "0.9")
    assert refused.status == 5 and refused.codes == {"DP404"} and refused.out == ""
    assert "ε 0.9 asked, 0.3 left" in refused.err and "use epsilon = 0.3 or less" in refused.err
    assert "nothing was run and nothing was spent" in refused.err
    assert "max_error" not in refused.err
    assert dpsql(*ask, "0.30000000000000000001").status == 5
    planned = dpsql(*ask[:-1], "--max-error", "n=1")
    assert planned.status == 5 and "= help: allow a larger max_error, or give in its place" in planned.err
    done = dpsql(*ask, "0.3")
    assert done.status == 0 and "left ε 0 δ 1e-7" in done.out
    assert dpsql(*ask, "1e-9").status == 5
    assert dpsql("query", clinic.policy, COUNT, "--epsilon", "0.1").status == 0  # the shared account has its own


def test_the_total_holds_for_all_analysts_together(dpsql: Call, clinic: Clinic) -> None:
    clinic.change("total: {epsilon: 10, delta: 1e-6}", "total: {epsilon: 3.2, delta: 1e-6}")
    for _ in range(3):
        assert dpsql("query", clinic.policy, COUNT, "--analyst", "ana", "--epsilon", "0.95", "--fresh").status == 0
    done = dpsql("query", clinic.policy, COUNT, "--epsilon", "0.4", "--fresh")
    assert done.status == 5 and done.codes == {"DP403"}
    assert "left ε 0.05" in dpsql("query", clinic.policy, COUNT, "--epsilon", "0.3", "--fresh").out


def test_another_ledger_is_another_budget(dpsql: Call, clinic: Clinic, tmp_path: Path) -> None:
    other = tmp_path / "other.sqlite"
    assert dpsql("query", clinic.policy, COUNT, "--ledger", other, "--epsilon", "0.4").status == 0
    assert not clinic.ledger.exists() and other.exists()
    assert dpsql("query", clinic.policy, COUNT, "--ledger", other, "--epsilon", "0.4", "--fresh").status == 5
    assert spent(dpsql, clinic, "--ledger", other) == 0.4
    assert spent(dpsql, clinic) == 0
    # The policy's own ledger by its name is the policy's own ledger, with the same head.
    assert dpsql("query", clinic.policy, COUNT, "--ledger", clinic.ledger, "--epsilon", "0.1").status == 0
    assert dpsql("query", clinic.policy, COUNT, "--epsilon", "0.1", "--fresh").status == 0
    assert spent(dpsql, clinic) == 0.2


def test_an_older_ledger_is_refused_until_it_is_accepted(dpsql: Call, clinic: Clinic, tmp_path: Path) -> None:
    def ask() -> int:
        return dpsql("query", clinic.policy, COUNT, "--analyst", "ana", "--epsilon", "0.1", "--fresh").status

    assert ask() == 0
    old = tmp_path / "old.sqlite"
    shutil.copy(clinic.ledger, old)
    assert ask() == 0
    for leftover in clinic.folder.glob("*.sqlite-*"):
        leftover.unlink()
    shutil.copy(old, clinic.ledger)
    done = dpsql("query", clinic.policy, COUNT, "--analyst", "ana", "--epsilon", "0.1")
    assert done.status == 2 and done.codes == {"DP407"} and "older copy" in done.err
    assert dpsql("budget", clinic.policy).status == 2
    assert "dpsql budget POLICY --accept-head" in done.err
    assert dpsql("budget", clinic.policy, "--accept-head").status == 0
    assert ask() == 0 and spent(dpsql, clinic) == 0.2


def test_the_budget_tells_accounts_apart(dpsql: Call, clinic: Clinic) -> None:
    dpsql("query", clinic.policy, COUNT, "--analyst", "ana", "--epsilon", "0.7")
    dpsql("query", clinic.policy, "SELECT COUNT(*)\n FROM visits", "--epsilon", "0.2")
    found = json.loads(dpsql("budget", clinic.policy, "--format", "json", "--history").out)
    assert {(a["analyst"], a["spent"]["epsilon"], a["left"]["epsilon"]) for a in found["accounts"]} == {
        (None, 0.9, 9.1), ("ana", 0.7, 2.3), ("*", 0.2, 0.3),
    }  # fmt: skip
    assert [(h["sequence"], h["analyst"], h["statement"]) for h in found["history"]] == [
        (1, "ana", COUNT), (2, "*", "SELECT COUNT(*)\n FROM visits"),
    ]  # fmt: skip
    mine = json.loads(dpsql("budget", clinic.policy, "--format", "json", "--analyst", "ana").out)
    assert [a["analyst"] for a in mine["accounts"]] == [None, "ana"] and mine["queries"] == 1
    table = dpsql("budget", clinic.policy, "--history").out
    assert "SELECT COUNT(*) FROM visits" in table and "(2 queries charged)" in table
