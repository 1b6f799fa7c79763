"""The years 1 to 9999, outside of which no date is computed with: every engine holds them."""

from __future__ import annotations

import datetime as dt

from dpsql.core.ir.types import Kind, SqlType
from dpsql.core.numbers import interval as iv
from dpsql.core.numbers.interval import Interval
from dpsql.core.values.value import Value, is_null

EPOCH = dt.date(1970, 1, 1)
DAY_US = 86_400_000_000
FIRST_DAY, LAST_DAY = (dt.date.min - EPOCH).days, (dt.date.max - EPOCH).days
DAYS = iv.interval(FIRST_DAY, LAST_DAY)
"""The years 1 to 9999 in days since 1970-01-01: every date arithmetic on them stays inside the engine's types."""
MICROS = iv.interval(FIRST_DAY * DAY_US, (LAST_DAY + 1) * DAY_US - 1)


def safe_span(t: SqlType) -> Interval:
    """The years 1 to 9999 on the number line of `t`."""
    return DAYS if t.kind is Kind.DATE else MICROS


def is_safe(a: Value) -> bool:
    """True if no row can lie outside the years 1 to 9999 ('infinity' lies outside)."""
    return is_null(a) or a.interval.within(safe_span(a.type))
