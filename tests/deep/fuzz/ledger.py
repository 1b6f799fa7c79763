"""Ledger files and heads: however one of the two is damaged, the ledger is refused, or it holds what it held.

*Never more left.* An entry that was charged is charged still, or nothing is answered. What is forged behind the last
entry can only add to what is spent. An input is a script of edits (files.py) of a ledger with five entries, and:

    wal                     at the start: all entries lie in the -wal file yet, as after a kill
    older N                 the ledger as it was after N entries
    forge COLUMN JSON       one more entry, its hash right, with this value in one column
    accept                  the custodian accepts the ledger as it stands, and may lose its last entries by that
"""

from __future__ import annotations

import json
import sqlite3
import tempfile
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from fractions import Fraction
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

from dpsql.core.ledger import sqlite_schema as schema
from dpsql.core.ledger.chain.hash_chain import Identity, LedgerRow
from dpsql.core.ledger.chain.head import Head
from dpsql.core.ledger.ledger import Caps, Entry, Receipt
from dpsql.core.ledger.sqlite import SqliteLedger, accept_head
from dpsql.core.privacy_loss import PrivacyLoss
from dpsql.diagnostics.errors import CannotOpen
from tests.deep.fuzz import files
from tests.deep.fuzz.target import Target, damaged, rearranged

DATASET, ACCOUNTANT = "clinic", "approx_dp"
IDENTITY = Identity(DATASET, ACCOUNTANT, 123456789, "0123456789abcdef" * 2)
ENTRIES = 5
COLUMNS = LedgerRow._fields
MARKS = ", ".join("?" * len(COLUMNS))
Image = dict[str, bytes]
"""File → content, of a ledger's files at one moment."""


def entry(number: int) -> Entry:
    """The request of one entry."""
    loss = PrivacyLoss(Fraction(number, 10), Fraction(1, 10**9))
    received = {"patient": PrivacyLoss(Fraction(1, 100))} if number == 4 else {}
    analyst = "ana" if number % 2 else "ben"
    return Entry(f"id{number}", analyst, {"patient": loss}, "plan", "policy", "SELECT 1", received, (f"n{number}",))


LATER = replace(entry(9), id="later")


@cache
def image(entries: int, in_log: bool) -> Image:
    """The files of a healthy ledger; the same every time."""
    with tempfile.TemporaryDirectory() as folder:
        path, head = places(Path(folder))
        with closing(sqlite3.connect(path, isolation_level=None)) as connection:
            connection.execute("PRAGMA journal_mode=WAL")
            schema.create(connection, IDENTITY)
            point = IDENTITY.origin
            for number in range(1, entries + 1):
                row = LedgerRow.after(point, entry(number), f"2026-11-20T12:00:0{number}+00:00")
                connection.execute(f"INSERT INTO entries ({', '.join(COLUMNS)}) VALUES ({MARKS})", row)
                Head(head, 1).advance(number, lambda at=row.point: at)  # type: ignore[misc]
                point = row.point
            if in_log:
                return {p.name: p.read_bytes() for p in (path, head, log(path)) if p.exists()}
        return {p.name: p.read_bytes() for p in (path, head) if p.exists()}


def places(folder: Path) -> tuple[Path, Path]:
    """Of the ledger and its head."""
    return folder / "ledger.sqlite", folder / "ledger.head"


def log(path: Path) -> Path:
    """SQLite's write-ahead log."""
    return path.with_name(path.name + "-wal")


@cache
def healthy() -> tuple[tuple[Receipt, ...], dict[tuple[str, str | None], PrivacyLoss]]:
    """What an undamaged ledger says: its history, and (unit, analyst) → spent."""
    for number in range(ENTRIES + 1):  # made now, before anybody breaks what makes them
        image(number, True), image(number, False)
    with tempfile.TemporaryDirectory() as folder:
        _lay(Path(folder), image(ENTRIES, False))
        with _opened(Path(folder)) as ledger:
            return tuple(ledger.history()), {(a.unit, a.analyst): a.spent for a in ledger.accounts()}


def one(data: bytes) -> str:
    """Damage a ledger and use it: `opened`, `accepted`, or the code it is refused with."""
    healthy()
    with tempfile.TemporaryDirectory() as name:
        folder, lines = Path(name), data.decode("utf-8", "surrogateescape").split("\n")[:20]
        _lay(folder, image(ENTRIES, lines[0] == "wal"))
        path, head = places(folder)
        edited = _damage(folder, lines)
        accepted = "accept" in lines and _accept(folder)
        # Two damaged files, or a custodian who says so, may make an older ledger of it; nothing else may.
        lossy = accepted or {"head"} < edited
        before = {p.name: p.read_bytes() for p in (path, head) if p.exists() and p.stat().st_size}
        first = _look(folder, lossy)
        if first is None:
            if not log(path).exists() and "wal" not in lines:
                assert {n: (folder / n).read_bytes() for n in before} == before, "a refused ledger was written to"
            assert _look(folder, lossy) is None, "a refused ledger opens the second time"
            return "DP407"
        _charge(folder, lossy)
        return "accepted" if accepted else "opened" if len(first) == ENTRIES else f"opened with {len(first)}"


def _lay(folder: Path, content: Image) -> None:
    for name, data in content.items():
        (folder / name).write_bytes(data)


def _opened(folder: Path) -> SqliteLedger:
    path, head = places(folder)
    return SqliteLedger.open(path, head, DATASET, ACCOUNTANT, timeout=0.05)


def _damage(folder: Path, lines: Sequence[str]) -> set[str]:
    """Do every edit. Returns what was edited: `ledger`, `head`."""
    path, head = places(folder)
    known = {"ledger": path, "head": head, "wal": log(path), "shm": path.with_name(path.name + "-shm")}
    edited: set[str] = set()
    for line in lines:
        word, _, rest = line.partition(" ")
        if word == "older" and rest.isdigit():
            old = image(int(rest) % ENTRIES, lines[0] == "wal")
            _lay(folder, {n: content for n, content in old.items() if n != head.name})
            edited.add("ledger")
        elif word == "forge":
            edited |= {"ledger"} if _forge(path, *rest.partition(" ")[::2]) else set()
        elif (name := files.apply(line, known)) is not None:
            edited.add("head" if name == "head" else "ledger")
    return edited


def _forge(path: Path, column: str, text: str) -> bool:
    """Append an entry with a right hash; False if the file cannot take it."""
    try:
        value: Any = json.loads(text)
        with closing(sqlite3.connect(path, isolation_level=None, timeout=0.05)) as connection:
            names = ", ".join(COLUMNS)
            last = connection.execute(f"SELECT {names} FROM entries ORDER BY sequence DESC LIMIT 1").fetchone()
            row = LedgerRow.after(LedgerRow(*last).point, entry(6), "2026-11-21T00:00:00+00:00")
            row = row._replace(**{column: value})
            row = row if column == "hash" else row._replace(hash=row._hash_after(LedgerRow(*last).point))
            connection.execute(f"INSERT INTO entries ({names}) VALUES ({MARKS})", row)
    except (sqlite3.Error, ValueError, TypeError, AttributeError, RecursionError, OverflowError):
        return False
    return True


def _accept(folder: Path) -> bool:
    path, head = places(folder)
    try:
        accept_head(path, head, timeout=0.05)
    except CannotOpen as refusal:
        expected(refusal)
        return False
    return True


def _look(folder: Path, lossy: bool) -> tuple[Receipt, ...] | None:
    """The entries of the ledger, checked; None if it is refused."""
    try:
        with _opened(folder) as ledger:
            found = tuple(ledger.history())
            accounts = {(a.unit, a.analyst): a.spent for a in ledger.accounts()}
            salt = ledger.salt
            try:
                assert ledger.verify() == len(found)
            except CannotOpen as refusal:
                expected(refusal)
    except CannotOpen as refusal:
        expected(refusal)
        return None
    history, spent = healthy()
    known = {r.entry.id for r in history}
    kept = sum(r.entry.id in known for r in found) if lossy else len(history)
    assert found[:kept] == history[:kept], "an entry is lost or changed"
    if not lossy:
        assert salt == IDENTITY.salt
        for account, loss in spent.items():
            assert loss.within(accounts.get(account, PrivacyLoss())), f"{account} has more left than before"
    return found


def _charge(folder: Path, lossy: bool) -> None:
    """Charge one more entry: it is there afterwards, or a refusal says that it is not."""
    before = _look(folder, lossy)
    try:
        with _opened(folder) as ledger:
            receipt = ledger.reserve(LATER, Caps())
    except CannotOpen as refusal:
        expected(refusal)
        after = _look(folder, lossy)
        assert after is None or before is None or after[: len(before)] == before
        return
    after = _look(folder, lossy)
    assert after is not None and before is not None and after == (*before, receipt)


def expected(refusal: CannotOpen) -> None:
    """A refusal has its code, and words."""
    assert [d.code for d in refusal.diagnostics] == ["DP407"] and str(refusal)


NEW = ("NULL", "''", "'0'", "'{}'", "'[]'", "'ana'", "x'31'", "1", "-1", "1e999", "x'ff'", "CAST(x'ff' AS TEXT)",
       "char(0) || 'a'", "zeroblob(100)", "'{\"patient\":[\"0\",\"0\",\"0\"]}'")  # fmt: skip


def statements() -> Sequence[str]:
    """SQL that changes one thing about the file."""
    changed = [f"UPDATE entries SET {c} = {v} WHERE sequence = {n}" for c in COLUMNS for v in NEW for n in (1, 5)]
    changed += [f"UPDATE entries SET {c} = CAST({c} AS BLOB)" for c in COLUMNS]
    changed += [
        f"UPDATE identity SET value = {value} WHERE name = '{name}'"
        for name in ("dataset", "accountant", "salt", "nonce")
        for value in (*NEW, "CAST(value AS BLOB)", "replace(hex(zeroblob(3000)), '0', '7')", "'zcdp'")
    ]
    return [
        *changed, "DELETE FROM entries", "DELETE FROM entries WHERE sequence = 5",
        "DELETE FROM entries WHERE id = 'id3'",
        "UPDATE entries SET sequence = sequence + 1 WHERE sequence = 5", "DELETE FROM identity", "DROP TABLE entries",
        "DROP TABLE identity", "DROP TRIGGER entries_update", "UPDATE entries SET sequence = -sequence", "VACUUM",
        "PRAGMA user_version=1", "PRAGMA user_version=3", "PRAGMA user_version=0", "PRAGMA application_id=0", "REINDEX",
        "ALTER TABLE entries ADD COLUMN more TEXT", "ALTER TABLE entries DROP COLUMN answers",
        "PRAGMA journal_mode=DELETE", "PRAGMA wal_checkpoint(TRUNCATE)", "PRAGMA encoding='UTF-16'",
        "CREATE VIEW v AS SELECT 1", "CREATE TEMP TABLE entries (x)", "CREATE INDEX i ON entries (analyst)",
        "CREATE TRIGGER t AFTER INSERT ON entries BEGIN SELECT 1; END", "PRAGMA schema_version=77",
        "UPDATE identity SET name = CAST(name AS BLOB)", "INSERT INTO identity VALUES ('more', '1')",
    ]  # fmt: skip


FORGED = ('"{}"', '"[]"', '""', '"x"', "null", "1", '"{\\"patient\\":[\\"-1\\",\\"0\\",\\"0\\"]}"', '"\\u0000"',
          '"{\\"patient\\":[\\"1e99999\\",\\"0\\",\\"0\\"]}"', '"{\\"patient\\":[\\"1/0\\",\\"0\\",\\"0\\"]}"', '"[[["',
          '"{\\"patient\\":[0.5]}"', '"{\\"patient\\":1}"', '"{\\"patient\\":[\\"0\\",\\"0\\",\\"1\\"]}"', '"[1]"',
          '"{\\"a\\":1}"',
          '"[[]]"', '"{\\"patient\\":[\\"nan\\"]}"', '"null"', '"1"', '"\\"abc\\""',
          '"{\\"patient\\":\\"123\\"}"')  # fmt: skip
"""Values of a column, as JSON."""


def _line(rng: Random) -> bytes:
    match rng.randrange(12):
        case 0:
            return f"forge {rng.choice(COLUMNS)} {rng.choice(FORGED)}".encode()
        case 1:
            return f"older {rng.randrange(ENTRIES)}".encode()
        case 2:
            return b"accept"
        case _:
            return files.line(rng, ("ledger",) * 6 + ("head",) * 3 + ("wal", "wal", "shm"), statements())


def mutate(data: bytes, rng: Random, others: Sequence[bytes]) -> bytes:
    """One or two lines changed; now and then bytes, or where the entries lie."""
    for _ in range(rng.choice((1, 1, 2))):
        data = rearranged(data, rng, others, _line)
    if rng.random() < 0.1:
        data = data.removeprefix(b"wal\n") if data.startswith(b"wal\n") else b"wal\n" + data
    return damaged(data, rng, others, [b"sql ", b"\n", b"NULL", b"head"]) if rng.random() < 0.1 else data


TARGET = Target("ledger", one, mutate)
