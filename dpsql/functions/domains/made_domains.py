"""Domains made of others: what a function makes of each key, days as midnights, two in one; and whole numbers."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import overload

from dpsql.core.ir.expressions import LiteralValue
from dpsql.core.ir.types import Kind
from dpsql.core.values.constants import literal
from dpsql.core.values.domains import ENUMERABLE, DateRange, TimestampRange, from_keys
from dpsql.core.values.value import Domain, Scalar, Value

MOST_WRITTEN = 100_000
"""Most keys of two domains that are written out to make one of them."""


@dataclass(frozen=True, slots=True)
class Midnights(Sequence[dt.datetime]):
    """A DateRange as timestamps at midnight."""

    days: DateRange

    def __len__(self) -> int:
        return len(self.days)

    @overload
    def __getitem__(self, at: int) -> dt.datetime: ...
    @overload
    def __getitem__(self, at: slice) -> Sequence[dt.datetime]: ...
    def __getitem__(self, at: int | slice) -> dt.datetime | Sequence[dt.datetime]:
        if isinstance(at, slice):
            return [self[i] for i in range(*at.indices(len(self)))]
        return midnight(self.days[at])

    def __contains__(self, value: object) -> bool:
        return isinstance(value, dt.datetime) and value.time() == dt.time() and value.date() in self.days


def midnight(day: dt.date) -> dt.datetime:
    """00:00:00 of a day."""
    return dt.datetime(day.year, day.month, day.day)


def span_of(values: Sequence[Scalar] | None) -> DateRange | None:
    """The days a lazy date or timestamp sequence covers, or None if it is not of that kind."""
    match values:
        case DateRange(first, last, "day"):
            return DateRange(first, last)
        case TimestampRange(first, last):
            return DateRange(first.date(), last.date())
        case Midnights(DateRange(first, last, "day")):
            return DateRange(first, last)
        case _:
            return None


def map_domain(domain: Domain | None, f: Callable[[Scalar], Scalar]) -> Domain | None:
    """The image of a small enough domain under `f`, in order of first appearance; else, or if `f` fails, None."""
    if domain is None or domain.size > ENUMERABLE:
        return None
    try:
        return from_keys(map(f, domain.keys()))
    except (ArithmeticError, ValueError, TypeError):
        return None


def union(*domains: Domain | None) -> Domain | None:
    """All keys of all domains, or None if one is unknown or the result would be too long."""
    known = [d for d in domains if d is not None]
    if len(known) < len(domains) or sum(d.size for d in known) > ENUMERABLE:
        return None
    return from_keys(chain.from_iterable(d.keys() for d in known))


def ends(domain: Domain) -> tuple[LiteralValue, LiteralValue] | None:
    """The first and the last key of a range: what lies between is a value of the column, or of what made the range."""
    values = domain.values
    if isinstance(values, (DateRange, TimestampRange, Midnights)) or (
        isinstance(values, range) and values.step == 1 and values
    ):
        return values[0], values[-1]
    return None


def whole(value: Value, most: int) -> Domain | None:
    """All whole numbers that a bounded integer expression can be, if they are not too many to be keys."""
    span = value.interval
    if value.is_constant:
        return literal(value.constant, value.type).domain  # type: ignore[arg-type]
    if value.type.kind is not Kind.INTEGER or span.lo is None or span.hi is None:
        return None
    if span.hi - span.lo >= min(most, ENUMERABLE):
        return None
    return Domain(range(-(-span.lo // 1), span.hi // 1 + 1), value.nullable)


def united(a: Domain, b: Domain) -> Domain | None:
    """All keys of both, in order; None if they are too many to be written out."""
    null = a.null or b.null
    for long, short in ((a, b), (b, a)):
        if long.values == short.values or (short.size <= 1_000 and all(v in long.values for v in short.values)):
            return replace(long, null=null)
    if isinstance(a.values, range) and isinstance(b.values, range) and a.values.step == b.values.step == 1:
        (low, high), (start, stop) = sorted(((a.values.start, a.values.stop), (b.values.start, b.values.stop)))
        if start <= high:
            return Domain(range(low, max(high, stop)), null)
    if a.size + b.size > MOST_WRITTEN:
        return None
    return replace(from_keys(chain(a.keys(), b.keys())), null=null)
