"""Which ledger a session charges: the policy's file, another one, or one in memory."""

from __future__ import annotations

import os
from os import PathLike
from pathlib import Path
from typing import Final, NamedTuple

from dpsql.core.ledger.ledger import Ledger
from dpsql.core.ledger.plain_files import located
from dpsql.core.policy.policy import IN_MEMORY, Policy, default_head_path

FORGETS: Final = "the ledger is in memory: what was spent is forgotten when the session ends, and a new one starts anew"


class Place(NamedTuple):
    """A ledger's file and that of its head."""

    path: Path
    head: Path

    @property
    def is_taken(self) -> bool:
        """Whether there is a ledger, or the head remembers one (so that opening it says what is wrong)."""
        from dpsql.core.ledger.head import Head

        if os.path.lexists(self.path):
            return True
        known = Head(self.head, 1.0).read()
        return known is not None and known.sequence > 0


def is_in_memory(policy: Policy, named: str | PathLike[str] | None = None) -> bool:
    """Whether the named ledger, else the policy's, is one in memory."""
    return (policy.ledger if named is None else os.fspath(named)) == IN_MEMORY


def place_of(policy: Policy, named: str | PathLike[str] | None = None) -> Place | None:
    """Where a ledger and its head lie: the named one, else the policy's. None: in memory, where `:memory:` is named.

    One file has one head, however it was named.
    """
    if is_in_memory(policy, named):
        return None
    own, head = policy.ledger_path, policy.ledger_head_path
    policys = None if own is None or head is None else Place(own, head)
    if named is None or (policys is not None and _is_same(named, policys.path)):
        return policys
    return Place(Path(named), default_head_path(Path(named), policy.name))


def _is_same(path: str | PathLike[str], other: Path) -> bool:
    try:
        return located(path) == located(other)
    except ValueError:  # no file name, which opening it will say
        return False


def open_ledger(policy: Policy, place: Place | None) -> Ledger:
    """The ledger there, made if it is not; None: a new one in memory. Raises CannotOpen DP407."""
    from dpsql.core.ledger.memory import MemoryLedger
    from dpsql.core.ledger.sqlite import SqliteLedger

    if place is None:
        return MemoryLedger(policy.name, policy.privacy.accountant)
    return SqliteLedger.open(*place, policy.name, policy.privacy.accountant, units=policy.unit_names)


def look_at_ledger(policy: Policy, place: Place | None) -> Ledger | None:
    """The ledger there, to read; it need not be writable then. None if there is none, and none is made.

    Raises CannotOpen DP407.
    """
    from dpsql.core.ledger.sqlite import SqliteLedger

    if place is None or not place.is_taken:
        return None
    return SqliteLedger.look(*place, policy.name, policy.privacy.accountant, units=policy.unit_names)


def shown(place: Place | None) -> str:
    """Where a ledger is, as messages say it."""
    return IN_MEMORY if place is None else str(place.path)
