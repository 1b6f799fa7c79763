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
from dataclasses import dataclass
from functools import lru_cache
from json.encoder import encode_basestring_ascii
from typing import Any, Final, NamedTuple

from dpsql.core.ledger.ledger import Cap, Entry, EntryKind, Receipt, require_dearest
from dpsql.core.ledger.losses import regions
from dpsql.core.ledger.losses.regions import Region
from dpsql.core.privacy_loss import PrivacyLoss

FORMAT: Final = 3
"""Version of the stored form; a ledger with a higher one is refused, one with a lower one is brought up.

Format 2 has two columns more than format 1, `received` and `answers`; an entry without either is hashed as in format 1.
Format 3 has two more, `kind` and `about`: JSON of what few entries have (`_ABOUT`), absent where there is none. Entries
of older formats keep them empty, and their hashes."""

_ORIGIN = 1
"""The format in which ledgers began: part of every first hash, whatever the file's format is now."""

NOTHING_RECEIVED, NO_ANSWERS, NO_KIND, NOTHING_MORE = "{}", "[]", "", "{}"
"""What the columns of later formats hold in entries that are older than they."""

ADDED: Final = {
    1: (("received", NOTHING_RECEIVED), ("answers", NO_ANSWERS), ("kind", NO_KIND), ("about", NOTHING_MORE)),
    2: (("kind", NO_KIND), ("about", NOTHING_MORE)),
}
"""An older format → the columns of entries that it lacks, with what they hold in its entries."""


class BrokenChain(Exception):
    """A stored entry does not follow from the one before it; the message says which."""


class Point(NamedTuple):
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
        own = [_ORIGIN, self.dataset, self.accountant, self.salt, self.nonce]
        return Point(0, _digest(json.dumps(own, separators=(",", ":"))))


class LedgerRow(NamedTuple):
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
    kind: str = NO_KIND
    about: str = NOTHING_MORE

    @classmethod
    def after(
        cls, last: Point, entry: Entry, reserved_at: str, fixed: Mapping[Cap, PrivacyLoss] | None = None
    ) -> LedgerRow:
        """The row that stores `entry` next. fixed: what it says of budgets (`Receipt.fixed`)."""
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
            kind=entry.kind.value,
            about=_write_about(entry, fixed or {}),
        )
        return row._replace(hash=row._hash_after(last))

    def follows(self, last: Point) -> Receipt:
        """Check that this row comes right after `last` and is unchanged; return what it stores. BrokenChain if not."""
        if self.sequence != last.sequence + 1:
            raise BrokenChain(f"entry {last.sequence + 1} is missing")
        if set(map(type, self[1:])) != {str} or self.hash != self._hash_after(last):
            raise BrokenChain(f"entry {self.sequence} was changed after it was written")
        try:
            return self.receipt()
        except (ValueError, TypeError, AttributeError, ArithmeticError, RecursionError, KeyError):
            # The chain has no key: whoever can write the file can give anything a right hash.
            raise BrokenChain(f"entry {self.sequence} is not one that dpsql writes") from None

    def _hash_after(self, last: Point) -> str:
        # Lists of different lengths never have the same JSON, so no form can be taken for another.
        parts: tuple[str, ...] = self[1:8]
        if self[11:] != (NO_KIND, NOTHING_MORE):
            parts += self[9:]
        elif self[9:11] != (NOTHING_RECEIVED, NO_ANSWERS):
            parts += self[9:11]
        # As JSON, in which lists nest unambiguously and, by ASCII's escapes, one text is written in one way.
        return _digest(f'["{last.hash}",{self.sequence},{",".join(map(encode_basestring_ascii, parts))}]')

    def receipt(self) -> Receipt:
        """The receipt for this row, its hash unchecked. Raises ValueError, among others, if it is not one's."""
        charges, received = _read_losses(self.charges), _read_losses(self.received)
        kind = _old_kind(self.statement, charges or received) if self.kind == NO_KIND else _KINDS[self.kind]
        own, got, fixed = _NO_MORE if self.about == NOTHING_MORE else _read_about(self.about)
        entry = Entry(
            self.id,
            self.analyst,
            charges,
            self.plan_hash,
            self.policy_hash,
            self.statement,
            received,
            () if self.answers == NO_ANSWERS else _read_names(self.answers),
            kind,
            own,
            got,
        )
        if own or got:
            require_dearest(entry)
        return Receipt(entry, self.sequence, self.hash, self.reserved_at, fixed)

    @property
    def point(self) -> Point:
        """This row's place in the chain."""
        return Point(self.sequence, self.hash)


COLUMNS: Final = ", ".join(LedgerRow._fields)
"""A row's columns, in its order."""


_KINDS: Final = {kind.value: kind for kind in EntryKind}


def _old_kind(statement: str, charged: Mapping[str, PrivacyLoss]) -> EntryKind:
    """What an entry of format 1 or 2 is for: how its statement begins said so, where it charged nobody."""
    if not charged and statement.startswith("ACCEPT LEDGER "):
        return EntryKind.ACCEPTANCE
    if not charged and statement.startswith(("CREATE DP SUMMARY ", "DROP DP SUMMARY ")):
        return EntryKind.DEFINITION
    if not charged and statement.startswith("STATEMENT FAILED "):
        return EntryKind.FAILURE
    if not charged and statement.startswith("FAILURES LOOKED AT "):
        return EntryKind.LOOK
    return EntryKind.CHARGE


# Made once: reserving and opening spend most of their time here.
_TEXT = json.JSONEncoder(ensure_ascii=False, sort_keys=True, separators=(",", ":")).encode


_DECODED: Final = json.JSONDecoder().raw_decode


def _json(text: str) -> Any:
    """As `json.loads`, of JSON with nothing before or behind it, in a third of the time. Raises ValueError."""
    value, end = _DECODED(text)
    if end != len(text):
        raise ValueError("more than one value")
    return value


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("ascii")).hexdigest()


def _write_losses(losses: Mapping[str, PrivacyLoss]) -> str:
    return _TEXT({unit: regions.write_loss(loss) for unit, loss in losses.items()})


def _read_names(text: str) -> tuple[str, ...]:
    found = _json(text)
    if not isinstance(found, list) or not all(isinstance(name, str) for name in found):
        raise ValueError("not a list of names")
    return tuple(found)


def _read_losses(text: str) -> dict[str, PrivacyLoss]:
    return dict(_losses(text))


@lru_cache(maxsize=256)
def _losses(text: str) -> tuple[tuple[str, PrivacyLoss], ...]:
    stored = _json(text)
    return tuple((unit, regions.read_loss(*parts)) for unit, parts in stored.items())


# {"regions": {UNIT: REGION}, "received_regions": {UNIT: REGION}, "fixed": [[UNIT, ANALYST or null, LOSS], ...]}


def _write_about(entry: Entry, fixed: Mapping[Cap, PrivacyLoss]) -> str:
    found: dict[str, object] = {}
    if entry.regions:
        found["regions"] = _write_regions(entry.regions)
    if entry.received_regions:
        found["received_regions"] = _write_regions(entry.received_regions)
    if fixed:
        found["fixed"] = [[unit, analyst, regions.write_loss(loss)] for (unit, analyst), loss in fixed.items()]
    return _TEXT(found) if found else NOTHING_MORE


def _write_regions(own: Mapping[str, Region]) -> dict[str, object]:
    return {unit: regions.write(region) for unit, region in own.items()}


_About = tuple[Mapping[str, Region], Mapping[str, Region], Mapping[Cap, PrivacyLoss]]
_NO_MORE: Final[_About] = {}, {}, {}
"""What an entry says where nothing is said."""


@lru_cache(maxsize=4096)
def _read_about(text: str) -> _About:
    """What each period loses of charges, and of what was received; what is said of budgets. ValueError: neither."""
    stored = _json(text)
    own, received, fixed = (stored.pop(name, None) for name in ("regions", "received_regions", "fixed"))
    if stored:
        raise ValueError("it says what this version does not know")
    caps = {_cap(unit, who): regions.read_loss(*parts) for unit, who, parts in fixed} if fixed else {}
    return _read_regions(own), _read_regions(received), caps


def _read_regions(stored: Any) -> dict[str, Region]:
    return {unit: regions.read(spans) for unit, spans in stored.items()} if stored else {}


def _cap(unit: object, analyst: object) -> Cap:
    if not isinstance(unit, str) or not (analyst is None or isinstance(analyst, str)):
        raise ValueError("not a budget")
    return unit, analyst
