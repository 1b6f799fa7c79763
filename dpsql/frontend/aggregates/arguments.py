"""Arguments of aggregates over private rows: how they are bounded, and the refusals where they are not."""

from __future__ import annotations

import datetime as dt
import math
from dataclasses import replace
from decimal import Decimal

from dpsql.core.analysis.facts import ColumnFact, Facts
from dpsql.core.ir.expressions import Column, Expr, Literal, columns_of, larger_than, walk
from dpsql.core.ir.nodes import AggregateCall
from dpsql.core.ir.short_text import expression
from dpsql.core.ir.types import DOUBLE, Kind, SqlType, decimal, integer_type_of
from dpsql.core.ir.walk import arguments
from dpsql.core.numbers.interval import Exact
from dpsql.core.values.constants import EPOCH
from dpsql.core.values.value import Value
from dpsql.diagnostics.diagnostic import Diagnostic, Reason, Span
from dpsql.diagnostics.errors import Rejected
from dpsql.diagnostics.words import number
from dpsql.functions.expression_values import evaluate

CLIP = "bound it in the query:  CLIP(…, lower, upper)"
LONGEST = 100
"""Characters of an argument that a repair repeats."""


def bounded(call: AggregateCall, facts: Facts, arg: Expr | None = None) -> Value:
    """The argument's facts. Raises Rejected DP201 or DP202 if its interval is open. arg: which of several."""
    arg = call.arg if arg is None else arg
    assert arg is not None
    value = facts.value(arg)
    if value.interval.bounded:
        return value
    name, declared = label(call), declared_interval(arg, facts)
    reasons = value.interval.why or (Reason("DP202", "nothing is known about it", None, "", (CLIP,)),)
    found = []
    for reason in reasons[:3]:
        span = reason.span or _open_column(arg, facts, reason.code)
        message = f"{name} has no bounds, so its sensitivity is unbounded"
        if reason.code == "DP202":
            message = f"{name} loses its bounds, so its sensitivity is unbounded: {reason.message}"
        found.append(Diagnostic(reason.code, message, None, span or call.span, reason.label, reason.help))
    if declared is not None and all(reason.code == "DP202" for reason in reasons):
        message = f"{name} has no bounds, so its sensitivity is unbounded: dates are not clipped to the policy's bounds"
        shown = expression(arg)
        shown = shown if len(shown) <= LONGEST else "…"
        advice = f"bound it in the query:  CLIP({shown}, {math.floor(declared[0])}, {math.ceil(declared[1])})"
        found = [Diagnostic("DP202", message, None, arg.span or call.span, "computed from dates", (advice,))]
    raise Rejected(found)


def declared_interval(arg: Expr, facts: Facts) -> tuple[Exact, Exact] | None:
    """What would bound an expression if no date lay outside of its declared bounds; None if even that does not."""

    def within(fact: ColumnFact) -> Value:
        hint = fact.hint.bounds if fact.hint is not None and fact.value.type.temporal else None
        return fact.value if hint is None else replace(fact.value, interval=hint)

    if larger_than(arg, 30) or not any(isinstance(e, Column) and e.type.temporal for e in walk(arg)):
        return None
    columns = columns_of(arg)
    found = evaluate(arg, {uid: within(facts.columns[uid]) for uid in columns}).interval
    return None if found.lo is None or found.hi is None or found.lo == found.hi else (found.lo, found.hi)


def _open_column(arg: Expr, facts: Facts, code: str) -> Span | None:
    for e in walk(arg):
        if isinstance(e, Column) and not facts.columns[e.uid].value.interval.bounded and code == "DP201":
            return e.span
    return None


def label(call: AggregateCall) -> str:
    """The call as a person would write it, clips left out; for messages and EXPLAIN."""
    inner = ", ".join(map(expression, arguments(call))) or "*"
    name = call.written or call.function.upper()
    inner = inner if call.p is None or name == "MEDIAN" else f"{inner}, {number(call.p)}"
    text = f"{name}({'DISTINCT ' if call.distinct else ''}{inner})"
    text = text if call.filter is None else f"{text} FILTER (…)"
    return f"DP_INTERVAL_{call.end.upper()}({text})" if call.end else text


def bound(x: Exact, t: SqlType, up: bool) -> Literal:
    """A bound as a literal of the column's kind, widened to the next value the type can hold."""
    match t.kind:
        case Kind.INTEGER:
            whole = -(-x.numerator // x.denominator) if up else x.numerator // x.denominator
            return Literal(whole, integer_type_of(whole) or DOUBLE)
        case Kind.DATE:
            return Literal(EPOCH.date() + dt.timedelta(days=math.ceil(x) if up else math.floor(x)), t)
        case Kind.TIMESTAMP:
            return Literal(EPOCH + dt.timedelta(microseconds=math.ceil(x) if up else math.floor(x)), t)
        case Kind.DECIMAL:
            scaled = x * 10**t.scale
            whole = -(-scaled.numerator // scaled.denominator) if up else scaled.numerator // scaled.denominator
            digits = max(len(str(abs(whole))), t.scale, 1)
            return Literal(Decimal(f"{whole}E-{t.scale}"), decimal(min(38, digits), t.scale))
        case _:
            return Literal(float(x), DOUBLE)
