"""Syntax that is no plain call: CASE, BETWEEN, IN, casts, intervals … → calls of registered functions."""

from __future__ import annotations

import re
from collections.abc import Callable
from enum import Enum
from functools import cache
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from dpsql.core.ir.expressions import Cast, Expr, Literal, larger_than
from dpsql.core.ir.types import BIGINT, BOOLEAN, INTEGER, NULL, TIMESTAMP, VARCHAR, Kind, parse_type
from dpsql.core.values.value import type_range
from dpsql.diagnostics.diagnostic import Span
from dpsql.diagnostics.errors import reject, too_large
from dpsql.diagnostics.words import small, with_article
from dpsql.frontend.bind.expressions import date_formats, lengths_of_time, literals, several_values
from dpsql.frontend.bind.expressions.clock import DATES, TIMES
from dpsql.frontend.bind.expressions.clocks import as_clock_of, as_moment, clock_of
from dpsql.frontend.bind.expressions.refusals import refused, refused_subquery, volatile, written_name
from dpsql.frontend.bind.expressions.syntax_arguments import checked
from dpsql.frontend.bind.expressions.unknown_values import taken_as

if TYPE_CHECKING:
    from dpsql.frontend.bind.expressions.expressions import ExprBinder

MOST_BUCKETS = 10**6
"""Of width_bucket."""


def paren(binder: ExprBinder, node: exp.Paren) -> Expr:
    return binder.bind(checked(node, binder.source, "this")["this"])


def literal(binder: ExprBinder, node: exp.Literal) -> Expr:
    written, at = str(node.this), binder.span(node)
    return literals.text(written, at) if node.args.get("is_string") else literals.number(written, at)


def boolean(binder: ExprBinder, node: exp.Boolean) -> Expr:
    return Literal(bool(node.this), BOOLEAN, binder.span(node))


def null(binder: ExprBinder, node: exp.Null) -> Expr:
    return Literal(None, NULL, binder.span(node))


def placeholder(binder: ExprBinder, node: exp.Placeholder) -> Expr:
    return binder.parameters.take(str(checked(node, binder.source, "this")["this"]), binder.span(node))


def parameter(binder: ExprBinder, node: exp.Parameter) -> Expr:
    return binder.parameters.take(checked(node, binder.source, "this")["this"].name, binder.span(node))


def clock(binder: ExprBinder, node: exp.CurrentDate | exp.CurrentTimestamp | exp.Localtimestamp) -> Expr:
    """CURRENT_DATE, CURRENT_TIMESTAMP, LOCALTIMESTAMP, in UTC."""
    checked(node, binder.source)
    name = written_name(node, binder.source)
    if name not in DATES | TIMES:  # its place was not found: what was read is the call around it
        name = node.sql_name().lower()
    found = binder.parameters.clock(name, binder.span(node))
    if found is None:
        raise volatile(name, binder.span(node))
    return found


def interval(binder: ExprBinder, node: exp.Interval) -> Expr:
    checked(node, binder.source, "this", "unit")
    return literals.interval(node, binder.span(node))


def calendar_shift(binder: ExprBinder, node: exp.Expr) -> Expr | None:
    """x ± INTERVAL n MONTH: months have no fixed length, so this is a calendar shift; None if it is anything else."""
    step = node.args.get("expression")
    months = literals.months(step) if isinstance(step, exp.Interval) else None
    if months is None:
        return lengths_of_time.steps(binder, node) if isinstance(node, (exp.Add, exp.Sub)) else None
    sign = -1 if isinstance(node, (exp.Sub, exp.DateSub)) else 1
    at = binder.span(node)
    amount = literals.integer(sign * months, at)
    return binder.call("date_shift", (binder.bind(node.this), amount, Literal("month", VARCHAR, at)), at)


def negative(binder: ExprBinder, node: exp.Neg) -> Expr:
    inner = binder.bind(checked(node, binder.source, "this")["this"])
    if isinstance(inner, Literal):
        folded = literals.negated(inner, binder.span(node))
        if folded is not None:
            return folded
    return binder.call("neg", (inner,), binder.span(node))


_DAY = ("write it as in  DATE '2024-12-31'  or  TIMESTAMP '2024-12-31 23:59:59'",)
_MOMENTS = {
    Kind.DATE: _DAY, Kind.TIMESTAMP: _DAY,
    Kind.TIMESTAMPTZ: literals.AS_MOMENT,
}  # fmt: skip
"""Types whose values are read from texts before the engine sees them, and how they are written."""


def cast(binder: ExprBinder, node: exp.Cast | exp.TryCast) -> Expr:
    args = checked(node, binder.source, "this", "to", "safe")
    converted = converter(binder, args["to"], binder.span(node))
    return converted(binder.bind(args["this"]))


def converter(binder: ExprBinder, to: exp.Expr, at: Span) -> Callable[[Expr], Expr]:
    """What a cast to a type, that stands there, makes of a value. Raises Rejected DP106 for types that none has."""
    target = parse_type(_type_name(to))
    if target is None or target.kind in (Kind.LIST, Kind.NULL, Kind.BLOB, Kind.INTERVAL):
        raise reject(
            "DP106", f"CAST to {to.sql('duckdb')} is not supported", span=at,
            help=["cast to a number, VARCHAR, BOOLEAN, DATE, TIME, TIMESTAMP or UUID"],
        )  # fmt: skip

    def converted(value: Expr) -> Expr:
        inner = taken_as(value, target)
        if target.kind is Kind.TIMESTAMPTZ and inner.type.temporal:
            return moment(binder, inner, at)
        if target.kind is not Kind.TIMESTAMPTZ:
            zone = binder.parameters.zone
            inner = (
                clock_of(inner, zone) if target.temporal or target.kind is Kind.VARCHAR else as_clock_of(inner, zone)
            )
        if isinstance(inner, Literal) and isinstance(inner.value, str) and target.kind in _MOMENTS:
            found = binder.read(inner.value, target, at)
            if found is None:
                raise reject(
                    "DP106", f"{inner.value!r} is not {with_article(target)}", span=at, help=_MOMENTS[target.kind]
                )
            return found
        if inner.type == target and not isinstance(inner, Literal):
            return inner
        cast = Cast(inner, target, at)
        binder.value(cast)
        return cast

    return converted


def moment(binder: ExprBinder, clock: Expr, at: Span) -> Expr:
    """A date or time as a moment, by the policy's clock. What is computed stays what that clock shows."""
    made = as_moment(clock, binder.value(clock), binder.parameters.zone)
    if made is not clock or clock.type.kind is Kind.TIMESTAMP:
        return made
    cast = Cast(clock, TIMESTAMP, at)
    binder.value(cast)
    return cast


MOST_REPEATED = 1_000
"""Most nodes of an expression that is written out several times: nested in itself it would grow exponentially."""


def _repeated(binder: ExprBinder, node: exp.Expr) -> Expr:
    """An expression that is compared more than once. Raises Rejected DP101 if it is large."""
    found = binder.bind(node)
    if larger_than(found, MOST_REPEATED):
        raise too_large("the expression is too large", binder.span(node), "compare fewer values, or something simpler")
    return found


def case(binder: ExprBinder, node: exp.Case) -> Expr:
    args = checked(node, binder.source, "this", "ifs", "default")
    subject = _repeated(binder, args["this"]) if "this" in args else None
    parts: list[Expr] = []
    for branch in args["ifs"]:
        inner = checked(branch, binder.source, "this", "true")
        condition = binder.bind(inner["this"])
        if subject is not None:
            condition = binder.call("eq", (subject, condition), binder.span(branch))
        parts += [condition, binder.bind(inner["true"])]
    parts.append(binder.bind(args["default"]) if "default" in args else Literal(None, NULL, binder.span(node)))
    return binder.call("case", tuple(parts), binder.span(node))


def if_(binder: ExprBinder, node: exp.If) -> Expr:
    args = checked(node, binder.source, "this", "true", "false")
    other = binder.bind(args["false"]) if "false" in args else Literal(None, NULL, binder.span(node))
    return binder.call("case", (binder.bind(args["this"]), binder.bind(args["true"]), other), binder.span(node))


def between(binder: ExprBinder, node: exp.Between) -> Expr:
    args = checked(node, binder.source, "this", "low", "high")
    at, subject = binder.span(node), _repeated(binder, args["this"])
    low = binder.call("ge", (subject, binder.bind(args["low"])), at)
    high = binder.call("le", (subject, binder.bind(args["high"])), at)
    return binder.call("and", (low, high), at)


def in_(binder: ExprBinder, node: exp.In) -> Expr:
    args = checked(node, binder.source, "this", "expressions", "query", "unnest")
    if "unnest" in args:
        (listed,) = checked(args["unnest"], binder.source, "expressions")["expressions"]
        return several_values.from_list(binder, node, listed)
    if "query" in args:
        raise refused_subquery(args["query"], binder.source, binder.clause)
    if (listed := next((e for e in args["expressions"] if isinstance(e, exp.Values)), None)) is not None:
        raise reject(
            "DP101", "IN takes a list or a query, not VALUES", span=binder.span(listed),
            help=["write the values themselves:  x IN (1, 2)"],
        )  # fmt: skip
    if isinstance(args["this"], exp.Tuple):
        return several_values.row_in(binder, node, args["expressions"])
    subject = binder.bind(args["this"])
    return binder.call("in", (subject, *(binder.bind(e) for e in args["expressions"])), binder.span(node))


def is_(binder: ExprBinder, node: exp.Is) -> Expr:
    args = checked(node, binder.source, "this", "expression", "negate")
    at, subject, what = binder.span(node), binder.bind(args["this"]), args["expression"]
    if isinstance(what, exp.Null):
        found = binder.call("is_null", (subject,), at)
    elif isinstance(what, exp.Boolean):
        found = binder.call("is_not_distinct_from", (subject, Literal(bool(what.this), BOOLEAN, at)), at)
    else:
        raise reject(
            "DP101", "IS compares with NULL, TRUE or FALSE", span=at,
            help=["compare with any other value by  =  or  <>"],
        )  # fmt: skip
    return binder.call("not", (found,), at) if args.get("negate") else found


def like(binder: ExprBinder, node: exp.Like | exp.ILike) -> Expr:
    if several_values.list_behind(node.args.get("expression")) is not None:
        return several_values.compared(binder, node)
    args = checked(node, binder.source, "this", "expression", "negate")
    name = "like" if isinstance(node, exp.Like) else "ilike"
    found = binder.call(name, (binder.bind(args["this"]), binder.bind(args["expression"])), binder.span(node))
    return binder.call("not", (found,), binder.span(node)) if args.get("negate") else found


def matched(binder: ExprBinder, node: exp.RegexpLike | exp.RegexpILike) -> Expr:
    """x ~ pattern, and regexp_matches(x, pattern, options); ~* ignores case."""
    args = checked(node, binder.source, "this", "expression", "flag")
    at, flag = binder.span(node), args.get("flag")
    given = [binder.bind(args["this"]), binder.bind(args["expression"])]
    if isinstance(node, exp.RegexpILike):
        given.append(Literal("i", VARCHAR, at))
    elif flag is not None:
        given.append(binder.bind(flag))
    return binder.call("regexp_matches", tuple(given), at)


def replaced(binder: ExprBinder, node: exp.RegexpReplace) -> Expr:
    args = checked(node, binder.source, "this", "expression", "replacement", "modifiers", "single_replace")
    parts = [args[name] for name in ("this", "expression", "replacement", "modifiers") if args.get(name) is not None]
    return binder.call("regexp_replace", tuple(map(binder.bind, parts)), binder.span(node))


def escape(binder: ExprBinder, node: exp.Escape) -> Expr:
    args = checked(node, binder.source, "this", "expression")
    inner = args["this"]
    if not isinstance(inner, (exp.Like, exp.ILike)):
        raise refused(node, binder.source, binder.clause)
    parts = checked(inner, binder.source, "this", "expression", "negate")
    name = "like" if isinstance(inner, exp.Like) else "ilike"
    bound = tuple(binder.bind(e) for e in (parts["this"], parts["expression"], args["expression"]))
    found = binder.call(name, bound, binder.span(node))
    return binder.call("not", (found,), binder.span(node)) if parts.get("negate") else found


def divide(binder: ExprBinder, node: exp.Div) -> Expr:
    """x / y: a fraction in DuckDB; of two integers their whole quotient in dialects that say so (`typed`)."""
    args = checked(node, binder.source, "this", "expression", "typed", "safe")
    both = binder.bind(args["this"]), binder.bind(args["expression"])
    whole = args.get("typed") and all(x.type.kind is Kind.INTEGER for x in both)
    return binder.call("intdiv" if whole else "div", both, binder.span(node))


def all_bits(binder: ExprBinder, node: exp.BitwiseNot) -> Expr:
    """~x is -1 - x."""
    at = binder.span(node)
    inner = binder.bind(checked(node, binder.source, "this")["this"])
    if inner.type.kind not in (Kind.INTEGER, Kind.NULL):
        raise reject("DP106", f"~ needs an integer, not {inner.type}", span=at, help=["convert it: CAST(… AS BIGINT)"])
    return binder.call("sub", (literals.integer(-1, at), inner), at)


def bits_moved(binder: ExprBinder, node: exp.BitwiseLeftShift | exp.BitwiseRightShift) -> Expr:
    """x >> n, of n literal: x without its last n bits, divided by 2ⁿ. x << n is the product, of what has no sign."""
    args, at, left = (
        checked(node, binder.source, "this", "expression"),
        binder.span(node),
        isinstance(node, exp.BitwiseLeftShift),
    )
    x, n = binder.bind(args["this"]), binder.bind(args["expression"])
    most = type_range(x.type).hi if x.type.kind is Kind.INTEGER else None
    places = binder.value(n).constant
    if most is None or not isinstance(places, int) or not 0 <= places < int(most).bit_length() + (not left):
        raise reject(
            "DP106", f"{'<<' if left else '>>'} takes an integer, and as a literal a number of places that it has",
            span=at, help=["as in  x >> 3;  or write  x * 8,  x // 8"],
        )  # fmt: skip
    if left:
        return binder.call("mul", (x, literals.integer(2**places, at)), at)
    rest = binder.call("bits_and", (x, literals.integer(2**places - 1, at)), at)
    return binder.call("intdiv", (binder.call("sub", (x, rest), at), literals.integer(2**places, at)), at)


_ESCAPED = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "\\": "\\", "'": "'"}


def raw(binder: ExprBinder, node: exp.RawString) -> Expr:
    """$tag$a text$tag$, as PostgreSQL and DuckDB quote it."""
    at = binder.span(node)
    if binder.source.text[at.start : at.start + 1] != "$":
        raise refused(node, binder.source, binder.clause)
    return literals.text(str(node.this), at)


def escaped(binder: ExprBinder, node: exp.ByteString) -> Expr:
    """E'a\\n': a text with escapes, those that PostgreSQL and DuckDB both know."""
    at = binder.span(node)
    written = binder.source.text[at.start : at.end]
    if written[:1] not in ("E", "e"):
        raise refused(node, binder.source, binder.clause)

    def meant(found: re.Match[str]) -> str:
        known = "'" if found[0] == "''" else _ESCAPED.get(found[0][1:])
        if known is None:
            raise reject(
                "DP101", f"{found[0]} in E'…' is outside the accepted SQL", span=at, help=["write the character itself"]
            )
        return known

    return literals.text(re.sub(r"\\.|''", meant, written[2:-1], flags=re.DOTALL), at)


def formatted(binder: ExprBinder, node: exp.TimeToStr | exp.ToChar) -> Expr:
    """strftime; PostgreSQL's to_char with its own patterns."""
    if written_name(node, binder.source) != "to_char":
        if isinstance(node, exp.TimeToStr):
            return binder.shaped(node)
        raise refused(node, binder.source, binder.clause)
    return date_formats.to_char(binder, checked(node, binder.source, "this", "format")["this"], binder.span(node))


def parsed(binder: ExprBinder, node: exp.StrToDate | exp.StrToTime) -> Expr:
    """TO_DATE, TO_TIMESTAMP of a constant."""
    name = written_name(node, binder.source)
    if name not in ("to_date", "to_timestamp"):
        raise refused(node, binder.source, binder.clause)
    subject = checked(node, binder.source, "this", "format")["this"]
    return date_formats.to_date(binder, subject, name == "to_timestamp", binder.span(node))


def of_epoch(binder: ExprBinder, node: exp.UnixToTime) -> Expr:
    """TO_TIMESTAMP of a text and a format, which the parser takes for a scale."""
    text = node.this
    if not isinstance(node.args.get("scale"), exp.Literal) or written_name(node, binder.source) != "to_timestamp":
        raise refused(node, binder.source, binder.clause)
    return date_formats.to_date(binder, text, True, binder.span(node))


def day(binder: ExprBinder, node: exp.Date) -> Expr:
    """DATE(x): the day of x."""
    inner = binder.bind(checked(node, binder.source, "this")["this"])
    return converter(binder, exp.DataType(this=exp.DataType.Type.DATE), binder.span(node))(inner)


def round_(binder: ExprBinder, node: exp.Round) -> Expr:
    """round(x, -n): the nearest multiple of 10ⁿ. Other places are those of the function."""
    decimals = node.args.get("decimals")
    if not isinstance(decimals, exp.Neg) or not isinstance(decimals.this, exp.Literal):
        return binder.shaped(node)
    places, at = small(decimals.this.name), binder.span(node)
    if places is None or not 1 <= places <= 15:
        return binder.shaped(node)
    x, step = binder.bind(checked(node, binder.source, "this", "decimals")["this"]), literals.integer(10**places, at)
    rounded = binder.call("mul", (binder.call("round", (binder.call("div", (x, step), at),), at), step), at)
    return Cast(rounded, BIGINT, at) if x.type.kind is Kind.INTEGER else rounded


def bucket(binder: ExprBinder, node: exp.DateBin) -> Expr:
    """time_bucket(INTERVAL 1 WEEK, x): the start of the unit, which date_trunc gives; of several, a function's."""
    args, at = checked(node, binder.source, "this", "expression"), binder.span(node)
    width = args["this"]
    unit = literals.one_unit(width) if isinstance(width, exp.Interval) else None
    if unit is not None:
        return binder.call("date_trunc", (Literal(unit, VARCHAR, at), binder.bind(args["expression"])), at)
    parts = literals.length(width) if isinstance(width, exp.Interval) else None
    if parts is None:
        raise reject(
            "DP106", "time_bucket takes an interval of some units, and a date or timestamp", span=at,
            help=["as in  time_bucket(INTERVAL 15 MINUTE, x)  or  time_bucket(INTERVAL 2 WEEK, x)"],
        )  # fmt: skip
    amount, name = Literal(parts[0], INTEGER, at), Literal(parts[1], VARCHAR, at)
    return binder.call("time_bucket", (binder.bind(args["expression"]), amount, name), at)


def width_bucket(binder: ExprBinder, node: exp.WidthBucket) -> Expr:
    """width_bucket(x, lo, hi, n): which of n equal parts of lo to hi holds x, from 1 on; 0 below, n + 1 from hi on.

    As PostgreSQL computes it, in operators that are known: so it is a group key with n + 2 values.
    """
    args, at = checked(node, binder.source, "this", "min_value", "max_value", "num_buckets"), binder.span(node)
    x, lo, hi, n = (binder.bind(args[part]) for part in ("this", "min_value", "max_value", "num_buckets"))
    ends = [binder.value(e).interval.lo if isinstance(e, Literal) and e.type.numeric else None for e in (lo, hi, n)]
    low, high, count = ends
    if low is None or high is None or count is None or low >= high or count not in range(1, MOST_BUCKETS + 1):
        raise reject(
            "DP106", "width_bucket takes a number, two ends, the lower one first, and a number of parts", span=at,
            label="the last three are literals", help=["as in  width_bucket(x, 0, 100, 10)"],
        )  # fmt: skip
    first, after = literals.integer(1, at), literals.integer(int(count) + 1, at)

    def call(name: str, *parts: Expr) -> Expr:
        return binder.call(name, parts, at)

    if not x.type.numeric:
        raise reject("DP203", f"width_bucket needs a number, not {x.type}", span=x.span or at)
    parts = call("div", call("mul", call("sub", x, lo), n), call("sub", hi, lo))
    within = call("clip", call("add", call("floor", parts), first), first, n)  # of what is rounded up to hi, too
    below = call("lt", x, lo), literals.integer(0, at)
    return call("case", *below, call("ge", x, hi), after, Cast(within, INTEGER, at))


def log(binder: ExprBinder, node: exp.Log) -> Expr:
    args = checked(node, binder.source, "this", "expression")
    if "expression" not in args:  # log(x) is the decimal logarithm in DuckDB
        return binder.call("log10", (binder.bind(args["this"]),), binder.span(node))
    base, at = args["this"], binder.span(node)
    name = {"10": "log10", "2": "log2"}.get(base.name if isinstance(base, exp.Literal) else "")
    if name is None:
        raise reject("DP106", "log takes base 2 or 10", span=at, help=["use ln(x) / ln(base)"])
    return binder.call(name, (binder.bind(args["expression"]),), at)


def sha2(binder: ExprBinder, node: exp.SHA2) -> Expr:
    args = checked(node, binder.source, "this", "length")
    if "length" in args and args["length"].name != "256":
        raise refused(node, binder.source, binder.clause)
    return binder.call("sha256", (binder.bind(args["this"]),), binder.span(node))


def trim(binder: ExprBinder, node: exp.Trim) -> Expr:
    args = checked(node, binder.source, "this", "position", "expression")
    name = {"LEADING": "ltrim", "TRAILING": "rtrim"}.get(str(args.get("position") or "").upper(), "trim")
    what = [binder.bind(args["this"])] + ([binder.bind(args["expression"])] if "expression" in args else [])
    return binder.call(name, tuple(what), binder.span(node))


def pad(binder: ExprBinder, node: exp.Pad) -> Expr:
    args = checked(node, binder.source, "this", "expression", "fill_pattern", "is_left")
    name = "lpad" if args.get("is_left") else "rpad"
    fill = [binder.bind(args["fill_pattern"])] if "fill_pattern" in args else []
    return binder.call(name, (binder.bind(args["this"]), binder.bind(args["expression"]), *fill), binder.span(node))


def _type_name(to: exp.Expr) -> str:
    kind = to.this
    plain = isinstance(to, exp.DataType) and isinstance(kind, Enum) and not any([*to.args.values()][1:])
    written = _plain_name(kind) if plain else to.sql("duckdb")
    return {"TIMESTAMPNTZ": "TIMESTAMP"}.get(written.upper(), written)


@cache
def _plain_name(kind: Enum) -> str:
    """A type without parameters; printing it anew takes as long as binding a call."""
    return exp.DataType(this=kind).sql("duckdb")


SYNTAX: dict[type[exp.Expr], Callable[[ExprBinder, Any], Expr]] = {
    exp.Paren: paren,
    exp.Literal: literal,
    exp.Boolean: boolean,
    exp.Null: null,
    exp.Placeholder: placeholder,
    exp.Parameter: parameter,
    exp.CurrentDate: clock,
    exp.CurrentTimestamp: clock,
    exp.Localtimestamp: clock,
    exp.Interval: interval,
    exp.Neg: negative,
    exp.Cast: cast,
    exp.TryCast: cast,
    exp.Case: case,
    exp.If: if_,
    exp.Between: between,
    exp.In: in_,
    **several_values.COMPARISONS,
    exp.Is: is_,
    exp.Like: like,
    exp.ILike: like,
    exp.RegexpLike: matched,
    exp.RegexpILike: matched,
    exp.RegexpReplace: replaced,
    exp.Escape: escape,
    exp.Div: divide,
    exp.BitwiseNot: all_bits,
    exp.BitwiseLeftShift: bits_moved,
    exp.BitwiseRightShift: bits_moved,
    exp.ByteString: escaped,
    exp.RawString: raw,
    exp.Date: day,
    exp.Extract: lambda binder, node: lengths_of_time.years_of_age(binder, node) or binder.shaped(node),
    exp.TimeToStr: formatted,
    exp.ToChar: formatted,
    exp.StrToDate: parsed,
    exp.UnixToTime: of_epoch,
    exp.StrToTime: parsed,
    exp.Round: round_,
    exp.DateBin: bucket,
    exp.WidthBucket: width_bucket,
    exp.Log: log,
    exp.SHA2: sha2,
    exp.Trim: trim,
    exp.Pad: pad,
}
