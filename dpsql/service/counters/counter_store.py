"""The counters of a service: drawing their ticks, and what has been released of them.

*Claim.* Whatever is killed and whenever, and however many gateways tick at one time: no number of a tick is shown that
is not paid for, and of each period one is. *Why.* TICK, draw, store, TICKED, show, in this order; what is shown is what
TICKED names, with the hash that it says (core/ledger/counters.py). Who ticks holds the counter's name; whoever comes
after a crash finds what was stored under a TICK's ids and goes on from there, or draws again, which is charged, and is
done only where somebody asks for it. *When it would be false.* If numbers were shown before TICKED, or those of another
draw. *Tested by* tests/service/test_counters.py, tests/deep/service/test_counters_killed.py.
"""

from __future__ import annotations

import datetime as dt
import math
import threading
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from fractions import Fraction
from hashlib import sha256
from typing import TYPE_CHECKING

from dpsql.answers.stored.analyst_account import AnalystAccount
from dpsql.answers.stored.older_answers import begun
from dpsql.core.ir.expressions import LiteralValue
from dpsql.core.ir.types import DATE, DOUBLE
from dpsql.core.ledger.counters import CounterRefused, CounterState, hash_of_numbers, holding
from dpsql.core.ledger.paid import Terms, unchanged
from dpsql.core.ledger.released import StoredAnswer
from dpsql.core.noise.backends import backend
from dpsql.core.numbers.confidence import LEVEL
from dpsql.core.numbers.counter_weights import error_of_window, next_estimates, totals
from dpsql.core.numbers.normal import two_sided
from dpsql.core.release.counting import ChargedTick, TickRequest, charge_tick, draw_tick, give
from dpsql.diagnostics.errors import Rejected
from dpsql.frontend.bind.parameters import GivenRelation
from dpsql.frontend.text.counter_statements import CreateCounter
from dpsql.service.counters.countable import CounterDesign
from dpsql.service.counters.counter_design import design, planned

if TYPE_CHECKING:
    from dpsql.service.service import Service

_OTHERWISE = "the policy, the engine or dpsql measures it otherwise now"
_GONE = "the numbers of an earlier period are gone from the store of answers"
_LOST = "its numbers were lost: to draw them again is charged"
ERRORS = "_error"
"""What stands behind a counter's name for the ± of a window."""


@dataclass(frozen=True, slots=True)
class Counted:
    """What has been released of a counter, tick by tick.

    estimates: of each component and tick those of the groups, in 2^-POINT.
    """

    state: CounterState
    design: CounterDesign
    estimates: tuple[tuple[tuple[int, ...], ...], ...]

    @property
    def ticks(self) -> int:
        """How many periods are counted."""
        return len(self.estimates[0])

    def rows(self) -> list[tuple[LiteralValue, ...]]:
        """A row for each period and group: its number is the difference of two totals, so that days add up."""
        own, found = self.design.fixed, list[tuple[LiteralValue, ...]]()
        sums = [totals(each) for each in self.estimates]
        for t in range(self.ticks):
            day = own.begins(t)
            for g, group in enumerate(self.design.groups):
                key = (*group[: self.design.day], day, *group[self.design.day :])
                numbers = [each[t][g] - (each[t - 1][g] if t else 0) for each in sums]
                found.append(tuple(key[c.key] if c.key is not None else c.value(numbers) for c in self.design.columns))
        return found

    def widths(self, first: dt.date, last: dt.date) -> list[tuple[LiteralValue, ...]] | None:
        """The one row of ± of a window: its days, and the half-width of each count and sum; None: no such window."""
        own = self.design.fixed
        before, newest = own.place(first) - 1, own.place(last)
        if not -1 <= before < newest < self.ticks:
            return None
        return [(first, last, *(width(self.design, c.terms, before, newest) for c in self.design.columns if c.terms))]


def width(of: CounterDesign, terms: Sequence[tuple[int, Fraction]], before: int, last: int) -> float:
    """The half-width of a window's number: of Gaussian noise, and of the rounding of its two totals."""
    own = of.fixed
    variance = math.fsum(float(worth**2 * own.variances[i]) for i, worth in terms)
    reach = math.sqrt(two_sided(1 - LEVEL))
    return reach * math.sqrt(variance) * error_of_window(own.length, before, last) + float(
        sum(abs(worth) for _, worth in terms)
    )


@dataclass(frozen=True, slots=True)
class Ticked:
    """What came of ticking a counter. through: the last period that is given. lost: a closed one that is not, whose
    numbers were lost, or that is measured otherwise now; and why."""

    name: str
    through: dt.date | None
    lost: dt.date | None = None
    why: str = ""


class CounterStore:
    """Draws ticks, and finds what was released. It makes no ledger."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._lock = threading.Lock()
        self._kept: dict[str, Counted] = {}
        self._designs: dict[tuple[str, int], CounterDesign | None] = {}

    @property
    def states(self) -> tuple[CounterState, ...]:
        """Those that have a name, oldest first. Raises CannotOpen."""
        if not self._service.has_ledger:
            return ()
        told = getattr(self._service.ledger, "counters", None)  # a ledger of the caller's own may keep none
        return () if told is None else tuple(state for state in told() if not state.dropped)

    def called(self, name: str) -> CounterState | None:
        """The one of this name. Raises CannotOpen."""
        return next((s for s in self.states if s.frozen.name.casefold() == name.casefold()), None)

    def design_of(self, state: CounterState) -> CounterDesign | None:
        """What it measures; None: the policy says otherwise now than when it was made."""
        key = state.id, self._service.facts.changes
        if key not in self._designs:
            own = state.frozen
            try:
                found = design(self._service, CreateCounter(own.name, own.sql, own.first, own.amounts))
            except Rejected:
                found = None
            self._designs[state.id, self._service.facts.changes] = (
                found if found is not None and found.same_as(own) else None
            )
            return self._designs[state.id, self._service.facts.changes]
        return self._designs[key]

    # --- what was released -------------------------------------------------------------------------------------------

    def counted(self, state: CounterState, account: AnalystAccount) -> Counted | None:
        """What has been released of a counter; None where the policy says otherwise now. Raises CannotOpen."""
        own = self.design_of(state)
        if own is None:
            return None
        with self._lock:
            known = self._kept.get(state.id)
            if known is None or known.design is not own or known.ticks > len(state.given):
                known = None
            made = [list(each) for each in known.estimates] if known is not None else [[] for _ in own.fixed.variances]
            days = _days(state)[len(made[0]) :]
            places = {address(state, day): day for day in days}
            stored = {places[at]: found for at, found in account.store.find(list(places)).items()} if days else {}
            for day in days:
                answers = _those_of(state.given[day].answers, stored.get(day, ()))
                if answers is None or hash_of_numbers([a.values for a in answers]) != state.numbers(day):
                    break  # its numbers are gone: what follows needs them
                for each, answer in zip(made, answers, strict=True):
                    each.append(_estimates(answer, own))
            found = Counted(state, own, tuple(tuple(each) for each in made))
            self._kept[state.id] = found
            return found

    def _stored(
        self, state: CounterState, day: dt.date, ids: Sequence[str], account: AnalystAccount
    ) -> list[StoredAnswer] | None:
        """What is stored of a period under these ids, component by component."""
        place = address(state, day)
        return _those_of(ids, account.store.find([place]).get(place, ()))

    def relations(self, names: Sequence[str], account: AnalystAccount) -> tuple[GivenRelation, ...]:
        """Those of these counters that the account has, and the ± of their windows. Raises CannotOpen."""
        held, found = account.ledger.received(account.analyst), list[GivenRelation]()
        for state in self.states:
            name = state.frozen.name
            if not {name.casefold(), (name + ERRORS).casefold()} & set(names) or holding(state.id) not in held:
                continue
            counted = self.counted(state, account)
            if counted is None:
                continue
            columns, version = counted.design.columns, f"{state.id} {counted.ticks}"
            shown = tuple((c.name, c.type) for c in columns)
            rows = counted.rows() if name.casefold() in names else ()
            measured = tuple((c.name, DOUBLE) for c in columns if c.terms)
            ends = (("first_day", DATE), ("last_day", DATE))
            found.append(GivenRelation(name, shown, version, rows))
            found.append(GivenRelation(name + ERRORS, (*ends, *measured), version, of_days=counted.widths))
        return tuple(found)

    # --- ticking -----------------------------------------------------------------------------------------------------

    def tick(
        self,
        name: str | None = None,
        *,
        again: bool = False,
        most: int | None = None,
        account_of: Callable[[str], AnalystAccount] | None = None,
    ) -> list[Ticked]:
        """Draw what is closed and not ticked, of all counters or of one.

        again: also what was drawn before and lost, which is charged. most: so many periods of each. account_of: opens
        the account of who has made it, for a caller who has to know when it is charged and drawn.
        Raises BudgetExceeded, CannotOpen, EngineError.
        """
        found = []
        for state in self.states:
            if not state.over and (name is None or name.casefold() == state.frozen.name.casefold()):
                account = (account_of or self._service.account)(state.account)

                def alone(state: CounterState = state, account: AnalystAccount = account) -> Ticked:
                    return self._tick(state.id, account, again, most)

                found.append(account.store.alone({holding(state.id)}, alone))
        return found

    def waits(self, state: CounterState, *, again: bool) -> bool:
        """Whether a tick would draw something now. again: see `tick`. Raises CannotOpen."""
        if self._next(state) is None:
            return False
        counted = self.counted(state, self._service.account(state.account))
        is_whole = counted is not None and counted.ticks >= len(state.given)
        return is_whole and (again or self.lost(state) is None)

    def standing(self, state: CounterState) -> Ticked:
        """What a tick would say if it drew nothing. Raises CannotOpen."""
        last, day = max(_days(state), default=None), self._next(state)
        if day is None:
            return Ticked(state.frozen.name, last, why=state.over)
        if self.design_of(state) is None:
            return Ticked(state.frozen.name, last, day, _OTHERWISE)
        return Ticked(state.frozen.name, last, day, _LOST if self.lost(state) else _GONE)

    def lost(self, state: CounterState) -> dt.date | None:
        """The next period, if its numbers were drawn and are gone: to draw them again is charged. Raises CannotOpen."""
        day, account = self._next(state), self._service.account(state.account)
        drawn = () if day is None else state.drawn.get(day, ())
        if day is None or not drawn or any(self._stored(state, day, ids, account) is not None for ids in drawn):
            return None
        return day

    def _next(self, state: CounterState) -> dt.date | None:
        """The first period that is closed and not given; None if there is none."""
        day, closed = state.frozen.ends(len(_days(state))), self._service.closed_periods().get(state.frozen.table)
        is_closed = closed is not None and closed.through is not None and closed.through >= day
        return day if is_closed and not state.over else None

    def _tick(self, id: str, account: AnalystAccount, again: bool, most: int | None) -> Ticked:
        done = 0
        while True:
            state = next(s for s in account.ledger.counters() if s.id == id)
            own, last = state.frozen, max(_days(state), default=None)
            day = self._next(state)
            if day is None or done == most:
                return Ticked(own.name, last)
            found = self.design_of(state)
            if found is None:
                return Ticked(own.name, last, day, _OTHERWISE)
            if (lost := self._one(state, found, day, account, again)) is not None:
                return Ticked(own.name, last, day, lost)
            done += 1

    def _one(
        self, state: CounterState, of: CounterDesign, day: dt.date, account: AnalystAccount, again: bool
    ) -> str | None:
        """One tick; why there is none."""
        service, own, underway = self._service, state.frozen, account.underway()

        def begin(entry: str) -> None:
            underway.begin(entry)
            if account.charging is not None:
                account.charging(entry)

        caps = replace(account.caps, failures=None)
        request = TickRequest(caps, service.policy, account.ledger.salt, backend(service.policy.noise), account.data)
        counted = self.counted(state, account)
        if counted is None or counted.ticks < len(state.given):
            return _GONE
        for ids in state.drawn.get(day, ()):
            if (stored := self._stored(state, day, ids, account)) is not None:
                with suppress(CounterRefused):
                    give(account.ledger, request, state, day, stored)
                account.ledger.finish()
                return None
        if state.drawn.get(day) and not again:
            return _LOST
        oldest = max(own.begins(max(0, own.place(day) - own.length + 1)), own.first)
        plan = planned(service, of.query, of.settings, oldest, day)
        charged, answers = list[ChargedTick](), list[StoredAnswer]()

        def as_planned() -> None:
            service.facts.check_again(replace(plan, basis=replace(plan.basis, periods={})))

        def charge() -> None:
            as_planned()
            charged.append(charge_tick(account.ledger, replace(request, begin=begin), state, plan.releases[0], day))

        def draw() -> None:
            if charged:
                as_planned()
            else:
                charge()
            numbers = draw_tick(charged[0], request, service.engine)
            for (name, terms), values, before in zip(charged[0].names, numbers, counted.estimates, strict=True):
                made = [*values, *next_estimates(own.length, before, values)]
                answers.append(_stored_answer(name, address(state, day), made, terms))

        def asking(step: Callable[[], None]) -> None:
            with service.running:
                service.engine.in_snapshot(step)

        try:
            if account.drawing is not None:
                asking(charge)
                account.drawing()
            asking(draw)
        except CounterRefused as refused:
            return refused.diagnostics[0].message
        except Exception:
            underway.has_failed = bool(charged) and not (service.is_closed or service.is_cut)
            raise
        finally:
            try:
                if charged and account.leaving is not None:
                    account.leaving()
            finally:
                underway.end()
        begun(account.store)
        account.store.add(answers)
        with suppress(CounterRefused):  # somebody else's numbers are given: these are thrown away unseen
            give(account.ledger, request, state, day, answers)
        account.ledger.finish()
        return None


def _those_of(ids: Sequence[str], stored: Iterable[StoredAnswer]) -> list[StoredAnswer] | None:
    """The answers of these ids, in their order; None where one is not there."""
    found = {a.id: a for a in stored if unchanged(a)}
    return [found[id] for id in ids] if all(id in found for id in ids) else None


def address(state: CounterState, day: dt.date) -> str:
    """Under what the numbers of a period are stored."""
    return sha256(f"{holding(state.id)} {day}".encode()).hexdigest()


def _stored_answer(id: str, place: str, values: Sequence[int], terms: Terms) -> StoredAnswer:
    return StoredAnswer(
        id, place, values, terms.mechanism, terms.parameter, terms.losses, terms.conversion, datetime.now(UTC), None,
        terms.regions,
    )  # fmt: skip


def _days(state: CounterState) -> list[dt.date]:
    """The periods that are given, oldest first, up to the first that is not."""
    own, found = state.frozen, list[dt.date]()
    while (day := own.ends(len(found))) in state.given:
        found.append(day)
    return found


def _estimates(answer: StoredAnswer, of: CounterDesign) -> tuple[int, ...]:
    """Behind what was released of each group stands what that makes of it."""
    return tuple(answer.values[len(of.groups) :])
