"""The rows of the relations `dpsql.budget`, `.history`, `.tables` and `.summaries`, for one account."""

from __future__ import annotations

import datetime as dt
from collections.abc import Collection, Mapping, Sequence
from fractions import Fraction
from typing import Final

from dpsql.core.privacy_loss import PrivacyLoss, largest
from dpsql.policy.tools.show import declared_of, whose_rows
from dpsql.results.summary_rows import listed
from dpsql.server.relations import Row
from dpsql.service.session import Session

NEWEST: Final = 200
"""Entries of the history, the newest of them."""


def rows_of(session: Session, names: Collection[str]) -> Mapping[str, Sequence[Row]]:
    """Relation → its rows. Raises CannotOpen (DP407)."""
    makers = {"budget": _budget, "history": _history, "tables": _tables, "summaries": _summaries}
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
    """Entries that cost something. Others name noise within a run, and when they came would tell how far it was."""
    own = [r for r in session.ledger.history() if r.entry.analyst == session.analyst and r.entry.units]
    found: list[Row] = []
    for number, receipt in [*enumerate(own, 1)][-NEWEST:]:
        entry = receipt.entry
        cost = largest([entry.in_account(unit) for unit in entry.units] or [PrivacyLoss()])
        parts = tuple(_number(x) for x in (cost.epsilon, cost.delta, cost.rho))
        found.append((number, _time(receipt.reserved_at), entry.statement, *parts, entry.plan_hash, entry.id))
    return found


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
