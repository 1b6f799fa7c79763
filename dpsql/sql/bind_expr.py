"""Scalar expressions: sqlglot's tree → our four node types. Default deny, for node classes and for their arguments."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from sqlglot import exp

from dpsql.analysis.values import call as value_of_call
from dpsql.analysis.values import evaluate
from dpsql.diagnostics.diagnostic import Source, Span
from dpsql.diagnostics.errors import Rejected, reject
from dpsql.functions.registry import REGISTRY, lookup
from dpsql.functions.value import Value, type_range
from dpsql.plan.expr import Call, Cast, Column, Expr, Literal
from dpsql.sql import literals
from dpsql.sql.calls import CALLS, VOLATILE
from dpsql.sql.scope import Entry, find
from dpsql.sql.spans import span_of
from dpsql.types import BOOLEAN, NULL, VARCHAR, Kind, SqlType, parse_type

_COMPARISONS = frozenset({"eq", "ne", "lt", "le", "gt", "ge", "is_distinct_from", "is_not_distinct_from", "in"})
_UNIFYING = _COMPARISONS | {"case", "coalesce", "nullif", "greatest", "least"}

AggregateHandler = Callable[[exp.Expr, "ExprBinder"], Expr]


@dataclass(slots=True)
class Numbering:
    """Gives columns their plan-wide numbers."""

    counter: count[int] = field(default_factory=lambda: count(1))

    def column(self, name: str, type_: SqlType, span: Span | None = None) -> Column:
        """A new column."""
        return Column(next(self.counter), name, type_, span)


@dataclass(slots=True)
class Parameters:
    """Values for `?`, `$1` and `$name`; remembers which were used."""

    values: Sequence[Any] | Mapping[str, Any]
    used: set[str] = field(default_factory=set)
    position: int = 0

    def take(self, name: str | None, span: Span) -> Literal:
        """The literal for a placeholder. Raises Rejected DP013 if there is none."""
        if name is None:
            self.position += 1
            name = str(self.position)
        if isinstance(self.values, Mapping):
            if name not in self.values:
                raise reject("DP013", f"no value was given for parameter ${name}", span=span)
            value = self.values[name]
        else:
            if not name.isdigit() or not 1 <= int(name) <= len(self.values):
                raise reject("DP013", f"no value was given for parameter ${name}", span=span)
            value = self.values[int(name) - 1]
        self.used.add(name)
        return literals.from_python(value, span)

    def unused(self) -> list[str]:
        """Names (or positions) of values that no placeholder asked for."""
        names = list(self.values) if isinstance(self.values, Mapping) else [str(i + 1) for i in range(len(self.values))]
        return [n for n in names if n not in self.used]


def checked(node: exp.Expr, source: Source, *allowed: str) -> dict[str, Any]:
    """The arguments of a syntax node that are set; refuses (DP101) any that is not in `allowed`."""
    given = {k: v for k, v in node.args.items() if v not in (None, False, [], "")}
    surplus = sorted(set(given) - set(allowed))
    if surplus:
        what = ", ".join(name.rstrip("_").upper().replace("_", " ") for name in surplus)
        culprit = given[surplus[0]]
        culprit = culprit[0] if isinstance(culprit, list) else culprit
        at = culprit if isinstance(culprit, exp.Expr) else node
        raise reject(
            "DP101", f"{what} is outside the accepted SQL", span=span_of(at, source.text), label="not supported here"
        )
    return given


@dataclass(slots=True)
class ExprBinder:
    """Binds expressions of one clause: which columns are visible, and whether aggregates may stand here."""

    source: Source
    entries: tuple[Entry, ...]
    numbering: Numbering
    parameters: Parameters
    clause: str
    aggregate: AggregateHandler | None = None
    aliases: Mapping[str, Expr] = field(default_factory=dict)

    def span(self, node: exp.Expr) -> Span:
        """Where a node stands in the text."""
        return span_of(node, self.source.text)

    def bind(self, node: exp.Expr) -> Expr:
        """The bound expression, its types checked. Raises Rejected."""
        match node:
            case exp.Paren():
                return self.bind(checked(node, self.source, "this")["this"])
            case exp.Column():
                return self._column(node)
            case exp.Literal():
                text, at = str(node.this), self.span(node)
                return Literal(text, VARCHAR, at) if node.args.get("is_string") else literals.number(text, at)
            case exp.Boolean():
                return Literal(bool(node.this), BOOLEAN, self.span(node))
            case exp.Null():
                return Literal(None, NULL, self.span(node))
            case exp.Placeholder():
                name = checked(node, self.source, "this").get("this")
                return self.parameters.take(None if name is None else str(name), self.span(node))
            case exp.Parameter():
                return self.parameters.take(checked(node, self.source, "this")["this"].name, self.span(node))
            case exp.Interval():
                checked(node, self.source, "this", "unit")
                return literals.interval(node, self.span(node))
            case exp.Neg():
                return self._negative(node)
            case exp.Cast() | exp.TryCast():
                return self._cast(node)
            case exp.Case():
                return self._case(node)
            case exp.If():
                return self._if(node)
            case exp.Between():
                return self._between(node)
            case exp.In():
                return self._in(node)
            case exp.Is():
                return self._is(node)
            case exp.Like() | exp.ILike():
                return self._like(node)
            case exp.Log():
                return self._log(node)
            case exp.Trim():
                return self._trim(node)
            case exp.Pad():
                return self._pad(node)
            case exp.Filter() | exp.Count() | exp.Sum() | exp.Avg() | exp.Min() | exp.Max() | exp.CountIf():
                return self._aggregate(node)
            case exp.Anonymous():
                return self._named(node)
        if type(node) in CALLS:
            return self._shaped(node)
        raise self._refuse(node)

    # --- leaves ----------------------------------------------------------------------------------------------------

    def _column(self, node: exp.Column) -> Expr:
        args = checked(node, self.source, "this", "table")
        if isinstance(node.this, exp.Star):
            raise reject("DP101", "* is not an expression here", span=self.span(node), help=["name the columns"])
        relation = args["table"].name if "table" in args else None
        name = node.this.name
        if relation is None and name.lower() in self.aliases:
            return self.aliases[name.lower()]
        if (
            relation is None
            and name.lower() in VOLATILE
            and not any(e.name.lower() == name.lower() for e in self.entries)
        ):
            raise self._volatile(name, node)
        return find(self.entries, name, relation, self.span(node))

    # --- syntax ----------------------------------------------------------------------------------------------------

    def _negative(self, node: exp.Neg) -> Expr:
        inner = self.bind(checked(node, self.source, "this")["this"])
        if isinstance(inner, Literal):
            folded = literals.negated(inner, self.span(node))
            if folded is not None:
                return folded
        return self.call("neg", (inner,), self.span(node))

    def _cast(self, node: exp.Cast | exp.TryCast) -> Expr:
        args = checked(node, self.source, "this", "to", "safe")
        to = args["to"]
        target = parse_type(_type_name(to))
        if target is None or target.kind in (Kind.LIST, Kind.NULL, Kind.BLOB, Kind.INTERVAL):
            raise reject("DP106", f"CAST to {to.sql('duckdb')} is not supported", span=self.span(node))
        inner = self.bind(args["this"])
        if isinstance(inner, Literal) and isinstance(inner.value, str) and target.kind in (Kind.DATE, Kind.TIMESTAMP):
            found = literals.from_text(inner.value, target, self.span(node))
            if found is None:
                raise reject("DP106", f"{inner.value!r} is not a {target}", span=self.span(node))
            return found
        cast = Cast(inner, target, self.span(node))
        self.value(cast)
        return cast

    def _case(self, node: exp.Case) -> Expr:
        args = checked(node, self.source, "this", "ifs", "default")
        subject = self.bind(args["this"]) if "this" in args else None
        parts: list[Expr] = []
        for branch in args["ifs"]:
            inner = checked(branch, self.source, "this", "true")
            condition = self.bind(inner["this"])
            if subject is not None:
                condition = self.call("eq", (subject, condition), self.span(branch))
            parts += [condition, self.bind(inner["true"])]
        parts.append(self.bind(args["default"]) if "default" in args else Literal(None, NULL, self.span(node)))
        return self.call("case", tuple(parts), self.span(node))

    def _if(self, node: exp.If) -> Expr:
        args = checked(node, self.source, "this", "true", "false")
        other = self.bind(args["false"]) if "false" in args else Literal(None, NULL, self.span(node))
        return self.call("case", (self.bind(args["this"]), self.bind(args["true"]), other), self.span(node))

    def _between(self, node: exp.Between) -> Expr:
        args = checked(node, self.source, "this", "low", "high")
        at, subject = self.span(node), self.bind(args["this"])
        low = self.call("ge", (subject, self.bind(args["low"])), at)
        high = self.call("le", (subject, self.bind(args["high"])), at)
        return self.call("and", (low, high), at)

    def _in(self, node: exp.In) -> Expr:
        args = checked(node, self.source, "this", "expressions", "query")
        if "query" in args:
            raise self._subquery(args["query"])
        subject = self.bind(args["this"])
        return self.call("in", (subject, *(self.bind(e) for e in args["expressions"])), self.span(node))

    def _is(self, node: exp.Is) -> Expr:
        args = checked(node, self.source, "this", "expression", "negate")
        at, subject, what = self.span(node), self.bind(args["this"]), args["expression"]
        if isinstance(what, exp.Null):
            found = self.call("is_null", (subject,), at)
        elif isinstance(what, exp.Boolean):
            found = self.call("is_not_distinct_from", (subject, Literal(bool(what.this), BOOLEAN, at)), at)
        else:
            raise self._refuse(node)
        return self.call("not", (found,), at) if args.get("negate") else found

    def _like(self, node: exp.Like | exp.ILike) -> Expr:
        args = checked(node, self.source, "this", "expression", "negate")
        name = "like" if isinstance(node, exp.Like) else "ilike"
        found = self.call(name, (self.bind(args["this"]), self.bind(args["expression"])), self.span(node))
        return self.call("not", (found,), self.span(node)) if args.get("negate") else found

    def _log(self, node: exp.Log) -> Expr:
        args = checked(node, self.source, "this", "expression")
        if "expression" not in args:  # log(x) is the decimal logarithm in DuckDB
            return self.call("log10", (self.bind(args["this"]),), self.span(node))
        base, at = args["this"], self.span(node)
        name = {"10": "log10", "2": "log2"}.get(base.name if isinstance(base, exp.Literal) else "")
        if name is None:
            raise reject("DP106", "log takes base 2 or 10", span=at, help=["use ln(x) / ln(base)"])
        return self.call(name, (self.bind(args["expression"]),), at)

    def _trim(self, node: exp.Trim) -> Expr:
        args = checked(node, self.source, "this", "position", "expression")
        name = {"LEADING": "ltrim", "TRAILING": "rtrim"}.get(str(args.get("position") or "").upper(), "trim")
        what = [self.bind(args["this"])] + ([self.bind(args["expression"])] if "expression" in args else [])
        return self.call(name, tuple(what), self.span(node))

    def _pad(self, node: exp.Pad) -> Expr:
        args = checked(node, self.source, "this", "expression", "fill_pattern", "is_left")
        name = "lpad" if args.get("is_left") else "rpad"
        fill = [self.bind(args["fill_pattern"])] if "fill_pattern" in args else []
        return self.call(name, (self.bind(args["this"]), self.bind(args["expression"]), *fill), self.span(node))

    def _aggregate(self, node: exp.Expr) -> Expr:
        if self.aggregate is None:
            raise reject(
                "DP108", f"an aggregate cannot stand in {self.clause}", span=self.span(node),
                help=["put it into SELECT or HAVING, or compute it in a WITH query first"],
            )  # fmt: skip
        return self.aggregate(node, self)

    # --- calls -----------------------------------------------------------------------------------------------------

    def _shaped(self, node: exp.Expr) -> Expr:
        shape = CALLS[type(node)]
        args = checked(node, self.source, *shape.args, *shape.harmless)
        found: list[Expr] = []
        for name in shape.args:
            given = args.get(name)
            for item in given if isinstance(given, list) else [] if given is None else [given]:
                if isinstance(item, exp.Var):  # a date part
                    found.append(Literal(item.name.lower(), VARCHAR, self.span(node)))
                else:
                    found.append(self.bind(item))
        return self.call(shape.name, tuple(found), self.span(node))

    def _named(self, node: exp.Anonymous) -> Expr:
        args = checked(node, self.source, "this", "expressions")
        name = str(args["this"]).lower()
        function = lookup(name)
        if function is None or function.operator:
            if name in VOLATILE:
                raise self._volatile(name, node)
            raise self._unknown(name, node)
        return self.call(function.name, tuple(self.bind(e) for e in args.get("expressions", [])), self.span(node))

    def call(self, name: str, args: tuple[Expr, ...], span: Span) -> Expr:
        """A typed call of a registered function. Text literals become dates or numbers where the others are."""
        function = lookup(name)
        if function is None:
            raise reject("DP105", f"function {name} is not supported", span=span)
        for at in sorted(function.literal):
            if at < len(args) and not isinstance(args[at], Literal):
                raise reject(
                    "DP115", f"{name}: argument {at + 1} must be a literal", span=args[at].span or span,
                    label="would depend on the data",
                )  # fmt: skip
        if function.name in _UNIFYING:
            args = self._unified(function.name, args)
        if function.name == "least" or function.name == "greatest":
            clipped = _as_clip(function.name, args)
            if clipped is not None:
                function, args = REGISTRY["clip"], clipped
        value = value_of_call(function.name, tuple(self.value(a) for a in args), span)
        return Call(function.name, args, value.type, span)

    def _unified(self, name: str, args: tuple[Expr, ...]) -> tuple[Expr, ...]:
        """Where values are compared or chosen from, read text literals as the type of the others, as SQL does."""
        chosen = range(len(args))
        if name == "case":
            chosen = range(1, len(args), 2)
        others = [
            args[i].type for i in chosen
            if args[i].type.kind not in (Kind.VARCHAR, Kind.NULL) or not isinstance(args[i], Literal)
        ]  # fmt: skip
        if not others or others[0].kind is Kind.VARCHAR or name == "case":
            return args
        target, result = others[0], list(args)
        for i in chosen:
            arg = args[i]
            if isinstance(arg, Literal) and isinstance(arg.value, str):
                found = literals.from_text(arg.value, target, arg.span)
                if found is None:
                    raise reject(
                        "DP106", f"{arg.value!r} is not a {target}", span=arg.span,
                        help=["compare the column with a value of its own type"],
                    )  # fmt: skip
                result[i] = found
        return tuple(result)

    def value(self, expr: Expr) -> Value:
        """What the types alone tell about an expression."""
        return evaluate(expr, _TypesOnly(expr))

    # --- refusals --------------------------------------------------------------------------------------------------

    def _volatile(self, name: str, node: exp.Expr) -> Rejected:
        return reject(
            "DP114", f"{name} gives another value at every call", span=self.span(node),
            help=["write the value itself, or pass it as a parameter"],
        )  # fmt: skip

    def _unknown(self, name: str, node: exp.Expr) -> Rejected:
        close = difflib.get_close_matches(name, [n for n, f in REGISTRY.items() if not f.operator], n=2)
        advice = [f"did you mean {' or '.join(close)}?"] if close else []
        return reject("DP105", f"function {name} is not supported", span=self.span(node), help=advice)

    def _subquery(self, node: exp.Expr) -> Rejected:
        return reject(
            "DP111", "a subquery inside an expression is not supported", span=self.span(node),
            help=["join the table instead, or compute the value in a WITH query of its own"],
        )  # fmt: skip

    def _refuse(self, node: exp.Expr) -> Rejected:
        if isinstance(node, exp.Subquery | exp.Exists | exp.Query | exp.Any | exp.All):
            return self._subquery(node)
        if isinstance(node, exp.Window):
            return reject(
                "DP113", "window functions are not supported here", span=self.span(node),
                label="a window reads rows of other people",
            )  # fmt: skip
        if isinstance(node, exp.AggFunc):
            return reject(
                "DP105", f"aggregate {node.sql_name()} is not supported", span=self.span(node),
                help=["supported aggregates: COUNT, SUM, AVG"],
            )  # fmt: skip
        if isinstance(node, exp.Func):
            name = node.sql_name().lower()
            if name in VOLATILE:
                return self._volatile(name, node)
            return self._unknown(name, node)
        return reject("DP101", f"{type(node).__name__} is outside the accepted SQL", span=self.span(node))


class _TypesOnly(dict[int, Value]):
    """An environment in which only the columns' types are known."""

    def __init__(self, expr: Expr) -> None:
        from dpsql.plan.expr import walk

        super().__init__(
            (e.uid, Value(e.type, range=type_range(e.type), finite=e.type.kind is not Kind.DOUBLE))
            for e in walk(expr)
            if isinstance(e, Column)
        )


def _type_name(to: exp.Expr) -> str:
    return {"TIMESTAMPNTZ": "TIMESTAMP"}.get(to.sql("duckdb").upper(), to.sql("duckdb"))


def _as_clip(name: str, args: tuple[Expr, ...]) -> tuple[Expr, ...] | None:
    """LEAST(GREATEST(x, lo), hi) in any order of arguments and nesting is CLIP(x, lo, hi): NULL stays NULL."""
    inner_name = "greatest" if name == "least" else "least"
    if len(args) != 2:
        return None
    for outer, inner in (args, args[::-1]):
        if not (isinstance(outer, Literal) and isinstance(inner, Call) and inner.function == inner_name):
            continue
        if len(inner.args) != 2:
            continue
        for bound, x in (inner.args, inner.args[::-1]):
            if isinstance(bound, Literal) and not isinstance(x, Literal) and x.type.numeric:
                lo, hi = (bound, outer) if name == "least" else (outer, bound)
                if _number(lo) and _number(hi) and lo.value <= hi.value:  # type: ignore[operator]
                    return (x, lo, hi)
    return None


def _number(literal: Literal) -> bool:
    return literal.type.numeric and literal.value is not None
