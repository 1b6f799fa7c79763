"""The ledger's contract: reserve durably, then act; never refund once the engine has started."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from dpsql.loss import PrivacyLoss


@dataclass(frozen=True, slots=True)
class Entry:
    """A request to charge one query.

    id: unique per run; reserving the same id twice charges once and returns the same receipt.
    analyst: the account (`*` is the shared one).
    charges: privacy unit → loss; one query charges every unit whose data it touches.
    plan_hash, policy_hash: what was run, for the history. `statement`: the analyst's own text, for the history.
    """

    id: str
    analyst: str
    charges: Mapping[str, PrivacyLoss]
    plan_hash: str
    policy_hash: str
    statement: str = ""


@dataclass(frozen=True, slots=True)
class Caps:
    """Limits in force for one entry: per unit in total, per unit for this analyst, and per query.

    A missing unit (or None) means "no limit declared".
    """

    total: Mapping[str, PrivacyLoss] = field(default_factory=dict)
    analyst: Mapping[str, PrivacyLoss] = field(default_factory=dict)
    per_query: PrivacyLoss | None = None


@dataclass(frozen=True, slots=True)
class Receipt:
    """Proof that an entry is durably charged. Only a ledger makes one; `release.run` demands it."""

    entry: Entry
    sequence: int
    hash: str


@dataclass(frozen=True, slots=True)
class Account:
    """What has been spent: of one unit in total (analyst None) or by one analyst."""

    unit: str
    analyst: str | None
    spent: PrivacyLoss


class Ledger(Protocol):
    """Append-only. Implementations: sqlite (durable), memory (tests, notebooks that say so)."""

    def reserve(self, entry: Entry, caps: Caps) -> Receipt:
        """Charge atomically and durably, or raise BudgetExceeded (DP403 total, DP404 analyst, DP405 per query)."""
        ...

    def spent(self, unit: str, analyst: str | None = None) -> PrivacyLoss:
        """Total loss of a unit, of all analysts or of one."""
        ...

    def accounts(self) -> Sequence[Account]:
        """Every account with anything spent."""
        ...

    def history(self) -> Sequence[Receipt]:
        """All entries, oldest first."""
        ...

    @property
    def salt(self) -> int:
        """Secret 62-bit number made once per ledger; fixes truncation order (semantics.md §3)."""
        ...

    def close(self) -> None:
        """Release the file."""
        ...
