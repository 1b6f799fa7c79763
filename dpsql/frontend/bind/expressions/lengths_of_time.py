"""Lengths of time that are compared or counted: what lies between two times, whole years of an age, steps of days.

seen - before > INTERVAL 7 DAY        →  date_diff('microsecond', before, seen) > 604800000000
EXTRACT(YEAR FROM age(today, born))   →  the years between them, less one before the birthday
day + INTERVAL '1 day' * n            →  day + n, as a time
"""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING

from sqlglot import exp

from dpsql.core.ir.expressions import Cast, Expr, Literal
from dpsql.core.ir.types import TIMESTAMP, VARCHAR, Kind
from dpsql.diagnostics.diagnostic import Span
from dpsql.diagnostics.errors import reject
from dpsql.frontend.bind.expressions import literals

if TYPE_CHECKING:
    from dpsql.frontend.bind.expressions.expressions import ExprBinder

_MICROSECOND = dt.timedelta(microseconds=1)
_TURNED = {"lt": "gt", "le": "ge", "gt": "lt", "ge": "le"}


def compared_lengths(binder: ExprBinder, node: exp.Expr, name: str) -> Expr | None:
    """A difference of times compared with an interval of a fixed length; None of anything else."""
    left, right = node.this.unnest(), node.args["expression"].unnest()
    if isinstance(left, exp.Interval) and isinstance(right, exp.Sub):
        left, right, name = right, left, _TURNED.get(name, name)
    if not isinstance(left, exp.Sub) or not isinstance(right, exp.Interval):
        return None
    at = binder.span(node)
    later, earlier = binder.bind(left.this), binder.bind(left.args["expression"])
    kinds = {later.type.kind, earlier.type.kind}
    if not kinds <= {Kind.DATE, Kind.TIMESTAMP} or Kind.TIMESTAMP not in kinds:
        return None
    length = literals.interval(right, binder.span(right)).value
    assert isinstance(length, dt.timedelta)
    unit = Literal("microsecond", VARCHAR, at)
    return binder.call(
        name, (binder.call("date_diff", (unit, earlier, later), at), literals.integer(length // _MICROSECOND, at)), at
    )


def steps(binder: ExprBinder, node: exp.Expr) -> Expr | None:
    """day ± INTERVAL '1 day' * n, of a DATE: its midnight n days later, as in PostgreSQL; None of anything else."""
    product = node.args.get("expression")
    product = product.unnest() if isinstance(product, exp.Expr) else None
    if not isinstance(product, exp.Mul):
        return None
    sides = product.this.unnest(), product.args["expression"]
    (step, times) = sides if isinstance(sides[0], exp.Interval) else (sides[1].unnest(), product.this)
    if not isinstance(step, exp.Interval):
        return None
    fixed = times.unnest()
    if isinstance(fixed, exp.Literal) and fixed.name.isdigit() and step.this.name.isdigit():  # it is a literal, too
        whole = exp.Interval(
            this=exp.Literal.string(str(int(step.this.name) * int(fixed.name))), unit=step.args["unit"].copy()
        )
        return binder.bind(type(node)(this=node.this.copy(), expression=whole))
    at = binder.span(node)
    day, count = binder.bind(node.this), binder.bind(times)
    length = literals.interval(step, binder.span(step)).value
    assert isinstance(length, dt.timedelta)
    if day.type.kind is not Kind.DATE or count.type.kind is not Kind.INTEGER or length % dt.timedelta(days=1):
        raise reject(
            "DP106", "an interval is multiplied here only where it is added to a DATE, of whole days", span=at,
            label="by an integer", help=["as in  day + INTERVAL '1 day' * n;  or use a literal interval"],
        )  # fmt: skip
    days = binder.call("mul", (count, literals.integer(length.days, at)), at) if length.days != 1 else count
    moved = Cast(binder.call("add" if isinstance(node, exp.Add) else "sub", (day, days), at), TIMESTAMP, at)
    binder.value(moved)
    return moved


def years_of_age(binder: ExprBinder, node: exp.Extract) -> Expr | None:
    """EXTRACT(YEAR FROM age(a, b)) of dates, as PostgreSQL counts; None of anything else."""
    call = node.args["expression"]
    if not isinstance(call, exp.Anonymous) or str(call.this).lower() != "age":
        return None
    at = binder.span(node)
    if node.name.lower() not in ("year", "years") or len(call.expressions) not in (1, 2):
        raise reject(
            "DP106", "of an age only the whole years are known", span=at, help=["write  EXTRACT(YEAR FROM age(a, b))"]
        )
    given = [binder.bind(e) for e in call.expressions]
    if len(given) == 1:
        today = binder.parameters.clock("current_date", at)
        assert today is not None
        given = [today, *given]
    if any(x.type.kind is not Kind.DATE for x in given):
        raise reject("DP106", "age takes dates here", span=at, help=["write  age(CAST(a AS DATE), CAST(b AS DATE))"])
    later, earlier = given
    return binder.call(
        "case",
        (binder.call("ge", (later, earlier), at), _years(binder, later, earlier, at),
         binder.call("neg", (_years(binder, earlier, later, at),), at)), at,
    )  # fmt: skip


def _years(binder: ExprBinder, later: Expr, earlier: Expr, at: Span) -> Expr:
    """Of two dates in order."""

    def day_of_year(x: Expr) -> Expr:
        month = binder.call("mul", (binder.call("month", (x,), at), literals.integer(100, at)), at)
        return binder.call("add", (month, binder.call("day", (x,), at)), at)

    years = binder.call("sub", (binder.call("year", (later,), at), binder.call("year", (earlier,), at)), at)
    before = binder.call("lt", (day_of_year(later), day_of_year(earlier)), at)
    one = binder.call("case", (before, literals.integer(1, at), literals.integer(0, at)), at)
    return binder.call("sub", (years, one), at)
