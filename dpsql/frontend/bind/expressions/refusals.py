"""Refusals of expressions that have no meaning where they stand: what each is, and what to write in its place."""

from __future__ import annotations

import difflib
import re
from functools import lru_cache

from sqlglot import exp

from dpsql.diagnostics.diagnostic import Mark, Source, Span
from dpsql.diagnostics.errors import Rejected, reject
from dpsql.frontend.aggregates.all_aggregates import AGGREGATES
from dpsql.frontend.bind.expressions.function_names import VOLATILE, WINDOWED, aggregate_name
from dpsql.frontend.bind.expressions.replacements import (
    FROM_JSON,
    INSTEAD,
    LISTED,
    in_own_words,
    needs_window,
    of_aggregate,
)
from dpsql.frontend.bind.expressions.syntax_arguments import as_written
from dpsql.frontend.bind.from_clause.made_columns import unmade
from dpsql.frontend.text.spans import code_of, query_span, span_of
from dpsql.frontend.text.written_again import written_again
from dpsql.functions.registry import REGISTRY


def volatile(name: str, span: Span) -> Rejected:
    """A function such as RANDOM or NOW."""
    return reject(
        "DP114", f"{name} gives another value at every call", span=span,
        help=["write the value itself, or pass it as a parameter"],
    )  # fmt: skip


def unknown_function(name: str, span: Span, source: Source) -> Rejected:
    """A function that is not registered, with what is written in its place, else with those of similar names."""
    instead, meant = INSTEAD.get(name.lower()), _alike(name)
    if instead is not None:
        mark = Mark.DECLARABLE if instead is FROM_JSON else None
        advice, meant = in_own_words(instead, name.lower(), source.text[span.start : span.end]), []
    else:
        mark, advice = (None, f"did you mean {' or '.join(meant)}?") if meant else (Mark.LISTED, LISTED)
    return reject("DP105", f"function {name} is not supported", span=span, help=[advice], mark=mark, meant=meant)


@lru_cache(maxsize=256)  # names are the analysts': they must not fill the memory
def _alike(name: str) -> list[str]:
    known = [*AGGREGATES, *(n for n, f in REGISTRY.items() if not f.operator)]
    return difflib.get_close_matches(name, known, n=2)


def refused_subquery(node: exp.Expr, source: Source, clause: str) -> Rejected:
    """A subquery where no join can stand for it."""
    at = query_span(node, source.text)
    if isinstance(node, exp.All):
        return reject(
            "DP111", "ALL over a subquery is not supported", span=at,
            help=["compare with one value, as in  x > (SELECT MAX(y) FROM …),  or write  x NOT IN (SELECT y …)"],
        )  # fmt: skip
    if isinstance(node, exp.Subquery) and not isinstance(node.parent, exp.In):
        return reject(
            "DP111", f"a subquery cannot stand in {clause}", span=at,
            help=["join the table instead, or compute the value in a WITH query of its own"],
        )  # fmt: skip
    return reject(
        "DP111", "IN, EXISTS and ANY over a subquery can only be a condition of WHERE or HAVING", span=at,
        label="each must hold by itself, joined to other conditions by AND",
        help=["write it as a term of its own:  WHERE … AND x IN (SELECT …);  ask one query for each case of an OR"],
    )  # fmt: skip


def computed_first(window: exp.Window, source: Source) -> str | None:
    """The query with a window function's aggregate, over a subquery that computes its argument; None of other forms."""
    aggregate, select = window.find_ancestor(exp.AggFunc), window.find_ancestor(exp.Select)
    if aggregate is None or select is None or aggregate.find_ancestor(exp.Select) is not select:
        return None
    arg = aggregate.this
    known = {"expressions", "from_", "joins", "where", "kind"}
    plain = isinstance(arg, exp.Expr) and not isinstance(arg, exp.Distinct)
    plain = plain and isinstance(aggregate.parent, (exp.Select, exp.Alias))
    others = any(value for name, value in select.args.items() if name not in known)
    if not plain or others or "from_" not in select.args:
        return None
    parts = [select.args["from_"], *(select.args.get("joins") or ()), *filter(None, [select.args.get("where")])]
    value, rows = written_again(arg, source), " ".join(part.sql("duckdb", comments=False) for part in parts)
    name = written_name(aggregate, source).upper()
    return f"compute it first:  SELECT {name}(w) FROM (SELECT {value} AS w {rows}) AS t"


def refused(node: exp.Expr, source: Source, clause: str) -> Rejected:
    """Build (not raise) the refusal of a node that has no meaning here. clause: where it stands, in words."""
    span = span_of(node, source.text)
    if isinstance(node, (exp.IgnoreNulls, exp.RespectNulls)) and aggregate_name(node.this) is not None:
        words = "IGNORE NULLS" if isinstance(node, exp.IgnoreNulls) else "RESPECT NULLS"
        return reject(
            "DP101", f"{words} cannot stand in {written_name(node.this, source).upper()}", span=span,
            help=["leave it out: aggregates leave NULLs out"],
        )  # fmt: skip
    if isinstance(node, (exp.IgnoreNulls, exp.RespectNulls, exp.WithinGroup)) and aggregate_name(node.this) is None:
        return refused(node.this, source, clause)  # put around ANY_VALUE(x), MODE()
    if isinstance(node, (exp.Subquery, exp.Exists, exp.Query, exp.Any, exp.All)):
        return refused_subquery(node, source, clause)
    if isinstance(node, exp.Window):
        advice = "put it into SELECT or ORDER BY, and filter with QUALIFY"
        around = node.find_ancestor(exp.AggFunc)
        if around is not None and not isinstance(around.parent, exp.Window):
            advice = computed_first(node, source) or "compute it first, in a subquery that the aggregate reads"
        return reject("DP101", f"a window function cannot stand in {clause}", span=span, help=[advice])
    if isinstance(node, (exp.Grouping, exp.GroupingId)):
        return reject(
            "DP101", f"GROUPING cannot stand in {clause}", span=span,
            help=["put it into SELECT, HAVING or ORDER BY of a query with GROUP BY"],
        )  # fmt: skip
    if isinstance(node, exp.Func) and type(node) in WINDOWED:
        name = written_name(node, source)
        return reject(
            "DP105", f"{name.upper()} needs a window", span=span,
            help=needs_window(node, name.upper()),
        )  # fmt: skip
    if isinstance(node, exp.AggFunc):
        name = written_name(node, source)
        advice = in_own_words(of_aggregate(node), name, source.text[span.start : span.end])
        return reject(
            "DP105", f"aggregate {written_name(node, source).upper()} is not supported", span=span,
            help=[advice],
        )  # fmt: skip
    if isinstance(node, exp.Array):
        return reject(
            "DP105", "a list in brackets is not supported here", span=span,
            help=['if it is a name, quote it:  "name"'],
        )  # fmt: skip
    if isinstance(node, (exp.Struct, exp.ToMap)):
        return reject(
            "DP105", "structs and maps are not supported", span=span,
            help=["select their values as columns"],
        )  # fmt: skip
    if (inside := unmade(node, source.text)) is not None:
        return inside
    if isinstance(node, exp.Bracket) and isinstance(node.this, exp.Column):
        return reject(
            "DP105", "elements of a list have no number here", span=span,
            help=[
                f"write  list_contains({node.this.sql()}, 'a')",
                f"or make rows of them:  FROM t, UNNEST({node.this.sql()}) AS u(element)",
                "or, of released quantiles, one of them where they are measured:  QUANTILE_CONT(x, [0.25, 0.75])[1]",
            ],
        )  # fmt: skip
    if isinstance(node, exp.ArrayOverlaps) and "&&" in source.text[span.start : span.end]:
        return reject("DP105", "operator && is not supported", span=span, help=["write AND"])
    if isinstance(node, (exp.ArrayOverlaps, exp.ArrayContainsAll)) and _CALLED.match(source.text[span.start :]):
        word = "OR" if isinstance(node, exp.ArrayOverlaps) else "AND"
        return reject(
            "DP105", f"function {written_name(node, source)} is not supported", span=span,
            help=[f"write  list_contains(tags, 'a') {word} list_contains(tags, 'b')"],
        )  # fmt: skip
    if isinstance(node, exp.Collate):
        return reject(
            "DP105", "COLLATE is not supported", span=span,
            help=["compare in one letter case:  LOWER(x) = 'north',  or leave COLLATE out"],
        )  # fmt: skip
    if isinstance(node, exp.Tuple):
        return reject(
            "DP101", "several values at once are outside the accepted SQL here", span=span,
            help=["compare one by one:  (a = 1 AND b = 2) OR (a = 3 AND b = 4)"],
        )  # fmt: skip
    if isinstance(node, exp.Func):
        name = written_name(node, source)
        if name in VOLATILE or node.sql_name().lower() in VOLATILE:
            return volatile(name, span)
        if not _CALLED.match(source.text[span.start : span.end]) and (mark := _OPERATOR.search(_code(node, source))):
            return reject("DP105", f"operator {mark[0]} is not supported", span=span, help=[LISTED])
        return unknown_function(name, span, source)
    if isinstance(node, exp.Lambda) and isinstance(node.this, (exp.JSONExtract, exp.JSONExtractScalar, exp.Literal)):
        return reject(
            "DP101", "-> as what a function is given is read as a function of its own", span=span,
            help=["if it is a path in JSON, put brackets around all of it:  lower((x -> 'a' ->> 'b'))"],
        )  # fmt: skip
    return reject(
        "DP101", f"{as_written(node, source)} is outside the accepted SQL", span=span,
        help=[LISTED], mark=Mark.ORDER_WITHIN if isinstance(node, exp.Order) else Mark.LISTED,
    )  # fmt: skip


_CALLED = re.compile(r"(\w+)(?:\s|--[^\n]*\n|/\*(?:[^*]|\*(?!/))*\*/)*\(")
"""A name before its bracket, with comments between them."""


def written_name(node: exp.Expr, source: Source) -> str:
    """A function's name as it stands in the text; sqlglot gives several spellings one class."""
    span = span_of(node, source.text)
    found = _CALLED.match(source.text[span.start : span.end])
    if found:
        return found.group(1).lower()
    return (node.sql_name() if isinstance(node, exp.Func) else type(node).__name__).lower()


_OPERATOR = re.compile(r"[-+*/<>=~!@#%^&|?]{2,}|[#~@^?]")


def _code(node: exp.Expr, source: Source) -> str:
    span = span_of(node, source.text)
    return code_of(source.text)[span.start : span.end]
