"""A ledger that forgets everything when the process ends: for tests, and for whoever asks for it by name."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Sequence
from datetime import UTC, datetime

from dpsql.core.ledger.chain.hash_chain import Identity, LedgerRow
from dpsql.core.ledger.chained import BookLedger, Result
from dpsql.core.ledger.ledger import Caps, Entry, Receipt
from dpsql.core.ledger.losses.fixed_budgets import Fixed
from dpsql.core.ledger.privacy_filter import Book, same_request, settle


class MemoryLedger(BookLedger):
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
            self._book.counters.require(settled)
            self._book.check(settled, caps)
            return self._append(settled, self._book.not_fixed(settled, caps))

    def fix(self, entry: Entry, fixing: Callable[[Fixed], Fixed]) -> Receipt:
        """See `Ledger.fix`. Raises what `fixing` raises."""
        settled = settle(entry, self._book.accountant)
        with self._lock:
            earlier = self._receipts.get(settled.id)
            if earlier is not None:
                return same_request(earlier, settled)
            return self._append(settled, fixing(self._book.fixed()))

    def _append(self, settled: Entry, fixed: Fixed) -> Receipt:
        row = LedgerRow.after(self._tip, settled, datetime.now(UTC).isoformat(), fixed)
        receipt = row.receipt()
        self._book.add(settled, fixed)
        self._receipts[settled.id] = receipt
        self._tip = row.point
        return receipt

    def finish(self) -> None:
        """Nothing to wait for."""

    def history(self, after: Receipt | None = None, most: int | None = None) -> Sequence[Receipt]:
        """See `Ledger.history`."""
        with self._lock:
            return list(self._receipts.values())[0 if after is None else after.sequence :][:most]

    def find(self, ids: Collection[str]) -> Sequence[Receipt]:
        """See `Ledger.find`."""
        return [receipt for receipt in self.history() if receipt.entry.id in ids]

    def close(self) -> None:
        """Nothing to release; what was spent stays known as long as the object lives."""

    def _booked(self, action: Callable[[Book], Result]) -> Result:
        with self._lock:
            return action(self._book)
