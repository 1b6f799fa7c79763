"""What is on the disk when a receipt is handed out, and that nobody takes the log away under a writer."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import textwrap
import threading
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest

from dpsql.core.ledger import sqlite as sqlite_module
from dpsql.core.ledger.chain import head as head_module
from dpsql.core.ledger.chain.hash_chain import Point
from dpsql.core.ledger.chain.head import Head
from dpsql.core.ledger.files import durable_files
from dpsql.core.ledger.files.durable_files import flush
from dpsql.core.ledger.ledger import Caps, Entry
from dpsql.diagnostics.errors import CannotOpen
from tests.core.ledger.conftest import Place

Charge = Callable[[object], Entry]


class PowerCut:
    """A disk that keeps only what was flushed: each flush copies the file as it then is."""

    def __init__(self, place: Place, disk: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        disk.mkdir()
        self.head_may_go_on = threading.Event()
        self.head_may_go_on.set()
        self.place, self.left = place, Place(disk / place.path.name, disk / place.head.name)
        monkeypatch.setattr(sqlite_module, "flush_file", self.flush_log)
        monkeypatch.setattr(head_module, "flush", self.flush_head)
        shutil.copy(place.path, self.left.path)  # made before, and flushed by SQLite
        shutil.copy(place.head, self.left.head)

    def flush_log(self, path: Path) -> None:
        shutil.copy(path, self.left.path.with_name(path.name))

    def flush_head(self, descriptor: int) -> None:
        assert self.head_may_go_on.wait(600)
        flush(descriptor)
        name = Path(os.readlink(f"/proc/self/fd/{descriptor}"))
        shutil.copy(name, self.left.head)

    def after(self, folder: Path) -> Place:
        """The files that a power cut now would leave."""
        shutil.copytree(self.left.path.parent, folder)
        return Place(folder / self.left.path.name, folder / self.left.head.name)


@pytest.fixture
def used(place: Place, charge: Charge) -> Place:
    """A ledger whose every page is in the file: its log is gone."""
    with place.open() as ledger:
        ledger.reserve(charge("first"), Caps())
    assert not Path(f"{place.path}-wal").exists()
    return place


linux = pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="asks /proc for names")


@linux
def test_a_receipt_survives_a_power_cut(
    used: Place, charge: Charge, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = PowerCut(used, tmp_path / "disk", monkeypatch)
    kept = []
    with used.open() as ledger:
        for i in range(5):
            disk.head_may_go_on.clear()  # nothing waits for the head here
            receipt = ledger.reserve(charge(i), Caps())
            early = disk.after(tmp_path / f"receipt {i}")
            disk.head_may_go_on.set()
            ledger.finish()
            kept.append((receipt, early, disk.after(tmp_path / f"finished {i}")))
    monkeypatch.undo()
    for (_, _, older), (_, early, late) in pairwise(kept):
        put_back(older, early, tmp_path / f"{early.path.parent.name}, put back").open().close()
        # What the head is waited for: once that was done, an older copy is recognised after a power cut, too.
        with pytest.raises(CannotOpen, match="this is an older copy"):
            put_back(older, late, tmp_path / f"{late.path.parent.name}, put back").open()
    for receipt, *both in kept:
        for left in both:
            with left.open() as found:
                assert found.history()[-1] == receipt


def put_back(older: Place, left: Place, folder: Path) -> Place:
    """The older ledger with the head that a power cut has left."""
    shutil.copytree(older.path.parent, folder)
    shutil.copy(left.head, folder / left.head.name)
    return Place(folder / older.path.name, folder / left.head.name)


@linux
def test_a_power_cut_between_the_commit_and_the_receipt_leaves_a_healthy_ledger(
    used: Place, charge: Charge, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At every step of writing log and head, the head is never ahead of what the log would keep."""
    disk = PowerCut(used, tmp_path / "disk", monkeypatch)
    steps: list[Place] = []

    def look() -> None:
        steps.append(disk.after(tmp_path / f"step {len(steps)}"))

    def log(path: Path) -> None:
        look()
        disk.flush_log(path)
        look()

    def head(descriptor: int) -> None:
        disk.flush_head(descriptor)
        look()

    with used.open() as ledger:
        ledger.reserve(charge("second"), Caps())
        ledger.finish()
        monkeypatch.setattr(sqlite_module, "flush_file", log)
        monkeypatch.setattr(head_module, "flush", head)
        ledger.reserve(charge("third"), Caps())
        ledger.finish()
    monkeypatch.undo()
    entries = []
    for left in steps:
        with left.open() as found:
            entries.append(found.verify())
    assert entries == [2, 3, 3]


@linux
def test_a_ledger_that_did_not_flush_would_be_noticed(
    used: Place, charge: Charge, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = PowerCut(used, tmp_path / "disk", monkeypatch)
    with used.open() as ledger:
        ledger.reserve(charge("second"), Caps())
        monkeypatch.setattr(sqlite_module, "flush_file", lambda path: None)
        ledger.reserve(charge("third"), Caps())
        ledger.finish()
    monkeypatch.undo()
    with pytest.raises(CannotOpen, match="ends at entry 2, but had 3"):
        disk.after(tmp_path / "after").open()


def test_a_head_that_cannot_be_flushed_keeps_the_answer_back(
    place: Place, charge: Charge, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(descriptor: int) -> None:
        raise OSError(5, "Input/output error")

    with place.open() as ledger:
        ledger.reserve(charge("first"), Caps())
        ledger.finish()
        monkeypatch.setattr(head_module, "flush", broken)
        receipt = ledger.reserve(charge("second"), Caps())
        with pytest.raises(CannotOpen, match="Input/output error") as refusal:
            ledger.finish()
        assert "the answer is not shown, and the charge stays" in refusal.value.diagnostics[0].notes[0]
        monkeypatch.undo()
        assert ledger.history()[-1] == receipt
        ledger.reserve(charge("third"), Caps())
        ledger.finish()


def test_without_a_thread_the_head_is_waited_for_at_once(
    place: Place, charge: Charge, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As where Python is ending already."""

    def none(thread: object) -> None:
        raise RuntimeError("can't start new thread")

    flushed: list[int] = []
    with place.open() as ledger:
        ledger.reserve(charge("first"), Caps())
        ledger.finish()
        durable_files._start_over()
        monkeypatch.setattr(threading.Thread, "start", none)
        monkeypatch.setattr(head_module, "flush", flushed.append)
        ledger.reserve(charge("second"), Caps())
        assert len(flushed) == 1
        ledger.finish()
        assert len(flushed) == 1


def test_the_head_is_flushed_while_whoever_charged_goes_on(
    place: Place, charge: Charge, monkeypatch: pytest.MonkeyPatch
) -> None:
    began, may_end = threading.Event(), threading.Event()

    def slow(descriptor: int) -> None:
        began.set()
        assert may_end.wait(600)

    with place.open() as ledger:
        ledger.reserve(charge("first"), Caps())
        ledger.finish()
        monkeypatch.setattr(head_module, "flush", slow)
        ledger.reserve(charge("second"), Caps())
        assert began.wait(600)  # and nobody has asked for it
        shown: list[int] = []
        waiting = threading.Thread(target=lambda: (ledger.finish(), shown.append(1)))
        waiting.start()
        assert not shown
        may_end.set()
        waiting.join(600)
        assert shown


def test_a_log_that_cannot_be_flushed_gives_no_receipt(
    place: Place, charge: Charge, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(path: Path) -> None:
        raise OSError(5, "Input/output error")

    with place.open() as ledger:
        monkeypatch.setattr(sqlite_module, "flush_file", broken)
        with pytest.raises(CannotOpen, match="Input/output error") as refusal:
            ledger.reserve(charge("first"), Caps())
        assert refusal.value.diagnostics[0].notes == ("nothing was run, but the charge was made and stays",)
        monkeypatch.undo()
        assert ledger.reserve(charge("first"), Caps()).sequence == 1


@pytest.mark.skipif(sys.platform == "win32", reason="needs flock")
def test_a_locked_head_is_refused_and_the_charge_stays(place: Place, charge: Charge) -> None:
    import fcntl

    with place.open(timeout=0.3) as ledger, open(f"{place.head}.lock", "w") as blocker:
        fcntl.flock(blocker, fcntl.LOCK_EX)
        with pytest.raises(CannotOpen, match=r"kept it locked for 0\.3 s") as refusal:
            ledger.reserve(charge("first"), Caps())
        assert refusal.value.diagnostics[0].notes == ("nothing was run, but the charge was made and stays",)
        fcntl.flock(blocker, fcntl.LOCK_UN)
        assert ledger.reserve(charge("second"), Caps()).sequence == 2


def test_one_flush_serves_all_who_wait(place: Place, charge: Charge, monkeypatch: pytest.MonkeyPatch) -> None:
    flushes: list[Path] = []
    first, others = threading.Event(), threading.Event()

    def slow(path: Path) -> None:
        flushes.append(path)
        first.set()
        assert others.wait(600)

    with place.open() as one:
        monkeypatch.setattr(sqlite_module, "flush_file", slow)
        threads = [threading.Thread(target=one.reserve, args=(charge(i), Caps())) for i in range(8)]
        for thread in threads:
            thread.start()
        assert first.wait(600)
        while one._tip.sequence < 7:  # all but the last have committed, and wait
            one.spent("patient")
        others.set()
        for thread in threads:
            thread.join()
        assert one.verify() == 8
    assert len(flushes) <= 3


# The log under a writer -----------------------------------------------------------------------------------------------

_OTHER = """
import sys
from dpsql.core.ledger.sqlite import SqliteLedger
SqliteLedger.open(sys.argv[1], sys.argv[2], "clinic", "approx_dp").close()
"""


def another_process_opens_and_closes(place: Place) -> None:
    subprocess.run([sys.executable, "-c", _OTHER, str(place.path), str(place.head)], check=True)


@pytest.mark.processes
def test_a_second_connection_of_the_process_does_not_let_others_take_the_log_away(place: Place, charge: Charge) -> None:
    """Closing a descriptor of the file would drop SQLite's locks, and the other process would delete the log."""
    with place.open() as ledger:
        ledger.reserve(charge(1), Caps())
        place.open().close()
        another_process_opens_and_closes(place)
        ledger.reserve(charge(2), Caps())
        another_process_opens_and_closes(place)
    with place.open() as ledger:
        assert ledger.verify() == 2


@pytest.mark.processes
def test_a_log_that_was_taken_away_all_the_same_is_noticed_before_the_receipt(place: Place, charge: Charge) -> None:
    with place.open() as ledger:
        ledger.reserve(charge(1), Caps())
        place.path.open("rb").close()  # as other code of the process might
        another_process_opens_and_closes(place)
        with pytest.raises(CannotOpen, match="replaced or removed while in use"):
            ledger.reserve(charge(2), Caps())
    with place.open() as ledger:
        assert ledger.verify() == 1
        assert ledger.reserve(charge(2), Caps()).sequence == 2


@pytest.mark.processes
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_may_not_open_what_its_parent_has_open(place: Place) -> None:
    program = """
    import os, sys
    from dpsql.core.ledger.sqlite import SqliteLedger
    from dpsql.diagnostics.errors import CannotOpen

    def attempt():
        child = os.fork()
        if child == 0:
            try:
                SqliteLedger.open(sys.argv[1], sys.argv[2], "clinic", "approx_dp").close()
            except CannotOpen as refusal:
                os._exit(7 if "when this process was forked" in refusal.diagnostics[0].message else 8)
            os._exit(0)
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])

    ledger = SqliteLedger.open(sys.argv[1], sys.argv[2], "clinic", "approx_dp")
    inherited = attempt()
    ledger.close()
    print(inherited, attempt())
    """
    command = [sys.executable, "-c", textwrap.dedent(program), str(place.path), str(place.head)]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout.split() == ["7", "0"]


def test_a_head_goes_back_only_when_the_custodian_says_so(tmp_path: Path) -> None:
    head = Head(tmp_path / "head", 1)
    head.put(Point(9, "a"))
    head.advance(3, lambda: Point(3, "b"))
    assert head.read() == Point(9, "a")
    head.put(Point(3, "b"))
    assert head.read() == Point(3, "b")
    head.put(Point(0, "c"))
    head.advance(0, lambda: Point(0, "d"))
    assert head.read() == Point(0, "d")
    head.forget()
    assert head.read() is None


def test_a_head_of_format_1_is_read_and_rewritten(tmp_path: Path) -> None:
    head = Head(tmp_path / "head", 1)
    head.path.write_text('{"sequence": 3, "hash": "abc"}\n')
    assert head.read() == Point(3, "abc")
    head.advance(4, lambda: Point(4, "def"))
    assert head.read() == Point(4, "def")
    assert head.path.stat().st_size == 1024
