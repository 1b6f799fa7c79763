"""Power cuts at every moment of some runs: what was told holds, and ledger, head and stored answers open again."""

from __future__ import annotations

import datetime as dt
import os
import re
import shutil
import sqlite3
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from random import Random
from typing import Any

import pytest

from dpsql.answers.stored.analyst_account import answers_beside
from dpsql.answers.stored.store.sqlite import SqliteAnswers
from dpsql.core.ledger import sqlite as ledger_module
from dpsql.core.ledger import sqlite_file as files_module
from dpsql.core.ledger.chain import head as head_module
from dpsql.core.ledger.ledger import Caps, Entry, Receipt
from dpsql.core.ledger.released import StoredAnswer
from dpsql.core.privacy_loss import PrivacyLoss
from dpsql.diagnostics.errors import CannotOpen
from tests.core.ledger.conftest import Place
from tests.support.power_cuts import Disk, Everything, Nothing, Something, library

pytestmark = pytest.mark.skipif(library() is None, reason="SQLite is built into Python, and cannot be watched")

LOSS = {"patient": PrivacyLoss(Fraction(1, 10))}
NOON = dt.datetime(2026, 11, 20, 12, tzinfo=dt.UTC)


@dataclass(frozen=True)
class Shown:
    """Said when an answer was shown. older: a copy of the ledger from just before its charge."""

    older: Path


@dataclass(frozen=True)
class Flushed:
    """Said when the store was closed."""

    names: tuple[str, ...]


def place_in(folder: Path) -> Place:
    return Place(folder / "l.sqlite", folder / "state" / "head.json")


def answer(name: str) -> StoredAnswer:
    """Every third is long: several pages of the file."""
    values = tuple(range(3000)) if name.endswith("2") else (7,)
    return StoredAnswer(name, f"address of {name}", values, "laplace", Fraction(1), LOSS, Fraction(0), NOON)


def work(disk: Disk, backups: Path, sessions: int = 3, charges: int = 4) -> None:
    """Sessions that charge, store and show, one after the other; SQLite moves its logs into its files often."""
    place = place_in(disk.folder)
    for session in range(sessions):
        names = tuple(f"{session}.{i}" for i in range(charges))
        with place.open() as ledger:
            store = answers_beside(ledger)
            assert isinstance(store, SqliteAnswers)
            store.find(["nobody's"])
            ledger._connection.execute("PRAGMA wal_autocheckpoint=6")
            for name in names:
                older = backups / name
                with closing(sqlite3.connect(older)) as copy:
                    ledger._connection.backup(copy)
                disk.said(ledger.reserve(Entry(name, "ana", LOSS, "plan", "policy", "SQL", answers=(name,)), Caps()))
                store.add([answer(name)])
                store._connection().execute("PRAGMA wal_autocheckpoint=6")
                ledger.finish()
                disk.said(Shown(older))
            store.close()
            disk.said(Flushed(names))


def check(left: Place, promises: list[Any]) -> None:
    """Raises AssertionError or CannotOpen if the files do not keep what was promised."""
    receipts = [p for p in promises if isinstance(p, Receipt)]
    shown = [p for p in promises if isinstance(p, Shown)]
    if shown:
        again = Place(left.path.with_name("older.sqlite"), left.head)
        shutil.copy(shown[-1].older, again.path)
        with pytest.raises(CannotOpen, match="this is an older copy"):
            again.open()
    with left.open() as ledger:
        ledger.verify()
        assert list(ledger.history())[: len(receipts)] == receipts, "a charge was told and is lost"
        named = ledger.received()
    store = SqliteAnswers(Path(f"{left.path}.answers"))
    try:
        found = store.find([f"address of {s}.{i}" for s in range(9) for i in range(9)])
        names = {one.id for answers in found.values() for one in answers}
        assert all(list(answers) == [answer(answers[0].id)] for answers in found.values())
        assert names <= named, "an answer that no entry names"
        flushed = {name for p in promises if isinstance(p, Flushed) for name in p.names}
        assert flushed <= names, "an answer is lost that was flushed"
        store.add([answer("8.8")])
    finally:
        store.close()


def broken(disk: Disk, folder: Path) -> Iterator[str]:
    """What power cuts break: after every event, with nothing, all, or some of what was not flushed."""
    for at in range(len(disk.events) + 1):
        for how in (Nothing(), Everything(), Something(Random(at))):
            into = folder / "cut"
            promises = disk.cut(at, into, how)
            try:
                check(place_in(into), promises)
            except (AssertionError, CannotOpen, pytest.fail.Exception) as failure:
                yield f"after {at} events, with {how}: {failure}"
            shutil.rmtree(into)


@pytest.fixture
def written_down(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Disk]:
    def run(breaks: Callable[[pytest.MonkeyPatch], object] = lambda patches: None, sessions: int = 2) -> Disk:
        (tmp_path / "disk").mkdir()
        (tmp_path / "backups").mkdir()
        disk = Disk(tmp_path / "disk")
        with monkeypatch.context() as patches:
            disk.watch(patches)
            breaks(patches)
            work(disk, tmp_path / "backups", sessions)
        return disk

    return run


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Path]:
    """A folder where flushes take no time, if there is one."""
    quick = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=quick if os.access(quick, os.W_OK) else tmp_path) as name:
        yield Path(name)


def test_power_cuts_at_every_moment_take_nothing_that_was_told(written_down: Callable[..., Disk], memory: Path) -> None:
    disk = written_down()
    kinds = Counter(what for what, *_ in disk.events)
    assert kinds["write"] > 50 and kinds["flush"] > 20 and kinds["truncate"] + kinds["removed"] >= 4
    assert next(broken(disk, memory), "nothing") == "nothing"


def nothing(*_: object) -> None:
    """In place of a wait."""


def unsafe(connect: Callable[..., sqlite3.Connection]) -> Callable[..., sqlite3.Connection]:
    """Connections for which SQLite waits for nothing."""

    def opened(*given: Any) -> sqlite3.Connection:
        connection = connect(*given)
        connection.execute("PRAGMA synchronous=OFF")
        return connection

    return opened


BREAKS: dict[str, tuple[Callable[[pytest.MonkeyPatch], object], str]] = {
    "the charge is not flushed": (
        lambda patches: patches.setattr(ledger_module, "flush_file", nothing), "older copy|told and is lost",
    ),
    "the head is not waited for": (
        lambda patches: patches.setattr(head_module.Head, "_flush", nothing), "DID NOT RAISE",
    ),
    "the ledger's log is moved without a flush": (
        lambda patches: patches.setattr(files_module, "_connected", unsafe(files_module._connected)),
        "older copy|damaged|malformed|is lost|missing",
    ),
    "the answers' log is moved without a flush": (
        lambda patches: patches.setattr(SqliteAnswers, "_opened", unsafe(SqliteAnswers._opened)),
        "damaged|malformed|not a database|is lost",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", BREAKS)
def test_a_wait_that_is_left_out_is_noticed(name: str, written_down: Callable[..., Disk], memory: Path) -> None:
    breaks, words = BREAKS[name]
    found = next(broken(written_down(breaks), memory), "nothing")
    assert re.search(words, found), found


def test_a_charge_and_its_answer_wait_for_the_log_and_then_for_the_head(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two flushes for each question of a session, once there are files: there were six."""
    disk, place = Disk(tmp_path), place_in(tmp_path)
    disk.watch(monkeypatch)
    with place.open() as ledger:
        store = answers_beside(ledger)
        for name in "abc":
            disk.events.clear()
            store.find([f"address of {name}"])
            disk.said(ledger.reserve(Entry(name, "ana", LOSS, "plan", "policy", "SQL", answers=(name,)), Caps()))
            store.add([answer(name)])
            ledger.finish()
        done = [(what, path.name) for what, path, _ in disk.events if what != "write"]
        store.close()
    assert sorted(done) == [("flush", "head.json"), ("flush", "l.sqlite-wal"), ("said", tmp_path.name)]
    assert done.index(("flush", "l.sqlite-wal")) < done.index(("said", tmp_path.name))
