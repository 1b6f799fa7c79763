"""Making, receiving, ticking and dropping a counter, and the list of those that there are."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from dpsql.core.ledger.counters import CounterState, created, holding
from dpsql.core.ledger.losses.regions import dearest
from dpsql.core.ledger.privacy_filter import require_fits
from dpsql.core.privacy_loss import NO_LOSS, PrivacyLoss, largest
from dpsql.core.release.counting import TickRequest, create, receive
from dpsql.core.release.counting import drop as drop_entry
from dpsql.diagnostics.errors import Rejected, reject
from dpsql.diagnostics.note import NOTHING_RAN
from dpsql.frontend.text.counter_statements import (
    CounterStatement,
    CreateCounter,
    DropCounter,
    ReceiveCounter,
    TickCounter,
)
from dpsql.service.counters.countable import CounterDesign
from dpsql.service.counters.counter_design import design
from dpsql.service.counters.counter_store import Ticked, width
from dpsql.service.privacy_settings import Amount

if TYPE_CHECKING:
    from collections.abc import Callable

    from dpsql.service.session import Session

RESERVED: Final = frozenset(
    {"budget", "history", "tables", "summaries", "spending", "accounts", "spending_of_all", "ledger", "failures",
     "report", "counters", "periods", "closed_periods", "periods_of_all"}
)  # fmt: skip
"""Names that relations of the schema `dpsql` have, or may come to have."""


@dataclass(frozen=True, slots=True)
class CounterMade:
    """A counter that was made. spent: of each period from its first day on. ticked: what of it was counted at once."""

    name: str
    first: dt.date
    spent: PrivacyLoss
    ticked: Ticked


@dataclass(frozen=True, slots=True)
class KnownCounter:
    """A counter that a ledger knows.

    first, through: the first day that is read, and the last that is counted. held: whether this account has it; else
    `price` is what it is charged, of each period from the first day on. state: "" if it goes on; else why not.
    """

    name: str
    table: str
    query: str
    first: dt.date
    through: dt.date | None
    analyst: str
    price: PrivacyLoss
    held: bool
    state: str


class CounterQuery:
    """A counter to look at and to make. Everything but `run` spends nothing."""

    def __init__(self, session: Session, statement: CreateCounter, sql: str) -> None:
        """sql: as it was written, for refusals."""
        self._session, self.statement, self._sql = session, statement, sql

    def design(self, epsilon: Amount | None = None, *, rho: Amount | None = None) -> CounterDesign:
        """What is measured. Raises Rejected."""
        statement = self._with_amounts(epsilon, rho)
        if statement.name.casefold() in RESERVED or statement.name.casefold().endswith("_error"):
            raise reject(
                "DP903", f"dpsql.{statement.name} is the name of something else", help=["take another name"],
                notes=[NOTHING_RAN],
            )  # fmt: skip
        if self._session.service.free:
            raise reject(
                "DP903", "counters are of true rows, and these are made up", help=["ask day by day:  GROUP BY day"],
                notes=[NOTHING_RAN],
            )  # fmt: skip
        found = design(self._session.service, statement)
        known = self._session.service.counters.called(statement.name)
        if known is not None:
            raise reject(
                "DP903", f"there is a counter {known.frozen.name} already",
                help=["take another name", f"DROP DP COUNTER {known.frozen.name}"], notes=[NOTHING_RAN],
            )  # fmt: skip
        return found

    def _with_amounts(self, epsilon: Amount | None, rho: Amount | None) -> CreateCounter:
        """With the amounts that hold, as COUNTER will say them. Raises Rejected DP401."""
        session, asked = self._session, dict(self.statement.amounts)
        if not asked.keys() & {"epsilon", "rho"} and (epsilon is not None or rho is not None):
            asked |= {"rho": str(rho)} if rho is not None else {"epsilon": str(epsilon)}
        own = session.settings
        if not asked.keys() & {"epsilon", "rho"}:
            own_rho = session.policy.privacy.accountant == "zcdp"
            whole = own.rho or own.epsilon or session.policy.defaults.epsilon
            if whole is None:
                raise reject(
                    "DP401", "no epsilon was given, and the policy has no default",
                    help=["WITH (rho = 0.002)" if own_rho else "WITH (epsilon = 0.5)"],
                )  # fmt: skip
            asked["rho" if own.rho else "epsilon"] = f"'{whole}'"
        if session.policy.privacy.accountant == "approx_dp" and "delta" not in asked:
            delta = own.delta if own.delta is not None else session.policy.defaults.delta
            if delta:
                asked["delta"] = f"'{delta}'"
        return replace(self.statement, amounts=tuple(asked.items()))

    def cost(self, epsilon: Amount | None = None, *, rho: Amount | None = None) -> PrivacyLoss:
        """What making it charges, of each period from its first day on. Raises Rejected, CannotOpen."""
        return self._price(self.design(epsilon, rho=rho))

    def _price(self, found: CounterDesign) -> PrivacyLoss:
        return largest(found.fixed.losses(self._session.policy.privacy.accountant).values())

    def explain(self, epsilon: Amount | None = None, *, rho: Amount | None = None) -> str:
        """What is counted, at which price, and the ± of a day, a week, four weeks and all of a year."""
        found = self.design(epsilon, rho=rho)
        own = found.fixed
        lines = [
            f"counter {own.name}: {own.sql}",
            f"each {own.every} of {own.table} from {own.first}, {own.groups:,} groups",
            "", f"{'± of':<16}{f'1 {own.every}':>10}{'7':>10}{'28':>10}{'365 in all':>12}",
        ]  # fmt: skip
        for column in found.columns:
            if column.terms:
                windows = [width(found, column.terms, 364 - n, 364) for n in (1, 7, 28, 365)]
                lines.append(
                    f"{column.name:<16}{windows[0]:>10.4g}{windows[1]:>10.4g}{windows[2]:>10.4g}{windows[3]:>12.4g}"
                )
        what = f"cost: {self._price(found)} of each row of {own.table} from {own.first} on, once, for all ticks"
        return "\n".join([*lines, "", what])

    def run(self, epsilon: Amount | None = None, *, rho: Amount | None = None) -> CounterMade:
        """Charge it, and count the periods that are closed.

        Raises Rejected, BudgetExceeded (nothing was spent), CannotOpen, EngineError.
        """
        made, price = charge_counter(self, epsilon, rho)
        (ticked,) = self._session.service.counters.tick(made.frozen.name)
        return CounterMade(made.frozen.name, made.frozen.first, price, ticked)

    def __repr__(self) -> str:
        return f"<dpsql counter: {self.statement.sql}>"


def charge_counter(
    query: CounterQuery,
    epsilon: Amount | None = None,
    rho: Amount | None = None,
    begin: Callable[[str], object] | None = None,
) -> tuple[CounterState, PrivacyLoss]:
    """Charge it, and count nothing yet; and what it costs. begin: told the id of the entry before it is made.

    Raises Rejected, BudgetExceeded (nothing was spent), CannotOpen.
    """
    session, found = query._session, query.design(epsilon, rho=rho)
    account = session.service.account(session.analyst, ceilings=session.ceilings, named=session.named)
    request = TickRequest(account.caps, session.policy, account.ledger.salt, begin=begin)
    made = create(account.ledger, request, account.analyst, found.fixed, found.plan.hash)
    account.ledger.finish()
    return made, largest(made.entry.charges.values())


def require_room(query: CounterQuery, epsilon: Amount | None = None, rho: Amount | None = None) -> None:
    """Raises as `charge_counter`, and charges nothing."""
    session, found = query._session, query.design(epsilon, rho=rho)
    account = session.service.account(session.analyst, ceilings=session.ceilings, named=session.named)
    accountant = session.policy.privacy.accountant
    entry = created("-", account.analyst, found.fixed, accountant, found.plan.hash, session.policy.hash)
    require_fits(entry, account.caps, account.ledger)


def widths(query: CounterQuery, epsilon: Amount | None = None, rho: Amount | None = None) -> dict[str, float]:
    """The ± of each column for one period. Raises Rejected."""
    found = query.design(epsilon, rho=rho)
    return {c.name: width(found, c.terms, 363, 364) for c in found.columns if c.terms}


def named(session: Session, name: str) -> CounterState:
    """The counter of a name. Raises Rejected DP903, CannotOpen."""
    found = session.service.counters.called(name)
    if found is None:
        known = [s.frozen.name for s in session.service.counters.states]
        raise reject(
            "DP903", f"there is no counter {name!r}",
            help=[f"there are {', '.join(known)}" if known else "there are none"],
        )  # fmt: skip
    return found


@dataclass(frozen=True, slots=True)
class CounterDone:
    """What a statement about a counter has done. charged: now, of each period; None: nothing is charged for such."""

    name: str
    charged: PrivacyLoss | None
    through: dt.date | None
    remark: str

    @property
    def row(self) -> tuple[str, str, dt.date | None, str]:
        """As faces show it."""
        return self.name, "" if self.charged is None else str(self.charged), self.through, self.remark


def done(
    session: Session, statement: CounterStatement, sql: str, epsilon: Amount | None = None, rho: Amount | None = None
) -> CounterDone:
    """Do what a statement says, and pay for it. epsilon, rho: where it says neither. Raises dpsql.Error."""
    match statement:
        case CreateCounter():
            made = CounterQuery(session, statement, sql).run(epsilon, rho=rho)
            return CounterDone(made.name, made.spent, made.ticked.through, told(made.ticked))
        case ReceiveCounter(name=name):
            price = receive_counter(session, name)
            return CounterDone(name, price, None, f"read it:  SELECT * FROM dpsql.{name}")
        case TickCounter(name=name):
            ticked = tick_counter(session, name)
            return CounterDone(ticked.name, None, ticked.through, told(ticked))
        case DropCounter(name=name):
            drop(session, name)
            return CounterDone(name, None, None, "is dropped; periods that it has not measured have their budget back")


def told(ticked: Ticked) -> str:
    """What came of it, in words."""
    if ticked.lost is not None:
        return f"{ticked.lost} is not counted: {ticked.why}"
    if ticked.through is None:
        return ticked.why or "no closed period is counted yet"
    return f"counted through {ticked.through}"


def drop(session: Session, name: str) -> None:
    """End a counter that this account has made. Raises Rejected DP903, CannotOpen."""
    state = named(session, name)
    if state.account != session.analyst:
        raise reject(
            "DP903", f"counter {state.frozen.name} is of account {state.account}", help=["ask who has made it"]
        )
    account = session.service.account(session.analyst)
    drop_entry(account.ledger, TickRequest(account.caps, session.policy, 0), account.analyst, state)
    account.ledger.finish()


def receive_counter(session: Session, name: str, begin: Callable[[str], object] | None = None) -> PrivacyLoss:
    """Charge this account the price of another one's counter, once; what was charged. begin: see `charge_counter`.

    Raises Rejected DP903, BudgetExceeded, CannotOpen.
    """
    price, state = price_of(session, ReceiveCounter(name)), named(session, name)
    if price == NO_LOSS:
        return price
    account = session.service.account(session.analyst, ceilings=session.ceilings, named=session.named)
    receive(account.ledger, TickRequest(account.caps, session.policy, 0, begin=begin), account.analyst, state)
    account.ledger.finish()
    return price


def price_of(session: Session, statement: ReceiveCounter | TickCounter) -> PrivacyLoss:
    """What a statement would charge this account now, in a period. Raises Rejected DP903, CannotOpen."""
    state = named(session, statement.name)
    if isinstance(statement, TickCounter):
        day = session.service.counters.lost(state) if state.account == session.analyst else None
        accountant = session.policy.privacy.accountant
        regions = {} if day is None else state.frozen.redrawn(accountant, day)
        return largest([dearest(region) for region in regions.values()] or [NO_LOSS])
    if holding(state.id) in session.ledger.received(session.analyst):
        return NO_LOSS
    if session.service.counters.design_of(state) is None:
        raise not_read(session, state)
    return largest(state.entry.charges.values())


def explained(
    session: Session, statement: CounterStatement, sql: str, epsilon: Amount | None = None, rho: Amount | None = None
) -> str:
    """What a statement would do, and charge. Raises Rejected: DP012 where it is free."""
    match statement:
        case CreateCounter():
            return CounterQuery(session, statement, sql).explain(epsilon, rho=rho)
        case DropCounter():
            raise reject("DP012", "dropping a counter is free: there is nothing to explain", help=[statement.sql])
    price, state = price_of(session, statement), named(session, statement.name)
    own = state.frozen
    what = f"counter {own.name} of {state.account}: {own.sql}"
    if price == NO_LOSS:
        return f"{what}\n\ncost: nothing"
    of = f"of each row of {own.table} from {own.first} on"
    if isinstance(statement, TickCounter):
        of = f"of each row of the dearest {own.every}: {session.service.counters.lost(state)} is drawn again"
    return f"{what}\n\ncost: {price} {of}"


def tick_counter(session: Session, name: str) -> Ticked:
    """Count the closed periods that it lacks; what was drawn and lost is drawn again, and charged to who made it.

    Raises Rejected DP903, BudgetExceeded, CannotOpen, EngineError.
    """
    state = named(session, name)
    (found,) = session.service.counters.tick(state.frozen.name, again=state.account == session.analyst) or [
        Ticked(state.frozen.name, None, None, state.over)
    ]
    return found


def known_counters(session: Session) -> tuple[KnownCounter, ...]:
    """All that the ledger knows, by name. Raises CannotOpen."""
    states = session.service.counters.states
    if not states:
        return ()
    account, found = session.service.account(session.analyst), list[KnownCounter]()
    held = account.ledger.received(account.analyst)
    for state in states:
        own = state.frozen
        same = session.service.counters.design_of(state) is not None
        why = state.over or ("" if same else "the policy, the engine or dpsql measures it otherwise now")
        price, has = largest(state.entry.charges.values()), holding(state.id) in held
        last = max(state.given, default=None)
        found.append(KnownCounter(own.name, own.table, own.sql, own.first, last, state.account, price, has, why))
    return tuple(sorted(found, key=lambda c: c.name.casefold()))


def not_read(session: Session, state: CounterState) -> Rejected:
    """Why a counter that there is cannot be read."""
    name, price = state.frozen.name, largest(state.entry.charges.values())
    if holding(state.id) in session.ledger.received(session.analyst):
        return reject(
            "DP903", f"counter {name} is measured otherwise now: the policy, the engine or dpsql has changed",
            help=[f"DROP DP COUNTER {name}, and make it again"], notes=[NOTHING_RAN],
        )  # fmt: skip
    help = f"RECEIVE DP COUNTER {name}:  {price} of each period from {state.frozen.first} on, and the total nothing"
    return reject("DP903", f"this account has not got counter {name}", help=[help], notes=[NOTHING_RAN])
