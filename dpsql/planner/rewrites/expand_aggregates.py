"""An aggregate over private rows becomes a release: noisy components, and recipes that make the columns from them.

AVG splits into a centred sum and a count, variances into these two and a sum of squares; equal components are measured
once, whatever columns they serve.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction

from dpsql.core.analysis.derive import derive_once
from dpsql.core.analysis.expression_values import evaluate
from dpsql.core.analysis.facts import ColumnFact, Facts
from dpsql.core.functions.registry import position
from dpsql.core.functions.value import Missing, Value
from dpsql.core.ir.components import Component, Count, End, Measure, Output, Ratio, Recipe, Sum, Variance
from dpsql.core.ir.expressions import Call, Column, Expr, columns_of, larger_than, walk
from dpsql.core.ir.nodes import Aggregate, AggregateCall, GroupKeys, Node, Release
from dpsql.core.ir.render import expression
from dpsql.core.ir.walk import transform
from dpsql.diagnostics.diagnostic import Diagnostic, Reason, Span
from dpsql.diagnostics.errors import Rejected, reject
from dpsql.diagnostics.together import Together
from dpsql.planner.rewrites.clip_columns import bound
from dpsql.planner.rewrites.context import RewriteContext

_CLIP = "bound it in the query:  CLIP(…, lower, upper)"
_LONGEST = 100
"""Characters of an argument that a repair repeats."""


def expand_aggregates(root: Node, ctx: RewriteContext) -> Node:
    """Replace every aggregate over private rows by a release (its keys still private, its grids not yet chosen)."""

    def change(node: Node) -> Node:
        if not isinstance(node, Aggregate) or node.inner or not ctx.private(node.input):
            return node
        return _release(node, derive_once(node.input, ctx.analysis).fact)

    return transform(root, change)


def _release(node: Aggregate, facts: Facts) -> Release:
    components: list[Component] = []

    def shared(component: Component) -> int:
        if component not in components:
            components.append(component)
        return components.index(component)

    outputs, together = [], Together()
    for call in node.calls:
        with together.attempt():
            recipe = _recipe(call, facts, shared)
            if call.end:
                assert not isinstance(recipe, End)
                recipe = End(recipe, call.end == "high")
            outputs.append(Output(call.column, recipe, _label(call), call.span))
    together.settle()
    return Release(
        GroupKeys(node.input, node.keys, None),
        tuple(k.column for k in node.keys),
        tuple(components),
        tuple(outputs),
        span=node.span or (node.calls[0].span if node.calls else None),
    )


def _recipe(call: AggregateCall, facts: Facts, shared: Callable[[Component], int]) -> Recipe:
    """shared: the place of a component among those of the release, which it adds if it is new."""
    match call.function, call.distinct:
        case "count", True:
            return Count(shared(_distinct(call, facts)))
        case "count", False:
            return Count(shared(_count(call.arg, call, facts)))
        case "sum", False:
            call = _within_group(call, facts)
            _bounded(call, facts)
            each = _constant(call)
            if each is not None:
                return Count(shared(_count(None, call, facts)), times=each)
            return Sum(shared(Component(Measure.SUM, call.arg, call.filter, per_group=call.per_group)))
        case "avg", False:
            value = _bounded(call, facts)
            assert value.interval.lo is not None and value.interval.hi is not None
            total = shared(Component(Measure.SUM, call.arg, call.filter, paired=True))
            return Ratio(total, shared(_count(call.arg, call, facts)), value.interval.lo, value.interval.hi)
        case "var_pop" | "var_samp" | "stddev_pop" | "stddev_samp", False:
            value = _bounded(call, facts)
            assert value.interval.lo is not None and value.interval.hi is not None
            if _out_of_range(value):
                raise reject(
                    "DP410", f"{call.function.upper()} of these bounds could be larger than any DOUBLE", span=call.span,
                    help=[_CLIP],
                )  # fmt: skip
            total, squares = (
                shared(Component(Measure.SUM, call.arg, call.filter, paired=True, squared=squared))
                for squared in (False, True)
            )
            return Variance(
                total, squares, shared(_count(call.arg, call, facts)), value.interval.lo, value.interval.hi,
                sample=call.function.endswith("samp"), root=call.function.startswith("stddev"),
            )  # fmt: skip
        case "min" | "max", _:
            raise reject(
                "DP101", f"{call.function.upper()} over private rows is not supported", span=call.span,
                label="one person decides the answer",
                help=["use COUNT, SUM or AVG; or COUNT(*) FILTER (WHERE x > …) for a quantile by hand"],
            )  # fmt: skip
        case _:
            raise reject(
                "DP101", f"{call.function.upper()}(DISTINCT …) is not supported", span=call.span,
                help=["COUNT(DISTINCT …) is; or aggregate without DISTINCT"],
            )  # fmt: skip


def _constant(call: AggregateCall) -> Fraction | None:
    """c of SUM(c), which is c · COUNT(*); None if c is no constant, or nothing is to be counted or multiplied.

    A total that is clipped for each id and group stays a sum, and so does one of numbers beyond 64 bits: as many of
    them as fit a sum are told by its type.
    """
    if call.arg is None or call.per_group is not None or columns_of(call.arg):
        return None
    found = evaluate(call.arg, {})
    if isinstance(found.constant, Missing) or found.constant is None:
        return None
    at = position(found.constant, found.type)
    return at if at and abs(at) * 10**found.type.scale < 2**63 else None


def _count(arg: Expr | None, call: AggregateCall, facts: Facts) -> Component:
    return replace(count_of(arg, call.filter, facts), per_group=call.per_group)


def count_of(arg: Expr | None, where: Expr | None, facts: Facts) -> Component:
    """COUNT(x) is COUNT(*) where x is never NULL nor NaN; otherwise the two are different questions."""
    if arg is not None:
        value = facts.value(arg)
        if not value.nullable and value.finite:
            arg = None
    return Component(Measure.COUNT, arg, where)


def _within_group(call: AggregateCall, facts: Facts) -> AggregateCall:
    """A sum with bounds per group: rows that go beyond them by themselves are clipped first.

    Where all values have one sign this changes no clipped total; and it is the only bound that a column without bounds
    gets (the reader is told by a note).
    """
    if call.per_group is None or call.arg is None:
        return call
    ends, (low, high) = facts.value(call.arg).interval, call.per_group
    lo, hi = ends.lo, ends.hi
    if lo is None or (hi is not None and hi <= 0 and lo < low):
        lo = low
    if hi is None or (lo >= 0 and hi > high):
        hi = high
    if (lo, hi) == (ends.lo, ends.hi) or lo > hi:
        return call
    clip = Call("clip", (call.arg, bound(lo, call.arg.type, False), bound(hi, call.arg.type, True)), call.arg.type)
    return replace(call, arg=replace(clip, span=call.arg.span))


def _distinct(call: AggregateCall, facts: Facts) -> Component:
    assert call.arg is not None
    if isinstance(call.arg, Column) and call.arg.uid in facts.ids:
        return Component(Measure.COUNT if facts.one_row_per_id else Measure.UNITS, None, call.filter)
    facts.value(call.arg)
    return Component(Measure.DISTINCT, call.arg, call.filter)


def _bounded(call: AggregateCall, facts: Facts) -> Value:
    """The argument's facts. Raises Rejected DP201 or DP202 if its interval is open."""
    assert call.arg is not None
    value = facts.value(call.arg)
    if value.interval.bounded:
        return value
    label, declared = _label(call), _declared(call.arg, facts)
    reasons = value.interval.why or (Reason("DP202", "nothing is known about it", None, "", (_CLIP,)),)
    found = []
    for reason in reasons[:3]:
        span = reason.span or _open_column(call.arg, facts, reason.code)
        message = f"{label} has no bounds, so its sensitivity is unbounded"
        if reason.code == "DP202":
            message = f"{label} loses its bounds, so its sensitivity is unbounded: {reason.message}"
        found.append(Diagnostic(reason.code, message, None, span or call.span, reason.label, reason.help))
    if declared is not None and all(reason.code == "DP202" for reason in reasons):
        message = (
            f"{label} has no bounds, so its sensitivity is unbounded: dates are not clipped to the policy's bounds"
        )
        shown = expression(call.arg)
        shown = shown if len(shown) <= _LONGEST else "…"
        advice = f"bound it in the query:  CLIP({shown}, {math.floor(declared[0])}, {math.ceil(declared[1])})"
        found = [Diagnostic("DP202", message, None, call.arg.span or call.span, "computed from dates", (advice,))]
    raise Rejected(found)


def _declared(arg: Expr, facts: Facts) -> tuple[Fraction, Fraction] | None:
    """What would bound an expression if no date lay outside of its declared bounds; None if even that does not."""

    def within(fact: ColumnFact) -> Value:
        hint = fact.hint.bounds if fact.hint is not None and fact.value.type.temporal else None
        return fact.value if hint is None else replace(fact.value, interval=hint)

    if larger_than(arg, 30) or not any(isinstance(e, Column) and e.type.temporal for e in walk(arg)):
        return None
    columns = columns_of(arg)
    found = evaluate(arg, {uid: within(facts.columns[uid]) for uid in columns}).interval
    return None if found.lo is None or found.hi is None or found.lo == found.hi else (found.lo, found.hi)


def _out_of_range(value: Value) -> bool:
    lo, hi = value.interval.lo, value.interval.hi
    assert lo is not None and hi is not None
    return (hi - lo) ** 2 >= 2**1023


def _open_column(arg: Expr, facts: Facts, code: str) -> Span | None:
    for e in walk(arg):
        if isinstance(e, Column) and not facts.columns[e.uid].value.interval.bounded and code == "DP201":
            return e.span
    return None


def _label(call: AggregateCall) -> str:
    """The call as a person would write it, clips left out; for messages and EXPLAIN."""
    inner = "*" if call.arg is None else expression(call.arg)
    text = f"{call.function.upper()}({'DISTINCT ' if call.distinct else ''}{inner})"
    text = text if call.filter is None else f"{text} FILTER (…)"
    return f"DP_INTERVAL_{call.end.upper()}({text})" if call.end else text
