"""A CLIP that leaves one value is refused: its answer is known before it is paid for.

A column holds what the policy declares, and at an open end what its type can hold. Predicates and group keys see raw
values and are let through. So is what is public or released.

Example:
    >>> before_after(refuse_constants, "SELECT SUM(CLIP(cost, 6000, 9000)) FROM visits")
    refused, DP204: CLIP(cost, 6000, 9000) lies outside of the bounds of cost, [0, 1000]: every value would be 6000
"""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import suppress

from dpsql.core.analysis.derive import derive_once
from dpsql.core.analysis.facts import ColumnFact
from dpsql.core.ir.expressions import Call, columns_of, walk
from dpsql.core.ir.nodes import Aggregate, Node
from dpsql.core.ir.short_text import expression
from dpsql.core.ir.types import SqlType
from dpsql.core.ir.walk import arguments, transform
from dpsql.core.numbers.interval import Exact
from dpsql.core.values.meaning import Env
from dpsql.core.values.value import Value
from dpsql.diagnostics.errors import reject
from dpsql.diagnostics.words import number
from dpsql.frontend.aggregates.arguments import bound
from dpsql.frontend.bind.aggregates.searched_clips import is_searched
from dpsql.functions.expression_values import evaluate
from dpsql.functions.numbers.clipping import clip_bounds
from dpsql.planner.rewrites.rewrite_context import RewriteContext


def refuse_constants(root: Node, ctx: RewriteContext) -> Node:
    """The plan itself. Raises Rejected DP204 for a CLIP in a private aggregate that meets its argument's range in at
    most one point."""

    def look(node: Aggregate) -> Node:
        if ctx.private(node.input):
            columns = derive_once(node.input, ctx.analysis).fact.columns
            for e in (e for call in node.calls for arg in arguments(call) for e in walk(arg)):
                if isinstance(e, Call) and e.function == "clip" and (read := columns_of(e)) and not is_searched(e):
                    _require_range(e, {uid: _declared(columns[uid]) for uid in read})
        return node

    return transform(root, Aggregate, look)


def _declared(fact: ColumnFact) -> Value:
    declared = None if fact.hint is None else fact.hint.bounds
    return fact.value if declared is None else fact.value.with_interval(declared)


def _require_range(clip: Call, env: Env) -> None:
    arg, lower, upper = (evaluate(a, env) for a in clip.args)
    low, high = clip_bounds((arg, lower, upper))
    known, held = arg.interval, arg.range
    least = held.lo if known.lo is None else known.lo
    most = held.hi if known.hi is None else known.hi
    if least is not None and least == most:
        return  # it is a constant anyway
    text, type_ = expression(clip.args[0]), arg.type
    what = f"CLIP({text}, {_amount(low, type_)}, {_amount(high, type_)})"
    if low == high:
        message = f"{what} is one value, whatever {text} is"
    elif most is not None and most <= low:
        message = f"{what} {_beyond_bounds(text, least, most, low, type_)}"
    elif least is not None and least >= high:
        message = f"{what} {_beyond_bounds(text, least, most, high, type_)}"
    else:
        return
    lower_end = "lower" if known.lo is None else _amount(known.lo, type_, math.floor)
    upper_end = "upper" if known.hi is None else _amount(known.hi, type_, math.ceil)
    raise reject(
        "DP204", message, span=clip.args[0].span or clip.span, label="the answer would be known before it is paid for",
        help=[f"clip to a range within them:  CLIP({text}, {lower_end}, {upper_end})"],
    )  # fmt: skip


def _beyond_bounds(text: str, least: Exact | None, most: Exact | None, value: Exact, t: SqlType) -> str:
    return f"lies outside of the bounds of {text}, {_range(least, most, t)}: every value would be {_amount(value, t)}"


def _range(least: Exact | None, most: Exact | None, t: SqlType) -> str:
    if least is not None and most is not None:
        return f"[{_amount(least, t)}, {_amount(most, t)}]"
    return f"{_amount(least, t)} and more" if least is not None else f"{_amount(most or 0, t)} and less"


def _amount(x: Exact, t: SqlType, whole: Callable[[Exact], int] | None = None) -> str:
    """A number, or the date or time that it stands for. whole: how to make it one."""
    if t.temporal:
        with suppress(OverflowError):  # beyond the year 9999
            return expression(bound(x, t, up=whole is math.ceil))
    if whole is not None:
        return str(whole(x))
    exact = number(x)
    return exact if len(exact) <= 20 else f"{float(x):.6g}"
