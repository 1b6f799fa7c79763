"""The ledger's place: links that lead elsewhere, names that stand for no file."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import dpsql
from tests.support.checklist_clinic import POLICY, Call, Clinic

COUNT = "SELECT COUNT(*) FROM patients"


def test_probe_a_folder_may_be_a_link_and_another_one_behind_it_is_another_ledger(
    make: Callable[..., Clinic], tmp_path: Path, dpsql_command: Callable[..., Call]
) -> None:
    """`current` leads to what was installed last: the ledger of before is missed, not forgotten."""
    clinic = make(policy=POLICY.replace("ledger: spent.sqlite\nledger_head: spent.head\n", ""))
    current = tmp_path / "current"
    current.symlink_to(clinic.folder)
    with dpsql.connect(current / "clinic.yaml") as con:
        con.sql(COUNT).run(epsilon=1)
        assert con.budget["unit"].total_spent.epsilon == 1
    with dpsql.connect(current / "clinic.yaml") as con:
        assert con.sql(COUNT).run(epsilon=1).spent == dpsql.core.privacy_loss.PrivacyLoss()  # type: ignore[attr-defined]
    later = make(policy=POLICY.replace("ledger: spent.sqlite\nledger_head: spent.head\n", ""))
    current.unlink()
    current.symlink_to(later.folder)
    with (
        dpsql.connect(current / "clinic.yaml") as con,
        pytest.raises(dpsql.CannotOpen, match="is missing or empty, but had 1 entries"),
    ):
        con.sql(COUNT).run(epsilon=1)


def test_probe_to_accept_a_link_that_leads_nowhere_forgets_nothing(
    make: Callable[..., Clinic], dpsql_command: Callable[..., Call]
) -> None:
    clinic = make()
    with clinic.connect() as con:
        con.sql(COUNT).run(epsilon=1)
    ledger, head = clinic.folder / "spent.sqlite", clinic.folder / "spent.head"
    ledger.rename(clinic.folder / "away")
    ledger.symlink_to(clinic.folder / "nowhere")
    before = head.read_bytes()
    called = dpsql_command("budget", clinic.policy, "--accept-head")
    assert called.status == 2 and "this is a symbolic link" in called.err
    assert head.read_bytes() == before
