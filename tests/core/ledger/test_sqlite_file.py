"""The ledger file: what is recognised, what is refused, and that nothing foreign is touched."""

from __future__ import annotations

import os
import random
import shutil
import sqlite3
import stat
import tempfile
import time
from collections.abc import Callable, Iterator
from datetime import datetime, tzinfo
from fractions import Fraction
from pathlib import Path
from typing import ClassVar

import pytest

from dpsql.core.ledger.chain.head import Head
from dpsql.core.ledger.ledger import Caps, Entry
from dpsql.core.ledger.sqlite import SqliteLedger, accept_head
from dpsql.core.privacy_loss import PrivacyLoss
from dpsql.diagnostics.errors import BudgetExceeded, CannotOpen
from tests.core.ledger.conftest import Place

Charge = Callable[[object], Entry]


def refused(action: Callable[[], object]) -> str:
    """The DP407 message of an action, its help included."""
    with pytest.raises(CannotOpen) as refusal:
        action()
    (diagnostic,) = refusal.value.diagnostics
    assert diagnostic.code == "DP407"
    assert diagnostic.help
    return " ".join((diagnostic.message, *diagnostic.help))


def fill(place: Place, charge: Charge, count: int = 5) -> None:
    with place.open() as ledger:
        for i in range(count):
            ledger.reserve(charge(i), Caps())


def raw(place: Place, *statements: str) -> None:
    """Edit the file as someone with a SQLite shell could, append-only triggers out of the way."""
    connection = sqlite3.connect(place.path, isolation_level=None)
    triggers = connection.execute("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'").fetchall()
    for name, _ in triggers:
        connection.execute(f"DROP TRIGGER {name}")
    for statement in statements:
        connection.execute(statement)
    for _, sql in triggers:
        connection.execute(sql)
    connection.close()


def test_files_are_for_their_owner_only(place: Place, charge: Charge) -> None:
    with place.open() as ledger:
        ledger.reserve(charge(1), Caps())
        files = [*place.path.parent.glob("l.sqlite*"), place.head]
        assert len(files) == 4  # the ledger, -wal, -shm and the head
        assert {stat.S_IMODE(file.stat().st_mode) for file in files} == {0o600}


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE entries SET statement = ''",
        "DELETE FROM entries",
        "DELETE FROM entries WHERE sequence = 5",
        "REPLACE INTO entries SELECT * FROM entries WHERE sequence = 2",
        "INSERT OR REPLACE INTO entries SELECT 6, id" + ", ''" * 11 + " FROM entries WHERE sequence = 2",
        "INSERT INTO entries VALUES (9, 'x', '', '', '', '', '', '', '', '', '', '', '')",
        "UPDATE identity SET value = '0' WHERE name = 'salt'",
        "DELETE FROM identity",
        "REPLACE INTO identity VALUES ('salt', '0')",
    ],
)
def test_the_file_itself_refuses_changes(place: Place, charge: Charge, statement: str) -> None:
    fill(place, charge)
    connection = sqlite3.connect(place.path)
    with pytest.raises(sqlite3.DatabaseError, match="append-only"):
        connection.execute(statement)
    connection.close()
    with place.open() as ledger:
        assert ledger.verify() == 5


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("id", "'other'"),
        ("analyst", "'ben'"),
        ("charges", """'{"patient":["1/1000","0","0"]}'"""),
        ("plan_hash", "'other'"),
        ("policy_hash", "'other'"),
        ("statement", "'SELECT 2'"),
        ("statement", "x'00'"),
        ("reserved_at", "'2020-01-01'"),
        ("hash", "'0'"),
        ("received", """'{"patient":["1/10","0","0"]}'"""),
        ("answers", """'["n"]'"""),
        ("answers", "x'5b5d'"),
        ("sequence", "77"),
    ],
)
@pytest.mark.parametrize("sequence", [1, 3, 5])
def test_every_changed_column_is_noticed(place: Place, charge: Charge, column: str, value: str, sequence: int) -> None:
    fill(place, charge)
    raw(place, f"UPDATE entries SET {column} = {value} WHERE sequence = {sequence}")
    message = refused(place.open)
    assert "changed" in message or "missing" in message or "older copy" in message or "another ledger" in message


@pytest.mark.parametrize("name", ["dataset", "accountant", "salt", "nonce"])
def test_a_changed_identity_is_noticed(place: Place, charge: Charge, name: str) -> None:
    fill(place, charge)
    raw(place, f"UPDATE identity SET value = '1' WHERE name = '{name}'")
    with pytest.raises(CannotOpen):
        place.open()
    raw(place, f"DELETE FROM identity WHERE name = '{name}'")
    assert "identity was changed" in refused(place.open)


@pytest.mark.parametrize("sequence", [1, 3, 5])
def test_a_removed_entry_is_noticed(place: Place, charge: Charge, sequence: int) -> None:
    fill(place, charge)
    raw(place, f"DELETE FROM entries WHERE sequence = {sequence}")
    refused(place.open)


def test_swapped_entries_are_noticed(place: Place, charge: Charge) -> None:
    fill(place, charge)
    raw(place, *(f"UPDATE entries SET sequence = {b} WHERE sequence = {a}" for a, b in ((2, 9), (3, 2), (9, 3))))
    assert "entry 2 was changed" in refused(place.open)


def test_dropped_triggers_are_noticed(place: Place, charge: Charge) -> None:
    fill(place, charge)
    connection = sqlite3.connect(place.path)
    connection.execute("DROP TRIGGER entries_update")
    connection.close()
    assert "triggers were changed" in refused(place.open)


def test_tampering_is_noticed_while_the_ledger_is_open(place: Place, charge: Charge) -> None:
    fill(place, charge)
    ledger = place.open()
    raw(place, "UPDATE entries SET hash = 'x' WHERE sequence = 5")
    for _ in range(2):
        assert "entry 5 was removed or replaced" in refused(lambda: ledger.reserve(charge("next"), Caps()))
    ledger.close()


def test_verify_notices_what_an_open_ledger_has_not_read_again(place: Place, charge: Charge) -> None:
    fill(place, charge)
    ledger = place.open()
    raw(place, "UPDATE entries SET analyst = 'ben' WHERE sequence = 2")
    assert "entry 2 was changed" in refused(ledger.verify)
    ledger.close()


# Older and foreign ledgers --------------------------------------------------------------------------------------------


def test_an_older_copy_is_refused_until_the_custodian_accepts_it(place: Place, charge: Charge, tmp_path: Path) -> None:
    fill(place, charge, 2)
    shutil.copy(place.path, tmp_path / "backup")
    with place.open() as ledger:
        ledger.reserve(charge("last"), Caps())
    shutil.copy(tmp_path / "backup", place.path)
    message = refused(place.open)
    assert "ends at entry 2, but had 3" in message
    assert "dpsql budget POLICY --accept-head" in message
    accept_head(place.path, place.head)
    with place.open() as ledger:
        assert ledger.verify() == 3  # one entry says that it was accepted


def test_a_lost_head_is_refused_but_not_for_an_unused_ledger(place: Place, charge: Charge) -> None:
    place.open().close()
    place.head.unlink()
    place.open().close()
    fill(place, charge)
    ledger = place.open()
    place.head.unlink()
    assert "last entry is missing" in refused(lambda: ledger.reserve(charge("next"), Caps()))
    assert "last entry is missing" in refused(place.open)
    assert ledger.spent("patient").epsilon * 2 == 1
    ledger.close()


@pytest.mark.parametrize("emptied", [True, False])
def test_a_removed_ledger_does_not_start_again_from_zero(place: Place, charge: Charge, emptied: bool) -> None:
    fill(place, charge)
    place.path.unlink()
    if emptied:
        place.path.touch()
    for _ in range(2):
        assert "had 5 entries" in refused(place.open)
    accept_head(place.path, place.head)
    with place.open() as ledger:
        assert ledger.verify() == 0


def test_an_unused_ledger_may_be_removed(place: Place, charge: Charge) -> None:
    place.open().close()
    place.path.unlink()
    place.open().close()
    place.path.unlink()
    fill(place, charge)
    with place.open() as ledger:
        assert ledger.verify() == 5


def test_an_unused_ledger_under_an_old_head_survives_a_kill_after_its_first_commit(
    place: Place, charge: Charge
) -> None:
    """The head must name the new ledger before the first entry, or the kill would lock a healthy ledger out."""
    place.open().close()
    place.path.unlink()
    with place.open() as ledger:
        ledger._head.advance = lambda *_: None  # type: ignore[method-assign]  # killed before the head is written
        ledger.reserve(charge(1), Caps())
    with place.open() as ledger:
        assert ledger.verify() == 1


def test_a_ledger_ahead_of_its_head_is_healthy(place: Place, charge: Charge) -> None:
    fill(place, charge, 2)
    old = place.head.read_bytes()
    fill(place, lambda i: charge(f"later {i}"), 3)
    newest = Head(place.head, 1).read()
    place.head.write_bytes(old)
    with place.open() as ledger:
        assert ledger.verify() == 5
    assert Head(place.head, 1).read() == newest


def test_another_ledger_of_the_same_policy_is_refused(place: Place, charge: Charge, tmp_path: Path) -> None:
    fill(place, charge)
    other = Place(tmp_path / "other.sqlite", tmp_path / "other.json")
    fill(other, charge, 9)
    assert "another ledger" in refused(Place(other.path, place.head).open)


def test_a_ledger_serves_one_policy_and_one_accountant(place: Place, charge: Charge) -> None:
    fill(place, charge)
    assert "belongs to the policy 'clinic', not to 'school'" in refused(lambda: place.open("school"))
    assert "counts in approx_dp, and the policy says zcdp" in refused(lambda: place.open("clinic", "zcdp"))


def test_a_newer_format_is_refused_unread(place: Place, charge: Charge) -> None:
    fill(place, charge)
    raw(place, "PRAGMA user_version = 4")
    for action in (place.open, lambda: accept_head(place.path, place.head)):
        assert "a newer dpsql wrote it (format 4; this version reads 3)" in refused(action)


@pytest.mark.parametrize("size", [1, 15, 100, 4096, 100_000])
def test_random_bytes_are_no_ledger_and_stay_as_they_are(place: Place, size: int) -> None:
    noise = random.Random(size).randbytes(size)
    place.path.write_bytes(noise)
    assert "not a ledger" in refused(place.open)
    assert place.path.read_bytes() == noise
    with pytest.raises(CannotOpen):
        accept_head(place.path, place.head)


def test_another_sqlite_file_is_no_ledger_and_stays_as_it_is(place: Place) -> None:
    connection = sqlite3.connect(place.path)
    connection.execute("CREATE TABLE people (name TEXT)")
    connection.close()
    before = place.path.read_bytes()
    assert "not a ledger" in refused(place.open)
    with pytest.raises(CannotOpen):
        accept_head(place.path, place.head)
    assert place.path.read_bytes() == before


@pytest.mark.parametrize("bad", ["", "{}", "[]", "null", "\x00\x01", '{"sequence": -1, "hash": "x"}', "[" * 100_000])
def test_a_spoilt_head_is_refused(place: Place, charge: Charge, bad: str) -> None:
    fill(place, charge)
    place.head.write_text(bad)
    assert "head" in refused(place.open)


# The file system ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", [".", "/", "/dev/null", "/dev/zero", "missing/l.sqlite", "a\0b", "x" * 300])
def test_what_cannot_be_a_file_is_refused(tmp_path: Path, path: str) -> None:
    refused(lambda: SqliteLedger.open(tmp_path / path, tmp_path / "head.json", "clinic", "approx_dp", timeout=1))


@pytest.mark.parametrize("head", [".", "/dev/null/head", "l.sqlite/head", "a\0b", "x" * 300])
def test_a_head_that_cannot_be_a_file_is_refused(tmp_path: Path, head: str) -> None:
    (tmp_path / "l.sqlite").touch()
    with pytest.raises(CannotOpen):
        SqliteLedger.open(tmp_path / "l.sqlite", tmp_path / head, "clinic", "approx_dp", timeout=1)


def test_a_file_named_like_sqlites_memory_is_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    place = Place(Path(":memory:"), Path("head.json"))
    with place.open() as ledger:
        salt = ledger.salt
    with place.open() as ledger:
        assert ledger.salt == salt


@pytest.mark.processes
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.parametrize(("writable", "protected"), [("state", "data"), ("data", "state")])
def test_a_read_only_directory_is_refused(writable: str, protected: str) -> None:
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        base = Path(folder)
        base.chmod(0o755)
        for name, mode in ((writable, 0o777), (protected, 0o555)):
            (base / name).mkdir()
            (base / name).chmod(mode)
        child = os.fork()
        if child == 0:
            outcome = 9
            try:
                if os.geteuid() == 0:  # root may write anywhere, so the attempt is made as somebody else
                    os.setuid(65534)
                SqliteLedger.open(base / "data/l.sqlite", base / "state/h.json", "clinic", "approx_dp", timeout=1)
            except CannotOpen as refusal:
                outcome = 7 if "writ" in refusal.diagnostics[0].message else 8
            finally:
                os._exit(outcome)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7


@pytest.mark.processes
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.parametrize("protected", ["data/l.sqlite", "data/l.sqlite-wal", "state/h.json"])
def test_a_read_only_file_is_refused_and_serves_again_when_it_is_not(charge: Charge, protected: str) -> None:
    # Not the session's own temporary folder, which is closed to others.
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        base = Path(folder)
        for name in (".", "data", "state"):
            (base / name).mkdir(exist_ok=True)
            (base / name).chmod(0o777)

        def attempt() -> int:
            child = os.fork()
            if child == 0:
                outcome = 9
                try:
                    if os.geteuid() == 0:  # root may write anywhere, so the attempt is made as somebody else
                        os.setuid(65534)
                    place = Place(base / "data/l.sqlite", base / "state/h.json")
                    ledger = place.open(timeout=1)
                    ledger.reserve(charge(os.getpid()), Caps())
                    outcome = 0
                except CannotOpen as refusal:
                    outcome = 7 if refusal.diagnostics[0].code == "DP407" and refusal.diagnostics[0].help else 8
                finally:
                    os._exit(outcome)  # leaves the -wal file behind
            return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])

        assert attempt() == 0
        (base / protected).chmod(0o444)
        assert attempt() == 7
        (base / protected).chmod(0o600)
        assert attempt() == 0


def test_a_clock_that_goes_back_leaves_the_order_of_the_entries(
    place: Place, charge: Charge, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Clock(datetime):
        years: ClassVar[Iterator[int]] = iter(range(2030, 2000, -1))

        @classmethod
        def now(cls, tz: tzinfo | None = None) -> datetime:
            return datetime(next(cls.years), 1, 1, tzinfo=tz)

    monkeypatch.setattr("dpsql.core.ledger.chained.datetime", Clock)
    fill(place, charge)
    with place.open() as ledger:
        assert [r.entry.id for r in ledger.history()] == ["0", "1", "2", "3", "4"]
        assert ledger.verify() == 5
        with pytest.raises(BudgetExceeded):
            ledger.reserve(charge("next"), Caps(total={"patient": PrivacyLoss(Fraction(1, 2))}))


def test_a_locked_ledger_is_refused_after_the_timeout_and_serves_again_afterwards(place: Place, charge: Charge) -> None:
    ledger = place.open(timeout=0.3)
    blocker = sqlite3.connect(place.path, isolation_level=None)
    blocker.execute("BEGIN IMMEDIATE")
    started = time.monotonic()
    assert "locked for 0.3 s" in refused(lambda: ledger.reserve(charge(1), Caps()))
    assert 0.25 < time.monotonic() - started < 60
    blocker.execute("ROLLBACK")
    blocker.close()
    assert ledger.reserve(charge(1), Caps()).sequence == 1
    ledger.close()


def test_a_replaced_file_is_noticed_while_open(place: Place, charge: Charge, tmp_path: Path) -> None:
    fill(place, charge)
    ledger = place.open()
    shutil.copy(place.path, tmp_path / "copy")
    os.replace(tmp_path / "copy", place.path)
    assert "replaced or removed" in refused(lambda: ledger.reserve(charge("next"), Caps()))
    place.path.unlink()
    assert "replaced or removed" in refused(lambda: ledger.spent("patient"))
    ledger.close()


def test_a_closed_ledger_says_so(place: Place, charge: Charge) -> None:
    ledger = place.open()
    ledger.close()
    ledger.close()
    assert "closed" in refused(lambda: ledger.reserve(charge(1), Caps()))


@pytest.mark.processes
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_does_not_use_its_parents_connection(place: Place, charge: Charge) -> None:
    with place.open() as ledger:
        child = os.fork()
        if child == 0:
            try:
                ledger.reserve(charge(1), Caps())
            except CannotOpen as refusal:
                os._exit(7 if "another process" in str(refusal.diagnostics[0].message) else 8)
            os._exit(9)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
        assert ledger.reserve(charge(1), Caps()).sequence == 1
