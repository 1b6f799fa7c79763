"""The ledger of made-up data: it charges nobody, and no file of it is there.

*Claim.* What it lets pass is never counted for any data that somebody has. *Why.* It is a ledger of its own in memory,
and a service that has it has made its rows itself (`service.py`). *When it would be false.* If a service over other
rows were given it: nothing but `made_up` makes one. *Tested by* tests/service/made_up/test_service.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from dpsql.core.ledger.ledger import Caps, Entry, Failure, Receipt
from dpsql.core.ledger.memory import MemoryLedger
from dpsql.core.ledger.privacy_filter import require_fits
from dpsql.core.privacy_loss import NO_LOSS


class FreeLedger(MemoryLedger):
    """Each charge is checked as if nothing had been spent before, and then costs nothing; answers stay named."""

    def reserve(self, entry: Entry, caps: Caps) -> Receipt:
        """See `Ledger.reserve`. Raises BudgetExceeded for what no limit has room for even at first."""
        require_fits(entry, caps, lambda unit, analyst: NO_LOSS)
        return super().reserve(replace(entry, charges={}, received={}), Caps())

    def failures(self) -> Sequence[Failure]:
        """None counts: no row is anybody's."""
        return ()
