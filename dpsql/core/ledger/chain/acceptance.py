"""A ledger that does not agree with its head is accepted by an entry of its own: what was forgotten has left a trace.

*Claim.* Whoever reads the ledger sees after which entry spending may be missing, and what the head remembered. *Why.*
The entry is in the chain before the head is moved to it. *When it would be false.* If files are exchanged without
`--accept-head`: whoever administers the machine can put back an older ledger *and* an older head, or take both away.
*Tested by* tests/core/ledger/test_acceptance.py.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from dpsql.core.ledger.chain.hash_chain import Point
from dpsql.core.ledger.chain.head import Head
from dpsql.core.ledger.ledger import Entry, EntryKind
from dpsql.diagnostics.errors import CannotOpen

CUSTODIAN: Final = "custodian"
"""The account that such an entry names. It charges nobody."""


def acceptance(head: Head, tip: Point, hash_at: Callable[[int], str | None]) -> Entry | None:
    """The entry that accepts a ledger whose last entry is `tip`; None if its head agrees with it.

    hash_at: the hash of an entry of the ledger. Raises CannotOpen (DP407) for a head that could not be moved.
    """
    head.check_writable()
    why = _why(head, tip, hash_at)
    return None if why is None else accepting(tip, why)


def accepting(tip: Point, why: str) -> Entry:
    """The entry that accepts a ledger whose last entry is `tip`."""
    statement = f"ACCEPT LEDGER after entry {tip.sequence}: {why}; what is missing, if anything is, does not count"
    return Entry(f"accepted {tip.hash}", CUSTODIAN, {}, "", "", statement, kind=EntryKind.ACCEPTANCE)


def remembered(head: Head) -> int:
    """The number of the last entry that a head remembers; 0 if it remembers none, or cannot be read."""
    try:
        known = head.read()
    except CannotOpen:
        return 0
    return 0 if known is None else known.sequence


def _why(head: Head, tip: Point, hash_at: Callable[[int], str | None]) -> str | None:
    try:
        known = head.read()
    except CannotOpen:
        return "its head could not be read"
    if known is None:
        return "its head was missing" if tip.sequence else None
    if known.sequence > tip.sequence:
        return f"its head remembered entry {known.sequence}"
    if known.sequence and known.hash != hash_at(known.sequence):
        return f"its head remembered another entry {known.sequence}"
    return None
