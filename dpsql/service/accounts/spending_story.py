"""What a ledger tells of spending, entry after entry: for pages that cost the same however long it is.

*Claim.* What a page asks of a story takes no longer for more entries. *Why.* An entry is told once, when it is new;
kept are counts, the ids of an account's newest entries, and of what was spent over time so many points, of which every
second one goes when there are twice as many. The last is always there, and exact. *When it would be false.* If
somebody told an entry twice, or began behind the first one: what DROP of a counter gives back is found of what COUNTER
and its ticks said. *Tested by* tests/service/test_spending_story.py, tests/faces/server/test_long_ledger.py.

Time is the clock's, but never runs backwards: an entry is told no earlier than the one before it.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Final, Self

from dpsql.core.ledger.counters import CounterBook
from dpsql.core.ledger.ledger import Cap, EntryKind, Receipt
from dpsql.core.ledger.losses.regions import BEGIN, END, Region, dearest
from dpsql.core.ledger.losses.sums import LossSums
from dpsql.core.policy.units import UnitNames
from dpsql.core.privacy_loss import NO_LOSS, PrivacyLoss

NEWEST: Final = 100
"""Entries of an account that a history shows, the newest of them."""
MOST_POINTS: Final = 200
"""Of what was spent over time: of more charges, some in between are left out."""
NEVER: Final = datetime(1970, 1, 1, tzinfo=UTC)

Point = tuple[datetime, PrivacyLoss]


class Trail:
    """What an account, or all together, has spent of a unit after each charge."""

    __slots__ = ("_last", "_points", "_seen", "_step", "_sums")

    def __init__(self) -> None:
        self._points: list[Point] = []
        self._sums = LossSums()
        self._seen, self._step = 0, 1
        self._last = NEVER

    def add(self, at: datetime, region: Region) -> None:
        """A charge, by period."""
        self._sums.add_anywhere(region)
        self._now(at)

    def give_back(self, at: datetime, region: Region) -> None:
        """What nobody will measure any more."""
        self._sums.give_back(region)
        self._now(at)

    def _now(self, at: datetime) -> None:
        self._last = at
        if self._seen % self._step == 0:
            self._points.append((at, self.spent))
            if len(self._points) > 2 * MOST_POINTS:
                self._points, self._step = self._points[::2], 2 * self._step
        self._seen += 1

    @property
    def spent(self) -> PrivacyLoss:
        """In all: in the dearest period, part by part."""
        return self._sums.spent(BEGIN, END)

    @property
    def charged(self) -> PrivacyLoss:
        """The sum of what each charge has cost in its dearest period."""
        return self._sums.charged

    @property
    def by_period(self) -> Region:
        """What each period has lost."""
        return self._sums.by_day()

    def points(self, most: int = MOST_POINTS) -> list[Point]:
        """So many of them, at least one, and the last one in any case."""
        step = max(1, -(-len(self._points) // max(most - 1, 1)))
        found = self._points[::step] if most > 1 else []
        last = self._last, self.spent
        return [*found, last] if self._seen and found[-1:] != [last] else found


class SpendingStory:
    """Of the entries that it was told, in the present names of their units.

    counts, last_days, newest: account → its charges, the day of its last one, the ids of its newest ones. policies:
    hashes of those under which was charged. changes: what custodians did, to the ledger and to budgets. begins, ends:
    when the first and the last entry came. last: the newest charge.
    """

    def __init__(self, names: UnitNames) -> None:
        self._names = names
        self._counters = CounterBook("approx_dp", names)  # only what DROP gives back is asked of it
        self.counts: defaultdict[str, int] = defaultdict(int)
        self.last_days: defaultdict[str, str] = defaultdict(str)
        self.newest: defaultdict[str, deque[str]] = defaultdict(lambda: deque(maxlen=NEWEST))
        self._trails: defaultdict[Cap, Trail] = defaultdict(Trail)
        self.policies: set[str] = set()
        self.changes: list[Receipt] = []
        self.begins = self.ends = NEVER
        self.last: Receipt | None = None

    @classmethod
    def of(cls, names: UnitNames, entries: Iterable[Receipt]) -> Self:
        """Of all of these."""
        found = cls(names)
        for receipt in entries:
            found.add(receipt)
        return found

    def add(self, receipt: Receipt) -> None:
        """Tell the next entry."""
        entry = receipt.entry.called(self._names)
        at = max(_time(receipt.reserved_at) or self.ends, self.ends)
        self.begins, self.ends = at if self.begins == NEVER else self.begins, at
        if entry.kind in (EntryKind.ACCEPTANCE, EntryKind.BUDGET):
            self.changes.append(receipt)
        for cap, given_back in self._counters.add(receipt.entry):
            self._trails[cap].give_back(at, given_back)
        if not entry.units:  # noise within a run: when it came would tell how far that was
            return
        self.last = receipt
        self.counts[entry.analyst] += 1
        self.last_days[entry.analyst] = max(self.last_days[entry.analyst], receipt.reserved_at[:10])
        self.newest[entry.analyst].append(entry.id)
        self.policies.add(entry.policy_hash)
        for unit in entry.units:
            for who, region in ((None, entry.charged(unit)), (entry.analyst, entry.account(unit))):
                if dearest(region) != NO_LOSS:
                    self._trails[unit, who].add(at, region)

    @property
    def charges(self) -> int:
        """How many entries charged somebody."""
        return sum(self.counts.values())

    def trail(self, unit: str, account: str | None) -> Trail:
        """Of an account, None for all together."""
        return self._trails.get((unit, account)) or Trail()

    def charged(self, account: str) -> dict[str, PrivacyLoss]:
        """To an account, of each unit of which it has spent anything: as `Ledger.charged`, what ceilings count."""
        return {unit: trail.charged for (unit, who), trail in self._trails.items() if who == account}

    def accounts(self, unit: str) -> Sequence[str | None]:
        """Those that have spent of a unit, all together first."""
        return sorted((who for of, who in self._trails if of == unit), key=lambda who: (who is not None, who or ""))


def _time(text: str) -> datetime | None:
    try:
        return datetime.fromisoformat(text).astimezone(UTC)
    except (ValueError, OverflowError):
        return None
