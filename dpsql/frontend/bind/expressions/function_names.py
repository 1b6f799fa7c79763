"""sqlglot's function and operator classes → names of our registry, with the arguments each class may carry.

Default deny: a class that is not here, or an argument that is set and not named here, is refused by `bind`.
"""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from dpsql.frontend.aggregates.all_aggregates import AGGREGATES
from dpsql.frontend.aggregates.covariance import COVARIANCES


@dataclass(frozen=True, slots=True)
class Shape:
    """How a class is read: registry name, its arguments in our order (lists are spread), and harmless flags."""

    name: str
    args: tuple[str, ...] = ("this",)
    harmless: frozenset[str] = frozenset()


def _shape(name: str, *args: str, harmless: tuple[str, ...] = ()) -> Shape:
    return Shape(name, args or ("this",), frozenset(harmless))


_BINARY = ("this", "expression")

OF_LISTS = {"length": "list_length", "contains": "list_contains"}
"""Functions that mean another one of the registry where their first argument is a list."""

CALLS: dict[type[exp.Expr], Shape] = {
    # operators
    exp.Add: _shape("add", *_BINARY),
    exp.Sub: _shape("sub", *_BINARY),
    exp.Mul: _shape("mul", *_BINARY),
    exp.IntDiv: _shape("intdiv", *_BINARY),
    exp.Mod: _shape("mod", *_BINARY),
    exp.Neg: _shape("neg"),
    exp.BitwiseAnd: _shape("bits_and", *_BINARY),
    exp.BitwiseOr: _shape("bits_or", *_BINARY),
    exp.BitwiseXor: _shape("bits_xor", *_BINARY),
    exp.EQ: _shape("eq", *_BINARY),
    exp.NEQ: _shape("ne", *_BINARY),
    exp.LT: _shape("lt", *_BINARY),
    exp.LTE: _shape("le", *_BINARY),
    exp.GT: _shape("gt", *_BINARY),
    exp.GTE: _shape("ge", *_BINARY),
    exp.NullSafeEQ: _shape("is_not_distinct_from", *_BINARY),
    exp.NullSafeNEQ: _shape("is_distinct_from", *_BINARY),
    exp.And: _shape("and", *_BINARY),
    exp.Or: _shape("or", *_BINARY),
    exp.Not: _shape("not"),
    exp.DPipe: _shape("concat_op", *_BINARY, harmless=("safe",)),
    exp.SafeDivide: _shape("div", *_BINARY),
    # conditional
    exp.Coalesce: _shape("coalesce", "this", "expressions"),
    exp.Nullif: _shape("nullif", *_BINARY),
    exp.Greatest: _shape("greatest", "this", "expressions", harmless=("ignore_nulls",)),
    exp.Least: _shape("least", "this", "expressions", harmless=("ignore_nulls",)),
    # numbers
    exp.Abs: _shape("abs"),
    exp.Sign: _shape("sign"),
    exp.Floor: _shape("floor"),
    exp.Ceil: _shape("ceil"),
    exp.Round: _shape("round", "this", "decimals"),
    exp.Trunc: _shape("trunc"),
    exp.Sqrt: _shape("sqrt"),
    exp.Cbrt: _shape("cbrt"),
    exp.Ln: _shape("ln"),
    exp.Exp: _shape("exp"),
    exp.Pow: _shape("pow", *_BINARY),
    exp.IsNan: _shape("isnan"),
    exp.IsInf: _shape("isinf"),
    exp.Sin: _shape("sin"),
    exp.Cos: _shape("cos"),
    exp.Tan: _shape("tan"),
    exp.Asin: _shape("asin"),
    exp.Acos: _shape("acos"),
    exp.Atan: _shape("atan"),
    exp.Degrees: _shape("degrees"),
    exp.Radians: _shape("radians"),
    # strings
    exp.Lower: _shape("lower"),
    exp.Upper: _shape("upper"),
    exp.Length: _shape("length"),
    exp.BitLength: _shape("bit_length"),
    exp.MD5: _shape("md5"),
    exp.Left: _shape("left", *_BINARY),
    exp.Right: _shape("right", *_BINARY),
    exp.Substring: _shape("substring", "this", "start", "length"),
    exp.Concat: _shape("concat", "expressions", harmless=("safe", "coalesce")),
    exp.ConcatWs: _shape("concat_ws", "expressions", harmless=("safe", "coalesce")),
    exp.Replace: _shape("replace", "this", "expression", "replacement"),
    exp.Translate: _shape("translate", "this", "from_", "to"),
    exp.SplitPart: _shape("split_part", "this", "delimiter", "part_index"),
    exp.RegexpFullMatch: _shape("regexp_full_match", *_BINARY, "options"),
    exp.RegexpExtract: _shape("regexp_extract", *_BINARY, "group", "parameters", harmless=("null_if_pos_overflow",)),
    exp.StartsWith: _shape("starts_with", *_BINARY),
    exp.EndsWith: _shape("ends_with", *_BINARY),
    exp.Contains: _shape("contains", *_BINARY),
    exp.StrPosition: _shape("strpos", "this", "substr"),
    exp.Reverse: _shape("reverse"),
    exp.Ascii: _shape("ascii"),
    exp.Unicode: _shape("unicode"),
    # lists
    exp.ArraySize: _shape("list_length"),
    exp.ArrayContains: _shape("list_contains", *_BINARY),
    # dates
    exp.Year: _shape("year"),
    exp.Quarter: _shape("quarter"),
    exp.Month: _shape("month"),
    exp.Week: _shape("week"),
    exp.WeekOfYear: _shape("week"),
    exp.Day: _shape("day"),
    exp.DayOfMonth: _shape("day"),
    exp.DayOfWeek: _shape("dayofweek"),
    exp.DayOfWeekIso: _shape("isodow"),
    exp.DayOfYear: _shape("dayofyear"),
    exp.Hour: _shape("hour"),
    exp.Minute: _shape("minute"),
    exp.Second: _shape("second"),
    exp.LastDay: _shape("last_day"),
    exp.DateFromParts: _shape("make_date", "year", "month", "day"),
    exp.TimeToUnix: _shape("epoch"),
    exp.TimeToStr: _shape("strftime", "this", "format"),
    exp.Monthname: _shape("monthname"),
    exp.Dayname: _shape("dayname"),
    exp.DateTrunc: _shape("date_trunc", "unit", "this"),
    exp.TimestampTrunc: _shape("date_trunc", "unit", "this"),
    exp.Extract: _shape("date_part", "this", "expression"),
    # DuckDB's date_diff(part, start, end); sqlglot keeps the end in `this`.
    exp.DateDiff: _shape("date_diff", "unit", "expression", "this", harmless=("date_part_boundary",)),
    exp.DateAdd: _shape("add", "this", "expression"),
}

AGGREGATE_NODES: dict[type[exp.Expr], str] = {
    exp.Count: "count",
    exp.Sum: "sum",
    exp.Avg: "avg",
    exp.Min: "min",
    exp.Max: "max",
    exp.VariancePop: "var_pop",
    exp.Variance: "var_samp",
    exp.StddevPop: "stddev_pop",
    exp.StddevSamp: "stddev_samp",
    exp.Stddev: "stddev_samp",
    exp.CovarPop: "covar_pop",
    exp.CovarSamp: "covar_samp",
    exp.Corr: "corr",
    exp.RegrSlope: "regr_slope",
    exp.RegrIntercept: "regr_intercept",
    exp.RegrR2: "regr_r2",
    exp.RegrCount: "regr_count",
    exp.RegrAvgx: "regr_avgx",
    exp.RegrAvgy: "regr_avgy",
    exp.RegrSxx: "regr_sxx",
    exp.RegrSyy: "regr_syy",
    exp.RegrSxy: "regr_sxy",
    exp.Median: "quantile_cont",
    exp.PercentileCont: "quantile_cont",
    exp.PercentileDisc: "quantile_disc",
    exp.Quantile: "quantile_disc",
    exp.ApproxQuantile: "quantile_disc",
    exp.ApproxQuantiles: "quantile_disc",
    exp.Mode: "mode",
    exp.ArgMin: "arg_min",
    exp.ArgMax: "arg_max",
    exp.ApproxDistinct: "count",
    exp.LogicalOr: "max",
    exp.LogicalAnd: "min",
    exp.AnyValue: "min",
}
"""The parser's classes for aggregates that have one; all others are called by the names in the table of aggregates."""


def aggregate_name(node: exp.Expr) -> str | None:
    """What an aggregate is called in `dpsql.frontend.aggregates.all_aggregates`; None for anything else."""
    if isinstance(node, exp.Anonymous):
        name = str(node.this).lower()
        return name if name in AGGREGATES else "min" if name == "every" else None
    match node:
        case exp.IgnoreNulls(this=exp.AnyValue() as call):  # as the parser has it
            node = call
        case exp.WithinGroup(this=exp.PercentileCont() | exp.PercentileDisc() | exp.Mode() as call):
            node = call
        case exp.Bracket(this=exp.ApproxQuantiles() as call):
            node = call
        case exp.Bracket() if listed_shares(node) is not None:
            return aggregate_name(_call(node))
    return AGGREGATE_NODES.get(type(node))


def listed_shares(node: exp.Expr) -> exp.Array | None:
    """The list of p of a quantile, also of one that is indexed or filtered: QUANTILE_CONT(x, [0.25, 0.5])[1]."""
    call, p = _call(node), None
    if isinstance(call, exp.WithinGroup):
        p = call.this.args.get("this") if isinstance(call.this, (exp.PercentileCont, exp.PercentileDisc)) else None
    elif isinstance(call, exp.Anonymous):
        named = str(call.this).lower() in QUANTILES and len(call.expressions) == 2
        p = call.expressions[1] if named else None
    elif isinstance(call, (exp.PercentileCont, exp.PercentileDisc, exp.Quantile, exp.ApproxQuantile)):
        p = call.args.get("quantile") or call.args.get("expression")
    return p if isinstance(p, exp.Array) else None


def _call(node: exp.Expr) -> exp.Expr:
    """What is indexed or filtered."""
    if isinstance(node, exp.Bracket):
        node = node.this.unnest()
    found: exp.Expr = node.this if isinstance(node, exp.Filter) else node
    return found


QUANTILES = ("quantile_cont", "quantile_disc")
"""The aggregates that all spellings of quantiles are bound to (`aggregates/quantiles.py`)."""


PAIRS = frozenset(aggregate.name for aggregate in COVARIANCES)
"""The aggregates of two arguments."""

INTERVAL_ENDS = {"dp_interval_low": "low", "dp_interval_high": "high"}
"""Snowflake's functions for the ends of an aggregate's confidence interval."""

WINDOWED: dict[type[exp.Expr], tuple[str, tuple[str, ...]]] = {
    exp.RowNumber: ("row_number", ()),
    exp.Rank: ("rank", ()),
    exp.DenseRank: ("dense_rank", ()),
    exp.PercentRank: ("percent_rank", ()),
    exp.CumeDist: ("cume_dist", ()),
    exp.Ntile: ("ntile", ("this",)),
    exp.Lag: ("lag", ("this", "offset", "default")),
    exp.Lead: ("lead", ("this", "offset", "default")),
    exp.FirstValue: ("first_value", ("this",)),
    exp.First: ("first_value", ("this",)),
    exp.LastValue: ("last_value", ("this",)),
    exp.Last: ("last_value", ("this",)),
    exp.NthValue: ("nth_value", ("this", "offset")),
}
"""Functions that need a window: names, and arguments in our order."""

VOLATILE = frozenset(
    {
        "random",
        "rand",
        "setseed",
        "uuid",
        "gen_random_uuid",
        "uuidv4",
        "uuidv7",
        "now",
        "current_timestamp",
        "current_date",
        "current_time",
        "localtime",
        "localtimestamp",
        "today",
        "transaction_timestamp",
        "nextval",
        "currval",
        "txid_current",
        "getvariable",
        "current_setting",
        "version",
        "current_user",
        "current_schema",
        "current_database",
        "get_current_time",
        "get_current_timestamp",
    }
)
"""Names that give another value at every call or tell about the session."""
