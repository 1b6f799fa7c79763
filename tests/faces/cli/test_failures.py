"""`dpsql budget --failures`: what failed and who is stopped, as a table and as JSON, and saying that one has looked."""

from __future__ import annotations

import json

import pytest

from dpsql.core.ledger.failures import note
from dpsql.core.ledger.sqlite import SqliteLedger
from dpsql.policy.load import load_policy
from tests.support.command_line import Call, Clinic

COUNT = "SELECT COUNT(*) AS n FROM patients"


@pytest.fixture
def failed(dpsql: Call, clinic: Clinic) -> Clinic:
    """ana's statement failed twice, and somebody's of the shared account once; two stop."""
    clinic.change("budgets:", "failures: {most: 2, in_total: 9}\nbudgets:")
    for name in ("ana", "ana", "ben"):
        done = dpsql("query", clinic.policy, COUNT, "--analyst", name, "--epsilon", "0.5", "--fresh")
        assert done.status == 0, done.err
    with opened(clinic) as ledger:
        for receipt in ledger.history():
            note(ledger, receipt.entry.id, receipt.entry.analyst, "failed")
    return clinic


def opened(clinic: Clinic) -> SqliteLedger:
    policy = load_policy(clinic.policy)
    assert policy.ledger_path is not None and policy.ledger_head_path is not None
    return SqliteLedger.open(policy.ledger_path, policy.ledger_head_path, policy.name, policy.privacy.accountant)


def test_a_table_names_them_and_who_is_stopped(dpsql: Call, failed: Clinic) -> None:
    out = dpsql("budget", failed.policy, "--failures").out
    assert out.count(COUNT) == 3 and "failed" in out and "stopped now: ana;" in out
    assert "2 of one account, or 9 in total, stop private queries (DP416)" in out
    assert "failed" not in dpsql("budget", failed.policy).out
    own = dpsql("budget", failed.policy, "--failures", "--analyst", "ben").out
    assert own.count(COUNT) == 1 and "stopped now" not in own


def test_json_has_the_same(dpsql: Call, failed: Clinic) -> None:
    found = json.loads(dpsql("budget", failed.policy, "--failures", "--format", "json").out)["failures"]
    assert (found["most"], found["in_total"], found["stopped"]) == (2, 9, ["ana"])
    assert [(f["analyst"], f["how"], f["statement"]) for f in found["found"]] == [
        (name, "failed", COUNT) for name in ("ana", "ana", "*")
    ]


def test_who_looked_says_why_and_the_ledger_keeps_it(dpsql: Call, failed: Clinic) -> None:
    refused = dpsql("query", failed.policy, COUNT, "--analyst", "ana", "--epsilon", "0.5", "--fresh")
    assert refused.codes == {"DP416"} and refused.status == 5 and refused.out == ""
    done = dpsql("budget", failed.policy, "--failures", "--clear", "the disk was full")
    assert done.status == 0 and "counts no more" in done.err and COUNT not in done.out
    history = dpsql("budget", failed.policy, "--history").out
    assert "the disk was full" in history and "STATEMENT FAILED" in history and "(3 queries charged)" in history
    again = dpsql("query", failed.policy, COUNT, "--analyst", "ana", "--epsilon", "0.5", "--fresh")
    assert again.status == 0


@pytest.mark.parametrize("options", [["--clear", "why"], ["--failures", "--clear", " "]])
def test_nothing_is_cleared_by_a_slip(dpsql: Call, failed: Clinic, options: list[str]) -> None:
    assert dpsql("budget", failed.policy, *options).codes == {"DP903"}
    with opened(failed) as ledger:
        assert len(ledger.failures()) == 3


def test_without_a_ledger_nothing_failed(dpsql: Call, clinic: Clinic) -> None:
    done = dpsql("budget", clinic.policy, "--failures")
    assert done.status == 0 and "10 of one account, or 30 in total" in done.out and not clinic.ledger.exists()
