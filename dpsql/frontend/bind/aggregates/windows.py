"""Window functions of one SELECT, collected once each; the analysis allows them over public rows only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from sqlglot import exp

from dpsql.core.ir.expressions import Expr, Literal, columns_of
from dpsql.core.ir.nodes import Frame, SortKey, WindowCall
from dpsql.core.ir.step_count import take
from dpsql.core.ir.types import BIGINT, INTEGER, NULL
from dpsql.core.printing.windows import WINDOW_FUNCTIONS
from dpsql.diagnostics.diagnostic import Span
from dpsql.diagnostics.errors import reject
from dpsql.frontend.bind.aggregates.aggregates import AggregateCollector
from dpsql.frontend.bind.aggregates.quantiles import quantile, shown
from dpsql.frontend.bind.clauses.order_by import sort_key
from dpsql.frontend.bind.expressions.common_types import unified
from dpsql.frontend.bind.expressions.expressions import ExprBinder
from dpsql.frontend.bind.expressions.function_names import PAIRS, QUANTILES, WINDOWED, aggregate_name
from dpsql.frontend.bind.expressions.syntax_arguments import checked
from dpsql.frontend.bind.expressions.unknown_values import taken_as
from dpsql.frontend.bind.parameters import Numbering

_FRAME_UNITS = ("ROWS", "RANGE", "GROUPS")


@dataclass(slots=True)
class WindowCollector:
    """Binds window functions when the expression binder meets them; equal calls share one output column.

    named: the WINDOW clause, by lower-case name.
    """

    numbering: Numbering
    named: Mapping[str, exp.Window]
    calls: list[WindowCall] = field(default_factory=list)
    used: set[str] = field(default_factory=set)

    def reads(self, expr: Expr) -> bool:
        """True if an expression contains one of the collected calls."""
        return not columns_of(expr).isdisjoint(c.column.uid for c in self.calls)

    def __call__(self, node: exp.Expr, binder: ExprBinder) -> Expr:
        """The output column of the window function at `node`. Raises Rejected."""
        checked(node, binder.source, "this", "partition_by", "order", "spec", "alias", "over")
        assert isinstance(node, exp.Window)
        inner = replace(binder, window=None, clause="a window function")
        called = self._called(node.this, inner)
        partition, order, frame = self._over(node, inner)
        call = replace(called, partition=partition, order=order, frame=frame, span=binder.span(node))
        for e in (*call.args, *call.partition, *(k.expr for k in call.order)):
            if self.reads(e):
                raise reject(
                    "DP101", "a window function cannot read another one", span=e.span or call.span,
                    help=["compute the inner one in a WITH query first"],
                )  # fmt: skip
        take(1 + len(self.calls) // 4)
        for known in self.calls:
            if replace(known, column=call.column) == call:
                return replace(known.column, span=call.span)
        self.calls.append(call)
        return call.column

    # --- the function ----------------------------------------------------------------------------------------------

    def _called(self, node: exp.Expr, binder: ExprBinder) -> WindowCall:
        nulls = ""
        if isinstance(node, (exp.IgnoreNulls, exp.RespectNulls)):
            nulls = " ignore nulls" if isinstance(node, exp.IgnoreNulls) else ""
            node = checked(node, binder.source, "this")["this"]
        called = node.this if isinstance(node, exp.Filter) else node
        if aggregate_name(called) in QUANTILES:
            raise reject(
                "DP105", f"{quantile(called, binder).name} is not supported as a window function",
                span=binder.span(node),
                help=[f"write  {shown(called, binder)}  without OVER, and GROUP BY in place of PARTITION BY"],
            )  # fmt: skip
        if aggregate_name(called) not in (None, *PAIRS) or isinstance(called, exp.CountIf):
            return self._aggregated(node, binder)
        if type(node) not in WINDOWED:
            raise reject(
                "DP105", "this is not supported as a window function", span=binder.span(node),
                help=[f"supported: {', '.join(n for n in WINDOW_FUNCTIONS if ' ' not in n)}, and COUNT, SUM, AVG, "
                      "MIN, MAX, VAR_POP, VAR_SAMP, STDDEV_POP, STDDEV_SAMP over a window"],
            )  # fmt: skip
        name, slots = WINDOWED[type(node)]
        args = checked(node, binder.source, *slots)
        given = [binder.bind(args[slot]) for slot in slots if slot in args]
        function = WINDOW_FUNCTIONS.get(name + nulls)
        if function is None:
            raise reject(
                "DP101", f"IGNORE NULLS cannot stand in {name}", span=binder.span(node), help=["leave it out"]
            )  # fmt: skip
        if len(given) < function.least:
            raise reject("DP106", f"{name} needs an argument", span=binder.span(node), help=[function.signature])
        if "offset" in slots and len(given) > 1:
            _whole(given[1], name, least=1 if name == "nth_value" else -(2**31))
        if name == "ntile":
            _whole(given[0], name, least=1)
        if "default" in args and "offset" in args:
            _, (given[0], given[2]) = unified(binder, (given[0], given[2]), binder.span(node))
        result = function.result(tuple(a.type for a in given))
        return WindowCall(name + nulls, tuple(given), self.numbering.column(name, result, binder.span(node)))

    def _aggregated(self, node: exp.Expr, binder: ExprBinder) -> WindowCall:
        """An aggregate over a window; FILTER becomes a CASE around the argument."""
        call = AggregateCollector(self.numbering).bound(node, binder)
        if call.distinct:
            raise reject(
                "DP101", "DISTINCT over a window is not supported", span=binder.span(node),
                help=["remove duplicates in a WITH query first"],
            )  # fmt: skip
        arg, at = call.arg, binder.span(node)
        if call.filter is not None:
            chosen = Literal(1, INTEGER, at) if arg is None else arg
            arg = binder.call("case", (call.filter, chosen, Literal(None, NULL, at)), at)
        return WindowCall(call.function, () if arg is None else (arg,), call.column)

    # --- the window ------------------------------------------------------------------------------------------------

    def require_all_valid(self, binder: ExprBinder) -> None:
        """What no window function names must be accepted SQL as well. Raises Rejected."""
        for name, node in self.named.items():
            if name not in self.used:
                self._over(node, replace(binder, window=None, clause="a window"))

    def _over(self, node: exp.Window, binder: ExprBinder) -> tuple[tuple[Expr, ...], tuple[SortKey, ...], Frame | None]:
        partition, terms, spec = self._written(node, binder, ())
        order = tuple(sort_key(e, binder) for e in terms)
        return tuple(binder.bind(e) for e in partition), order, None if spec is None else _frame(spec, order, binder)

    def _written(
        self, node: exp.Window, binder: ExprBinder, seen: tuple[str, ...]
    ) -> tuple[list[exp.Expr], list[exp.Expr], exp.Expr | None]:
        """PARTITION BY, ORDER BY and frame of a window, with those of the named window that it builds on."""
        order = node.args.get("order")
        partition = list(node.args.get("partition_by") or [])
        terms = [] if order is None else list(checked(order, binder.source, "expressions")["expressions"])
        spec = node.args.get("spec")
        base = node.args.get("alias")
        if base is None:
            return partition, terms, spec
        name = base.name.lower()
        if name not in self.named or name in seen:
            raise reject(
                "DP103", f"no window is called {base.name} here", span=binder.span(base),
                help=[f"declared windows: {', '.join(self.named) or 'none'}", "declare it:  WINDOW w AS (ORDER BY …)"],
            )  # fmt: skip
        self.used.add(name)
        below = self._written(self.named[name], binder, (*seen, name))
        for ours, theirs, what in ((partition, below[0], "PARTITION BY"), (terms, below[1], "ORDER BY")):
            if ours and theirs:
                raise reject(
                    "DP101", f"the window {base.name} has its own {what}", span=binder.span(base),
                    help=["write the whole window in OVER (…)"],
                )  # fmt: skip
        if below[2] is not None and (partition or terms or spec is not None):
            raise reject(
                "DP101", f"the window {base.name} has a frame: nothing can be added to it", span=binder.span(base),
                help=["write the whole window in OVER (…)"],
            )  # fmt: skip
        return partition or below[0], terms or below[1], spec if spec is not None else below[2]


def windows_of(nodes: list[exp.Expr], binder: ExprBinder) -> dict[str, exp.Window]:
    """The WINDOW clause, by lower-case name. Raises Rejected."""
    found: dict[str, exp.Window] = {}
    for node in nodes:
        checked(node, binder.source, "this", "partition_by", "order", "spec", "alias")
        assert isinstance(node, exp.Window)
        name = node.this.name.lower()
        if name in found:
            raise reject(
                "DP101", f"two windows are called {node.this.name}", span=binder.span(node),
                help=["give one of them another name"],
            )  # fmt: skip
        found[name] = node
    return found


def _whole(expr: Expr, name: str, least: int) -> None:
    expr = taken_as(expr, BIGINT)
    value = expr.value if isinstance(expr, Literal) else None
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value < 2**31:
        raise reject(
            "DP115", f"{name} takes a whole number written in the query{', from 1' if least == 1 else ''}",
            span=expr.span, help=[f"for example  {name}({'4' if name == 'ntile' else 'x, 2'})"],
        )  # fmt: skip


def _frame(spec: exp.Expr, order: tuple[SortKey, ...], binder: ExprBinder) -> Frame:
    args = checked(spec, binder.source, "kind", "start", "start_side", "end", "end_side")
    unit = str(args["kind"]).upper()
    at = binder.span(spec)
    start = _bound(args["start"], args.get("start_side"), binder, "PRECEDING", at)
    end = _bound(args.get("end") or "CURRENT ROW", args.get("end_side"), binder, "FOLLOWING", at)
    if unit not in _FRAME_UNITS:
        raise reject("DP101", f"{unit} is no frame", span=at, help=["use ROWS, RANGE or GROUPS"])
    moved = any(b not in (None, 0) for b in (start, end))
    if unit == "RANGE" and moved and (len(order) != 1 or not order[0].expr.type.numeric):
        raise reject(
            "DP101", "RANGE with a distance needs one ORDER BY expression that is a number", span=at,
            help=["use ROWS, or order by a number"],
        )  # fmt: skip
    if unit == "GROUPS" and not order:
        raise reject("DP101", "GROUPS needs an ORDER BY", span=at, help=["add ORDER BY to the window"])
    if _side(start or 0) > _side(end or 0) and None not in (start, end):
        raise reject(
            "DP101", "this frame ends before it starts", span=at,
            help=["order the ends: PRECEDING, CURRENT ROW, FOLLOWING; ROWS 1 FOLLOWING alone ends at the current row"],
        )  # fmt: skip
    return Frame(unit, start, end)


def _side(end: int) -> int:
    """-1 before the current row, 1 behind it."""
    return (end > 0) - (end < 0)


def _bound(given: Any, side: Any, binder: ExprBinder, unbounded: str, at: Span) -> int | None:
    """One end of a frame: None is UNBOUNDED on its own side, PRECEDING counts down."""
    side = str(side or "").upper()
    if isinstance(given, str):
        if given.upper() == "CURRENT ROW":
            return 0
        if side == unbounded:
            return None
        raise reject(
            "DP101", f"this end of a frame cannot be UNBOUNDED {side}", span=at,
            help=["write  BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING"],
        )  # fmt: skip
    bound = binder.bind(given)
    value = bound.value if isinstance(bound, Literal) else None
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 2**31:
        raise reject("DP115", "a frame takes whole numbers of rows", span=binder.span(given), help=["ROWS 2 PRECEDING"])
    return -value if side == "PRECEDING" else value
