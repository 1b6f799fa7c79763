"""What the clocks of a zone show at a moment. Outside the years 1 to 9999 it is NULL."""

from __future__ import annotations

import datetime as dt
import re
from functools import cache
from zoneinfo import ZoneInfo, available_timezones

from dpsql.core.ir.types import TIMESTAMP, TIMESTAMPTZ, Kind, SqlType
from dpsql.core.numbers import interval as iv
from dpsql.core.numbers.interval import Interval
from dpsql.core.values.calendar_years import DAY_US, MICROS
from dpsql.core.values.domains import TimestampRange
from dpsql.core.values.value import Args, Domain, Value
from dpsql.functions.function import Function, SignatureError
from dpsql.functions.signature import constant_text, count, if_null

FIRST, LAST = (dt.datetime(*day, tzinfo=dt.UTC) for day in ((1, 1, 3), (9999, 12, 29)))
"""Moments between which every zone's clock shows a year from 1 to 9999."""
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_+/-]{0,63}")
_NONE = {"localtime", "posixrules", "Factory"}
"""Files of a machine's list that are no zone."""
_SHOWN = iv.add(MICROS, iv.interval(0, DAY_US))


@cache
def known_zone(name: str) -> str | None:
    """A zone of IANA's list as it is written there; None if there is none of this name, whatever its case.

    Nothing else: PostgreSQL reads 'UTC+5' as five hours west, and other engines as east.
    """
    try:
        return next((zone for zone in available_timezones() - _NONE if zone.lower() == name.lower()), None)
    except OSError:
        return None


def zone_of(a: Value) -> str:
    """The zone that a literal argument names; whether there is such a one is not known here."""
    name = constant_text(a, "the zone")
    if not _NAME.fullmatch(name):
        raise SignatureError("expects the name of a zone, such as 'Europe/Berlin'")
    return name


def _type(args: Args) -> SqlType:
    count(args, 2)
    zone, kind = zone_of(args[0]), args[1].type.kind
    if kind in (Kind.TIMESTAMPTZ, Kind.NULL):
        return TIMESTAMP
    if kind is Kind.TIMESTAMP and zone == "UTC":
        return TIMESTAMPTZ
    if kind is Kind.TIMESTAMP:  # there are hours that a zone's clocks show twice, or never
        raise SignatureError("a TIMESTAMP is made a moment by UTC alone: x AT TIME ZONE 'UTC' AT TIME ZONE 'zone'")
    raise SignatureError(f"expects a TIMESTAMP WITH TIME ZONE, got {args[1].type}")


def _ends(args: Args) -> tuple[dt.datetime, dt.datetime] | None:
    """What the clock shows at the first and the last moment; None where they are not known, or too far."""
    known, zone = args[1].domain, known_zone(zone_of(args[0]))
    if known is None or not isinstance(known.values, TimestampRange) or zone is None:
        return None
    if args[1].type.kind is not Kind.TIMESTAMPTZ:
        return None
    try:
        ends = (end.replace(tzinfo=dt.UTC) for end in (known.values.first, known.values.last))
        first, last = (end.astimezone(ZoneInfo(zone)).replace(tzinfo=None) for end in ends)
    except (OverflowError, ValueError, OSError):
        return None
    return (first, last) if first <= last else None


def _interval(args: Args) -> Interval:
    return _SHOWN


def _domain(args: Args) -> Domain | None:
    """Every time between the clock's at the ends: a row of an hour that was moved over an end is in no group."""
    ends = _ends(args)
    return None if ends is None else Domain(TimestampRange(*ends), null=if_null(args[1]))


TIMEZONE = Function(
    ("timezone",),
    "timezone(zone: literal, x: timestamptz) → timestamp",
    "What clocks of a zone show at x; of a timestamp and 'UTC', the moment at which they show it.",
    type=_type,
    interval=_interval,
    nullable=lambda args: True,
    domain=_domain,
    literal=frozenset({0}),
)
