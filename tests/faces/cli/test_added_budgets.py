"""`dpsql budget --add`: what is fixed in the ledger grows by an entry with a reason, and by nothing else."""

from __future__ import annotations

import json

import pytest

from tests.support.command_line import Call, Clinic

COUNT = "SELECT COUNT(*) AS n FROM patients"


def ask(dpsql: Call, clinic: Clinic, epsilon: str) -> str:
    done = dpsql("query", clinic.policy, COUNT, "--analyst", "ana", "--epsilon", epsilon, "--fresh")
    return "" if done.status == 0 else done.err


def test_a_larger_number_of_the_policy_holds_once_an_entry_says_why(dpsql: Call, clinic: Clinic) -> None:
    for _ in range(3):
        assert not ask(dpsql, clinic, "1")
    clinic.change("ana: {epsilon: 3", "ana: {epsilon: 4")
    told = dpsql("budget", clinic.policy).out
    assert "budget of ana on patient: the policy says ε 4" in told and "and the ledger ε 3" in told
    assert "the policy says ε 4" in dpsql("policy", "check", clinic.policy, "--data").out
    refusal = ask(dpsql, clinic, "1")
    assert "DP404" in refusal and "dpsql budget POLICY --add … --of ana --reason …" in refusal
    done = dpsql("budget", clinic.policy, "--add", "1", "--of", "ana", "--reason", "her thesis", "--history")
    assert done.status == 0 and "budget of ana on patient: ε 4" in done.err
    assert "ADD 1 TO ana: her thesis" in done.out and "and the ledger" not in done.out
    assert not ask(dpsql, clinic, "1")
    page = dpsql("policy", "report", clinic.policy).out
    assert "A budget was changed" in page and "ADD 1 TO ana: her thesis" in page
    entry = json.loads(dpsql("budget", clinic.policy, "--history", "--format", "json").out)["history"][3]
    assert entry["kind"] == "budget" and entry["fixed"] and entry["charges"] == {}


@pytest.mark.parametrize(
    ("options", "why"),
    [
        (("--add", "2"), "whoever adds to a budget says why"),
        (("--add", "2", "--reason", " "), "whoever adds to a budget says why"),
        (("--reason", "why not"), "nothing is added"),
        (("--add", "a lot", "--reason", "x"), "amount must be a finite number"),
        (("--add", "2", "--of", "eve", "--reason", "x"), "there is no budget of 'eve'"),
        (("--add", "2", "--unit", "eve", "--reason", "x"), "the policy declares no such budget"),
        (("--add=-1000", "--reason", "x"), "would be below nothing"),
        (("--add", "2", "--reason", "x", "--ledger", ":memory:"), "a ledger in memory keeps no budget"),
    ],
)
def test_what_cannot_be_added_is_refused_and_nothing_is_written(
    dpsql: Call, clinic: Clinic, options: tuple[str, ...], why: str
) -> None:
    assert not ask(dpsql, clinic, "0.5")
    done = dpsql("budget", clinic.policy, *options)
    assert done.status != 0 and "DP903" in done.err and why in done.err
    assert len(json.loads(dpsql("budget", clinic.policy, "--history", "--format", "json").out)["history"]) == 1
