"""Closing periods of a growing table, and opening some again, as a custodian says. Who closes then ticks counters."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dpsql.core.ir.periods import Closed, words
from dpsql.core.ledger import closings
from dpsql.core.ledger.counters import CounterState
from dpsql.core.ledger.ledger import Ledger
from dpsql.core.policy.policy import Policy
from dpsql.core.policy.tables import Table
from dpsql.diagnostics.errors import reject
from dpsql.diagnostics.note import NOTHING_RAN
from dpsql.frontend.text.period_statements import ClosePeriods, PeriodStatement, ReopenPeriods

if TYPE_CHECKING:
    from dpsql.service.service import Service


@dataclass(frozen=True, slots=True)
class ChangedPeriods:
    """What is closed of a table now. reopened: the days that were opened again; None: periods were closed."""

    table: Table
    closed: Closed
    reopened: tuple[dt.date, dt.date] | None

    @property
    def remark(self) -> str:
        """In words."""
        if self.reopened is not None:
            return f"what was stored of {words((self.reopened,))} is served no longer; what was spent stays spent"
        return f"queries read {self.read}"

    @property
    def read(self) -> str:
        """The days that queries read."""
        assert self.table.grows is not None
        return words(self.table.grows.readable(self.closed)) or "no periods"

    @property
    def ends(self) -> tuple[dt.date | None, dt.date | None]:
        """The first and the last of these."""
        assert self.table.grows is not None
        days = self.table.grows.readable(self.closed)
        return (days[0][0], days[-1][1]) if days else (None, None)


def closed_of(service: Service, statement: PeriodStatement) -> ChangedPeriods:
    """As `change_periods`, of what was changed before. Raises Rejected DP903, CannotOpen."""
    table = growing_table(service.policy, statement.table)
    days = (statement.first, statement.last) if isinstance(statement, ReopenPeriods) else None
    return ChangedPeriods(table, service.closed_periods()[table.name], days)


def change_periods(ledger: Ledger, policy: Policy, statement: PeriodStatement) -> ChangedPeriods:
    """Custodian only. Raises Rejected DP903, CannotOpen."""
    table = growing_table(policy, statement.table)
    match statement:
        case ClosePeriods(through=through):
            return ChangedPeriods(table, closings.close(ledger, policy, table, through), None)
        case ReopenPeriods(first=first, last=last):
            return ChangedPeriods(table, closings.reopen(ledger, policy, table, (first, last)), (first, last))


def growing_table(policy: Policy, name: str | None) -> Table:
    """A growing table by name; None: the only one. Raises Rejected DP903."""
    growing = closings.tables_that_grow(policy)
    if name is None and len(growing) == 1:
        return growing[0]
    named = ", ".join(t.name for t in growing)
    if name is None:
        raise reject(
            "DP903", f"several tables grow: {named}" if growing else "no table of the policy grows",
            help=["say which:  --table NAME,  or  OF NAME  at a server"]
            if growing else ["custodian: tables.NAME:  grows: {by: day, every: day, from: 2026-01-01}"],
            notes=[NOTHING_RAN],
        )  # fmt: skip
    found = policy.table(name) or policy.called(*name.split("."))
    if found is None:
        raise reject(
            "DP903", f"the policy has no table {name!r}",
            help=[f"there grow: {named}" if growing else "none of its tables grows"], notes=[NOTHING_RAN],
        )  # fmt: skip
    return found


def counters_of(service: Service, table: Table) -> list[CounterState]:
    """Those that go on, and count rows of a table."""
    return [s for s in service.counters.states if not s.over and s.frozen.table == table.name]
