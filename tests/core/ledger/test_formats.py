"""Older ledgers: a file of format 1 becomes one of format 2 without any entry, hash or charge changing.

`format1.sqlite.gz` was written by dpsql before format 2: three entries, of `ana`, `ben` and `*`, for `clinic`.
"""

from __future__ import annotations

import gzip
import json
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from fractions import Fraction
from multiprocessing import get_context
from pathlib import Path

import pytest

from dpsql.core.ledger import sqlite
from dpsql.core.ledger import sqlite_schema as schema
from dpsql.core.ledger.hash_chain import FORMAT
from dpsql.core.ledger.ledger import Account, Caps, Entry
from dpsql.core.ledger.sqlite import accept_head
from dpsql.core.privacy_loss import PrivacyLoss
from dpsql.diagnostics.errors import CannotOpen
from tests.core.ledger.conftest import Place

F = Fraction
LAST = "48b5de17183d6ebc778747262520d1faf409c5c77ea7bce423d096322f3c036b"
ACCOUNTS = [
    Account("doctor", None, PrivacyLoss(F(1, 5) + F(1, 7))),
    Account("doctor", "*", PrivacyLoss(F(1, 7))),
    Account("doctor", "ben", PrivacyLoss(F(1, 5))),
    Account("patient", None, PrivacyLoss(F(1, 10) + F(1, 3), F(1, 10**9))),
    Account("patient", "ana", PrivacyLoss(F(1, 10))),
    Account("patient", "ben", PrivacyLoss(F(1, 3), F(1, 10**9))),
]


@pytest.fixture
def old(place: Place) -> Place:
    """A ledger of format 1 and its head."""
    with gzip.open(Path(__file__).parent / "format1.sqlite.gz") as stored:
        place.path.write_bytes(stored.read())
    place.head.parent.mkdir()
    place.head.write_text(json.dumps({"sequence": 3, "hash": LAST}))
    assert version(place) == 1
    return place


def version(place: Place) -> int:
    with closing(sqlite3.connect(place.path)) as connection:
        return int(connection.execute("PRAGMA user_version").fetchone()[0])


def rows(place: Place) -> list[tuple[object, ...]]:
    columns = "sequence, id, analyst, charges, plan_hash, policy_hash, statement, reserved_at, hash"
    with closing(sqlite3.connect(place.path)) as connection:
        return connection.execute(f"SELECT {columns} FROM entries ORDER BY sequence").fetchall()


def test_an_old_ledger_is_brought_up_to_date_and_keeps_every_entry_and_hash(old: Place) -> None:
    before = rows(old)
    with old.open() as ledger:
        assert ledger.verify() == 3
        assert ledger.history()[-1].hash == LAST
        assert ledger.accounts() == ACCOUNTS
        assert ledger.salt == 1958734683109666922
        assert {r.entry.answers for r in ledger.history()} == {()}
    assert rows(old) == before
    assert version(old) == FORMAT == 2


def test_it_then_holds_entries_of_both_forms(old: Place, charge: Callable[[object], Entry]) -> None:
    with old.open() as ledger:
        ledger.reserve(charge("plain"), Caps())
        ledger.reserve(Entry("d", "ana", {}, "p", "q", "", {"doctor": PrivacyLoss(F(1))}, ("n1", "n2")), Caps())
    with old.open() as ledger:
        assert ledger.verify() == 5
        assert ledger.received("ana") == {"n1", "n2"}
        assert ledger.spent("doctor", "ana") == PrivacyLoss(F(1))
        assert ledger.spent("doctor") == PrivacyLoss(F(1, 5) + F(1, 7))


def test_a_file_brought_up_to_date_has_the_tables_of_a_new_one(old: Place, tmp_path: Path) -> None:
    old.open().close()
    new = Place(tmp_path / "new.sqlite", tmp_path / "new.json")
    new.open().close()
    found = []
    for place in (old, new):
        with closing(sqlite3.connect(place.path)) as connection:
            found.append(set(connection.execute("SELECT type, name, tbl_name, sql FROM sqlite_master")))
    assert found[0] == found[1]


def test_a_change_made_before_is_noticed_after(old: Place) -> None:
    with closing(sqlite3.connect(old.path, isolation_level=None)) as connection:
        ((trigger,),) = connection.execute("SELECT sql FROM sqlite_master WHERE name = 'entries_update'").fetchall()
        connection.execute("DROP TRIGGER entries_update")
        connection.execute("UPDATE entries SET analyst = 'ana' WHERE sequence = 2")
        connection.execute(trigger)
    for _ in range(2):
        with pytest.raises(CannotOpen, match="entry 2 was changed"):
            old.open()


def test_an_old_file_whose_triggers_are_gone_is_refused_as_it_is(old: Place) -> None:
    with closing(sqlite3.connect(old.path, isolation_level=None)) as connection:
        connection.execute("DROP TRIGGER entries_delete")
    for _ in range(2):
        with pytest.raises(CannotOpen, match="triggers were changed"):
            old.open()
    assert version(old) == 1


def test_a_file_that_calls_itself_old_and_is_not_is_refused(place: Place) -> None:
    place.open().close()
    with closing(sqlite3.connect(place.path)) as connection:
        connection.execute("PRAGMA user_version = 1")
    with pytest.raises(CannotOpen, match="triggers were changed"):
        place.open()


def test_accepting_an_old_copy_brings_it_up_to_date(old: Place) -> None:
    old.head.unlink()
    with pytest.raises(CannotOpen, match="last entry is missing"):
        old.open()
    accept_head(old.path, old.head)
    with old.open() as ledger:
        assert ledger.verify() == 4  # one entry says that it was accepted


def test_what_fails_halfway_leaves_the_old_file(old: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    def half(connection: sqlite3.Connection) -> None:
        connection.execute("ALTER TABLE entries ADD COLUMN received TEXT NOT NULL DEFAULT '{}'")
        raise KeyboardInterrupt

    monkeypatch.setattr(schema, "upgrade", half)
    with pytest.raises(KeyboardInterrupt):
        old.open()
    monkeypatch.undo()
    assert version(old) == 1
    with old.open() as ledger:
        assert ledger.accounts() == ACCOUNTS


def test_a_full_disk_is_a_refusal_and_the_old_file_stays(old: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(connection: sqlite3.Connection) -> None:
        connection.execute("PRAGMA max_page_count=1")
        connection.execute("CREATE TABLE big AS SELECT randomblob(100000)")

    monkeypatch.setattr(sqlite.schema, "upgrade", full)
    with pytest.raises(CannotOpen, match="full"):
        old.open()
    assert version(old) == 1


@pytest.mark.processes
@pytest.mark.parametrize("done", [0, 1, 2])
def test_kill_9_while_it_is_brought_up_to_date_leaves_one_of_the_two_formats(old: Place, done: int) -> None:
    program = """
import os, signal, sys
from dpsql.core.ledger import sqlite_schema as schema
from dpsql.core.ledger.sqlite import SqliteLedger

def upgrade(connection):
    for column in schema._ADDED[: int(sys.argv[3])]:
        connection.execute(f"ALTER TABLE entries ADD COLUMN {column}")
    os.kill(os.getpid(), signal.SIGKILL)

schema.upgrade = upgrade
SqliteLedger.open(sys.argv[1], sys.argv[2], "clinic", "approx_dp")
"""
    command = [sys.executable, "-c", program, str(old.path), str(old.head), str(done)]
    assert subprocess.run(command, check=False).returncode == -9
    with old.open() as ledger:
        assert ledger.accounts() == ACCOUNTS and ledger.verify() == 3
    assert version(old) == 2


def _open(place: Place, gate: object, found: object) -> None:
    gate.wait()  # type: ignore[attr-defined]
    with place.open(timeout=600) as ledger:
        found.put(ledger.verify())  # type: ignore[attr-defined]


@pytest.mark.processes
def test_processes_that_open_an_old_file_at_once_upgrade_it_once(old: Place) -> None:
    context = get_context("spawn")
    gate, found = context.Barrier(4), context.Queue()
    children = [context.Process(target=_open, args=(old, gate, found)) for _ in range(4)]
    for child in children:
        child.start()
    assert [found.get(timeout=600) for _ in children] == [3] * 4
    for child in children:
        child.join()
    assert version(old) == 2
