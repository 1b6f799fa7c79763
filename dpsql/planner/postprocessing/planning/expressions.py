"""Forms of expressions over rows whose columns have forms, and the divisions by noisy counts among them."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from dpsql.core.ir.expressions import Call, Cast, Column, Expr, Literal, transform
from dpsql.core.ir.step_count import take
from dpsql.core.ir.types import BIGINT, BOOLEAN, NULL
from dpsql.core.values.value import Value
from dpsql.functions.expression_values import evaluate
from dpsql.functions.registry import REGISTRY
from dpsql.planner.postprocessing.planning.forms import (
    EXACT,
    NOTHING,
    Form,
    IntervalMethod,
    called,
    constant,
    converted,
    first,
    none,
)

Hide = Callable[[Expr], Form]
"""Has the engine give the values of an expression without noise."""

_UNSURE = "noisy numbers decide whether there is a row to read it in"


def form_of(expr: Expr, forms: Mapping[int, Form], env: Mapping[int, Value], hide: Hide) -> Form:
    """How an expression is made. env: what is known of the columns' values."""
    take()
    match expr:
        case Literal(value=value):
            return constant(value)
        case Column(uid=uid):
            return forms[uid]
        case Cast(arg=arg, type=target):
            form = form_of(arg, forms, env, hide)
            if form.exact:
                return _together([form])
            return converted(form, evaluate(arg, env).type, target)
        case Call(function=name, args=args):
            made = [form_of(a, forms, env, hide) for a in args]
            if all(f.exact for f in made):
                return _together(made)
            values = tuple(evaluate(a, env) for a in args)
            own = REGISTRY[name].name
            if own in ("is_null", "is_not_null") and made[0].settled:
                return EXACT
            if own in ("coalesce", "ifnull"):
                absent = tuple(hide(Call("is_null", (a,), BOOLEAN)) for a in args[:-1])
                return first(tuple(seen(f, a, hide) for f, a in zip(made, args, strict=True)), absent)
            given = tuple(seen(f, a, hide) for f, a in zip(made, args, strict=True))
            result = evaluate(expr, env).type
            return called(own, given, values, result)


def _together(forms: list[Form]) -> Form:
    """A function of exact values."""
    sources = NOTHING.union(*(f.sources for f in forms))
    return none(_UNSURE, sources) if sources else EXACT


def seen(form: Form, expr: Expr, hide: Hide) -> Form:
    """An argument whose values are needed."""
    if not form.exact or form.maker is not None:
        return form
    return none(_UNSURE, form.sources) if form.sources else hide(expr)


def guarded(expr: Expr, form: Callable[[Expr], Form]) -> Expr:
    """An expression as it is to be computed: what is divided by a noisy count, or by a noisy sum of what is never
    negative, is NULL where noise made that 0 or less, and not a quotient of the wrong sign, or of any size."""

    def change(e: Expr) -> Expr:
        match e:
            case Call(function="div" | "intdiv" | "divide", args=(above, below)) if _a_count(form(below)):
                positive = Call("gt", (below, Literal(0, BIGINT)), BOOLEAN)
                kept = Call("case", (positive, below, Literal(None, NULL)), below.type)
                return Call(e.function, (above, kept), e.type, e.span)
            case _:
                return e

    return transform(expr, change)


def _a_count(form: Form) -> bool:
    return form.kind in (IntervalMethod.LINEAR,) and form.nonnegative
