"""A moment compared with the clock of a zone: the same moment as that clock shows it, to be written instead.

A column that is `from: "seen AT TIME ZONE 'Europe/Berlin'"` holds what clocks there show, and no moment; a constant
that says its offset is one. The repair is the constant in the clock of the column's zone.
"""

from __future__ import annotations

import ast
import datetime as dt
from collections.abc import Sequence
from zoneinfo import ZoneInfo, available_timezones

from dpsql.core.functions.value import Value
from dpsql.core.ir.expressions import Column, Expr, Literal
from dpsql.core.ir.types import TIMESTAMP, TIMESTAMPTZ, Kind
from dpsql.frontend.bind.expressions import literals
from dpsql.frontend.bind.expressions.unknown_values import UnknownValue
from dpsql.frontend.bind.scope import VisibleColumn


def as_clock(args: Sequence[Expr], entries: Sequence[VisibleColumn]) -> str | None:
    """`the clock of UTC then shows  TIMESTAMP '2025-01-31 23:00:00'`, for a comparison of a clock with a moment.

    args: what is compared. entries: what the query sees. None if it is no such comparison, or the zone is not known.
    """
    clocks = [a for a in args if isinstance(a, Column) and a.type.kind is Kind.TIMESTAMP]
    moments = [m for a in args if (m := _moment(a)) is not None]
    zone = next((z for c in clocks for e in entries if e.column.uid == c.uid and (z := _zone(e.made))), None)
    if not moments or zone is None:
        return None
    shown = []
    for moment in moments:
        try:
            clock = moment.replace(tzinfo=dt.UTC).astimezone(ZoneInfo(zone)).replace(tzinfo=None)
        except (OverflowError, ValueError):
            return None
        shown.append(f"TIMESTAMP '{clock.isoformat(sep=' ')}'")
    return f"the column shows the clock of {zone}, which is then:  {'  and  '.join(shown)}"


def in_one_zone(args: Sequence[Expr], values: Sequence[Value]) -> tuple[Expr, ...] | None:
    """Constants as moments beside a moment, and as clocks of UTC beside a clock; None where nothing is another then.

    UTC is the zone of the session, in which PostgreSQL compares the two.
    """
    of_moments = any(a.type.kind is Kind.TIMESTAMPTZ and not v.is_constant for a, v in zip(args, values, strict=True))
    found = tuple(as_moment(a, v) if of_moments else as_clock_of_utc(a) for a, v in zip(args, values, strict=True))
    return None if all(a is b for a, b in zip(args, found, strict=True)) else found


def as_moment(arg: Expr, value: Value) -> Expr:
    """A constant clock of UTC as the moment that it shows; anything else as it is."""
    known = value.constant
    if not arg.type.temporal or not isinstance(known, dt.date):
        return arg
    at = known if isinstance(known, dt.datetime) else dt.datetime.combine(known, dt.time())
    return Literal(at.replace(tzinfo=dt.UTC), TIMESTAMPTZ, arg.span)


def as_clock_of_utc(arg: Expr) -> Expr:
    """A constant moment as what the clock of UTC shows then; anything else as it is."""
    if isinstance(arg, Literal) and arg.type.kind is Kind.TIMESTAMPTZ and isinstance(arg.value, dt.datetime):
        return Literal(arg.value.replace(tzinfo=None), TIMESTAMP, arg.span)
    return arg


def _moment(arg: Expr) -> dt.datetime | None:
    """The moment that a constant is, in UTC; None for anything else."""
    match arg:
        case Literal(value=dt.datetime() as value) if arg.type.kind is Kind.TIMESTAMPTZ:
            return value
        case Literal(value=str() as text) if not isinstance(text, UnknownValue):
            found = literals.from_text(text, TIMESTAMPTZ, arg.span)
            return found.value if found is not None and isinstance(found.value, dt.datetime) else None
    return None


def _zone(made: str) -> str | None:
    """The zone of a column that is made of a time, by its key (`Derived.key`), as its name is usually written."""
    if not made:
        return None
    _, _, zone = ast.literal_eval(made)
    try:
        return next((z for z in available_timezones() if z.lower() == zone), None) if zone else None
    except OSError:
        return None
