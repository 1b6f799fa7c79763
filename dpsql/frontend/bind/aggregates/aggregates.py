"""Aggregate calls of one SELECT, collected once each, whatever expressions they stand in."""

from __future__ import annotations

from dataclasses import dataclass, field

from sqlglot import exp

from dpsql.core.ir.expressions import Cast, Column, Expr, Literal, columns_of
from dpsql.core.ir.nodes import AggregateCall
from dpsql.core.ir.step_count import take
from dpsql.core.ir.types import BIGINT, DOUBLE, VARCHAR, Kind, SqlType
from dpsql.core.value_classes import replace
from dpsql.diagnostics.diagnostic import Span
from dpsql.diagnostics.errors import reject
from dpsql.frontend.aggregates.all_aggregates import AGGREGATES
from dpsql.frontend.bind.aggregates.quantile_lists import element, listed
from dpsql.frontend.bind.aggregates.quantiles import quantile, require_ordered, shown
from dpsql.frontend.bind.aggregates.searched_clips import SEARCHING, misplaced, searched_in
from dpsql.frontend.bind.expressions.expressions import IN_AGGREGATES, ExprBinder, MembershipHandler, SubqueryHandler
from dpsql.frontend.bind.expressions.function_names import INTERVAL_ENDS, PAIRS, QUANTILES, aggregate_name
from dpsql.frontend.bind.expressions.refusals import written_name
from dpsql.frontend.bind.expressions.syntax_arguments import checked
from dpsql.frontend.bind.parameters import Numbering
from dpsql.frontend.google.aggregate_bounds import Own, clip, own_bounds
from dpsql.functions.signature import compared


@dataclass(slots=True)
class AggregateCollector:
    """Binds aggregates when the expression binder meets them; equal calls share one output column.

    subquery, membership: bind subqueries in arguments and filters, over the rows that are aggregated.
    """

    numbering: Numbering
    subquery: SubqueryHandler | None = None
    membership: MembershipHandler | None = None
    calls: list[AggregateCall] = field(default_factory=list)

    def reads(self, expr: Expr) -> bool:
        """True if an expression contains one of the collected aggregates."""
        return not columns_of(expr).isdisjoint(c.column.uid for c in self.calls)

    def __call__(self, node: exp.Expr, binder: ExprBinder) -> Expr:
        """The output column of the aggregate at `node`, or of one end of an aggregate's interval."""
        if isinstance(node, exp.Anonymous) and str(node.this).lower() in INTERVAL_ENDS:
            return self._shared(self._end(node, binder))
        inner = replace(binder, aggregate=None, subquery=self.subquery, clause=IN_AGGREGATES, aliases={})
        inner.window, inner.grouping, inner.membership = None, None, self.membership
        several = listed(node, binder)
        if several is not None:
            self.numbering.lists = True
            each = tuple(self._shared(self.bound(one, inner)) for one in several)
            return binder.call("list_of", each, binder.span(node))
        return self._shared(self.bound(element(node, binder) or node, inner))

    def _shared(self, call: AggregateCall) -> Expr:
        take(1 + len(self.calls) // 4)
        for known in self.calls:
            if known.function == call.function and replace(known, column=call.column) == call:
                return replace(known.column, span=call.span)
        self.calls.append(call)
        return call.column

    def _end(self, node: exp.Anonymous, binder: ExprBinder) -> AggregateCall:
        """DP_INTERVAL_LOW(n), DP_INTERVAL_HIGH(n): n an aggregate of the same SELECT, or the name of one."""
        name, span = str(node.this).lower(), binder.span(node)
        args = checked(node, binder.source, "this", "expressions").get("expressions", [])
        found = binder.bind(args[0]) if len(args) == 1 else None
        call = next((c for c in self.calls if isinstance(found, Column) and c.column.uid == found.uid), None)
        if call is None or call.end or not call.column.type.numeric:
            raise reject(
                "DP106", f"{name.upper()} takes one aggregate, or the name of one in the same SELECT", span=span,
                label="only released numbers have an interval",
                help=[f"SELECT COUNT(*) AS n, {name.upper()}(n) … ; arithmetic over aggregates has no interval"],
            )  # fmt: skip
        if call.p is not None or call.function == "mode":
            what = "MODE" if call.p is None else "quantile"
            raise reject(
                "DP106", f"{name.upper()} of a {what} is not known: its error is a number of rows", span=span,
                help=["EXPLAIN shows how many rows it may be off"],
            )  # fmt: skip
        return replace(call, column=self.numbering.column(name, DOUBLE, span), span=span, end=INTERVAL_ENDS[name])

    def bound(self, node: exp.Expr, binder: ExprBinder, condition: Expr | None = None) -> AggregateCall:
        """The aggregate at `node`, not collected; its arguments are bound by `binder`. Raises Rejected."""
        span = binder.span(node)
        if isinstance(node, exp.Filter):
            args = checked(node, binder.source, "this", "expression")
            where = checked(args["expression"], binder.source, "this")["this"]
            found = binder.bind(where)
            if clip_ := searched_in(found):
                raise misplaced(clip_, "FILTER compares")
            if found.type.kind is not Kind.BOOLEAN:
                raise reject(
                    "DP106", f"FILTER needs a condition, not {found.type}", span=found.span,
                    help=[f"compare it with something, e.g.  {compared(found.type)}"],
                )  # fmt: skip
            return replace(self.bound(args["this"], binder, found), span=span)
        if isinstance(node, exp.CountIf):
            found = binder.bind(checked(node, binder.source, "this")["this"])
            if clip_ := searched_in(found):
                raise misplaced(clip_, "COUNT_IF compares")
            if found.type.kind is not Kind.BOOLEAN or condition is not None:
                raise reject("DP106", "COUNT_IF needs a condition", span=span, help=["COUNT(*) FILTER (WHERE …)"])
            return AggregateCall("count", None, self.numbering.column("count_if", BIGINT, span), False, found, span)
        if isinstance(node, exp.IgnoreNulls) and isinstance(node.this, exp.AnyValue):
            node = node.this
            span = binder.span(node)
        function = aggregate_name(node)
        if function is None:
            raise reject(
                "DP108", "FILTER must follow an aggregate", span=span,
                help=["use CASE WHEN … THEN … END, or put the condition into WHERE"],
            )  # fmt: skip
        if function in QUANTILES:
            return self._quantile(node, function, binder, condition)
        if function in PAIRS:
            return self._pair(node, function, binder, condition)
        if isinstance(node, (exp.ArgMin, exp.ArgMax)):
            return self._at_extreme(node, function, binder, condition)
        arg, distinct = _argument(node, function, binder), False
        if isinstance(node, exp.ApproxDistinct):  # exactly: the noise hides the rest
            distinct = True
        if isinstance(arg, exp.Distinct):
            items = checked(arg, binder.source, "expressions").get("expressions", [])
            several = isinstance(items[0], exp.Tuple) and function != "count" if items else True
            if len(items) != 1 or several or isinstance(items[0], exp.Star):
                raise reject(
                    "DP101", "DISTINCT in an aggregate takes one expression", span=span,
                    help=["count those of one column, or of several in brackets:  COUNT(DISTINCT (a, b))"],
                )  # fmt: skip
            arg, distinct = items[0], True
        own = own_bounds(node, function, distinct)
        if function == "count" and (arg is None or isinstance(arg, exp.Star)):
            if isinstance(arg, exp.Star):
                checked(arg, binder.source)
            return self._rows(condition, span, own)
        if arg is None or isinstance(arg, exp.Star):
            raise reject(
                "DP106", f"{function.upper()} needs an argument", span=span,
                help=[f"name a column:  {function.upper()}(x), or count rows:  COUNT(*)"],
            )  # fmt: skip
        bound = _as_text(arg, binder) if isinstance(arg, exp.Tuple) else binder.bind(arg)
        if function == "count" and isinstance(bound, Literal) and bound.value is not None and not distinct:
            return self._rows(condition, span, own)  # COUNT(1) is COUNT(*)
        if (clip_ := searched_in(bound)) and (distinct or function not in SEARCHING):
            raise misplaced(clip_, f"{function.upper()}{' DISTINCT' * distinct} counts or compares")
        if distinct and function in ("min", "max"):
            distinct = False
        if _is_logical(node) and bound.type.kind not in (Kind.BOOLEAN, Kind.NULL):
            raise reject(
                "DP106", f"{written_name(node, binder.source).upper()} needs a condition, not {bound.type}",
                span=bound.span or span, help=[f"compare it with something, e.g.  {compared(bound.type)}"],
            )  # fmt: skip
        result = _result_type(function, bound, arg, binder)
        if own.per_row is not None:
            bound = clip(binder, bound, own.per_row)
        column = self.numbering.column(function, result, span)
        descending = isinstance(node, exp.WithinGroup) and bool(node.expression.expressions[0].args.get("desc"))
        return AggregateCall(
            function, bound, column, distinct, condition, span, per_group=own.per_group, descending=descending,
            written=written_name(node, binder.source).upper() if _is_other_name(node) else "",
        )  # fmt: skip

    def _quantile(self, node: exp.Expr, function: str, binder: ExprBinder, condition: Expr | None) -> AggregateCall:
        span, found = binder.span(node), quantile(node, binder)
        own = own_bounds(found.call, found.name.lower(), False)
        arg = binder.bind(found.arg)
        require_ordered(arg, found.name, span)
        column = self.numbering.column(function, AGGREGATES[function].result(arg.type), span)
        # Of APPROX_QUANTILES(x, n)[OFFSET(i)], its other name has the p.
        written = "" if isinstance(found.call, exp.ApproxQuantiles) else found.name
        if own.per_row is not None:
            arg = clip(binder, arg, own.per_row)
        return AggregateCall(
            function, arg, column, False, condition, span, p=found.p, descending=found.descending, written=written
        )

    def _pair(self, node: exp.Expr, function: str, binder: ExprBinder, condition: Expr | None) -> AggregateCall:
        span, name = binder.span(node), function.upper()
        if any(isinstance(arg, exp.Distinct) for arg in node.args.values()):
            raise reject(
                "DP101", f"{name}(DISTINCT …) is not supported", span=span,
                help=["leave DISTINCT out: then every row counts"],
            )  # fmt: skip
        if node.args.get("expression") is None or node.args.get("null_on_zero_variance") is not None:
            raise reject(
                "DP106", f"{name} takes two arguments", span=span,
                help=[f"as in  {name}(y, x): y is the one that depends on x"],
            )  # fmt: skip
        args = checked(node, binder.source, "this", "expression")
        y, x = (binder.bind(args[part]) for part in ("this", "expression"))
        for arg, part in ((y, "this"), (x, "expression")):
            if clip_ := searched_in(arg):
                raise misplaced(clip_, f"{name} multiplies")
            result = _result_type(function, arg, args[part], binder)
        column = self.numbering.column(function, result, span)
        return AggregateCall(function, y, column, False, condition, span, second=x)

    def _at_extreme(
        self, node: exp.ArgMin | exp.ArgMax, function: str, binder: ExprBinder, condition: Expr | None
    ) -> AggregateCall:
        span, args = binder.span(node), checked(node, binder.source, "this", "expression")
        if any(isinstance(arg, exp.Distinct) or arg is None for arg in (args.get("this"), args.get("expression"))):
            raise reject(
                "DP106", f"{function.upper()} takes two arguments", span=span, help=[AGGREGATES[function].signature]
            )
        value, by = (binder.bind(args[part]) for part in ("this", "expression"))
        for arg in (value, by):
            if clip_ := searched_in(arg):
                raise misplaced(clip_, f"{function.upper()} compares")
        column = self.numbering.column(function, value.type, span)
        return AggregateCall(function, value, column, False, condition, span, second=by)

    def _rows(self, condition: Expr | None, span: Span, own: Own) -> AggregateCall:
        column = self.numbering.column("count", BIGINT, span)
        return AggregateCall("count", None, column, False, condition, span, per_group=own.per_group)


def _is_logical(node: exp.Expr) -> bool:
    """BOOL_OR, BOOL_AND and EVERY: the greatest and the least of conditions."""
    return isinstance(node, (exp.LogicalOr, exp.LogicalAnd)) or (
        isinstance(node, exp.Anonymous) and str(node.this).lower() == "every"
    )


def _is_other_name(node: exp.Expr) -> bool:
    """Of MIN and MAX."""
    return _is_logical(node) or isinstance(node, exp.AnyValue)


_TEXTS = frozenset({Kind.INTEGER, Kind.DECIMAL, Kind.VARCHAR, Kind.BOOLEAN, Kind.DATE, Kind.TIMESTAMP, Kind.UUID})
"""Kinds of which each value has a text of its own."""


def _as_text(node: exp.Tuple, binder: ExprBinder) -> Expr:
    """(a, b) as one text that is never NULL: of each value the length of its text and the text, or that it is NULL."""
    at = binder.span(node)
    found: Expr = Literal("", VARCHAR, at)
    for item in checked(node, binder.source, "expressions")["expressions"]:
        value = binder.bind(item)
        if value.type.kind not in _TEXTS:
            raise reject(
                "DP106", f"{value.type} cannot stand in COUNT(DISTINCT (…))", span=value.span or at,
                help=["leave it out, or convert it:  CAST(x AS BIGINT)"],
            )  # fmt: skip
        text = value if value.type == VARCHAR else Cast(value, VARCHAR, at)
        length = Cast(binder.call("length", (text,), at), VARCHAR, at)
        said = binder.call("concat_op", (binder.call("concat_op", (length, Literal(":", VARCHAR, at)), at), text), at)
        known = binder.call("coalesce", (said, Literal("-", VARCHAR, at)), at)
        found = binder.call("concat_op", (found, known), at)
    return found


def _argument(node: exp.Expr, function: str, binder: ExprBinder) -> exp.Expr | None:
    """What is aggregated, if anything is written."""
    if isinstance(node, (exp.Min, exp.Max)) and node.args.get("count"):
        close = f"QUANTILE_DISC({shown(node.this, binder)}, {'0.99' if function == 'max' else '0.01'})"
        raise reject(
            "DP101", f"{function.upper()} with a second argument gives a list of values, and is not supported",
            span=binder.span(node), help=[f"one value, close to them:  {close}"],
        )  # fmt: skip
    if isinstance(node, exp.WithinGroup):
        return _ordered(node, function, binder)
    if not isinstance(node, exp.Anonymous):
        found: exp.Expr | None = checked(node, binder.source, "this", "big_int").get("this")
        return found
    given = checked(node, binder.source, "this", "expressions").get("expressions", [])
    if len(given) != 1:
        raise reject(
            "DP106", f"{function.upper()} takes one argument", span=binder.span(node),
            help=[AGGREGATES[function].signature],
        )  # fmt: skip
    return given[0]  # type: ignore[no-any-return]


def _ordered(node: exp.WithinGroup, function: str, binder: ExprBinder) -> exp.Expr:
    """MODE() WITHIN GROUP (ORDER BY x [DESC]): the order breaks ties; of private rows noise does."""
    args = checked(node, binder.source, "this", "expression")
    terms = checked(args["expression"], binder.source, "expressions")["expressions"]
    if checked(args["this"], binder.source, "this") or len(terms) != 1:
        raise reject(
            "DP106", f"{function.upper()} takes one ORDER BY expression, and no argument beside it",
            span=binder.span(node), help=[f"write  {function.upper()}({shown(terms[0].this, binder)})"],
        )  # fmt: skip
    found: exp.Expr = checked(terms[0], binder.source, "this", "desc", "nulls_first")["this"]
    return found


def _result_type(function: str, arg: Expr, written: exp.Expr, binder: ExprBinder) -> SqlType:
    aggregate = AGGREGATES[function]
    if aggregate.numeric and not arg.type.numeric:
        text, name = shown(written, binder), function.upper()
        call = "{}" if function in PAIRS else f"{name}({{}})"
        counted = f", or COUNT(*) FILTER (WHERE {text})" if function == "sum" else ""
        converted = call.format(f"CLIP(TRY_CAST({text} AS DOUBLE), lower, upper)")
        advice = {
            Kind.BOOLEAN: f"cast it first:  {call.format(f'CAST({text} AS INTEGER)')}{counted}",
            Kind.VARCHAR: f"convert and bound it:  {converted}",
        }.get(arg.type.kind, "compute a number from it first")
        if arg.type.temporal:
            days = call.format(f"CLIP(date_diff('day', DATE '2024-01-01', {text}), lower, upper)")
            advice = f"count days from a date, and bound them:  {days}"
        raise reject(
            "DP203", f"{name} needs a number, not {arg.type}", span=arg.span or binder.span(written), help=[advice],
        )  # fmt: skip
    return aggregate.result(arg.type)
