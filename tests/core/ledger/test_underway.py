"""Runs whose process dies with them are failures; those that run, were stopped or have ended are none."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import uuid
from pathlib import Path

import pytest

from dpsql.core.ledger import underway
from dpsql.core.ledger.ledger import Caps, Entry
from dpsql.core.ledger.memory import MemoryLedger
from dpsql.core.ledger.underway import Underway, count_crashes, forget
from dpsql.core.privacy_loss import PrivacyLoss, exact
from dpsql.diagnostics.errors import CannotOpen

DIES = """
import os, signal, sys
from pathlib import Path
from dpsql.core.ledger.memory import MemoryLedger
from dpsql.core.ledger.underway import Underway
Underway(MemoryLedger(), "ana", Path(sys.argv[1])).begin(sys.argv[2])
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.fixture
def head(tmp_path: Path) -> Path:
    return tmp_path / "it's [a] head*.json"


def charged(ledger: MemoryLedger, analyst: str = "ana") -> str:
    id = uuid.uuid4().hex
    ledger.reserve(Entry(id, analyst, {"patient": PrivacyLoss(exact("0.1"))}, "", "", "SQL"), Caps())
    return id


def died(head: Path, entry: str) -> None:
    done = subprocess.run([sys.executable, "-c", DIES, str(head), entry], check=False)
    assert done.returncode == -signal.SIGKILL


def found(ledger: MemoryLedger) -> list[tuple[str, str, str]]:
    return [(f.account, f.entry, f.how) for f in ledger.failures()]


def marks(head: Path) -> list[str]:
    return os.listdir(head.parent)


def test_a_dead_process_counts_once_and_its_mark_goes(head: Path) -> None:
    ledger = MemoryLedger()
    entry = charged(ledger, "ben")
    died(head, entry)
    assert len(marks(head)) == 1
    for _ in range(2):
        count_crashes(ledger, head)
        assert found(ledger) == [("ben", entry, "crashed")] and not marks(head)


def test_what_was_not_charged_is_no_failure(head: Path) -> None:
    """It died between its mark and its charge; or a ledger beside it has the same folder."""
    ledger = MemoryLedger()
    died(head, charged(MemoryLedger()))
    other = charged(ledger)
    died(head.with_name("another.json"), other)
    count_crashes(ledger, head)
    assert not found(ledger) and marks(head) == [f"another.json.runs-{other}"]


def test_what_runs_is_no_failure_for_whoever_looks(head: Path) -> None:
    ledger = MemoryLedger()
    run, entry = Underway(ledger, "ana", head), charged(ledger)
    run.begin(entry)
    imports = f"import sys; from pathlib import Path; from {underway.__name__} import *"
    look = f"{imports}; from {MemoryLedger.__module__} import *; count_crashes(MemoryLedger(), Path(sys.argv[1]))"
    subprocess.run([sys.executable, "-c", look, str(head)], check=True)
    count_crashes(ledger, head)
    assert not found(ledger) and len(marks(head)) == 1
    run.end()
    count_crashes(ledger, head)
    assert not found(ledger) and not marks(head)


def test_what_was_stopped_from_outside_is_no_failure(head: Path) -> None:
    ledger = MemoryLedger()
    entry = charged(ledger)
    died(head, entry)
    forget(head, "../" + entry)
    assert marks(head)
    forget(head, entry)
    count_crashes(ledger, head)
    assert not found(ledger)


def test_a_run_that_failed_is_noted_and_its_mark_goes(head: Path) -> None:
    ledger = MemoryLedger()
    run, entry = Underway(ledger, "ana", head), charged(ledger)
    run.begin(entry)
    run.has_failed = True
    run.end()
    run.end()
    assert found(ledger) == [("ana", entry, "failed")] and not marks(head)


def test_a_failure_that_cannot_be_noted_counts_at_the_next_opening(head: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ledger = MemoryLedger()
    run, entry = Underway(ledger, "ana", head), charged(ledger)
    run.begin(entry)
    run.has_failed = True

    def full(*_: object) -> None:
        raise CannotOpen([])

    with monkeypatch.context() as patched:
        patched.setattr(underway, "note", full)
        run.end()
    count_crashes(ledger, head)
    assert found(ledger) == [("ana", entry, "crashed")] and not marks(head)


def test_a_run_that_never_began_ends_without_a_word(head: Path) -> None:
    ledger = MemoryLedger()
    run = Underway(ledger, "ana", head)
    run.has_failed = True
    run.end()
    assert not found(ledger) and not ledger.history()


def test_without_a_place_for_a_mark_nothing_is_charged(head: Path) -> None:
    with pytest.raises(CannotOpen, match="DP407"):
        Underway(MemoryLedger(), "ana", head / "nowhere" / "head.json").begin(uuid.uuid4().hex)


def test_a_mark_that_somebody_takes_away_before_it_is_locked_is_made_again(
    head: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who looks for dead processes may hold it between its making and its lock."""
    ledger, entry = MemoryLedger(), uuid.uuid4().hex
    opened, looked = os.open, list[str]()

    def then_somebody_looks(path: object, flags: int, *more: int) -> int:
        made = opened(path, flags, *more)  # type: ignore[arg-type]
        if flags & os.O_CREAT and not looked:
            looked.append("yes")
            count_crashes(ledger, head)
            assert not marks(head)
        return made

    run = Underway(ledger, "ana", head)
    with monkeypatch.context() as patched:
        patched.setattr(os, "open", then_somebody_looks)
        run.begin(entry)
    assert looked and len(marks(head)) == 1
    count_crashes(ledger, head)
    assert len(marks(head)) == 1
    run.end()
