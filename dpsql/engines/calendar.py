"""Days and clocks beyond Python's calendar, as DuckDB writes them: what engines hand over in place of an error."""

from __future__ import annotations

import datetime as dt
from typing import Final

_EPOCH: Final = dt.date(2000, 1, 1)
_MIDNIGHT: Final = dt.datetime(2000, 1, 1)
_CYCLE: Final = 146_097
"""Days of 400 years, after which the calendar repeats itself."""
DAY: Final = 86_400_000_000
"""Microseconds."""


def clock(micros: int) -> str:
    """A time of the day, behind a blank. micros: since midnight."""
    return f" {(_MIDNIGHT + dt.timedelta(microseconds=micros)).time()}"


def far(days: int, clock: str = "") -> str:
    """A day outside of the years 1 to 9999. days: since 2000."""
    cycles, rest = divmod(days, _CYCLE)
    day = _EPOCH + dt.timedelta(rest)  # of the years 2000 to 2399
    year = day.year + 400 * cycles
    text = f"{year if year > 0 else 1 - year:04}-{day:%m-%d}"
    return text + clock if year > 0 else f"{text} (BC){clock}"
