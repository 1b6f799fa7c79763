"""Scalar expressions: sqlglot's tree → our four node types. Default deny, for node classes and for their arguments."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache, partial

from sqlglot import exp

from dpsql.core.ir.by_identity import ByIdentity
from dpsql.core.ir.expressions import MOST_NODES, Call, Column, Expr, Literal, larger_than, walk
from dpsql.core.ir.short_text import symbol
from dpsql.core.ir.step_count import take
from dpsql.core.ir.types import BOOLEAN, VARCHAR, Kind, SqlType
from dpsql.core.values.constants import literal
from dpsql.core.values.value import Value, type_range
from dpsql.diagnostics.diagnostic import Mark, Source, Span
from dpsql.diagnostics.errors import Rejected, reject, too_large
from dpsql.diagnostics.note import Note, Rank
from dpsql.diagnostics.together import Followup, Together
from dpsql.diagnostics.words import with_article
from dpsql.frontend.bind.aggregates.searched_clips import misplaced, says_auto, searched_clip
from dpsql.frontend.bind.expressions import date_formats, literals
from dpsql.frontend.bind.expressions.clocks import as_clock, at_time_zone, by_clock, in_one_zone, in_zone, moment_of
from dpsql.frontend.bind.expressions.function_names import CALLS, INTERVAL_ENDS, OF_LISTS, VOLATILE, aggregate_name
from dpsql.frontend.bind.expressions.json_steps import TEXTS, json_text, only_texts
from dpsql.frontend.bind.expressions.refusals import refused, unknown_function, volatile
from dpsql.frontend.bind.expressions.replacements import LISTED, is_compared, of_column
from dpsql.frontend.bind.expressions.syntax import SYNTAX, calendar_shift, converter
from dpsql.frontend.bind.expressions.syntax_arguments import checked
from dpsql.frontend.bind.expressions.unknown_values import as_numbers, like_the_others
from dpsql.frontend.bind.from_clause.made_columns import declared_field, made_column
from dpsql.frontend.bind.parameters import Numbering, Parameters
from dpsql.frontend.bind.scope import VisibleColumn, find, has, written_at
from dpsql.frontend.bind.subqueries.outer_query import Outer, decides, named, relation_of
from dpsql.frontend.text.spans import span_of
from dpsql.functions.expression_values import evaluate, unexplained
from dpsql.functions.registry import lookup
from dpsql.functions.signature import compared

_COMPARISONS = frozenset({"eq", "ne", "lt", "le", "gt", "ge", "is_distinct_from", "is_not_distinct_from", "in"})
_COLUMN = frozenset({"this", "table", "db", "catalog"})
_SHIFTS = (exp.Add, exp.Sub, exp.DateAdd, exp.DateSub)
_UNIFYING = _COMPARISONS | {"case", "coalesce", "nullif", "greatest", "least"}

MEMBERSHIPS = (exp.In, exp.Exists, exp.EQ)
"""Conditions that may hold a subquery."""

IN_AGGREGATES = "an aggregate"
"""The clause of arguments and filters of aggregates."""

AggregateHandler = Callable[[exp.Expr, "ExprBinder"], Expr]
SubqueryHandler = Callable[[exp.Subquery, "ExprBinder"], Expr]
MembershipHandler = Callable[[exp.Expr, "ExprBinder"], Expr | None]


_LAST_CLOSED = "WHERE day > last_closed('trips') - 7"


@dataclass(slots=True)
class ExprBinder:
    """Binds expressions of one clause: which columns are visible, and whether aggregates and subqueries may stand here.

    outer: the query around this one, if this one is a subquery; its names come after those of `entries`.
    failed: aliases of expressions that were refused; what reads them is not refused again.
    known: by their identity the calls that this binder has made, and what their types tell about them.
    """

    source: Source
    entries: tuple[VisibleColumn, ...]
    numbering: Numbering
    parameters: Parameters
    clause: str
    aggregate: AggregateHandler | None = None
    subquery: SubqueryHandler | None = None
    membership: MembershipHandler | None = None
    outer: Outer | None = None
    aliases: Mapping[str, Expr] = field(default_factory=dict)
    window: AggregateHandler | None = None
    grouping: AggregateHandler | None = None
    failed: frozenset[str] = frozenset()
    known: ByIdentity[Expr, Value] = field(default_factory=ByIdentity, init=False, repr=False)

    def span(self, node: exp.Expr) -> Span:
        """Where a node stands in the text."""
        return span_of(node, self.source.text)

    def converter(self, to: exp.Expr, at: Span) -> Callable[[Expr], Expr]:
        """What a cast to a type makes of a value."""
        return converter(self, to, at)

    def bind(self, node: exp.Expr) -> Expr:
        """The bound expression, its types checked. Raises Rejected."""
        take()
        if node.__class__ is exp.Column:
            return self._column(node)
        if isinstance(node, _SHIFTS):
            shifted = calendar_shift(self, node)
            if shifted is not None:
                return shifted
        if self.membership is not None and isinstance(node, MEMBERSHIPS):
            found = self.membership(node, self)
            if found is not None:
                return found
        handler = SYNTAX.get(type(node))
        if handler is not None:
            return handler(self, node)
        match node:
            case exp.Column():
                return self._column(node)
            case exp.Filter() | exp.CountIf():
                return self._aggregate(node)
            case _ if aggregate_name(node) is not None:
                return self._aggregate(node)
            case exp.Window() if self.window is not None:
                return self.window(node, self)
            case exp.Grouping() | exp.GroupingId() if self.grouping is not None:
                return self.grouping(node, self)
            case exp.Anonymous():
                return self._named(node)
            case exp.Explode():
                return self._element(node)
            case exp.Subquery() if self.subquery is not None:
                return self.subquery(node, self)
            case (
                exp.AtTimeZone()
                | exp.Dot()
                | exp.Bracket()
                | exp.StructExtract()
                | exp.JSONExtractScalar()
                | exp.JSONBExtractScalar()
            ):
                if (made := self._made(node)) is not None:
                    return made
                if isinstance(node, exp.AtTimeZone):
                    return at_time_zone(self, node)
                if isinstance(node, TEXTS) and self._is_there(node) and (read := json_text(self, node)) is not None:
                    return read
            case exp.JSONExtract():
                raise only_texts(node, self)
        if type(node) in CALLS:
            return self.shaped(node)
        raise refused(node, self.source, self.clause)

    # --- leaves ----------------------------------------------------------------------------------------------------

    def _column(self, node: exp.Column) -> Expr:
        if not node.args.keys() <= _COLUMN:
            checked(node, self.source, *_COLUMN)
        at = self.span(node)
        if isinstance(node.this, exp.Star):
            raise reject("DP101", "* is not an expression here", span=at, help=["name the columns"])
        if node.args.get("table") and (made := self._made(node)) is not None:
            return made
        relation, name = relation_of(node, self.entries, self.outer, at), named(node.this)
        lower = name.lower()
        if relation is None and lower in self.failed and not has(self.entries, name):
            raise Followup
        if relation is None and lower in self.aliases:
            meant = self.aliases[lower]
            if larger_than(meant, MOST_NODES):
                raise too_large("the expression is too large", at, "use its alias fewer times")
            return meant
        if self.outer is not None and (found := self._of_outer(name, relation, at)) is not None:
            return found
        if relation is None and lower in VOLATILE and not has(self.entries, name):
            if (now := self.parameters.clock(lower, at)) is not None:
                return now
            raise volatile(name, at)
        advice = (
            partial(of_column, node, name, self.clause)
            if relation is None
            else partial(declared_field, node, self.entries)
        )
        mark = Mark.PERHAPS_TEXT if relation is None and is_compared(node) else None
        return find(self.entries, name, relation, at, advice, mark)

    def _of_outer(self, name: str, relation: str | None, span: Span) -> Column | None:
        if self.outer is None or decides(self.entries, name, relation):
            return None
        return self.outer.column(name, relation, self.clause, span)

    def _made(self, node: exp.Expr) -> Expr | None:
        """The column that the policy makes of a value inside of a column; None if it makes none of what is written."""
        if not self.numbering.made:
            return None
        levels = [self.entries, *(() if self.outer is None else self.outer.levels())]
        made = made_column(node, self.source.text, levels)
        if made is None:
            return None
        found = self._of_outer(made.name, made.relation, self.span(node))
        return found or find(self.entries, made.name, made.relation, self.span(node))

    def _is_there(self, node: exp.Expr) -> bool:
        """Whether what JSON is read from is no column that a policy has yet to declare."""
        held = next(iter(node.find_all(exp.Column)), None)
        levels = [self.entries, *(() if self.outer is None else self.outer.levels())]
        if held is None or held.args.get("table") or held.name.lower() in self.aliases:
            return True
        return any(has(entries, held.name) for entries in levels)

    def _element(self, node: exp.Explode) -> Expr:
        found = written_at(self.entries, self.span(node))
        if found is None:
            raise reject(
                "DP101", f"UNNEST cannot stand at this place of {self.clause}", span=self.span(node),
                help=["write it into FROM and use its column:  FROM t, UNNEST(t.tags) AS u(tag)"],
            )  # fmt: skip
        return replace(found, span=self.span(node))

    # --- calls -----------------------------------------------------------------------------------------------------

    def _aggregate(self, node: exp.Expr) -> Expr:
        if self.aggregate is None:
            raise reject(
                "DP108", f"an aggregate cannot stand in {self.clause}", span=self.span(node),
                help=["put it into SELECT or HAVING, or compute it in a WITH query first"],
            )  # fmt: skip
        return self.aggregate(node, self)

    def shaped(self, node: exp.Expr) -> Expr:
        """A call of a function that sqlglot has a class for. Raises Rejected."""
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
        of_list = bool(found) and found[0].type.kind is Kind.LIST
        return self.call(OF_LISTS.get(shape.name, shape.name) if of_list else shape.name, tuple(found), self.span(node))

    def _named(self, node: exp.Anonymous) -> Expr:
        args = checked(node, self.source, "this", "expressions")
        name = str(args["this"]).lower()
        if name in INTERVAL_ENDS:
            return self._aggregate(node)
        if name == "to_date" and len(args.get("expressions", ())) == 2:
            return date_formats.to_date(self, args["expressions"][0], False, self.span(node))
        if name == "last_closed":
            match [self.bind(e) for e in args.get("expressions", [])]:
                case [Literal(value=str(table))]:
                    return self.parameters.last_closed(table, self.span(node))
            raise reject("DP115", "last_closed takes the name of a table", span=self.span(node), help=[_LAST_CLOSED])
        function = lookup(name)
        if function is None or function.operator:
            now = None if args.get("expressions") else self.parameters.clock(name, self.span(node))
            if now is not None:
                return now
            if name in VOLATILE:
                raise volatile(name, self.span(node))
            raise unknown_function(name, self.span(node), self.source)
        given, span = args.get("expressions", []), self.span(node)
        if name == "timezone" and len(given) == 2:
            return in_zone(self, self.bind(given[0]), self.bind(given[1]), span)
        if function.name == "clip" and says_auto(given):
            made = searched_clip(given, self.bind, lambda x, end: self.call("clip", (x, end, end), span), span)
            if self.clause != IN_AGGREGATES:
                raise misplaced(made, f"stands in {self.clause}")
            self.known[made] = _type_only(made.type)
            return made
        return self.call(function.name, tuple(self.bind(e) for e in given), span)

    def call(self, name: str, args: tuple[Expr, ...], span: Span) -> Expr:
        """A typed call of a registered function. Text literals become dates or numbers where the others are."""
        function = lookup(name)
        if function is None:
            raise reject("DP105", f"function {name} is not supported", span=span, help=[LISTED], mark=Mark.LISTED)
        for at in sorted(function.literal) if function.literal else ():
            if at < len(args) and not isinstance(args[at], Literal):
                raise reject(
                    "DP115", f"{name}: argument {at + 1} must be a literal", span=args[at].span or span,
                    label="would depend on the data",
                    help=["write the value itself, or pass it as a parameter:  ?, $1 or $name"],
                )  # fmt: skip
        name, args = function.name, like_the_others(args)
        if name in _UNIFYING:
            args = self._unified(name, args)
        if name == "least" or name == "greatest":
            clipped = _as_clip(name, args)
            if clipped is not None:
                name, args = "clip", clipped
        try:
            value = unexplained(name, tuple([self.value(a) for a in args]), span)
        except Rejected:
            if name in _UNIFYING and (clock := as_clock(args, self.entries)) is not None:
                raise reject(
                    "DP106", f"{symbol(name)}: a moment is compared with a clock", span=span, help=[clock]
                ) from None
            zone = self.parameters.zone
            found = as_numbers(args) or in_one_zone(args, tuple([self.value(a) for a in args]), zone)
            if (found := found or by_clock(name, args, zone)) is None:
                raise
            return self.call(name, found, span)
        made = Call(name, args, value.type, span)
        self.known[made] = value
        return made

    def read(self, text: str, target: SqlType, span: Span | None) -> Literal | None:
        """The constant that a text stands for; None if it is none, or may be another in the dialect."""
        found = literals.from_text(text, target, span)
        if target.temporal and found is not None and literals.is_shifted(text):
            if self.parameters.dialect not in ("duckdb", "postgres"):
                return None
            told = f"{text!r} is read without its offset, for a {target} has none"
            self.parameters.told[Note(told, Rank.SOURCE)] = None
        if (
            target.kind is Kind.TIMESTAMPTZ
            and found is not None
            and literals.without_zone(text.strip()) == text.strip()
        ):
            zone = self.parameters.zone
            self.parameters.told[Note(f"{text!r} is read by the clock of {zone}", Rank.SOURCE)] = None
            if isinstance(found.value, dt.datetime):
                found = replace(found, value=moment_of(found.value.replace(tzinfo=None), zone))
        return found

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
                found = self.read(arg.value, target, arg.span)
                if found is None:
                    cast = target.kind in (Kind.TIME, Kind.UUID)  # which texts become by a cast alone
                    own = "compare the column with a value of its own type" + f":  CAST(… AS {target})" * cast
                    if target.kind is Kind.TIMESTAMP and (clock := as_clock(args, self.entries)) is not None:
                        own = clock
                    raise reject(
                        "DP106", f"{arg.value!r} is {'a text, and ' * cast}not {with_article(target)}", span=arg.span,
                        help=literals.AS_MOMENT if target.kind is Kind.TIMESTAMPTZ else [own],
                    )  # fmt: skip
                result[i] = found
        return tuple(result)

    def value(self, expr: Expr) -> Value:
        """What the types alone tell about an expression."""
        if isinstance(expr, Column):
            return _type_only(expr.type)
        if isinstance(expr, Literal):
            return literal(expr.value, expr.type)
        known = self.known.get(expr)
        return evaluate(expr, _TypesOnly(expr)) if known is None else known


def condition(binder: ExprBinder, node: exp.Expr) -> Expr:
    """The predicate of a WHERE, HAVING or ON clause. Raises Rejected DP106 if it is no condition."""
    clauses = exp.Where | exp.Having | exp.Qualify
    inner = checked(node, binder.source, "this")["this"] if isinstance(node, clauses) else node
    together = Together()
    bound = _term(binder, inner, together)
    together.settle()
    assert bound is not None
    if bound.type.kind not in (Kind.BOOLEAN, Kind.NULL):
        raise reject(
            "DP106", f"{binder.clause} needs a condition, not {bound.type}", span=bound.span,
            help=[f"compare it with something, e.g.  {compared(bound.type)}"],
        )  # fmt: skip
    return bound if bound.type.kind is Kind.BOOLEAN else Literal(None, BOOLEAN, bound.span)


def _term(binder: ExprBinder, node: exp.Expr, together: Together) -> Expr | None:
    """A condition whose terms, joined by AND, are bound each on its own; None if one of them was refused."""
    if isinstance(node, exp.And):
        args = checked(node, binder.source, "this", "expression")
        left, right = (_term(binder, args[side], together) for side in ("this", "expression"))
        if left is None or right is None:
            return None
        with together.attempt():
            return binder.call("and", (left, right), binder.span(node))
        return None
    with together.attempt():
        return binder.bind(node)
    return None


class _TypesOnly(dict[int, Value]):
    """An environment in which only the columns' types are known."""

    def __init__(self, expr: Expr) -> None:
        super().__init__((e.uid, _type_only(e.type)) for e in walk(expr) if isinstance(e, Column))


@cache
def _type_only(t: SqlType) -> Value:
    return Value(t, range=type_range(t), finite=t.kind is not Kind.DOUBLE)


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
