"""Other dialects keep their meaning or are refused by name: queries are answered in DuckDB's.

Claim: a query that is accepted in another dialect gives what that dialect gives, where that one raises no error and the
    notes of the plan say nothing else.
Why: default deny. Only functions and operators listed here, which mean the same in DuckDB, are let through (`adapt`);
    a few are rewritten into DuckDB's spelling of the same thing; what depends on types is decided after binding
    (`check_types`). NULL ordering, quoting, string escapes and precedence are settled by sqlglot's reading.
When it would be false: a function in `_SAME` that differs for some value. Text is always compared as it is stored:
    `notes` says so for the dialects whose servers usually do not.
Tested by: tests/frontend/test_dialects.py
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping

from sqlglot import exp

from dpsql.core.ir.expressions import Call, Cast, Expr, Literal
from dpsql.core.ir.expressions import walk as walk_expr
from dpsql.core.ir.nodes import Aggregate, Node
from dpsql.core.ir.types import Kind
from dpsql.core.ir.walk import expressions, walk
from dpsql.diagnostics.diagnostic import Source
from dpsql.diagnostics.errors import Rejected, reject
from dpsql.diagnostics.note import Note, Rank
from dpsql.frontend.bind.expressions.function_names import INTERVAL_ENDS, QUANTILES, VOLATILE, listed_shares
from dpsql.frontend.bind.expressions.several_values import THREE_VALUED, list_behind
from dpsql.frontend.dialect_texts import substring, trimmed
from dpsql.frontend.text.spans import span_of

DIALECTS = ("duckdb", "postgres", "bigquery", "snowflake", "spark", "mysql", "tsql")
"""What can be read. The first is the language of answers."""

_SAME: tuple[type[exp.Expr], ...] = (
    exp.And, exp.Or, exp.Case, exp.If, exp.Coalesce, exp.Nullif, exp.Cast, exp.TryCast,
    exp.Count, exp.ApproxDistinct, exp.CountIf,
    exp.LogicalOr, exp.LogicalAnd, exp.AnyValue, exp.Sum, exp.Avg, exp.Min, exp.Max,
    exp.Variance, exp.VariancePop, exp.Stddev, exp.StddevSamp, exp.StddevPop,
    exp.Median, exp.PercentileCont, exp.PercentileDisc, exp.Mode,
    exp.Abs, exp.Sign, exp.Floor, exp.Ceil, exp.Round, exp.Sqrt, exp.Exp, exp.Ln, exp.Pow, exp.IntDiv,
    exp.Lower, exp.Upper, exp.StartsWith, exp.Year, exp.Quarter, exp.Month, exp.Day, exp.DayOfMonth, exp.Hour,
    exp.Minute, exp.Date, exp.DateFromParts, exp.SafeDivide, exp.RowNumber,
    exp.Rank, exp.DenseRank, exp.PercentRank, exp.CumeDist, exp.Ntile,
    exp.Lag, exp.Lead, exp.FirstValue, exp.LastValue, exp.Exists,
)  # fmt: skip
"""Functions that give the same value in every dialect above, for every value for which they give one."""
_SAME_IN: Mapping[str, tuple[type[exp.Expr], ...]] = {
    "postgres": (
        exp.SplitPart, exp.Replace, exp.ConcatWs, exp.Translate, exp.MD5, exp.Ascii, exp.Trunc, exp.Log, exp.Cbrt,
        exp.Sin, exp.Cos, exp.Tan, exp.Asin, exp.Acos, exp.Atan, exp.Degrees, exp.Radians, exp.WidthBucket,
    ),
    "spark": (exp.SplitPart,),
}  # fmt: skip
"""Functions that give the same value in one of them."""
_SAME_NAMES = {"postgres": frozenset({"make_date", "every", "timezone"})}
"""Functions that sqlglot has no class for, of the same value in one of them."""
_OWN_NAMES = frozenset({"clip", *INTERVAL_ENDS, *QUANTILES})
"""dpsql's own functions, in every dialect."""
_OF_QUANTILES = (exp.PercentileCont, exp.PercentileDisc, exp.Quantile, exp.ApproxQuantile)
"""What may hold a list of p."""
_PARTS = frozenset({"year", "quarter", "month", "day", "hour", "minute"})
_PARTS_IN = {"postgres": frozenset({"dow", "isodow", "doy", "week", "isoyear", "epoch"})}
"""Of the same number in one of them: days from Sunday, 0, and from Monday, 1, and ISO's weeks and their years."""
_WEEKS_FROM_MONDAY = frozenset({"postgres", "spark"})
_TRUNCATED = _PARTS | {"second"}
_BOUNDARIES = frozenset({"year", "quarter", "month", "day"})
_STEPS = frozenset({"year", "quarter", "month", "week", "day", "hour", "minute", "second"})
_TYPES = frozenset(
    {"TINYINT", "SMALLINT", "INT", "BIGINT", "DOUBLE", "DECIMAL", "DATE", "TIMESTAMP", "VARCHAR", "TEXT"}
)

_IGNORES_CASE = frozenset({"mysql", "tsql"})
_NULL_JOINS = frozenset({"bigquery", "snowflake", "spark", "mysql"})
"""Where CONCAT with a NULL is NULL."""
_SKIPS_NULL = frozenset({"postgres", "spark", "tsql"})
"""Where GREATEST and LEAST leave NULL out, as in DuckDB."""
_TRUNCATES = frozenset({"spark", "tsql"})
_READ_OTHERWISE = re.compile(r"\\[bBwWsSzA]|\[:|\(\?(?!:)|\{\d*,?(25[6-9]|2[6-9]\d|[3-9]\d\d|\d{4,})")
"""In a pattern of PostgreSQL's what means something else there, or is nothing."""
"""Where a number cast to an integer is cut, not rounded."""
_HALF_EVEN = frozenset({"postgres"})
"""Where a DOUBLE cast to an integer is rounded half to even, as in DuckDB."""
_THREE_VALUED_ROWS = frozenset({"postgres", "snowflake", "mysql"})
"""Where a comparison of rows with a NULL in them may be NULL."""
_DAYS_APART = frozenset({"postgres", "snowflake"})
"""Where date - date is a number of days, as in DuckDB."""


def notes(dialect: str) -> Iterator[Note]:
    """What the reader of an answer should know about the dialect."""
    if dialect in _IGNORES_CASE:
        stored = "text is compared as it is stored: 'a' is not 'A', and spaces count"
        yield Note(f"{stored}, unlike in many {dialect} databases", Rank.SOURCE)


def adapt(tree: exp.Query, dialect: str, source: Source) -> exp.Query:
    """The tree in DuckDB's spelling. Raises Rejected DP119 for what may mean something else in the dialect."""
    if dialect == "duckdb":
        return tree
    adapter = _Adapter(dialect, source)
    for node in [*tree.walk()][::-1]:  # innermost first; replaced nodes are not visited again
        found = adapter.adapted(node)
        if found is not node:
            node.replace(found)
    return tree


class _Adapter:
    """Decides node by node; a handler returns the node to use in its place."""

    def __init__(self, dialect: str, source: Source) -> None:
        self.dialect, self.source = dialect, source
        self.same = _SAME + _SAME_IN.get(dialect, ())

    def refuse(self, node: exp.Expr, repair: str = "write the query in DuckDB's dialect", what: str = "") -> Rejected:
        span = span_of(node, self.source.text)
        written = re.match(r"(\w+)\s*\(", self.source.text[span.start : span.end])
        name = written[1] if written else node.sql_name() if isinstance(node, exp.Func) else type(node).__name__
        return reject(
            "DP119", f"{what or name.upper()} may mean something else in {self.dialect} than in DuckDB",
            span=span, help=[repair],
        )  # fmt: skip

    def adapted(self, node: exp.Expr) -> exp.Expr:
        handler = _HANDLERS.get(type(node))
        if handler is not None:
            return handler(self, node)
        if isinstance(node, exp.ExplodingGenerateSeries) and isinstance(node.parent, exp.Table):
            return node
        if list_behind(node) is not None or (isinstance(node, exp.Unnest) and isinstance(node.parent, exp.In)):
            return node
        if isinstance(node, exp.Anonymous):
            if _is_age(node) and isinstance(node.parent, exp.Extract):
                return node
            if str(node.this).lower() not in _OWN_NAMES | _SAME_NAMES.get(self.dialect, frozenset()):
                raise self.refuse(node, what=str(node.this).upper())
        elif isinstance(node, exp.Func) and node.sql_name().lower() in VOLATILE:
            return node  # refused by name when it is bound
        elif isinstance(node, exp.Bracket) and (
            isinstance(node.this, exp.ApproxQuantiles)
            or (self.dialect == "postgres" and listed_shares(node) is not None)
        ):
            return node
        elif isinstance(node, (exp.Bracket, exp.Xor)) or (
            isinstance(node, exp.Func) and not isinstance(node, self.same)
        ):
            raise self.refuse(node)
        return node

    # --- handlers --------------------------------------------------------------------------------------------------

    def unwrapped(self, node: exp.Expr) -> exp.Expr:
        """YEAR(x) and others take dates as text as well; of a date or timestamp it is itself, and text is refused."""
        parents = (exp.Year, exp.Quarter, exp.Month, exp.Day, exp.DayOfMonth, exp.DateDiff)
        inner = node.this
        if isinstance(node, exp.TsOrDsToDate) and not isinstance(node.parent, parents) and not node.args.get("format"):
            return _placed_as(exp.Date(this=inner.copy()), node)  # MySQL's DATE(x), Spark's TO_DATE(x)
        if not isinstance(node.parent, parents) or not isinstance(inner, exp.Expr):  # DATEDIFF(a, b) of T-SQL has none
            raise self.refuse(node, "use DATE or TIMESTAMP columns and literals")
        return inner.copy()

    def concat(self, node: exp.Expr) -> exp.Expr:
        if self.dialect not in _NULL_JOINS:
            return node
        first, *rest = node.expressions
        found = first.copy()
        for part in rest:
            found = exp.DPipe(this=found, expression=part.copy())
        return exp.Paren(this=found)

    def extreme(self, node: exp.Expr) -> exp.Expr:
        if self.dialect not in _SKIPS_NULL:
            raise self.refuse(node, "it is NULL there if one argument is: use CASE")
        return node

    def like(self, node: exp.Expr) -> exp.Expr:
        if self.dialect in _IGNORES_CASE:
            raise self.refuse(node, "letter case counts in the data: compare LOWER(x) by = or IN", what="LIKE")
        pattern = node.args.get("expression")
        if not isinstance(node.parent, exp.Escape) and isinstance(pattern, exp.Literal) and "\\" in pattern.name:
            raise self.refuse(node, "name the escape character:  LIKE '…' ESCAPE '!'", what="a backslash in LIKE")
        return node

    def matched(self, node: exp.Expr) -> exp.Expr:
        """BigQuery's syntax is the same; of PostgreSQL's what is also read here, with a . for any sign."""
        pattern, flag = node.expression, node.args.get("flag")
        if self.dialect not in ("postgres", "bigquery") or flag is not None:
            raise self.refuse(node, "use LIKE", what="matching by a regular expression")
        if self.dialect == "postgres":
            if not isinstance(pattern, exp.Literal):  # a value that comes later may be read otherwise, too
                raise self.refuse(node, "write the pattern itself:  x ~ '^a.*b$'", what="a pattern that is no literal")
            if (odd := _READ_OTHERWISE.search(pattern.name)) is not None:
                raise self.refuse(node, "write the characters out:  [A-Za-z0-9_]", what=f"{odd[0]} in a pattern")
        text = exp.Literal.string(pattern.name) if isinstance(pattern, exp.RawString) else pattern.copy()
        options = "s" * (self.dialect == "postgres") + "i" * isinstance(node, exp.RegexpILike)
        flag = exp.Literal.string(options) if options else None
        return exp.RegexpLike(this=node.this.copy(), expression=text, flag=flag)

    def coalesce(self, node: exp.Expr) -> exp.Expr:
        if node.args.get("is_null"):
            raise self.refuse(node, "use COALESCE", what="ISNULL")
        return node

    def length(self, node: exp.Expr) -> exp.Expr:
        if self.dialect == "tsql" or (self.dialect == "mysql" and node.args.get("binary")):
            raise self.refuse(node, "use CHAR_LENGTH in MySQL")
        return _without(node, "binary")  # of a text Snowflake counts characters

    def position(self, node: exp.Expr) -> exp.Expr:
        if self.dialect in _IGNORES_CASE:
            raise self.refuse(node)
        return _without(node, "clamp_position")

    def substring(self, node: exp.Expr) -> exp.Expr:
        found = substring(node, self.dialect)
        if found is None:
            raise self.refuse(node, "start at a literal position from 1 on", what="SUBSTRING")
        return _placed_as(_without(found, "zero_start"), node)

    def trim(self, node: exp.Expr) -> exp.Expr:
        if not trimmed(node, self.dialect):
            one = "TRIM(x, ' ')" if self.dialect == "bigquery" else "TRIM(BOTH ' ' FROM x)"
            raise self.refuse(node, f"name one character to take away:  {one}", what="TRIM")
        return node

    def bits(self, node: exp.Expr) -> exp.Expr:
        """Those of 64 with a sign mean the same; MySQL's have no sign, and shifts differ in what falls out."""
        if isinstance(node, (exp.BitwiseLeftShift, exp.BitwiseRightShift)):
            both = isinstance(node.this, exp.Literal) and _at_least(node.expression, 0)
            if self.dialect != "postgres" or (isinstance(node, exp.BitwiseLeftShift) and not both):
                raise self.refuse(node, "write  x * 8  or  FLOOR(x / 8)", what="a shift of bits")
        elif self.dialect == "mysql":
            masked = isinstance(node, exp.BitwiseAnd) and (_at_least(node.this, 0) or _at_least(node.expression, 0))
            if not masked:
                raise self.refuse(node, "of bits, write  x & 4", what="an operator on bits")
        mixed = (n for n in (node.this, node.args.get("expression")) if isinstance(n, exp.Binary) and n.key != node.key)
        if self.dialect not in ("postgres", "snowflake") and any(not isinstance(n, exp.Func) for n in mixed):
            raise self.refuse(node, "set brackets:  (a & b) | c", what="the order of these operators")
        return node

    def side(self, node: exp.Expr) -> exp.Expr:
        if not _at_least(node.args.get("expression"), 0):
            raise self.refuse(node, "take a literal number of characters")
        return _without(node, "negative_length_returns_empty")

    def extract(self, node: exp.Expr) -> exp.Expr:
        if self.dialect == "postgres" and _is_age(node.args["expression"]):
            return node
        known = _PARTS | _PARTS_IN.get(self.dialect, frozenset())
        if node.name.lower() not in known:
            raise self.refuse(node, f"use one of {', '.join(sorted(known))}", what=f"EXTRACT of {node.name}")
        return node

    def truncated(self, node: exp.Expr) -> exp.Expr:
        unit = node.args.get("unit")
        name = "" if unit is None or isinstance(unit, exp.WeekStart) else unit.name.lower()
        weekly = name == "week" and self.dialect in _WEEKS_FROM_MONDAY
        if (name not in _TRUNCATED and not weekly) or node.args.get("zone") is not None:
            raise self.refuse(node, f"use one of {', '.join(sorted(_TRUNCATED))}", what="DATE_TRUNC of this unit")
        node.set("unit", exp.Literal.string(name))
        return _without(node, "input_type_preserved")

    def apart(self, node: exp.Expr) -> exp.Expr:
        unit = node.args.get("unit")
        name = "day" if unit is None else unit.name.lower()
        counts_boundaries = self.dialect in ("bigquery", "snowflake", "tsql") or unit is None
        if name not in _BOUNDARIES or not counts_boundaries:
            raise self.refuse(node, "count days", what="DATEDIFF in this unit")
        node.set("unit", exp.Var(this=name.upper()))
        return _without(node, "big_int")

    def shifted(self, node: exp.Expr) -> exp.Expr:
        """DATE_ADD(d, INTERVAL 1 DAY), DATEADD(day, 1, d): d ± INTERVAL."""
        unit, amount = node.args.get("unit"), node.args.get("expression")
        if unit is None:
            return node  # an interval already
        if unit.name.lower() not in _STEPS or not isinstance(amount, exp.Literal) or not amount.name.isdigit():
            raise self.refuse(node, "add a whole literal number of units:  d + INTERVAL 3 DAY")
        step = exp.Interval(this=exp.Literal.string(amount.name), unit=exp.Var(this=unit.name.upper()))
        kind = exp.Sub if isinstance(node, exp.DateSub) else exp.Add
        found = kind(this=node.this.copy(), expression=step)
        return _placed_as(found, node)

    def quantile(self, node: exp.Expr) -> exp.Expr:
        """Spark's PERCENTILE and Snowflake's APPROX_PERCENTILE lie between values; Spark's PERCENTILE_APPROX is one."""
        between = not isinstance(node, exp.ApproxQuantile)
        if self.dialect != "spark" and (between or self.dialect != "snowflake"):
            raise self.refuse(node, "write  QUANTILE_CONT(x, 0.5)")
        if not between and self.dialect == "spark":
            return _without(node, "accuracy")
        found = exp.PercentileCont(this=node.this.copy(), expression=node.args["quantile"].copy())
        return _placed_as(found, node)

    def parts(self, node: exp.Expr) -> exp.Expr:
        if self.dialect != "bigquery":
            raise self.refuse(node, "write  QUANTILE_DISC(x, 0.5)")
        return node

    def listed(self, node: exp.Expr) -> exp.Expr:
        if _is_compared_with(node):
            return node
        own = isinstance(node.parent, exp.Anonymous) and str(node.parent.this).lower() in QUANTILES
        if not own and not isinstance(node.parent, _OF_QUANTILES):
            raise self.refuse(node)
        return node

    def rows(self, node: exp.Expr) -> exp.Expr:
        """(a, b) = (1, 2): where a NULL in one of them is compared as SQL says."""
        if self.dialect in _THREE_VALUED_ROWS:
            node.meta[THREE_VALUED] = True
        return node

    def by_format(self, node: exp.Expr) -> exp.Expr:
        """TO_CHAR, TO_DATE and TO_TIMESTAMP with PostgreSQL's formats."""
        if self.dialect != "postgres":
            raise self.refuse(node)
        return node

    def cast(self, node: exp.Expr) -> exp.Expr:
        to = node.args["to"]
        if isinstance(to, exp.DataType) and to.this is exp.DataType.Type.ARRAY and _is_compared_with(node):
            (to,) = to.expressions or [to]  # what its items are
        if self.dialect == "tsql" and isinstance(to, exp.DataType) and to.this is exp.DataType.Type.FLOAT:
            to.set("this", exp.DataType.Type.DOUBLE)  # SQL Server's FLOAT has 53 bits
        name, sizes = to.this.name if isinstance(to, exp.DataType) else "", len(to.expressions)
        if name == "TIMESTAMPTZ" and self.dialect == "postgres" and not sizes:
            return node
        if name not in _TYPES or (name == "DECIMAL") != (sizes == 2) or (name != "DECIMAL" and sizes):
            repair = "use an integer type, DOUBLE, DECIMAL(p, s), DATE or TIMESTAMP"
            raise self.refuse(node, repair, what=f"CAST to {name or 'this type'}")
        return node


_HANDLERS: Mapping[type[exp.Expr], Callable[[_Adapter, exp.Expr], exp.Expr]] = {
    exp.TsOrDsToDate: _Adapter.unwrapped,
    exp.TimeStrToTime: _Adapter.unwrapped,
    exp.Concat: _Adapter.concat,
    exp.Greatest: _Adapter.extreme,
    exp.Least: _Adapter.extreme,
    exp.Like: _Adapter.like,
    exp.ILike: _Adapter.like,
    exp.RegexpLike: _Adapter.matched,
    exp.RegexpILike: _Adapter.matched,
    exp.Coalesce: _Adapter.coalesce,
    exp.Length: _Adapter.length,
    exp.StrPosition: _Adapter.position,
    exp.Substring: _Adapter.substring,
    exp.Trim: _Adapter.trim,
    **dict.fromkeys(
        (exp.BitwiseAnd, exp.BitwiseOr, exp.BitwiseXor, exp.BitwiseNot, exp.BitwiseLeftShift, exp.BitwiseRightShift),
        _Adapter.bits,
    ),
    exp.Left: _Adapter.side,
    exp.Right: _Adapter.side,
    exp.Extract: _Adapter.extract,
    **dict.fromkeys((exp.TimeToStr, exp.ToChar, exp.StrToDate, exp.StrToTime), _Adapter.by_format),
    exp.DateTrunc: _Adapter.truncated,
    exp.TimestampTrunc: _Adapter.truncated,
    exp.DateDiff: _Adapter.apart,
    exp.DateAdd: _Adapter.shifted,
    exp.DateSub: _Adapter.shifted,
    exp.Quantile: _Adapter.quantile,
    exp.ApproxQuantile: _Adapter.quantile,
    exp.ApproxQuantiles: _Adapter.parts,
    exp.Array: _Adapter.listed,
    **dict.fromkeys((exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.In), _Adapter.rows),
    exp.Cast: _Adapter.cast,
    exp.TryCast: _Adapter.cast,
}


def _is_compared_with(node: exp.Expr) -> bool:
    """Whether a value is compared with any or all of what a list holds, or is the list of a cast in that place."""
    above = node.parent
    while isinstance(above, (exp.Paren, exp.Cast)):
        above = above.parent
    return list_behind(above) is not None or (isinstance(above, exp.Unnest) and isinstance(above.parent, exp.In))


def _is_age(node: object) -> bool:
    return isinstance(node, exp.Anonymous) and str(node.this).lower() == "age"


def _placed_as(found: exp.Expr, node: exp.Expr) -> exp.Expr:
    """The node with the place in the text of the one that it stands for."""
    if found is not node:
        found.meta.update({k: v for k, v in node.meta.items() if k in ("start", "end", "line", "col")})
    return found


def _without(node: exp.Expr, *flags: str) -> exp.Expr:
    """The node without arguments that say nothing of the values that are let through."""
    for flag in flags:
        node.set(flag, None)
    return node


def _at_least(node: exp.Expr | None, least: int) -> bool:
    digits = node.name if isinstance(node, exp.Literal) else ""
    return digits.isdigit() and (len(digits) > 9 or int(digits) >= least)


# --- after binding -------------------------------------------------------------------------------------------------


def check_types(root: Node, dialect: str) -> None:
    """Refuse (DP119) what means something else in the dialect because of its types."""
    if dialect == "duckdb":
        return
    for node in walk(root):
        if isinstance(node, Aggregate) and dialect == "tsql":
            for call in node.calls:
                if call.function == "avg" and call.arg is not None and call.arg.type.kind is Kind.INTEGER:
                    raise _typed("AVG of integers", dialect, call.arg, "AVG(CAST(x AS FLOAT)) keeps the fraction")
        for expr in expressions(node):
            for part in walk_expr(expr):
                _check(part, dialect)


def _check(expr: Expr, dialect: str) -> None:
    match expr:
        case Call(function="sub", args=(a, b)) if a.type.kind is b.type.kind is Kind.DATE:
            if dialect not in _DAYS_APART:
                raise _typed("a difference of dates", dialect, expr, "write the query in DuckDB's dialect")
        case Call(function="add" | "sub", args=(a, b)) if dialect == "mysql" and _is_day_and_number(a, b):
            raise _typed("a date with a number", dialect, expr, "write  d + INTERVAL 1 DAY")
        case Call(function="round", args=(x, *_)) if x.type.kind is Kind.DOUBLE and dialect in ("postgres", "mysql"):
            raise _typed("ROUND of a DOUBLE", dialect, expr, "cast it first:  ROUND(CAST(x AS DECIMAL(18, 6)))")
        case Call(function="pow", args=(x, y)) if x.type.kind is not Kind.DOUBLE and dialect == "tsql":
            squared = isinstance(y, Literal) and isinstance(y.value, int) and y.value >= 0
            if x.type.kind is not Kind.INTEGER or not squared:
                repair = "cast it first:  POWER(CAST(x AS FLOAT), y)"
                raise _typed("POWER, which has the type of its base", dialect, expr, repair)
        case Cast(arg=Call(function="floor" | "ceil" | "trunc" | "round", args=(_,)), type=to) if (
            to.kind is Kind.INTEGER
        ):
            pass  # whole already
        case Cast(arg=arg, type=to):
            _check_cast(expr, arg.type.kind, to.kind, dialect)


def _is_day_and_number(a: Expr, b: Expr) -> bool:
    """Which MySQL adds as numbers: 2024-02-29 is 20240229."""
    kinds = {a.type.kind, b.type.kind}
    return len(kinds) == 2 and bool(kinds & {Kind.DATE, Kind.TIMESTAMP}) and bool(kinds & {Kind.INTEGER, Kind.DECIMAL})


def _check_cast(expr: Expr, source: Kind, to: Kind, dialect: str) -> None:
    cut = source in (Kind.DOUBLE, Kind.DECIMAL) and dialect in _TRUNCATES
    rounded = source is Kind.DOUBLE and dialect not in _HALF_EVEN
    if to is Kind.INTEGER and (cut or rounded):
        raise _typed(f"{source.name} cast to an integer", dialect, expr, "say how to round:  CAST(FLOOR(x) AS INTEGER)")
    if to is Kind.VARCHAR and source not in (Kind.VARCHAR, Kind.INTEGER, Kind.DATE):
        raise _typed(f"{source.name} cast to text", dialect, expr, "write the query in DuckDB's dialect")
    if source is Kind.VARCHAR and to is not Kind.VARCHAR:
        raise _typed("text cast to another type", dialect, expr, "write the query in DuckDB's dialect")


def _typed(what: str, dialect: str, expr: Expr, repair: str) -> Rejected:
    return reject("DP119", f"{what} may mean something else in {dialect} than in DuckDB", span=expr.span, help=[repair])
