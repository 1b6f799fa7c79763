"""`CLOSE DP PERIODS OF table THROUGH DATE '…'` and `REOPEN DP PERIODS …`, as values: a custodian's, at a server."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass

from dpsql.diagnostics.diagnostic import Source
from dpsql.frontend.text.statement_reader import StatementReader, parts_about

CLOSE, REOPEN = "CLOSE DP PERIODS", "REOPEN DP PERIODS"


@dataclass(frozen=True, slots=True)
class ClosePeriods:
    """All periods of a growing table up to a day are complete. table: None for the only one that grows."""

    table: str | None
    through: dt.date


@dataclass(frozen=True, slots=True)
class ReopenPeriods:
    """Rows of these closed days were corrected: what is stored of them is served no longer."""

    table: str | None
    first: dt.date
    last: dt.date


PeriodStatement = ClosePeriods | ReopenPeriods


def period_statement(sql: str) -> PeriodStatement | None:
    """The statement if a text is one of these; None for any other. Raises Rejected DP010: it cannot be read."""
    found = parts_about(sql, "PERIODS", {"CLOSE", "REOPEN"})
    if found is None:
        return None
    verb, parts = found
    reader = _Reader(Source(sql), parts, len(sql))
    return reader.close() if verb == "CLOSE" else reader.reopen()


class _Reader(StatementReader):
    about = "periods"
    forms = (f"{CLOSE} OF table THROUGH DATE '2026-11-30'", f"{REOPEN} OF table FROM DATE '…' THROUGH DATE '…'")

    def close(self) -> ClosePeriods:
        table = self._table()
        self.word("THROUGH")
        found = ClosePeriods(table, self.day())
        self.over()
        return found

    def reopen(self) -> ReopenPeriods:
        table = self._table()
        self.word("FROM")
        first = self.day()
        self.word("THROUGH")
        found = ReopenPeriods(table, first, self.day())
        self.over()
        return found

    def _table(self) -> str | None:
        if self.here is None or self.here.upper != "OF":
            return None
        self.at += 1
        names = [self.name()]
        while self.accept("."):
            names.append(self.name())
        return ".".join(names)
