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
from dpsql.core.ledger.privacy_filter import Book


class FreeLedger(MemoryLedger):
    """Each charge is checked as if nothing had been spent before, and then costs nothing; answers stay named."""

    def reserve(self, entry: Entry, caps: Caps) -> Receipt:
        """See `Ledger.reserve`. Raises BudgetExceeded for what no limit has room for even at first."""
        Book(self._book.accountant).check(entry, caps)
        return super().reserve(replace(entry, charges={}, received={}, regions={}, received_regions={}), Caps())

    def failures(self) -> Sequence[Failure]:
        """None counts: no row is anybody's."""
        return ()
