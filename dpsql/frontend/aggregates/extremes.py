"""MIN and MAX: of released or public rows only."""

from __future__ import annotations

from dpsql.core.analysis.facts import Facts
from dpsql.core.ir.nodes import AggregateCall
from dpsql.core.ir.short_text import expression
from dpsql.diagnostics.errors import reject
from dpsql.frontend.aggregates.aggregate import AggregateFunction, Shared
from dpsql.frontend.aggregates.arguments import LONGEST
from dpsql.frontend.aggregates.formula import Formula


def _bind(call: AggregateCall, facts: Facts, shared: Shared) -> Formula:
    assert call.arg is not None
    end, close = ("greatest", "0.99") if call.function == "max" else ("least", "0.01")
    text = expression(call.arg)
    text = text if len(text) <= LONGEST else "…"
    text = text if facts.value(call.arg).interval.bounded else f"CLIP({text}, lower, upper)"
    advice = f"close to the {end}:  QUANTILE_DISC({text}, {close})"
    if call.second is not None:
        own = f"{call.function.upper()}({text}, {expression(call.second)})"
        advice = (
            f"of each unit, below another aggregate:  SELECT AVG(v) FROM (SELECT id, {own} AS v FROM … GROUP BY id)"
        )
    elif call.written or not (call.arg.type.numeric or call.arg.type.temporal):
        advice = "count the rows of each value with GROUP BY"
    raise reject(
        "DP101", f"{call.written or call.function.upper()} over private rows is not supported", span=call.span,
        label="one person decides the answer", help=[advice],
    )  # fmt: skip


EXTREMES = tuple(
    AggregateFunction(
        name, f"{name}(x)", f"{which} value, of released or public rows.", lambda arg: arg, _bind, numeric=False,
        distinct=True,
    )
    for name, which in (("min", "Least"), ("max", "Greatest"))
)  # fmt: skip
AT_EXTREMES = tuple(
    AggregateFunction(
        name, f"{name}(x, y)",
        f"x where y is the {which}: of released or public rows, or of a unit's below another aggregate.",
        lambda arg: arg, _bind, numeric=False,
    )
    for name, which in (("arg_min", "least"), ("arg_max", "greatest"))
)  # fmt: skip
