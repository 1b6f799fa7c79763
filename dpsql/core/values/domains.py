"""Lazy sequences for domains too long to write down: days, weeks, months or microseconds of a declared range."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import overload

from dpsql.core.ir.step_count import take
from dpsql.core.values.value import Domain, Scalar

ENUMERABLE = 10_000
"""Domains up to this size are mapped value by value through a function's `python`."""

DAY = dt.timedelta(days=1)
_MONTHS = {"month": 1, "quarter": 3, "year": 12}
UNITS = ("day", "week", *_MONTHS)
"""The steps a DateRange can take; every one starts where `date_trunc` of that part would start it."""


def truncate(day: dt.date, unit: str) -> dt.date:
    """The first day of the week (Monday), month, quarter or year that holds `day`; date part only."""
    if unit == "day":
        return day
    if unit == "week":
        return day - dt.timedelta(days=day.weekday())
    step = _MONTHS[unit]
    index = (day.year * 12 + day.month - 1) // step * step
    return dt.date(index // 12, index % 12 + 1, 1)


def _index(day: dt.date, unit: str) -> int:
    if unit == "day":
        return day.toordinal()
    if unit == "week":
        return (day.toordinal() - 1) // 7
    return (day.year * 12 + day.month - 1) // _MONTHS[unit]


def _start(index: int, unit: str) -> dt.date:
    if unit == "day":
        return dt.date.fromordinal(index)
    if unit == "week":
        return dt.date.fromordinal(index * 7 + 1)
    month = index * _MONTHS[unit]
    return dt.date(month // 12, month % 12 + 1, 1)


@dataclass(frozen=True, slots=True)
class DateRange(Sequence[dt.date]):
    """The starts of all days (weeks, months, quarters, years) that meet [first, last]; O(1) length."""

    first: dt.date
    last: dt.date
    unit: str = "day"

    def __post_init__(self) -> None:
        if self.first > self.last or self.unit not in UNITS:
            raise ValueError(f"no range of {self.unit}s from {self.first} to {self.last}")

    def __len__(self) -> int:
        return _index(self.last, self.unit) - _index(self.first, self.unit) + 1

    @overload
    def __getitem__(self, at: int) -> dt.date: ...
    @overload
    def __getitem__(self, at: slice) -> Sequence[dt.date]: ...
    def __getitem__(self, at: int | slice) -> dt.date | Sequence[dt.date]:
        if isinstance(at, slice):
            return [self[i] for i in range(*at.indices(len(self)))]
        if not -len(self) <= at < len(self):
            raise IndexError(at)
        return _start(_index(self.first, self.unit) + at % len(self), self.unit)

    def __contains__(self, value: object) -> bool:
        if not isinstance(value, dt.date) or isinstance(value, dt.datetime):
            return False
        inside = truncate(self.first, self.unit) <= value <= self.last
        return inside and truncate(value, self.unit) == value

    def truncated(self, unit: str) -> DateRange:
        """The image under date_trunc(unit), exact when this is a range of days."""
        return DateRange(self.first, self.last, unit)


@dataclass(frozen=True, slots=True)
class TimestampRange(Sequence[dt.datetime]):
    """Every instant from `first` to `last` in steps; the domain of a bounded TIMESTAMP column has step 1 µs."""

    first: dt.datetime
    last: dt.datetime
    step: dt.timedelta = dt.timedelta(microseconds=1)

    def __post_init__(self) -> None:
        if self.first > self.last or self.step <= dt.timedelta(0):
            raise ValueError(f"no range from {self.first} to {self.last} in steps of {self.step}")

    def __len__(self) -> int:
        return (self.last - self.first) // self.step + 1

    @overload
    def __getitem__(self, at: int) -> dt.datetime: ...
    @overload
    def __getitem__(self, at: slice) -> Sequence[dt.datetime]: ...
    def __getitem__(self, at: int | slice) -> dt.datetime | Sequence[dt.datetime]:
        if isinstance(at, slice):
            return [self[i] for i in range(*at.indices(len(self)))]
        if not -len(self) <= at < len(self):
            raise IndexError(at)
        return self.first + (at % len(self)) * self.step

    def __contains__(self, value: object) -> bool:
        if not isinstance(value, dt.datetime):
            return False
        return self.first <= value <= self.last and (value - self.first) % self.step == dt.timedelta(0)


def from_keys(keys: Iterable[Scalar]) -> Domain:
    """The domain of these keys (None is NULL), without repetitions."""
    found = list(dict.fromkeys(keys))
    take(len(found) // 16)
    return Domain(tuple(k for k in found if k is not None), null=None in found)
