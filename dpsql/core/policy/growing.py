"""Tables that grow: each row is of one period, and a period is read once the custodian has closed it."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from typing import Literal

from dpsql.core.ir.periods import DAY, Closed, Span, canonical, common

Every = Literal["day", "week", "month"]


def close_first(table: str) -> str:
    """The repair where no period is closed."""
    return f"custodian, once a period is complete:  dpsql close POLICY --table {table} --through DATE"


@dataclass(frozen=True, slots=True)
class Growth:
    """by: the DATE column that says of which period a row is, in its declared spelling. every: how long a period is;
    weeks begin on Monday. first: nothing before this day is read. keep: nothing older than so many periods is; None:
    all are. made_of: what `from:` says of the column; empty for one of the data.
    """

    by: str
    every: Every
    first: dt.date
    keep: int | None = None
    made_of: str = ""

    def begins(self, day: dt.date) -> dt.date:
        """The first day of the period of a day."""
        if self.every == "week":
            return day - day.weekday() * DAY if day.toordinal() > day.weekday() else dt.date.min
        return day.replace(day=1) if self.every == "month" else day

    def ends(self, day: dt.date) -> dt.date:
        """Its last day."""
        try:
            match self.every:
                case "week":
                    return day + (6 - day.weekday()) * DAY
                case "month":
                    return (day.replace(day=28) + 4 * DAY).replace(day=1) - DAY
        except OverflowError:
            return dt.date.max
        return day

    def after(self, periods: int) -> dt.date:
        """The last day of so many periods from the first one on."""
        last = self.ends(self.first)
        for _ in range(periods - 1):
            last = self.ends(last + DAY)
        return last

    def whole(self, spans: tuple[Span, ...]) -> tuple[Span, ...]:
        """All periods that have any of these days."""
        return canonical((self.begins(first), None if last is None else self.ends(last)) for first, last in spans)

    def readable(self, closed: Closed | None) -> tuple[Span, ...]:
        """The days that may be read: of closed periods that are kept. closed: None where nobody knows."""
        if closed is None:
            return ((self.first, None),)
        through = closed.through
        if through is not None and self.ends(through) != through:
            through = self.begins(through) - DAY  # a part of a period is not closed
        if through is None or through < self.first:
            return ()
        return common(((self.first, through),), ((self._oldest(through), None),))

    def _oldest(self, through: dt.date) -> dt.date:
        """The first day that is kept."""
        start = self.begins(through)
        if self.keep is None:
            return self.first
        for_days = {"day": 1, "week": 7}.get(self.every)
        try:
            if for_days is not None:
                return start - for_days * (self.keep - 1) * DAY
            months = start.year * 12 + start.month - 1 - (self.keep - 1)
            return dt.date(months // 12, months % 12 + 1, 1)
        except (OverflowError, ValueError):
            return dt.date.min
