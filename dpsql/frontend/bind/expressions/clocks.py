"""A moment compared with the clock of a zone: the same moment as that clock shows it, to be written instead.

A column that is `from: "seen AT TIME ZONE 'Europe/Berlin'"` holds what clocks there show, and no moment; a constant
that says its offset is one. The repair is the constant in the clock of the column's zone.
"""

from __future__ import annotations

import ast
import datetime as dt
from collections.abc import Sequence
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

from sqlglot import exp

from dpsql.core.ir.expressions import Call, Column, Expr, Literal
from dpsql.core.ir.types import TIMESTAMP, TIMESTAMPTZ, VARCHAR, Kind
from dpsql.core.values.value import Value
from dpsql.diagnostics.diagnostic import Span
from dpsql.diagnostics.errors import reject
from dpsql.frontend.bind.expressions import literals
from dpsql.frontend.bind.expressions.syntax_arguments import checked
from dpsql.frontend.bind.expressions.unknown_values import UnknownValue
from dpsql.frontend.bind.scope import VisibleColumn
from dpsql.functions.dates.zones import known_zone

if TYPE_CHECKING:
    from dpsql.frontend.bind.expressions.expressions import ExprBinder


def as_clock(args: Sequence[Expr], entries: Sequence[VisibleColumn]) -> str | None:
    """`the clock of UTC then shows  TIMESTAMP '2025-01-31 23:00:00'`, for a comparison of a clock with a moment.

    args: what is compared. entries: what the query sees. None if it is no such comparison, or the zone is not known.
    """
    clocks = [a for a in args if isinstance(a, Column) and a.type.kind is Kind.TIMESTAMP]
    moments = [m for a in args if (m := _moment(a)) is not None]
    zone = next((z for c in clocks for e in entries if e.column.uid == c.uid and (z := _zone(e.made))), None)
    if not moments or zone is None:
        return None
    told = []
    for moment in moments:
        try:
            clock = shown(moment, zone)
        except (OverflowError, ValueError):
            return None
        told.append(f"TIMESTAMP '{clock.isoformat(sep=' ')}'")
    return f"the column shows the clock of {zone}, which is then:  {'  and  '.join(told)}"


def in_one_zone(args: Sequence[Expr], values: Sequence[Value], zone: str) -> tuple[Expr, ...] | None:
    """Constants as moments beside a moment, and as clocks of a zone beside a clock; None where nothing is another then.

    zone: in which the two are compared, as PostgreSQL does in the session's.
    """
    of_moments = any(a.type.kind is Kind.TIMESTAMPTZ and not v.is_constant for a, v in zip(args, values, strict=True))
    found = tuple(
        as_moment(a, v, zone) if of_moments else as_clock_of(a, zone) for a, v in zip(args, values, strict=True)
    )
    return None if all(a is b for a, b in zip(args, found, strict=True)) else found


def as_moment(arg: Expr, value: Value, zone: str) -> Expr:
    """A constant clock of a zone as the moment that it shows; anything else as it is."""
    known = value.constant
    if not arg.type.temporal or not isinstance(known, dt.date):
        return arg
    at = known if isinstance(known, dt.datetime) else dt.datetime.combine(known, dt.time())
    return Literal(moment_of(at, zone), TIMESTAMPTZ, arg.span)


def as_clock_of(arg: Expr, zone: str) -> Expr:
    """A constant moment as what the clock of a zone shows then; anything else as it is."""
    if isinstance(arg, Literal) and arg.type.kind is Kind.TIMESTAMPTZ and isinstance(arg.value, dt.datetime):
        return Literal(shown(arg.value, zone), TIMESTAMP, arg.span)
    return arg


def shown(moment: dt.datetime, zone: str) -> dt.datetime:
    """What the clock of a zone shows at a moment, in UTC. Raises OverflowError at the ends of the calendar."""
    return moment.replace(tzinfo=dt.UTC).astimezone(ZoneInfo(zone)).replace(tzinfo=None)


def moment_of(clock: dt.datetime, zone: str) -> dt.datetime:
    """When the clock of a zone first shows it. Raises OverflowError at the ends of the calendar."""
    return clock.replace(tzinfo=ZoneInfo(zone)).astimezone(dt.UTC)


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
    return known_zone(zone) if zone else None


# --- by the clock of a zone ------------------------------------------------------------------------------------------


def by_clock(name: str, args: Sequence[Expr], zone: str) -> tuple[Expr, ...] | None:
    """Moments as the clock of a zone shows them, for a function that reads a calendar; None if there are none.

    What counts seconds reads them in UTC, whose hours all have as many.
    """
    moments = [a for a in args if a.type.kind is Kind.TIMESTAMPTZ]
    if not moments:
        return None
    counted = name == "epoch" or (name == "date_part" and _names(args[0]) == "epoch")
    counted |= name == "sub" and len(moments) == len(args)
    return tuple(clock_of(a, "UTC" if counted else zone) for a in args)


def clock_of(arg: Expr, zone: str) -> Expr:
    """A moment as the clock of a zone shows it; anything else as it is. Of a constant, the constant."""
    if arg.type.kind is not Kind.TIMESTAMPTZ:
        return arg
    known = as_clock_of(arg, zone)
    return known if known is not arg else Call("timezone", (Literal(zone, VARCHAR, arg.span), arg), TIMESTAMP, arg.span)


def at_time_zone(binder: ExprBinder, node: exp.AtTimeZone) -> Expr:
    """x AT TIME ZONE 'Europe/Berlin', and timezone('Europe/Berlin', x). Raises Rejected DP106, DP115."""
    args, at = checked(node, binder.source, "this", "zone"), binder.span(node)
    return in_zone(binder, binder.bind(args["zone"]), binder.bind(args["this"]), at)


def in_zone(binder: ExprBinder, named: Expr, x: Expr, at: Span) -> Expr:
    """Raises Rejected DP106, DP115."""
    zone = _names(named)
    if zone is None:
        raise reject(
            "DP115", "AT TIME ZONE: the zone must be a literal", span=named.span or at,
            help=["write its name:  x AT TIME ZONE 'Europe/Berlin'"],
        )  # fmt: skip
    known = known_zone(zone)
    if known is None:
        raise reject(
            "DP106", f"{zone!r} is no zone that is known here", span=named.span or at,
            help=["a name of IANA's list, such as 'Europe/Berlin' or 'UTC'"],
        )  # fmt: skip
    if x.type.kind is Kind.TIMESTAMPTZ and isinstance(x, Literal):
        return clock_of(x, known)
    if isinstance(x, Literal) and isinstance(x.value, dt.datetime):  # a clock: the moment at which it shows this
        return Literal(moment_of(x.value, known), TIMESTAMPTZ, at)
    return binder.call("timezone", (Literal(known, VARCHAR, named.span), x), at)


def _names(arg: Expr) -> str | None:
    return arg.value if isinstance(arg, Literal) and isinstance(arg.value, str) else None
