"""The hash chain over a ledger's entries: what is hashed, how a stored entry is read back and checked.

Each entry's hash covers the previous hash and every stored column, and the first one starts from a hash of the ledger's
own identity, so no stored value can be changed, dropped, reordered or added in the middle without changing the last
hash. The chain has no key: it makes tampering visible to whoever knows the last hash (the head), no more.
"""

from __future__ import annotations

import hashlib
import json
import secrets
from dataclasses import dataclass
from fractions import Fraction

from dpsql.budget.ledger import Entry, Receipt
from dpsql.loss import PrivacyLoss

FORMAT = 1
"""Version of the stored form; a file with a higher one is refused."""


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
        """A fresh identity: 62 secret bits of salt (semantics.md §3) and 128 of nonce, from the operating system."""
        return cls(dataset, accountant, secrets.randbits(62), secrets.token_hex(16))

    @property
    def origin(self) -> Point:
        """Where the chain starts."""
        return Point(0, _digest([FORMAT, self.dataset, self.accountant, self.salt, self.nonce]))


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

    @classmethod
    def after(cls, last: Point, entry: Entry, reserved_at: str) -> Row:
        """The row that stores `entry` next."""
        columns = (
            last.sequence + 1,
            entry.id,
            entry.analyst,
            _write_charges(entry),
            entry.plan_hash,
            entry.policy_hash,
            entry.statement,
            reserved_at,
        )
        return cls(*columns, hash=_digest([last.hash, *columns]))

    def follows(self, last: Point) -> Receipt:
        """Check that this row comes right after `last` and is unchanged; return what it stores. BrokenChain if not."""
        columns = (
            self.sequence,
            self.id,
            self.analyst,
            self.charges,
            self.plan_hash,
            self.policy_hash,
            self.statement,
            self.reserved_at,
        )
        if self.sequence != last.sequence + 1:
            raise BrokenChain(f"entry {last.sequence + 1} is missing")
        if any(not isinstance(column, str) for column in columns[1:]) or self.hash != _digest([last.hash, *columns]):
            raise BrokenChain(f"entry {self.sequence} was changed after it was written")
        return self.receipt()

    def receipt(self) -> Receipt:
        """The receipt for this row, unchecked."""
        charges = _read_charges(self.charges)
        entry = Entry(self.id, self.analyst, charges, self.plan_hash, self.policy_hash, self.statement)
        return Receipt(entry, self.sequence, self.hash)

    @property
    def point(self) -> Point:
        """This row's place in the chain."""
        return Point(self.sequence, self.hash)


def _digest(values: list[object]) -> str:
    # Lists nest unambiguously in JSON, and ASCII escapes make one text of one value.
    return hashlib.sha256(json.dumps(values, ensure_ascii=True, separators=(",", ":")).encode("ascii")).hexdigest()


def _write_charges(entry: Entry) -> str:
    charges = {
        unit: [str(Fraction(part)) for part in (loss.epsilon, loss.delta, loss.rho)]
        for unit, loss in entry.charges.items()
    }
    return json.dumps(charges, sort_keys=True, ensure_ascii=False, separators=(",", ":"))


def _read_charges(text: str) -> dict[str, PrivacyLoss]:
    return {unit: PrivacyLoss(*(Fraction(part) for part in parts)) for unit, parts in json.loads(text).items()}
