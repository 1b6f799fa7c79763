"""The rows of the relations `dpsql.budget`, `dpsql.history`, …: of one account, and for custodians of all."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from fractions import Fraction

from dpsql import __version__
from dpsql.answers.results import counter_rows
from dpsql.answers.results.summary_rows import listed
from dpsql.core.ledger.closings import tables_that_grow
from dpsql.core.ledger.failures import counted
from dpsql.core.ledger.ledger import Ledger
from dpsql.core.policy.policy import Policy
from dpsql.core.privacy_loss import PrivacyLoss, largest, remaining
from dpsql.faces.server.account_relations import Row
from dpsql.faces.server.workers.ceilings import AccountSpending
from dpsql.policy.tools.show import declared_of, whose_rows
from dpsql.service.accounts.ledgers import shown
from dpsql.service.accounts.remaining_budgets import limits_of, stretches
from dpsql.service.accounts.spending_story import MOST_POINTS, SpendingStory
from dpsql.service.session import Session


def rows_of(session: Session, names: Collection[str], spending: AccountSpending) -> Mapping[str, Sequence[Row]]:
    """Relation → its rows. Raises CannotOpen (DP407)."""
    makers: dict[str, Callable[[Session, SpendingStory], list[Row]]] = {
        "budget": _budget,
        "history": _history,
        "tables": _tables,
        "summaries": _summaries,
        "counters": _counters,
        "closed_periods": _closed_periods,
        "periods": _periods,
        "periods_of_all": _periods_of_all,
        "spending": _spending,
        "accounts": _accounts,
        "spending_of_all": _spending_of_all,
        "ledger": _ledger,
        "failures": _failures,
        "report": _report,
    }
    return spending.told(lambda story: {name: makers[name](session, story) for name in names})


def _budget(session: Session, _: SpendingStory) -> list[Row]:
    found: list[Row] = []
    for unit, budget in session.budget.items():
        limits = [x for x in (budget.remaining, budget.total_remaining) if x is not None]
        parts: list[float | None] = []
        for part in ("epsilon", "delta", "rho"):
            left = min((getattr(x, part) for x in limits), default=None)
            parts += [_number(getattr(budget.spent, part)), _number(left)]
        found.append((unit, *parts))
    return found


def _history(session: Session, story: SpendingStory) -> list[Row]:
    names, account = session.policy.unit_names, session.analyst
    found: list[Row] = []
    receipts = session.ledger.find(story.newest.get(account, ()))
    for number, receipt in enumerate(receipts, story.counts.get(account, 0) - len(receipts) + 1):
        entry = receipt.entry.called(names)
        cost = largest([entry.in_account(unit) for unit in entry.units] or [PrivacyLoss()])
        found.append((number, _time(receipt.reserved_at), entry.statement, *_parts(cost), entry.plan_hash, entry.id))
    return found


def _counters(session: Session, _: SpendingStory) -> list[Row]:
    return counter_rows.listed(session.counters)


def _closed_periods(session: Session, _: SpendingStory) -> list[Row]:
    found, closed = list[Row](), session.service.closed_periods()
    for table in tables_that_grow(session.policy):
        assert table.grows is not None
        days = table.grows.readable(closed.get(table.name))
        first, last = (days[0][0], days[-1][1]) if days else (None, None)
        found.append((table.name, table.grows.by, table.grows.every, first, last))
    return found


def _periods(session: Session, _: SpendingStory) -> list[Row]:
    own = session.analyst
    return [(unit, *days, *parts) for unit, who, *days, parts in _by_period(session, [own]) if who == own]


def _periods_of_all(session: Session, _: SpendingStory) -> list[Row]:
    accounts = {a.analyst for a in session.ledger.accounts() if a.analyst is not None}
    return [
        (unit, who, *days, *parts)
        for unit, who, *days, parts in _by_period(session, [None, *sorted(accounts)], MOST_POINTS)
    ]


def _by_period(
    session: Session, accounts: Sequence[str | None], newest: int | None = None
) -> Iterator[tuple[str, str | None, dt.date | None, dt.date | None, list[float | None]]]:
    """Unit, account, first and last day of a stretch, spent and left of each part. None: all accounts together.

    newest: how many stretches of each account.
    """
    policy, ledger = session.policy, session.ledger
    for unit, tables in policy.by_period.items():
        first_day = min(table.grows.first for table in tables if table.grows is not None)
        all_ = ledger.by_period(unit)
        for who in accounts:
            caps, own = limits_of(policy, ledger, who or "*"), all_ if who is None else ledger.by_period(unit, who)
            for (first, last), spent, total in [*stretches(own, all_, first_day)][-newest if newest else 0 :]:
                limits = [(None if who is None else caps.analyst.get(unit), spent), (caps.total.get(unit), total)]
                left = [remaining(cap, loss) for cap, loss in limits if cap is not None]
                parts: list[float | None] = []
                for part in ("epsilon", "delta", "rho"):
                    parts += [float(getattr(spent, part)), _number(min((getattr(x, part) for x in left), default=None))]
                yield unit, who, first, last, parts


def _spending(session: Session, story: SpendingStory) -> list[Row]:
    units = list(session.policy.units)
    return [
        (unit, _utc(at), *_parts(spent))
        for unit in units
        for at, spent in story.trail(unit, session.analyst).points(MOST_POINTS // len(units))
    ]


def _spending_of_all(session: Session, story: SpendingStory) -> list[Row]:
    trails = [(unit, who) for unit in session.policy.units for who in story.accounts(unit)]
    return [
        (unit, who, _utc(at), *_parts(spent))
        for unit, who in trails
        for at, spent in story.trail(unit, who).points(MOST_POINTS // len(trails))
    ]


def _accounts(session: Session, _: SpendingStory) -> list[Row]:
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


def _ledger(session: Session, story: SpendingStory) -> list[Row]:
    """As it is read on now, which its head vouches for: else opening or reading it is refused (DP407)."""
    place, newest = session.ledger_place, story.last
    return [
        ("ledger", shown(place)),
        ("head", "" if place is None else str(place.head)),
        ("accountant", session.policy.privacy.accountant),
        ("charges", str(story.charges)),
        ("newest charge", "" if newest is None else newest.reserved_at[:19].replace("T", " ") + " UTC"),
        ("its place in the chain", "" if newest is None else f"{newest.sequence}, {newest.hash}"),
        ("policy", session.policy.hash),
    ]


def _failures(session: Session, _: SpendingStory) -> list[Row]:
    """Without a word of the engine; the statement is the analyst's own text."""
    since = dt.datetime.now(dt.UTC) - session.policy.failures.per
    found = counted(session.ledger.failures(), since)
    texts = {r.entry.id: r.entry.statement for r in session.ledger.find([f.entry for f in found])}
    return [(f.account, f.at and _utc(f.at), f.how, texts.get(f.entry, ""), f.entry) for f in found]


def _report(session: Session, story: SpendingStory) -> list[Row]:
    """As `dpsql policy report` makes it; no data is read for it."""
    from dpsql.faces.report.page import about_made_up, report  # which few ever ask for

    if session.service.free:
        return [(about_made_up(session.policy),)]
    today = dt.datetime.now(dt.UTC).date()
    return [(report(session.policy, story, None, version=__version__, today=today),)]


def _tables(session: Session, _: SpendingStory) -> list[Row]:
    found: list[Row] = []
    for table in session.policy.tables.values():
        for column in table.columns.values():
            type_ = "" if column.sql_type is None else column.sql_type.name.lower()
            declared = ", ".join(declared_of(column))
            found.append((table.name, whose_rows(table), column.name, type_, column.is_nullable, declared))
    return found


def _summaries(session: Session, _: SpendingStory) -> list[Row]:
    return listed(session.summaries)


def _parts(loss: PrivacyLoss) -> tuple[float, float, float]:
    return float(loss.epsilon), float(loss.delta), float(loss.rho)


def _number(x: Fraction | None) -> float | None:
    return None if x is None else float(x)


def _time(text: str) -> dt.datetime | None:
    try:
        return _utc(dt.datetime.fromisoformat(text))
    except ValueError:
        return None


def _utc(at: dt.datetime) -> dt.datetime:
    return at.astimezone(dt.UTC).replace(tzinfo=None)
