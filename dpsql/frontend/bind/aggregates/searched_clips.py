"""CLIP(x, AUTO), CLIP(x, 0, AUTO), CLIP(x, AUTO, 100): bounds that are left to a search.

AUTO is bound as NULL, a bound that no CLIP can have: until a search has put a number there, every analysis refuses it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sqlglot import exp

from dpsql.core.ir.expressions import Call, Expr, Literal, walk
from dpsql.core.ir.short_text import expression
from dpsql.core.ir.types import NULL
from dpsql.diagnostics.diagnostic import Span
from dpsql.diagnostics.errors import Rejected, reject
from dpsql.frontend.bind.expressions.function_names import QUANTILES
from dpsql.frontend.google.privacy_clause import AUTO

SEARCHING = ("sum", "avg", "var_pop", "var_samp", "stddev_pop", "stddev_samp", *QUANTILES)
"""The aggregates whose values may be searched."""


def is_searched(expr: Expr) -> bool:
    """Whether this is a CLIP of which a bound is searched."""
    return isinstance(expr, Call) and expr.function == "clip" and any(map(is_auto, expr.args[1:]))


def is_auto(bound: Expr) -> bool:
    """Whether this bound of a CLIP is searched."""
    return isinstance(bound, Literal) and bound.value is None


def searched_in(expr: Expr | None) -> Call | None:
    """The first CLIP in an expression of which a bound is searched."""
    found = None if expr is None else next((e for e in walk(expr) if is_searched(e)), None)
    assert found is None or isinstance(found, Call)
    return found


def says_auto(args: Sequence[exp.Expr]) -> bool:
    """Whether AUTO stands among the bounds of a CLIP, as a bare word."""
    return any(map(_is_word, args[1:]))


def searched_clip(
    args: Sequence[exp.Expr], bind: Callable[[exp.Expr], Expr], checked: Callable[[Expr, Expr], Expr], span: Span
) -> Call:
    """The CLIP with NULL for AUTO. checked: a CLIP at both ends of what is given, for its type. Raises Rejected."""
    if len(args) not in (2, 3):
        raise reject("DP106", "CLIP takes a value and two bounds", span=span, help=[_FORMS])
    x = bind(args[0])
    if not x.type.numeric:
        advice = "CLIP(x, lower, upper)"
        if x.type.temporal:
            first, last = (f"{x.type} '{year}-01-01'" for year in (2000, 2050))
            advice = f"CLIP({expression(x)}, {first}, {last})"
        raise reject(
            "DP106", f"AUTO finds the bounds of numbers, not of {x.type}", span=span,
            help=[f"write the bounds themselves:  {advice}"],
        )  # fmt: skip
    ends = [Literal(None, NULL, span) if _is_word(a) else bind(a) for a in args[1:]]
    lower, upper = ends if len(ends) == 2 else (ends[0], ends[0])
    given = next((e for e in (lower, upper) if not is_auto(e)), None)
    if given is not None and checked(x, given).type != x.type:
        raise reject(
            "DP106", f"the bound beside AUTO is one of type {x.type}, as the value is", span=given.span or span,
            help=[_FORMS],
        )  # fmt: skip
    return Call("clip", (x, lower, upper), x.type, span)


def misplaced(clip: Call, what: str) -> Rejected:
    """The refusal of AUTO where nothing is searched."""
    return reject(
        "DP106", f"AUTO finds the bounds of what SUM, AVG, variances and quantiles are of, not of what {what}",
        span=clip.span, label="write numbers here",
        help=["write the bounds themselves:  CLIP(x, lower, upper)"],
    )  # fmt: skip


def _is_word(node: exp.Expr) -> bool:
    return (
        isinstance(node, exp.Column)
        and not node.table
        and isinstance(node.this, exp.Identifier)
        and not node.this.quoted
        and node.name.upper() == AUTO
    )


_FORMS = "CLIP(x, AUTO),  CLIP(x, 0, AUTO)  or  CLIP(x, AUTO, 100)"
