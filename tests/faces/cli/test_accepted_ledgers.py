"""History and report show when a ledger was accepted as it stood, and that the policy was changed between charges."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.support.command_line import Call, Clinic

COUNT = "SELECT COUNT(*) AS n FROM patients"


@pytest.mark.parametrize("lost", ["older", "deleted"])
def test_history_and_report_show_it(dpsql: Call, clinic: Clinic, lost: str) -> None:
    ledger = clinic.ledger
    copy = clinic.folder / "copy"
    for epsilon in ("0.5", "0.25"):
        done = dpsql("query", clinic.policy, COUNT, "--analyst", "ana", "--epsilon", epsilon, "--fresh")
        assert done.status == 0, done.err
        if epsilon == "0.5":
            shutil.copy(ledger, copy)
    ledger.unlink()
    if lost == "older":
        shutil.copy(copy, ledger)
    for suffix in ("-wal", "-shm"):
        Path(f"{ledger}{suffix}").unlink(missing_ok=True)
    assert dpsql("budget", clinic.policy, "--accept-head").status == 0
    history = dpsql("budget", clinic.policy, "--history").out
    after = 1 if lost == "older" else 0
    assert f"ACCEPT LEDGER after entry {after}: its head remembered entry 2" in history
    page = dpsql("policy", "report", clinic.policy).out
    assert "The ledger was accepted as it stood" in page and f"after entry {after}: its head" in page


def test_a_policy_that_was_changed_between_charges_is_seen(dpsql: Call, clinic: Clinic) -> None:
    assert dpsql("query", clinic.policy, COUNT, "--analyst", "ana", "--epsilon", "0.5").status == 0
    assert "was changed" not in dpsql("budget", clinic.policy, "--history").out
    clinic.change("total: {epsilon: 10", "total: {epsilon: 20")
    assert dpsql("query", clinic.policy, COUNT, "--analyst", "ana", "--epsilon", "0.5", "--fresh").status == 0
    assert "the policy was changed between charges: " in dpsql("budget", clinic.policy, "--history").out
    assert "under 2 different texts of this policy" in dpsql("policy", "report", clinic.policy).out
