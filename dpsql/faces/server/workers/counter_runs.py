"""What a worker does with a statement about a counter, or about the periods of a growing table: part by part.

*Claim.* When anything of a tick can be seen depends on no private row, and each tick is a run of its own: charged
before any of its round draws, and stored and given when it may leave. *Why.* Of an Ask, `form` is the number of the
part. Part 0 makes, receives, drops or closes, and reads no private row; every further one is one tick of one counter,
and there is one more as long as `waits` finds a period that lacks. *When it would be false.* If two ticks were one run:
the second one's entry would tell when the first was drawn. *Tested by* tests/faces/server/test_counters.py.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from dpsql.answers.results import counter_rows
from dpsql.answers.results.summary_rows import Columns
from dpsql.core.ir.types import VARCHAR
from dpsql.core.ledger.counters import CounterState, holding
from dpsql.core.privacy_loss import NO_LOSS, PrivacyLoss
from dpsql.faces.server.statements import Answer
from dpsql.faces.server.workers.notices import counter_cost_told, price_told
from dpsql.faces.server.workers.worker_messages import Ask, Reply
from dpsql.frontend.text.counter_statements import (
    CounterStatement,
    CreateCounter,
    DropCounter,
    ReceiveCounter,
    TickCounter,
)
from dpsql.frontend.text.period_statements import ClosePeriods, PeriodStatement, ReopenPeriods
from dpsql.service.counters import counter
from dpsql.service.counters.closing import ChangedPeriods, change_periods, closed_of, counters_of
from dpsql.service.counters.counter_store import Ticked
from dpsql.service.session import Session


@dataclass(frozen=True, slots=True)
class RunSteps:
    """What a run tells whoever waits for it: see `WorkerAnswering`."""

    charging: Callable[[str], None]
    drawing: Callable[[], None]
    leaving: Callable[[], None]


Run = Callable[[frozenset[str], Callable[[RunSteps], Any]], Any]
"""Runs a step that holds these names, with what it tells."""


def counter_reply(ask: Ask, session: Session, statement: CounterStatement | PeriodStatement, run: Run) -> Reply:
    """What came of a statement, or of a part of it. Raises dpsql.Error."""
    if isinstance(statement, ClosePeriods | ReopenPeriods):
        return _Closing(ask, session, statement, run).reply()
    if ask.wish in ("cost", "explain"):
        return _looked(ask, session, statement)
    return _About(ask, session, statement, run).reply()


def _looked(ask: Ask, session: Session, statement: CounterStatement) -> Reply:
    given = ask.settings
    if ask.wish == "cost" and isinstance(statement, CreateCounter):
        query = counter.CounterQuery(session, statement, ask.sql)
        widths, loss = counter.widths(query, given.epsilon, given.rho), query.cost(given.epsilon, rho=given.rho)
        return Reply(ask.id, counter_cost_told(session, loss, widths))
    if ask.wish == "cost" and isinstance(statement, ReceiveCounter | TickCounter):
        return Reply(ask.id, counter_cost_told(session, counter.price_of(session, statement), {}))
    lines = counter.explained(session, statement, ask.sql, given.epsilon, given.rho).splitlines()
    return Reply(ask.id, Answer((("QUERY PLAN", VARCHAR),), [(line,) for line in lines], command="EXPLAIN"))


@dataclass(frozen=True, slots=True)
class _About:
    """Of one counter."""

    ask: Ask
    session: Session
    statement: CounterStatement
    run: Run

    def reply(self) -> Reply:
        """Nothing where a part is to be run."""
        ask, session, statement = self.ask, self.session, self.statement
        place = int(ask.form)
        if isinstance(statement, DropCounter):
            session.drop_counter(statement.name)
            remark = "is dropped; periods that it has not measured have their budget back"
            return self._done(statement.name, None, remark)
        if place == 0 and isinstance(statement, CreateCounter | ReceiveCounter):
            return self._paid(statement)
        state = counter.named(session, statement.name)
        if isinstance(statement, ReceiveCounter):
            return self._done(state.frozen.name, None, f"read it:  SELECT * FROM dpsql.{state.frozen.name}")
        again = isinstance(statement, TickCounter) and state.account == session.analyst
        return _ticked(ask, session, [state], self.run, counter_rows.DONE, again=again) or self._standing(state)

    def _paid(self, statement: CreateCounter | ReceiveCounter) -> Reply:
        ask, session, given = self.ask, self.session, self.ask.settings
        if isinstance(statement, ReceiveCounter):
            price = counter.price_of(session, statement)
            if ask.wish == "look":
                return Reply(ask.id, Answer(counter_rows.DONE, ()) if price == NO_LOSS else None)
            begun: list[str] = []
            self.run(frozenset(), lambda steps: counter.receive_counter(session, statement.name, _noting(begun, steps)))
            return self._charged(price, begun)
        query = counter.CounterQuery(session, statement, ask.sql)
        if ask.wish == "look":
            counter.require_room(query, given.epsilon, given.rho)
            return Reply(ask.id)
        begun = []
        _, price = self.run(
            frozenset(), lambda steps: counter.charge_counter(query, given.epsilon, given.rho, _noting(begun, steps))
        )
        return self._charged(price, begun)

    def _charged(self, price: PrivacyLoss, begun: Sequence[str]) -> Reply:
        notices = (price_told(self.session, price),) if self.ask.settings.notices else ()
        entry = begun[-1] if begun else ""
        return Reply(
            self.ask.id, Answer(counter_rows.DONE, (), notices, spent=str(price), entry=entry, charged=price)
        )  # fmt: skip

    def _standing(self, state: CounterState) -> Reply:
        """Of a counter that is counted as far as can be."""
        found = self.session.service.counters.standing(state)
        return self._done(found.name, found, counter.told(found))

    def _done(self, name: str, found: Ticked | None, remark: str) -> Reply:
        row = (name, "", None if found is None else found.through, remark)
        return Reply(self.ask.id, Answer(counter_rows.DONE, [row]))


@dataclass(frozen=True, slots=True)
class _Closing:
    """Of periods, and then of the counters of their table."""

    ask: Ask
    session: Session
    statement: PeriodStatement
    run: Run

    def reply(self) -> Reply:
        """Nothing where a counter is to be ticked."""
        ask, service = self.ask, self.session.service
        if int(ask.form) == 0 and ask.wish == "look":
            changed = change_periods(service.ledger, service.policy, self.statement)
            service.ledger.finish()
        else:
            changed = closed_of(service, self.statement)
        states = counters_of(service, changed.table) if isinstance(self.statement, ClosePeriods) else []
        found = _ticked(ask, self.session, states, self.run, counter_rows.CLOSED, again=False)
        return found or self._done(changed, states)

    def _done(self, changed: ChangedPeriods, states: Sequence[CounterState]) -> Reply:
        own, first, last = changed.table.name, *changed.ends
        rows: list[tuple[Any, ...]] = [(own, first, last, changed.remark)]
        for state in states:
            found = self.session.service.counters.standing(state)
            rows.append((state.frozen.name, state.frozen.first, found.through, f"counter: {counter.told(found)}"))
        return Reply(self.ask.id, Answer(counter_rows.CLOSED, rows))


def _ticked(
    ask: Ask, session: Session, states: Sequence[CounterState], run: Run, columns: Columns, *, again: bool
) -> Reply | None:
    """One tick of the first of these that lacks one; None where none does. columns: of the statement. again: see
    `CounterStore.tick`."""
    counters = session.service.counters
    waiting = next((state for state in states if counters.waits(state, again=again)), None)
    if waiting is None:
        return None
    if ask.wish == "look":
        return Reply(ask.id)
    begun, price = list[str](), NO_LOSS
    if again:
        price = counter.price_of(session, TickCounter(waiting.frozen.name))

    def tick(steps: RunSteps) -> list[Ticked]:
        def account_of(who: str) -> Any:
            charging = _noting(begun, steps)
            return session.service.account(who, charging, leaving=steps.leaving, drawing=steps.drawing)

        return counters.tick(waiting.frozen.name, again=again, most=1, account_of=account_of)

    (found,) = run(frozenset({holding(waiting.id)}), tick)
    notices = (price_told(session, price),) if ask.settings.notices and price != NO_LOSS else ()
    spent, entry = (str(price), begun[-1]) if begun and price != NO_LOSS else ("", "")
    second = waiting.frozen.first if columns == counter_rows.CLOSED else ""
    rows = [(found.name, second, found.through, counter.told(found))] if found.lost is not None else []
    return Reply(ask.id, Answer(columns, rows, notices, spent=spent, entry=entry, charged=price))


def _noting(begun: list[str], steps: RunSteps) -> Callable[[str], None]:
    def charging(entry: str) -> None:
        begun.append(entry)
        steps.charging(entry)

    return charging
