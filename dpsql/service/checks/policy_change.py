"""What a change of the policy would lose of what is stored: each question of the ledger's history, asked of both.

*Claim.* What is told as kept, the changed policy gives, and what is told as lost it does not. *Why.* Each statement is
planned anew by both policies over their data, and looked up where a run would look (answers/stored/choosing.py), for
whoever asked it. *When it would be false.* For what the ledger does not say of a question, as its parameters or a
setting that decides what is measured: what is not found by the old policy is told apart, and not judged. *Tested by*
tests/service/test_policy_change.py.

It draws nothing, charges nobody, and writes nothing.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from os import PathLike
from typing import Final

from dpsql.answers.stored.analyst_account import AnalystAccount
from dpsql.answers.stored.choosing import choose
from dpsql.answers.stored.ledger_summaries import definitions
from dpsql.core.ledger.counters import receives_counter
from dpsql.core.ledger.ledger import EntryKind, Receipt
from dpsql.core.ledger.released import StoredAnswer
from dpsql.core.policy.policy import Policy
from dpsql.core.privacy_loss import PrivacyLoss, largest
from dpsql.core.release.charge import price
from dpsql.diagnostics.errors import Rejected
from dpsql.planner.plan import Plan
from dpsql.planner.settings.query_settings import QuerySettings
from dpsql.service.open_data import open_data
from dpsql.service.planning.planning import WrittenQuery
from dpsql.service.planning.searches import with_held_limits
from dpsql.service.service import Service

_LITTLE: Final = QuerySettings(Fraction(1, 10**6), Fraction(1, 10))
"""What is planned is looked up however accurate it is: only the form of the statement counts."""


@dataclass(frozen=True, slots=True)
class StoredQuestion:
    """A question or a summary of which something is stored. name: of a summary; "" for a question.

    price: of what would be lost, to whoever bought it again at the same noise. why: the refusal, where the changed
    policy refuses the question.
    """

    statement: str
    name: str = ""
    accounts: tuple[str, ...] = ()
    price: PrivacyLoss = field(default_factory=PrivacyLoss)
    why: str = ""


@dataclass(frozen=True, slots=True)
class Change:
    """What a change would lose, and keep. untold: of what it cannot be told."""

    lost: tuple[StoredQuestion, ...] = ()
    kept: tuple[StoredQuestion, ...] = ()
    untold: tuple[StoredQuestion, ...] = ()


@dataclass(frozen=True, slots=True)
class _Asked:
    """A statement of the history. answers: all that any account has through it."""

    statement: str
    accounts: tuple[str, ...]
    answers: frozenset[str]
    settings: tuple[QuerySettings, ...]
    asked: dt.datetime


@dataclass(frozen=True, slots=True)
class _Found:
    """What one policy gives: statement → its answers by id, what refuses it, and the settings that were tried."""

    given: Mapping[str, Mapping[str, StoredAnswer]]
    refused: Mapping[str, str]
    settings: Mapping[str, tuple[QuerySettings, ...]]


def change(old: str | PathLike[str] | Policy, new: str | PathLike[str] | Policy, ledger: str | None = None) -> Change:
    """What is lost where `new` takes the place of `old`. ledger: in place of that of `old`.

    Raises CannotOpen: a policy, its data, the ledger.
    """
    before = Service(*open_data(old, None, None, None, None), ledger)
    try:
        if not before.has_ledger:
            return Change()
        kept = before.ledger
        known, summaries = definitions(kept), _summaries(before)
        told = {a.id for answers in summaries.values() for a in answers}
        history = [asked for asked in _history(kept.history()) if not asked.answers <= told]
        first = _found(before, history)
        before.engine.close()
        after = Service(*open_data(new, None, None, None, None), kept)
        try:
            # The changed policy is asked in the same way, or another way of asking would find what this one loses.
            second = _found(after, [replace(asked, settings=first.settings[asked.statement]) for asked in history])
            made = _summaries(after)
        finally:
            after.close()
    finally:
        before.close()
    accountant = before.policy.privacy.accountant
    change: tuple[list[StoredQuestion], list[StoredQuestion], list[StoredQuestion]] = ([], [], [])
    lost, same, untold = change
    for name, answers in summaries.items():
        own = StoredQuestion(known[name].statement.sql, known[name].name, (known[name].analyst,))
        gone = name not in made
        (lost if gone else same).append(replace(own, price=_price(answers, accountant)) if gone else own)
    for asked in history:
        given, own = first.given[asked.statement], StoredQuestion(asked.statement, "", asked.accounts)
        missing = [a for id, a in given.items() if id not in second.given[asked.statement]]
        if missing:
            why = second.refused.get(asked.statement, "")
            lost.append(replace(own, price=_price(missing, accountant), why=why))
        else:
            (same if given else untold).append(own)
    return Change(*map(tuple, change))


def _price(answers: Sequence[StoredAnswer], accountant: str) -> PrivacyLoss:
    return largest(price((), (), tuple(answers), accountant).received.values())  # type: ignore[arg-type]


def _history(entries: Sequence[Receipt]) -> list[_Asked]:
    """The statements that something was stored for, in the order in which they were asked last."""
    found: dict[str, _Asked] = {}
    for receipt in entries:
        entry = receipt.entry
        if not entry.answers or entry.kind is not EntryKind.CHARGE or receives_counter(entry):
            continue
        known = found.pop(entry.statement, None)
        accounts = dict.fromkeys((*(known.accounts if known else ()), entry.analyst))
        answers = entry.answers if known is None else known.answers | set(entry.answers)
        # What a search led to has an entry of its own, whose charge stands before it.
        settings = tuple(_settings(receipt)) if entry.units or known is None else known.settings
        found[entry.statement] = _Asked(
            entry.statement, tuple(accounts), frozenset(answers), settings, _moment(receipt)
        )
    return list(found.values())


def _settings(receipt: Receipt) -> Iterator[QuerySettings]:
    """In which a statement may have been asked: what it was charged decides the family of its noise."""
    paid = largest([receipt.entry.in_account(unit) for unit in receipt.entry.units])
    if paid.epsilon or paid.rho:
        rho = paid.rho or None
        as_paid = replace(_LITTLE, epsilon=None if rho else paid.epsilon, rho=rho)
        yield as_paid
        yield replace(as_paid, search=True)
        yield replace(as_paid, search=False)
    yield _LITTLE
    yield replace(_LITTLE, unlisted=True)


def _moment(receipt: Receipt) -> dt.datetime:
    try:
        return dt.datetime.fromisoformat(receipt.reserved_at).replace(tzinfo=None)
    except ValueError:
        return dt.datetime(1970, 1, 1)


def _found(service: Service, history: Sequence[_Asked]) -> _Found:
    given, refused = dict[str, dict[str, StoredAnswer]](), dict[str, str]()
    tried = dict[str, tuple[QuerySettings, ...]]()
    for asked in history:
        own = given[asked.statement] = {}
        for place, settings in enumerate(asked.settings, 1):
            tried[asked.statement] = asked.settings[:place]
            try:
                plan = service.planner.plan(WrittenQuery(asked.statement, (), "duckdb", asked.asked), settings)
                for account in asked.accounts:
                    own |= _given(service, plan, service.account(account))
            except Rejected as refusal:
                if settings.search is None and not settings.unlisted:
                    first = refusal.diagnostics[0]
                    refused[asked.statement] = f"{first.code}: {first.message}"
            if asked.answers <= own.keys():
                break
    return _Found(given, refused, tried)


def _summaries(service: Service) -> dict[str, tuple[StoredAnswer, ...]]:
    """The answers of each summary that is there, by name."""
    found = {}
    for name, definition in definitions(service.ledger).items():
        summary = service.summaries.summary(definition, service.account(definition.analyst))
        if summary is not None:
            found[name] = summary.answers
    return found


def _given(service: Service, plan: Plan, account: AnalystAccount) -> dict[str, StoredAnswer]:
    """The stored answers that the account has to a plan, by id, however accurate they are. Raises Rejected."""
    found, held = dict[str, StoredAnswer](), account.ledger.received(account.analyst)
    limited = with_held_limits(service, plan, account)
    for each in (plan.first, limited.first) if limited is not plan else (plan.first,):
        choice = choose(each, account.addresses(each), account.store, held, lambda: held, lambda _: False, any_own=True)
        found |= {a.id: a for given in choice.given for a in given.answers.values()}
    return found
