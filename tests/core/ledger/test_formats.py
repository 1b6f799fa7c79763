"""Older ledgers: a file of format 1 or 2 becomes one of format 3 without any entry, hash or charge changing.

`format1.sqlite.gz` was written by dpsql before format 2: three entries, of `ana`, `ben` and `*`, for `clinic`.
`format2.ACCOUNTANT.sqlite.gz` were written before format 3, with an entry of each kind that there was.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from fractions import Fraction
from multiprocessing import get_context
from pathlib import Path

import pytest

from dpsql.core.ledger import sqlite
from dpsql.core.ledger import sqlite_schema as schema
from dpsql.core.ledger.chain.hash_chain import FORMAT, LedgerRow, Point
from dpsql.core.ledger.ledger import Account, Caps, Entry, EntryKind
from dpsql.core.ledger.sqlite import SqliteLedger, accept_head
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
    put(place, "format1.sqlite.gz", LAST, 3)
    assert version(place) == 1
    return place


@dataclass(frozen=True)
class Old:
    """A ledger of format 2, with the last hash of its seven entries."""

    place: Place
    accountant: str
    last: str

    def open(self) -> SqliteLedger:
        return self.place.open(accountant=self.accountant)


SECOND = {
    "pure_dp": "aab0e82acab814b322b6a4304db044d9d03f3b18b4f102f8de51fe29b2342f95",
    "approx_dp": "5402282c1ef1d349c85f86c0820a1d99095bde52746685816ad35d35125964bd",
    "zcdp": "94c9de1aa053a9116af36089beb3008e5b0985225d22431d7b2af6f07ec461d1",
}


def put(place: Place, name: str, last: str, entries: int) -> None:
    with gzip.open(Path(__file__).parent / name) as stored:
        place.path.write_bytes(stored.read())
    place.head.parent.mkdir()
    place.head.write_text(json.dumps({"sequence": entries, "hash": last}))


@pytest.fixture(params=SECOND)
def second(place: Place, request: pytest.FixtureRequest) -> Old:
    """A ledger of format 2 of each accountant, and its head."""
    put(place, f"format2.{request.param}.sqlite.gz", SECOND[request.param], 7)
    assert version(place) == 2
    return Old(place, request.param, SECOND[request.param])


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
    assert version(old) == FORMAT == 3


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
    def half(connection: sqlite3.Connection, form: int) -> None:
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
    def full(connection: sqlite3.Connection, form: int) -> None:
        connection.execute("PRAGMA max_page_count=1")
        connection.execute("CREATE TABLE big AS SELECT randomblob(100000)")

    monkeypatch.setattr(sqlite.schema, "upgrade", full)
    with pytest.raises(CannotOpen, match="full"):
        old.open()
    assert version(old) == 1


@pytest.mark.processes
@pytest.mark.parametrize("done", [0, 1, 2, 3, 4])
def test_kill_9_while_it_is_brought_up_to_date_leaves_one_of_the_two_formats(old: Place, done: int) -> None:
    program = """
import os, signal, sys
from dpsql.core.ledger import sqlite_schema as schema
from dpsql.core.ledger.sqlite import SqliteLedger

def upgrade(connection, form):
    for column in schema._columns(form)[: int(sys.argv[3])]:
        connection.execute(f"ALTER TABLE entries ADD COLUMN {column}")
    os.kill(os.getpid(), signal.SIGKILL)

schema.upgrade = upgrade
SqliteLedger.open(sys.argv[1], sys.argv[2], "clinic", "approx_dp")
"""
    command = [sys.executable, "-c", program, str(old.path), str(old.head), str(done)]
    assert subprocess.run(command, check=False).returncode == -9
    with old.open() as ledger:
        assert ledger.accounts() == ACCOUNTS and ledger.verify() == 3
    assert version(old) == FORMAT


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
    assert version(old) == FORMAT


# --- format 2 ---------------------------------------------------------------------------------------------------------


def test_entries_of_format_2_keep_their_hashes_and_are_what_they_were(second: Old) -> None:
    before = rows(second.place)
    with second.open() as ledger:
        assert ledger.verify() == 7 and ledger.history()[-1].hash == second.last
        kinds = [r.entry.kind.value for r in ledger.history()]
        assert kinds == ["charge", "charge", "charge", "definition", "charge", "acceptance", "definition"]
        assert [e.id for e in ledger.definitions()] == ["d", "g"]
        third = PrivacyLoss(rho=F(1, 6)) if second.accountant == "zcdp" else PrivacyLoss(F(1, 3))
        delta = F(0) if second.accountant == "pure_dp" else F(1, 10**9)
        assert ledger.spent("doctor") in (PrivacyLoss(F(1, 7)), PrivacyLoss(rho=F(1, 14)))
        patient = ledger.spent("patient", "ben")
        assert (patient.delta, patient.epsilon - third.epsilon + patient.rho - third.rho) in (
            (delta, F(1, 5)), (delta, F(1, 10)),
        )  # fmt: skip
        assert ledger.received("ana") == {"n1", "n2", "n3"} and ledger.received("ben") == {"n1"}
    assert rows(second.place) == before and version(second.place) == FORMAT


def test_failures_of_format_2_are_read_by_how_they_begin(old: Place) -> None:
    """They came just before format 3."""
    with old.open() as ledger:
        tip = ledger.history()[-1]
    point = Point(tip.sequence, tip.hash)
    with closing(sqlite3.connect(old.path, isolation_level=None)) as connection:
        for text, charges in (
            ("STATEMENT FAILED 2026-01-01T00:00:00+00:00 failed x", "{}"),
            ("FAILURES LOOKED AT by me", "{}"),
            ("STATEMENT FAILED y", "{}"),
            ("FAILURES LOOKED AT by a query", '{"patient":["1","0","0"]}'),
        ):
            row = LedgerRow(point.sequence + 1, f"id{point.sequence}", "ana", charges, "", "", text, "", "")
            row = row._replace(hash=row._hash_after(point))
            connection.execute(f"INSERT INTO entries VALUES ({', '.join('?' * len(row))})", row)
            point = row.point
    with old.open() as ledger:
        assert [r.entry.kind.value for r in ledger.history()[3:]] == ["failure", "look", "failure", "charge"]
        assert [f.account for f in ledger.failures()] == ["ana"]


def test_new_entries_stand_behind_old_ones(second: Old) -> None:
    loss = PrivacyLoss(rho=F(1, 9)) if second.accountant == "zcdp" else PrivacyLoss(F(1, 9))
    with second.open() as ledger:
        ledger.reserve(Entry("h", "ana", {"patient": loss}, "p", "q", "CREATE DP SUMMARY "), Caps())
        ledger.reserve(Entry("i", "ana", {}, "p", "q", "a name", kind=EntryKind.DEFINITION), Caps())
        ledger.reserve(Entry("j", "ana", {}, "p", "q", "CREATE DP SUMMARY t", answers=("n4",)), Caps())
    with second.open() as ledger:
        assert ledger.verify() == 10
        assert [e.id for e in ledger.definitions()] == ["d", "g", "i"]  # its kind says so, not how it begins


# --- what an older gateway makes of this one's entries ----------------------------------------------------------------


def test_a_gateway_of_format_2_refuses_a_file_of_format_3(
    place: Place, charge: Callable[[object], Entry], monkeypatch: pytest.MonkeyPatch
) -> None:
    with place.open() as ledger:
        ledger.reserve(charge("a"), Caps())
    monkeypatch.setattr(schema, "FORMAT", 2)  # the check is the one that it had
    with pytest.raises(CannotOpen, match=r"a newer dpsql wrote it \(format 3; this version reads 2\)"):
        place.open()


@pytest.mark.parametrize("kind", [EntryKind.CHARGE, EntryKind.DEFINITION])
def test_a_gateway_of_format_2_that_was_open_meanwhile_finds_a_new_entry_changed(kind: EntryKind) -> None:
    """It reads on by the columns it knows, and their hash is another one: it refuses to charge."""
    last = Point(1, "0" * 64)
    row = LedgerRow.after(last, Entry("a", "ana", {}, "p", "q", answers=("n",), kind=kind), "2026-01-01T00:00:00+00:00")
    for known in (row[:8], (*row[:8], *row[9:11])):
        text = json.dumps([last.hash, *known], ensure_ascii=True, separators=(",", ":"))
        assert hashlib.sha256(text.encode()).hexdigest() != row.hash


# --- what this one makes of a later one's -----------------------------------------------------------------------------


def later(place: Place, kind: str, about: str = "{}", charges: str = "{}") -> None:
    """Put an entry of a later version behind the last one."""
    with place.open() as ledger:
        tip = ledger.history()[-1]
    row = LedgerRow(tip.sequence + 1, "later", "custodian", charges, "", "", "CLOSE", "", "", kind=kind, about=about)
    row = row._replace(hash=row._hash_after(Point(tip.sequence, tip.hash)))
    with closing(sqlite3.connect(place.path, isolation_level=None)) as connection:
        connection.execute(f"INSERT INTO entries VALUES ({', '.join('?' * len(row))})", row)


@pytest.mark.parametrize(
    ("kind", "about"),
    [
        ("unheard of", "{}"),
        ("charge", '{"more":1}'),
        ("charge", '{"regions":{"patient":[["2026-01-01",null,["1","0","0"]]]}}'),
        ("charge", '{"fixed":[[1,null,["1","0","0"]]]}'),
        ("charge", "[]"),
        ("charge", "{"),
    ],
)
def test_what_dpsql_never_writes_is_refused_unread(
    place: Place, charge: Callable[[object], Entry], kind: str, about: str
) -> None:
    with place.open() as ledger:
        ledger.reserve(charge("a"), Caps())
    later(place, kind, about)
    with pytest.raises(CannotOpen, match="entry 2 is not one that dpsql writes"):
        place.open()
