"""A ledger that forgets everything when the process ends: for tests, and for whoever asks for it by name."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from datetime import UTC, datetime

from dpsql.core.ledger.hash_chain import Identity, Row
from dpsql.core.ledger.ledger import Account, Caps, Entry, Failure, Receipt
from dpsql.core.ledger.privacy_filter import Book, same_request, settle
from dpsql.core.privacy_loss import PrivacyLoss


class MemoryLedger:
    """The Ledger contract without a file. Safe for threads of one process; protects nothing across processes."""

    def __init__(self, dataset: str = "memory", accountant: str = "approx_dp") -> None:
        self._book = Book(accountant)
        self._identity = Identity.new(dataset, accountant)
        self._tip = self._identity.origin
        self._receipts: dict[str, Receipt] = {}
        self._lock = threading.Lock()

    def reserve(self, entry: Entry, caps: Caps) -> Receipt:
        """See `Ledger.reserve`. Raises BudgetExceeded; ValueError if the id was used for something else."""
        settled = settle(entry, self._book.accountant)
        with self._lock:
            earlier = self._receipts.get(settled.id)
            if earlier is not None:
                return same_request(earlier, settled)
            self._book.check(settled, caps)
            row = Row.after(self._tip, settled, datetime.now(UTC).isoformat())
            receipt = row.receipt()
            self._book.add(settled)
            self._receipts[settled.id] = receipt
            self._tip = row.point
            return receipt

    def finish(self) -> None:
        """Nothing to wait for."""

    def spent(self, unit: str, analyst: str | None = None) -> PrivacyLoss:
        """Total loss of a unit, or what one analyst's account holds."""
        with self._lock:
            return self._book.spent(unit, analyst)

    def received(self, analyst: str | None = None) -> frozenset[str]:
        """Ids of the stored answers that an account holds; of all accounts for None."""
        with self._lock:
            return self._book.received(analyst)

    def accounts(self) -> Sequence[Account]:
        """Every account with anything spent."""
        with self._lock:
            return self._book.accounts()

    def history(self, after: Receipt | None = None) -> Sequence[Receipt]:
        """All entries, or those behind one of this ledger, oldest first."""
        with self._lock:
            return list(self._receipts.values())[0 if after is None else after.sequence :]

    def definitions(self) -> Sequence[Entry]:
        """The entries that define something, oldest first."""
        with self._lock:
            return self._book.definitions()

    def failures(self) -> Sequence[Failure]:
        """What failed since a custodian looked last, oldest first."""
        with self._lock:
            return self._book.failures()

    @property
    def salt(self) -> int:
        """Secret 62-bit number, new for every MemoryLedger."""
        return self._identity.salt

    def close(self) -> None:
        """Nothing to release; what was spent stays known as long as the object lives."""
