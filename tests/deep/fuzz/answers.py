"""Files of stored answers: however one is damaged, it is refused, or what it yields is what was stored.

An answer that is lost is paid for again. One that is changed would be shown wrong, or counted for less than it cost.
An input is a script of edits (files.py) of a file with five answers.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from functools import cache
from pathlib import Path
from random import Random

from dpsql.answers.stored.store.sqlite import SqliteAnswers
from dpsql.core.ledger.released import ShownKeys, StoredAnswer
from dpsql.core.privacy_loss import PrivacyLoss
from dpsql.diagnostics.errors import CannotOpen
from tests.deep.fuzz import files
from tests.deep.fuzz.target import Target, damaged, rearranged

NOON = dt.datetime(2026, 11, 20, 12, tzinfo=dt.UTC)
SHOWN = ShownKeys((("north", 1), ("é", None)), 15, 1, 1, Fraction(1, 10**9))
ANSWERS = (
    StoredAnswer(
        "n1", "a", (1, -(2**90)), "laplace", Fraction(10, 3), {"p": PrivacyLoss(Fraction(1, 3))}, Fraction(0), NOON
    ),
    StoredAnswer(
        "n2", "b", (7,), "gaussian", Fraction(99), {"p": PrivacyLoss(rho=Fraction(1, 7))}, Fraction(1, 10**7), NOON
    ),
    StoredAnswer("n3", "a", (5, 6), "laplace", Fraction(1, 2), {"p": PrivacyLoss(Fraction(2))}, Fraction(0), NOON),
    StoredAnswer(
        "n4", "k", (20, 16), "laplace", Fraction(2), {"p": PrivacyLoss(Fraction(1))}, Fraction(0), NOON, SHOWN
    ),
    StoredAnswer(
        "n5", "x" * 64, tuple(range(1500)), "laplace", Fraction(2), {"q": PrivacyLoss(Fraction(1))}, Fraction(0), NOON
    ),
)
ADDRESSES = ("a", "b", "k", "x" * 64, "nobody's")
LATER = replace(ANSWERS[0], id="later", address="b")

COLUMNS = ("number", "id", "address", "numbers", "mechanism", "parameter", "losses", "conversion", "made_at", "shown")
NEW = ("NULL", "''", "'0'", "'1/9'", "'[1,2]'", "'[1,2.5]'", "'{}'", "'a'", "x'31'", "1", "-1", "1e999", "'1e99999999'",
       "'1/0'", "'[[['", "'{\"p\": [\"-1\", \"0\", \"0\"]}'", "'laplacf'", "x'ff'", "CAST(x'ff' AS TEXT)",
       "'2026-11-20T12:00:00'", "zeroblob(5000)", "replace(hex(zeroblob(3000)), '0', '[')",
       "char(0) || 'a'")  # fmt: skip


@cache
def intact() -> bytes:
    """The file before anything happens to it."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "ledger.answers"
        for some in (ANSWERS[:3], ANSWERS[3:]):
            store = SqliteAnswers(path)
            store.add(some)
            store.close()  # what is in the log goes into the file
        return path.read_bytes()


def one(data: bytes) -> str:
    """Damage the file, ask for everything and add to it: `found`, `fewer`, or the code it is refused with."""
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        path = Path(folder) / "ledger.answers"
        path.write_bytes(intact())
        known = {"answers": path} | {end: path.with_name(f"{path.name}-{end}") for end in ("journal", "wal")}
        for line in data.decode("utf-8", "surrogateescape").split("\n")[:20]:
            files.apply(line, known)
        before = path.read_bytes() if path.exists() else None
        store = SqliteAnswers(path, timeout=0.05, patience=0.05)
        stack.callback(store.close)
        found = looked_up(store)
        if found is None and not known["journal"].exists() and not known["wal"].exists():
            assert path.read_bytes() == before, "a refused file was written to"
        try:
            store.add([LATER])
            added = True
        except CannotOpen as refusal:
            expected(refusal)
            added = False
        again = looked_up(store)
        if added and again is not None:
            assert again.pop("b", [])[-1:] == [LATER], "what was stored is not found"
        assert added or again == found, "a refused addition changed what is found"
        if found is None:
            return "DP407"
        return "found" if sum(map(len, found.values())) == len(ANSWERS) else "fewer"


def looked_up(store: SqliteAnswers) -> dict[str, list[StoredAnswer]] | None:
    """What is found at every address, checked; None if the file is refused."""
    try:
        found = store.find(ADDRESSES)
    except CannotOpen as refusal:
        expected(refusal)
        return None
    stored = {a.id: a for a in (*ANSWERS, LATER)}
    for address, answers in found.items():
        assert answers, "an address without answers"
        for answer in answers:
            assert stored.get(answer.id) == answer, f"{answer.id} is not what was stored"
            assert answer.address == address
    return {address: list(answers) for address, answers in found.items()}


def expected(refusal: CannotOpen) -> None:
    """A refusal has its code, and words."""
    assert [d.code for d in refusal.diagnostics] == ["DP407"] and str(refusal)


def statements() -> Sequence[str]:
    """SQL that changes one thing about the file."""
    changed = [
        f"UPDATE answers SET {column} = {value} WHERE id = 'n{number}'"
        for column in COLUMNS
        for value in NEW
        for number in (1, 4)
    ]
    changed += [f"UPDATE answers SET {c} = CAST({c} AS BLOB)" for c in COLUMNS]
    changed += ["UPDATE answers SET id = 'n9' WHERE id = 'n1'", "UPDATE answers SET address = 'b' WHERE address = 'a'"]
    return [
        *changed, "DELETE FROM answers", "DELETE FROM answers WHERE id = 'n3'", "DROP TABLE answers", "VACUUM",
        "DROP INDEX answers_address", "PRAGMA user_version=0", "PRAGMA user_version=1", "PRAGMA user_version=3",
        "PRAGMA application_id=0", "ALTER TABLE answers RENAME COLUMN shown TO hidden", "REINDEX",
        "ALTER TABLE answers ADD COLUMN more TEXT", "PRAGMA journal_mode=WAL", "PRAGMA encoding='UTF-16'",
        "CREATE VIEW v AS SELECT 1", "UPDATE sqlite_master SET sql = NULL", "PRAGMA auto_vacuum=1",
        "CREATE TRIGGER t BEFORE INSERT ON answers BEGIN SELECT RAISE(IGNORE); END",
        "CREATE TRIGGER t AFTER INSERT ON answers BEGIN DELETE FROM answers; END",
        "UPDATE answers SET losses = '{\"p\": [\"1/9\", \"0\", \"0\"]}' WHERE id = 'n1'",
    ]  # fmt: skip


def mutate(data: bytes, rng: Random, others: Sequence[bytes]) -> bytes:
    """One or two lines changed; now and then bytes."""
    for _ in range(rng.choice((1, 1, 2))):
        data = rearranged(
            data, rng, others, lambda r: files.line(r, ("answers",) * 6 + ("journal", "wal"), statements())
        )
    return damaged(data, rng, others, [b"sql ", b"\n", b"NULL"]) if rng.random() < 0.1 else data


TARGET = Target("answers", one, mutate)
