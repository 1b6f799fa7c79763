"""The hash chain over a ledger's entries: what is hashed, how a stored entry is read back and checked.

Each entry's hash covers the previous hash and every stored column, and the first one starts from a hash of the ledger's
own identity, so no stored value can be changed, dropped, reordered or added in the middle without changing the last
hash. The chain has no key: it makes tampering visible to whoever knows the last hash (the head), no more.
"""

from __future__ import annotations

import hashlib
import json
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache

from dpsql.core.ledger.ledger import Entry, Receipt
from dpsql.core.privacy_loss import PrivacyLoss

FORMAT = 2
"""Version of the stored form; a file with a higher one is refused, one with a lower one is brought up
(sqlite_schema.py). Format 2 has two columns more, `received` and `answers`; an entry without either is hashed as in
format 1."""

_ORIGIN = 1
"""The format in which ledgers began: part of every first hash, whatever the file's format is now."""

NOTHING_RECEIVED, NO_ANSWERS = "{}", "[]"
"""What the columns of format 2 hold in entries that have no use for them."""


class BrokenChain(Exception):
    """A stored entry does not follow from the one before it; the message says which."""


@dataclass(frozen=True, slots=True)
class Point:
    """A place in the chain: entries so far, and the hash of the last one (the origin's hash for 0)."""

    sequence: int
    hash: str


@dataclass(frozen=True, slots=True)
class Identity:
    """What a ledger is for, fixed when it is made. `nonce` keeps the salt from being guessed from a hash."""

    dataset: str
    accountant: str
    salt: int
    nonce: str

    @classmethod
    def new(cls, dataset: str, accountant: str) -> Identity:
        """A fresh identity: 62 secret bits of salt and 128 of nonce, from the operating system."""
        return cls(dataset, accountant, secrets.randbits(62), secrets.token_hex(16))

    @property
    def origin(self) -> Point:
        """Where the chain starts."""
        return Point(0, _digest([_ORIGIN, self.dataset, self.accountant, self.salt, self.nonce]))


@dataclass(frozen=True, slots=True)
class Row:
    """An entry as it is stored, in column order."""

    sequence: int
    id: str
    analyst: str
    charges: str
    plan_hash: str
    policy_hash: str
    statement: str
    reserved_at: str
    hash: str
    received: str = NOTHING_RECEIVED
    answers: str = NO_ANSWERS

    @classmethod
    def after(cls, last: Point, entry: Entry, reserved_at: str) -> Row:
        """The row that stores `entry` next."""
        row = cls(
            last.sequence + 1,
            entry.id,
            entry.analyst,
            _write_losses(entry.charges),
            entry.plan_hash,
            entry.policy_hash,
            entry.statement,
            reserved_at,
            hash="",
            received=_write_losses(entry.received),
            answers=_TEXT(entry.answers),
        )
        return replace(row, hash=row._hash_after(last))

    def follows(self, last: Point) -> Receipt:
        """Check that this row comes right after `last` and is unchanged; return what it stores. BrokenChain if not."""
        if self.sequence != last.sequence + 1:
            raise BrokenChain(f"entry {last.sequence + 1} is missing")
        if any(not isinstance(column, str) for column in self.columns[1:]) or self.hash != self._hash_after(last):
            raise BrokenChain(f"entry {self.sequence} was changed after it was written")
        try:
            return self.receipt()
        except (ValueError, TypeError, AttributeError, ArithmeticError, RecursionError):
            # The chain has no key: whoever can write the file can give anything a right hash.
            raise BrokenChain(f"entry {self.sequence} is not one that dpsql writes") from None

    @property
    def columns(self) -> tuple[object, ...]:
        """Every stored value, in column order."""
        return (
            self.sequence,
            self.id,
            self.analyst,
            self.charges,
            self.plan_hash,
            self.policy_hash,
            self.statement,
            self.reserved_at,
            self.hash,
            self.received,
            self.answers,
        )

    def _hash_after(self, last: Point) -> str:
        first, (_, received, answers) = self.columns[:8], self.columns[8:]
        # Lists of different lengths never have the same JSON, so neither form can be taken for the other.
        later = () if (received, answers) == (NOTHING_RECEIVED, NO_ANSWERS) else (received, answers)
        return _digest([last.hash, *first, *later])

    def receipt(self) -> Receipt:
        """The receipt for this row, its hash unchecked. Raises ValueError, among others, if it is not one's."""
        entry = Entry(
            self.id,
            self.analyst,
            _read_losses(self.charges),
            self.plan_hash,
            self.policy_hash,
            self.statement,
            _read_losses(self.received),
            () if self.answers == NO_ANSWERS else _read_names(self.answers),
        )
        return Receipt(entry, self.sequence, self.hash, self.reserved_at)

    @property
    def point(self) -> Point:
        """This row's place in the chain."""
        return Point(self.sequence, self.hash)


# Made once: reserving and opening spend most of their time here.
_ASCII = json.JSONEncoder(ensure_ascii=True, separators=(",", ":")).encode
_TEXT = json.JSONEncoder(ensure_ascii=False, sort_keys=True, separators=(",", ":")).encode


def _digest(values: list[object]) -> str:
    # Lists nest unambiguously in JSON, and ASCII escapes make one text of one value.
    return hashlib.sha256(_ASCII(values).encode("ascii")).hexdigest()


def _write_losses(losses: Mapping[str, PrivacyLoss]) -> str:
    exact = {
        unit: [str(Fraction(part)) for part in (loss.epsilon, loss.delta, loss.rho)] for unit, loss in losses.items()
    }
    return _TEXT(exact)


def _read_names(text: str) -> tuple[str, ...]:
    found = json.loads(text)
    if not isinstance(found, list) or not all(isinstance(name, str) for name in found):
        raise ValueError("not a list of names")
    return tuple(found)


def _read_losses(text: str) -> dict[str, PrivacyLoss]:
    return dict(_losses(text))


@lru_cache(maxsize=256)
def _losses(text: str) -> tuple[tuple[str, PrivacyLoss], ...]:
    stored = json.loads(text)
    return tuple((unit, PrivacyLoss(*map(_read_fraction, parts))) for unit, parts in stored.items())


def _read_fraction(text: str) -> Fraction:
    """What `str` wrote of a Fraction. Any other form is refused: `1e999999999` would fill the memory."""
    above, slash, below = text.partition("/")
    return Fraction(int(above), int(below) if slash else 1)
