"""MIN and MAX: of released or public rows only."""

from __future__ import annotations

from dpsql.aggregates.aggregate import Aggregate, Shared
from dpsql.aggregates.formula import Formula
from dpsql.core.analysis.facts import Facts
from dpsql.core.ir.nodes import AggregateCall
from dpsql.diagnostics.errors import reject


def _bind(call: AggregateCall, facts: Facts, shared: Shared) -> Formula:
    raise reject(
        "DP101", f"{call.function.upper()} over private rows is not supported", span=call.span,
        label="one person decides the answer",
        help=["use COUNT, SUM or AVG; or COUNT(*) FILTER (WHERE x > …) for a quantile by hand"],
    )  # fmt: skip


EXTREMES = tuple(
    Aggregate(
        name, f"{name}(x)", f"{which} value, of released or public rows.", lambda arg: arg, _bind, numeric=False,
        distinct=True,
    )
    for name, which in (("min", "Least"), ("max", "Greatest"))
)  # fmt: skip
