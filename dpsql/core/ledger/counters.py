"""Counters in the ledger: charged once, to every period from a day on; then a tick for each period.

A counter is an entry COUNTER, which freezes how it is measured and charges ρ to every period from its first day on. For
each tick come TICK (before it is drawn; it names its noise in its statement only), and TICKED once its numbers are
stored (it has their hash, and gives them). DROP ends it.

*Claim.* All numbers that are ever drawn for a counter are paid for, in every period that they read; and of each period
one tick is given. *Why.* The first TICK of a period is part of what COUNTER has charged; each further one charges what
a single tick loses, r_k²/S² of ρ in the k-th period before it (`redrawn`), though its numbers may never be seen. Both
are found here of what COUNTER says, in the transaction that adds them. A number is given only if TICKED names it. After
DROP no TICK is admitted, so what came after the last one is read by nobody, and is given back. *When it would be
false.* If TICK were admitted after DROP, or twice without a charge; if an older ledger was accepted, which may have
forgotten TICKs: then every counter is over, and DROP gives nothing back. *Tested by* tests/core/ledger/
test_counters.py, tests/deep/core/release/test_counter_streams.py.
"""

from __future__ import annotations

import datetime as dt
import hashlib
import json
from collections.abc import Iterator, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, Final

from dpsql.core.ir.periods import DAY
from dpsql.core.ledger.accountant import Accountant, cost
from dpsql.core.ledger.ledger import Cap, Entry, EntryKind
from dpsql.core.ledger.losses.regions import LossSpan, Region, canonical, dearest, inside, on_grid
from dpsql.core.numbers.counter_weights import squares, weights
from dpsql.core.policy.growing import Every, Growth
from dpsql.core.policy.units import UnitNames
from dpsql.core.privacy_loss import PrivacyLoss
from dpsql.diagnostics.diagnostic import Diagnostic
from dpsql.diagnostics.errors import CannotOpen
from dpsql.diagnostics.note import NOTHING_RAN

_CREATE, _TICK, _TICKED, _DROP = "CREATE DP COUNTER ", "TICK ", "TICKED ", "DROP DP COUNTER "
_ONE: Final = PrivacyLoss(Fraction(1))
_EXACT: Final = 32
"""So many periods before a tick are charged exactly when it is drawn again; older ones in stretches that double."""


class CounterRefused(CannotOpen):
    """An entry about a counter that the ledger does not take: somebody else was first, or it is over."""

    def __init__(self, what: str, *help: str) -> None:
        super().__init__([Diagnostic("DP407", what, help=help, notes=(NOTHING_RAN,))])


@dataclass(frozen=True, slots=True)
class Frozen:
    """What CREATE fixes for as long as a counter lives.

    sql, amounts: the query, and what it may spend, as they were written. table, by, every: which growing table, and how
    the period of a row is told. first: the first day that is read. length: of the weights. variances: σ² of each
    component's noise. squared: for each component the l2² of each privacy unit, in one period. rho: what each unit
    loses by all ticks. conversion: the δ at which that is turned into ε; 0 if it is not. groups: how many. rests_on: a
    hash of what the exact integers rest on.
    """

    name: str
    sql: str
    table: str
    by: str
    every: Every
    first: dt.date
    length: int
    variances: tuple[Fraction, ...]
    squared: tuple[Mapping[str, Fraction], ...]
    rho: Mapping[str, Fraction]
    conversion: Fraction
    groups: int
    rests_on: str
    amounts: tuple[tuple[str, str], ...] = ()

    @property
    def growth(self) -> Growth:
        """How its periods follow each other, from its first day on."""
        return Growth(self.by, self.every, self.first)

    def place(self, day: dt.date) -> int:
        """Which of its periods a day is in, from 0; negative before its first day."""
        match self.every:
            case "day":
                return (day - self.first).days
            case "week":
                return (day - self.growth.begins(self.first)).days // 7
            case "month":
                return (day.year - self.first.year) * 12 + day.month - self.first.month

    def begins(self, place: int) -> dt.date:
        """The first day of a period."""
        match self.every:
            case "day":
                return self.first + place * DAY
            case "week":
                return self.growth.begins(self.first) + 7 * place * DAY
            case "month":
                months = self.first.year * 12 + self.first.month - 1 + place
                return dt.date(months // 12, months % 12 + 1, 1)

    def is_end(self, day: dt.date) -> bool:
        """Whether a period ends with a day."""
        return self.growth.ends(day) == day

    def ends(self, place: int) -> dt.date:
        """The last day of a period: a tick is called by it."""
        return self.growth.ends(self.begins(place))

    def losses(self, accountant: Accountant, part: Fraction = Fraction(1)) -> dict[str, PrivacyLoss]:
        """What each unit loses by a part of ρ, as the ledger counts. Raises BudgetExceeded DP405 in a pure-ε ledger."""
        return {
            unit: cost(accountant, [PrivacyLoss(rho=rho * part)], self.conversion).on_grid()
            for unit, rho in self.rho.items()
        }

    def charge(self, accountant: Accountant) -> dict[str, Region]:
        """What all ticks cost: the same in every period from the first day on."""
        return {unit: (LossSpan(self.first, None, loss),) for unit, loss in self.losses(accountant).items()}

    def redrawn(self, accountant: Accountant, last: dt.date) -> dict[str, Region]:
        """What one tick costs by itself: r_k²/S² of ρ in the k-th period before it, or a little more."""
        r, whole, newest = weights(self.length), squares(self.length), self.place(last)
        found: dict[str, list[LossSpan]] = {unit: [] for unit in self.rho}
        for start, stop in _stretches(min(self.length, newest + 1)):
            days = max(self.begins(newest - stop + 1), self.first), self.ends(newest - start)
            for unit, loss in self.losses(accountant, Fraction(r[start] ** 2, whole)).items():
                found[unit].append(LossSpan(*days, loss))
        return {unit: on_grid(canonical(spans)) for unit, spans in found.items()}

    def written(self) -> str:
        """As COUNTER's statement has it."""
        return _CREATE + json.dumps(
            {
                "name": self.name, "sql": self.sql, "table": self.table, "by": self.by, "every": self.every,
                "first": self.first.isoformat(), "length": self.length, "variances": [str(v) for v in self.variances],
                "squared": [{unit: str(part) for unit, part in each.items()} for each in self.squared],
                "rho": {unit: str(rho) for unit, rho in self.rho.items()}, "conversion": str(self.conversion),
                "groups": self.groups, "rests_on": self.rests_on, "amounts": [list(each) for each in self.amounts],
            },
            sort_keys=True,
        )  # fmt: skip


def _stretches(length: int) -> Iterator[tuple[int, int]]:
    """Periods before a tick, those that are charged alike together."""
    start = 0
    while start < length:
        stop = min(length, start + 1 if start < _EXACT else 2 * start)
        yield start, stop
        start = stop


def read_frozen(statement: str) -> Frozen:
    """What `written` wrote. Raises ValueError."""
    try:
        said = json.loads(statement.removeprefix(_CREATE))
        return Frozen(
            said["name"], said["sql"], said["table"], said["by"], said["every"], dt.date.fromisoformat(said["first"]),
            said["length"], tuple(map(Fraction, said["variances"])),
            tuple({unit: Fraction(part) for unit, part in each.items()} for each in said["squared"]),
            {unit: Fraction(rho) for unit, rho in said["rho"].items()}, Fraction(said["conversion"]), said["groups"],
            said["rests_on"], tuple((name, amount) for name, amount in said["amounts"]),
        )  # fmt: skip
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        raise ValueError("not a counter") from None


# --- entries ----------------------------------------------------------------------------------------------------------


def holding(counter: str) -> str:
    """What stands among `Entry.answers` of an account that has it."""
    return f"counter {counter}"


def receives_counter(entry: Entry) -> bool:
    """Whether an account has a counter through it."""
    return bool(_held(entry))


def _held(entry: Entry) -> list[str]:
    return [name.removeprefix("counter ") for name in entry.answers if name.startswith("counter ")]


def created(id: str, account: str, frozen: Frozen, accountant: Accountant, plan_hash: str, policy_hash: str) -> Entry:
    """The entry COUNTER. Raises BudgetExceeded DP405 in a pure-ε ledger."""
    regions = frozen.charge(accountant)
    charges = {unit: dearest(region) for unit, region in regions.items()}
    return Entry(
        id, account, charges, plan_hash, policy_hash, frozen.written(), answers=(holding(id),), kind=EntryKind.COUNTER,
        regions=regions,
    )  # fmt: skip


def received(id: str, account: str, counter: CounterState, policy_hash: str) -> Entry:
    """An entry by which another account receives a counter, as it is and as it goes on."""
    made = counter.entry
    return Entry(
        id, account, {}, "", policy_hash, f"RECEIVE DP COUNTER {counter.frozen.name}", received=made.charges,
        answers=(holding(counter.id),), received_regions=made.regions,
    )  # fmt: skip


def tick(counter: CounterState, day: dt.date, draws: Sequence[str], accountant: Accountant, policy_hash: str) -> Entry:
    """The entry TICK of a period. draws: ids of the noise that will be drawn."""
    before, id = len(counter.drawn.get(day, ())), hashlib.sha256(draws[0].encode()).hexdigest()[:32]
    said = {"counter": counter.id, "day": day.isoformat(), "draw": before, "answers": list(draws)}
    regions = counter.frozen.redrawn(accountant, day) if before else {}
    return Entry(
        id, counter.account, {unit: dearest(region) for unit, region in regions.items()},
        "", policy_hash, _TICK + json.dumps(said, sort_keys=True), kind=EntryKind.TICK, regions=regions,
    )  # fmt: skip


def ticked(counter: CounterState, day: dt.date, draws: Sequence[str], numbers: str, policy_hash: str) -> Entry:
    """The entry TICKED of a period: of each there is one. numbers: the hash of what is stored under these ids."""
    said = {"counter": counter.id, "day": day.isoformat(), "numbers": numbers}
    return Entry(
        f"ticked {counter.id} {day}", counter.account, {}, "", policy_hash, _TICKED + json.dumps(said, sort_keys=True),
        answers=tuple(draws), kind=EntryKind.TICKED,
    )  # fmt: skip


def dropped(counter: CounterState, account: str, policy_hash: str) -> Entry:
    """The entry DROP."""
    said = json.dumps({"counter": counter.id, "name": counter.frozen.name}, sort_keys=True)
    return Entry(f"drop {counter.id}", account, {}, "", policy_hash, _DROP + said, kind=EntryKind.DROP)


def hash_of_numbers(values: Sequence[Sequence[int]]) -> str:
    """Of what is stored of a tick, component by component."""
    return hashlib.sha256(json.dumps([list(map(int, each)) for each in values]).encode()).hexdigest()


def statement_words(entry: Entry) -> str:
    """What such an entry did, for the history."""
    match entry.kind:
        case EntryKind.COUNTER:
            own = read_frozen(entry.statement)
            return f"{_CREATE}{own.name} AS {own.sql} FROM DATE '{own.first}'"
        case EntryKind.DROP:
            return _DROP + str(_said(entry)["name"])
    said = _said(entry)
    return f"{entry.kind.value.upper()} {said['day']} of counter {said['counter']}"


KINDS: Final = frozenset({EntryKind.COUNTER, EntryKind.TICK, EntryKind.TICKED, EntryKind.DROP})
"""Of the entries that are about counters."""


def _said(entry: Entry) -> dict[str, Any]:
    begins = {EntryKind.TICK: _TICK, EntryKind.TICKED: _TICKED, EntryKind.DROP: _DROP}[entry.kind]
    found: dict[str, Any] = json.loads(entry.statement.removeprefix(begins))
    return found


# --- what a ledger knows of them --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class CounterState:
    """A counter as its ledger's entries tell of it.

    id, account, entry: of COUNTER. drawn: period → the ids that each of its TICKs names. given: period → TICKED. over:
    why no tick is drawn any more; empty: it goes on. holders: the entries by which accounts have it.
    """

    id: str
    entry: Entry
    frozen: Frozen
    drawn: MutableMapping[dt.date, tuple[tuple[str, ...], ...]] = field(default_factory=dict)
    given: MutableMapping[dt.date, Entry] = field(default_factory=dict)
    over: str = ""
    holders: tuple[Entry, ...] = ()

    @property
    def account(self) -> str:
        """Who has made it."""
        return self.entry.analyst

    @property
    def dropped(self) -> bool:
        """Whether its name is free again."""
        return self.over == DROPPED

    def numbers(self, day: dt.date) -> str:
        """The hash of the numbers of a period that is given."""
        return str(_said(self.given[day])["numbers"])


DROPPED: Final = "it was dropped"
_FORGOTTEN: Final = "an older state of the ledger was accepted, which may have forgotten its ticks"


class CounterBook:
    """The counters of a book, and which entries about them it takes."""

    def __init__(self, accountant: Accountant, names: UnitNames | None) -> None:
        self._accountant, self._names = accountant, names
        self._states: dict[str, CounterState] = {}

    @property
    def states(self) -> tuple[CounterState, ...]:
        """All of them as they are now, oldest first."""
        return tuple(replace(s, drawn=dict(s.drawn), given=dict(s.given)) for s in self._states.values())

    def require(self, entry: Entry) -> None:
        """Raises CounterRefused, or ValueError for one that no caller should make, unless the entry may be added."""
        held = _held(entry)
        if entry.kind is EntryKind.COUNTER:
            self._require_new(entry, held)
        elif held:
            if len(entry.answers) > 1 or held[0] not in self._states:
                raise ValueError("an entry that receives a counter, and something else")
            made = self._alive(held[0]).entry
            own = entry.charges, entry.received, entry.regions, entry.received_regions
            if own != ({}, made.charges, {}, made.regions):
                raise ValueError("a counter is received at its price")
        if entry.kind is EntryKind.TICK:
            said = _said(entry)
            state, day, draws = self._alive(said["counter"]), dt.date.fromisoformat(said["day"]), said["answers"]
            before = len(state.drawn.get(day, ()))
            if day in state.given or said["draw"] != before:
                raise CounterRefused(f"{day} of counter {state.frozen.name} is ticked elsewhere", "ask again")
            known = {each for ids in state.drawn.values() for own_ids in ids for each in own_ids}
            if not draws or known & set(draws) or day < state.frozen.first or not state.frozen.is_end(day):
                raise ValueError("a tick of no period of its counter, or without noise of its own")
            due = state.frozen.redrawn(self._accountant, day) if before else {}
            if entry.regions != due or entry.charges != {unit: dearest(own_region) for unit, own_region in due.items()}:
                raise ValueError("a tick that is drawn again is charged what it loses")
        elif entry.kind is EntryKind.TICKED:
            said = _said(entry)
            state, day = self._alive(said["counter"]), dt.date.fromisoformat(said["day"])
            if day in state.given:
                raise CounterRefused(f"{day} of counter {state.frozen.name} is ticked elsewhere", "ask again")
            if entry.answers not in state.drawn.get(day, ()):
                raise ValueError("numbers that no TICK names")
        elif entry.kind is EntryKind.DROP:
            self._alive(_said(entry)["counter"], also_ended=True)

    def _require_new(self, entry: Entry, held: Sequence[str]) -> None:
        frozen = read_frozen(entry.statement)
        if held != [entry.id] or len(entry.answers) > 1 or not frozen.rho or entry.received:
            raise ValueError("a counter that nobody holds, or that charges nobody")
        if entry.regions != frozen.charge(self._accountant) or entry.charges != frozen.losses(self._accountant):
            raise ValueError("a counter is charged what its noise loses")
        taken = [s for s in self._states.values() if not s.dropped]
        if any(s.frozen.name.casefold() == frozen.name.casefold() for s in taken):
            raise CounterRefused(f"there is a counter {frozen.name} already", f"DROP DP COUNTER {frozen.name}")

    def _alive(self, id: str, *, also_ended: bool = False) -> CounterState:
        state = self._states.get(id)
        if state is None:
            raise ValueError("no counter of this ledger")
        if state.over and not (also_ended and not state.dropped):
            raise CounterRefused(f"counter {state.frozen.name} is over: {state.over}", "make another one")
        return state

    def add(self, entry: Entry) -> list[tuple[Cap, Region]]:
        """Count an entry, in the present names of units; what is given back by it, of whom."""
        if entry.kind is EntryKind.CHARGE:
            for id in _held(entry):
                state = self._states[id]
                self._states[id] = replace(state, holders=(*state.holders, entry))
        elif entry.kind is EntryKind.COUNTER:
            self._states[entry.id] = CounterState(entry.id, entry, read_frozen(entry.statement), holders=(entry,))
        elif entry.kind is EntryKind.ACCEPTANCE:
            for state in tuple(self._states.values()):
                if not state.over:
                    self._states[state.id] = replace(state, over=_FORGOTTEN)
        elif entry.kind in KINDS:
            said = _said(entry)
            state = self._states[said["counter"]]
            if entry.kind is EntryKind.DROP:
                self._states[state.id] = replace(state, over=DROPPED)
                return self._given_back(state)
            day = dt.date.fromisoformat(said["day"])
            if entry.kind is EntryKind.TICK:
                state.drawn[day] = (*state.drawn.get(day, ()), tuple(said["answers"]))
            else:
                state.given[day] = entry
        return []

    def _given_back(self, state: CounterState) -> list[tuple[Cap, Region]]:
        """What nobody will ever measure: of periods behind the last TICK. Nothing where TICKs may be forgotten."""
        if state.over:
            return []
        first = max((day + DAY for day in state.drawn), default=state.frozen.first)
        freed, found = (LossSpan(first, None, _ONE),), list[tuple[Cap, Region]]()
        for each in state.holders:
            own = each if self._names is None else each.called(self._names)
            for unit in own.units:
                found.append(((unit, own.analyst), inside(own.account(unit), freed)))
                if unit in own.charges:
                    found.append(((unit, None), inside(own.charged(unit), freed)))
        return found
