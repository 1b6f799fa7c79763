"""The rows of the relations `dpsql.budget`, `dpsql.history`, …: of one account, and for custodians of all."""

from __future__ import annotations

import datetime as dt
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Final

from dpsql import __version__
from dpsql.answers.results.summary_rows import listed
from dpsql.core.ledger.failures import counted
from dpsql.core.ledger.ledger import Ledger, Receipt
from dpsql.core.policy.policy import Policy
from dpsql.core.privacy_loss import NO_LOSS, PrivacyLoss, largest, remaining
from dpsql.faces.server.account_relations import Row
from dpsql.policy.tools.show import declared_of, whose_rows
from dpsql.service.accounts.ledgers import shown
from dpsql.service.accounts.remaining_budgets import limits_of
from dpsql.service.session import Session

NEWEST: Final = 200
"""Entries of the history, the newest of them."""
MOST_POINTS: Final = 400
"""Rows of a spending over time: of more charges, some in between are left out."""


def rows_of(session: Session, names: Collection[str]) -> Mapping[str, Sequence[Row]]:
    """Relation → its rows. Raises CannotOpen (DP407)."""
    makers = {
        "budget": _budget,
        "history": _history,
        "tables": _tables,
        "summaries": _summaries,
        "spending": _spending,
        "accounts": _accounts,
        "spending_of_all": _spending_of_all,
        "ledger": _ledger,
        "failures": _failures,
        "report": _report,
    }
    return {name: makers[name](session) for name in names}


def _budget(session: Session) -> list[Row]:
    found: list[Row] = []
    for unit, budget in session.budget.items():
        limits = [x for x in (budget.remaining, budget.total_remaining) if x is not None]
        parts: list[float | None] = []
        for part in ("epsilon", "delta", "rho"):
            left = min((getattr(x, part) for x in limits), default=None)
            parts += [_number(getattr(budget.spent, part)), _number(left)]
        found.append((unit, *parts))
    return found


def _history(session: Session) -> list[Row]:
    found: list[Row] = []
    for number, receipt in [*enumerate(_own(session), 1)][-NEWEST:]:
        entry = receipt.entry
        cost = largest([entry.in_account(unit) for unit in entry.units] or [PrivacyLoss()])
        parts = tuple(_number(x) for x in (cost.epsilon, cost.delta, cost.rho))
        found.append((number, _time(receipt.reserved_at), entry.statement, *parts, entry.plan_hash, entry.id))
    return found


def _spending(session: Session) -> list[Row]:
    own = _own(session)
    return _thinned([(unit, at, *parts) for unit in session.policy.units for at, parts in _summed(own, unit, own=True)])


def _spending_of_all(session: Session) -> list[Row]:
    found: list[Row] = []
    charges = _charges(session)
    for unit in session.policy.units:
        found += [(unit, None, at, *parts) for at, parts in _summed(charges, unit, own=False)]
        for name in sorted({r.entry.analyst for r in charges}):
            own = [r for r in charges if r.entry.analyst == name]
            found += [(unit, name, at, *parts) for at, parts in _summed(own, unit, own=True)]
    return _thinned(found)


def _own(session: Session) -> list[Receipt]:
    """The account's own charges."""
    return [r for r in _charges(session) if r.entry.analyst == session.analyst]


def _charges(session: Session) -> list[Receipt]:
    """Entries that cost something, in the present names of units.

    Others name noise within a run, and when they came would tell how far it was.
    """
    names = session.policy.unit_names
    return [replace(r, entry=r.entry.called(names)) for r in session.ledger.history() if r.entry.units]


def _summed(
    charges: Sequence[Receipt], unit: str, *, own: bool
) -> Iterator[tuple[dt.datetime | None, tuple[float | None, ...]]]:
    """What was spent of a unit after each charge. own: received answers count, as in an account."""
    spent = NO_LOSS
    for receipt in charges:
        entry = receipt.entry
        loss = entry.in_account(unit) if own else entry.charges.get(unit, NO_LOSS)
        if loss != NO_LOSS:
            spent += loss
            yield _time(receipt.reserved_at), tuple(_number(x) for x in (spent.epsilon, spent.delta, spent.rho))


def _thinned(rows: list[Row]) -> list[Row]:
    """No more than can be drawn; the last of each run of rows stays."""
    step = -(-len(rows) // MOST_POINTS)
    return rows if step <= 1 else [row for at, row in enumerate(rows) if at % step == 0 or at == len(rows) - 1]


def _accounts(session: Session) -> list[Row]:
    found: list[Row] = []
    for unit, name, spent, cap in standing(session.policy, session.ledger):
        left = None if cap is None else remaining(cap, spent)
        parts: list[float | None] = []
        for part in ("epsilon", "delta", "rho"):
            parts += [_number(getattr(spent, part)), None if left is None else _number(getattr(left, part))]
        found.append((unit, name, *parts))
    return found


def standing(policy: Policy, ledger: Ledger) -> Iterator[tuple[str, str | None, PrivacyLoss, PrivacyLoss | None]]:
    """Unit and account, None for all together; what it has spent, and what is allowed it, None for no limit."""
    names = {*policy.budgets.analysts, *(a.analyst for a in ledger.accounts() if a.analyst is not None)}
    for unit in policy.units:
        for name in (None, *sorted(names)):
            caps = limits_of(policy, ledger, name or "*")
            cap = caps.total.get(unit) if name is None else caps.analyst.get(unit)
            yield unit, name, ledger.spent(unit, name), cap


def _ledger(session: Session) -> list[Row]:
    """Read anew from the chain, which its head vouches for: else opening or reading it is refused (DP407)."""
    charges = _charges(session)
    place = session.ledger_place
    newest = charges[-1] if charges else None
    return [
        ("ledger", shown(place)),
        ("head", "" if place is None else str(place.head)),
        ("accountant", session.policy.privacy.accountant),
        ("charges", str(len(charges))),
        ("newest charge", "" if newest is None else newest.reserved_at[:19].replace("T", " ") + " UTC"),
        ("its place in the chain", "" if newest is None else f"{newest.sequence}, {newest.hash}"),
        ("policy", session.policy.hash),
    ]


def _failures(session: Session) -> list[Row]:
    """Without a word of the engine; the statement is the analyst's own text."""
    texts = {r.entry.id: r.entry.statement for r in session.ledger.history()}
    since = dt.datetime.now(dt.UTC) - session.policy.failures.per
    found = counted(session.ledger.failures(), since)
    return [(f.account, f.at and f.at.replace(tzinfo=None), f.how, texts.get(f.entry, ""), f.entry) for f in found]


def _report(session: Session) -> list[Row]:
    """As `dpsql policy report` makes it; no data is read for it."""
    from dpsql.faces.report.page import about_made_up, report  # which few ever ask for

    if session.service.free:
        return [(about_made_up(session.policy),)]
    today = dt.datetime.now(dt.UTC).date()
    return [(report(session.policy, session.ledger.history(), None, version=__version__, today=today),)]


def _tables(session: Session) -> list[Row]:
    found: list[Row] = []
    for table in session.policy.tables.values():
        for column in table.columns.values():
            type_ = "" if column.sql_type is None else column.sql_type.name.lower()
            declared = ", ".join(declared_of(column))
            found.append((table.name, whose_rows(table), column.name, type_, column.is_nullable, declared))
    return found


def _summaries(session: Session) -> list[Row]:
    return listed(session.summaries)


def _number(x: Fraction | None) -> float | None:
    return None if x is None else float(x)


def _time(text: str) -> dt.datetime | None:
    try:
        return dt.datetime.fromisoformat(text).astimezone(dt.UTC).replace(tzinfo=None)
    except ValueError:
        return None
