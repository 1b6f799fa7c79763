"""What is known about the value of every expression, from what is known about columns: one walk, no special cases."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from operator import is_
from typing import Final

from dpsql.core.ir.expressions import Call, Cast, Column, Expr, Literal, larger_than
from dpsql.core.ir.short_text import expression, operand, symbol
from dpsql.core.ir.step_count import take
from dpsql.core.values.constants import literal
from dpsql.core.values.meaning import Env
from dpsql.core.values.value import Value
from dpsql.diagnostics.diagnostic import Mark, Reason, Span
from dpsql.diagnostics.errors import Rejected, reject
from dpsql.functions.cast import cast
from dpsql.functions.function import SignatureError
from dpsql.functions.registry import REGISTRY, apply, lookup


def evaluate(expr: Expr, env: Env) -> Value:
    """All facts about an expression.

    An interval that is open carries the reasons: a column's own (DP201), or DP202 where an expression lost it.
    Raises Rejected DP106 if a function's arguments do not fit.
    """
    match expr:
        case Column(uid=uid):
            return _pointed(env[uid], expr.span)
        case Literal(value=value, type=type_):
            return literal(value, type_)
        case Cast(arg=arg, type=target):
            inner = evaluate(arg, env)
            try:
                return _explained(cast(inner, target), (inner,), f"CAST(… AS {target})", expr.span, expr)
            except SignatureError as error:
                raise _misused("CAST", error, expr.span, "CAST(x AS type) → type") from None
        case Call(function=name, args=args):
            values = tuple([env[a.uid] if isinstance(a, Column) else evaluate(a, env) for a in args])
            found = call(name, values, expr.span, expr)
            if found.interval.bounded:
                return found
            # Only what stays open is asked for its reasons: they point at where the query names the columns.
            each = zip(values, args, strict=True)
            placed = tuple([_pointed(v, a.span) if isinstance(a, Column) else v for v, a in each])
            return found if all(map(is_, placed, values)) else call(name, placed, expr.span, expr)


def call(name: str, values: tuple[Value, ...], span: Span | None, expr: Expr | None = None) -> Value:
    """All facts about a call of the registered function `name`. expr: the call, for messages.

    Raises Rejected DP105, DP106.
    """
    found = unexplained(name, values, span)
    return found if found.interval.bounded and not found.interval.why else _explained(found, values, name, span, expr)


def unexplained(name: str, values: tuple[Value, ...], span: Span | None) -> Value:
    """As `call`, without reasons of this query for an open interval: of equal arguments the very same object."""
    take(2 + len(values), span)
    function = REGISTRY.get(name) or lookup(name)
    if function is None:
        raise reject("DP105", f"function {name} is not known", span=span, help=["use a function of the SQL reference"])
    try:
        return apply(function, values)
    except SignatureError as error:
        raise _misused(name, error, span, function.signature) from None


def _pointed(value: Value, span: Span | None) -> Value:
    """A column's reasons for being open, at the place where the query names the column."""
    if span is None or value.interval.bounded or not value.interval.why:
        return value
    return value.with_interval(value.interval.because(tuple([r.at(span) for r in value.interval.why])))


def _misused(name: str, error: SignatureError, span: Span | None, signature: str) -> Rejected:
    """Where the error has no repair, the signature is it."""
    return reject("DP106", f"{symbol(name)}: {error.message}", span=span, help=[error.repair or signature])


def _explained(result: Value, args: tuple[Value, ...], name: str, span: Span | None, expr: Expr | None) -> Value:
    """Give an open numeric interval its reasons: the arguments', else that this expression lost it.

    A closed interval needs none: what was open below it was closed by a clip and must not be blamed above.
    """
    if result.interval.bounded:
        return result.with_interval(result.interval.because(())) if result.interval.why else result
    why = result.interval.why
    if not why:
        why = tuple(dict.fromkeys(r for a in args if not a.interval.bounded for r in a.interval.why))
    if not why:
        why = (
            Reason(
                "DP202",
                f"the bounds are lost in {name if symbol(name) == name else f'x {symbol(name)} y'}",
                span,
                "nothing is known about how large this can be",
                (f"bound it in the query:  CLIP({_shown(expr) if result.type.numeric else '…'}, lower, upper)",),
            ),
        )
    why = tuple([r if r.span is not None else _named(r.at(span), expr, args) for r in why])
    return result.with_interval(result.interval.because(why))


def _named(reason: Reason, expr: Expr | None, args: tuple[Value, ...]) -> Reason:
    """A division's reason, with repairs in the query's own words."""
    match expr:
        case Call(function="div", args=(above, below)) if reason.mark is Mark.ZERO_DIVISOR:
            top = args[1].interval.hi
            low, most = (1, top) if top is not None and top > 1 and top.denominator == 1 else ("lower", "upper")
            kept = f"CLIP({_shown(below)}, {low}, {most})"
            return replace(
                reason,
                help=(
                    f"keep the divisor away from zero:  {_shown(above, operand)} / {kept}",
                    f"or bound the quotient:  CLIP({_shown(expr)}, lower, upper)",
                ),
            )
        case Call(args=(first, *_)):
            own = expr if reason.mark is Mark.OVERFLOW else first
            shown = _shown(own)
            return replace(reason, help=tuple(_X.sub(lambda _: shown, text) for text in reason.help))
        case _:
            return reason


_X: Final = re.compile(r"\bx\b")
"""What stands for the reader's expression in the repairs of functions."""
_LONGEST = 60
"""Characters of an expression that a message repeats."""


def _shown(expr: Expr | None, write: Callable[[Expr], str] = expression) -> str:
    """A part of the query in its own words, if it is short."""
    text = "" if expr is None or larger_than(expr, 40) else write(expr)
    return text if 0 < len(text) <= _LONGEST else "…"
