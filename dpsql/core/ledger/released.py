"""Numbers that have been released, as they are kept: noisy ones, and what they cost."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from fractions import Fraction

from dpsql.core.ledger.losses.regions import Region, everywhere
from dpsql.core.privacy_loss import PrivacyLoss

KeyValue = bool | int | Decimal | float | str | bytes | dt.date | dt.datetime | dt.time | dt.timedelta | None
Key = tuple[KeyValue, ...]


@dataclass(frozen=True, slots=True)
class ShownKeys:
    """Private group keys that were released, in release order, and the threshold that their noisy counts passed.

    r, g: what the threshold was made for. delta: the δ that it cost.
    """

    keys: tuple[Key, ...]
    threshold: int
    r: int
    g: int
    delta: Fraction


@dataclass(frozen=True, slots=True)
class StoredAnswer:
    """One component of one release, as it was released: a noisy integer for each group key.

    id: of this draw of noise; the ledger's entries name it. address: what it answers.
    values: one integer per group key, in release order: the keys are part of what the address says, or are `shown`.
    mechanism, parameter: the noise that made it: `laplace` and its scale, or `gaussian` and its σ², in integer units.
    losses: privacy unit → what it cost, as its mechanism states it. conversion: the δ at which its ρ was turned into
        ε, where the ledger counts in ε; 0 if it was not.
    made_at: when it was measured, in UTC. regions: privacy unit → what it cost by period, where that is known: `losses`
        is the dearest then.
    """

    id: str
    address: str
    values: Sequence[int]
    mechanism: str
    parameter: Fraction
    losses: Mapping[str, PrivacyLoss]
    conversion: Fraction
    made_at: datetime
    shown: ShownKeys | None = None
    regions: Mapping[str, Region] = field(default_factory=dict)

    def region(self, unit: str) -> Region:
        """What it cost a unit, period by period."""
        return self.regions.get(unit) or everywhere(self.losses[unit])
