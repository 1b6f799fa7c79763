"""PIVOT and UNPIVOT as the SELECTs that they stand for.

    PIVOT t ON k IN ('a', 'b') USING SUM(x) GROUP BY g
    SELECT g, SUM(x) FILTER (WHERE k = 'a') AS a, SUM(x) FILTER (WHERE k = 'b') AS b FROM t GROUP BY g

    FROM t UNPIVOT (v FOR n IN (a, b))
    SELECT * EXCLUDE (a, b), 'a' AS n, a AS v FROM t WHERE a IS NOT NULL UNION ALL SELECT … 'b' …

Without GROUP BY the groups of a PIVOT are all columns that it does not name. Its values are listed: what values a
column of private rows has is nobody's to see.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise, product
from math import prod
from typing import cast

from sqlglot import Token, TokenType, exp

from dpsql.diagnostics.diagnostic import Source
from dpsql.diagnostics.errors import Rejected, reject
from dpsql.frontend.text.spans import span_of

MOST_COLUMNS = 1_000
"""Of one PIVOT: values times aggregates."""
TOO_MANY = f"a PIVOT of more than {MOST_COLUMNS:,} columns"
MOST_COPIED = 20_000
"""Nodes of syntax that one PIVOT or UNPIVOT may write: its rows, or its aggregates, once for each column.

Else those that stand in one another would write a power of it."""


def columns_of_pivots(tokens: Sequence[Token]) -> int:
    """The most columns that one PIVOT in FROM would have: the product of its lists, which sqlglot writes out."""
    most = 1
    if TokenType.PIVOT not in [token.token_type for token in tokens]:
        return most
    within: list[tuple[str, int]] = []  # what is open: a pivot with the product of its lists, a list with its length
    for before, token in pairwise(tokens):
        match token.token_type:
            case TokenType.L_PAREN if before.token_type is TokenType.PIVOT:
                within.append(("pivot", 1))
            case TokenType.L_PAREN if before.token_type is TokenType.IN and within and within[-1][0] == "pivot":
                within.append(("list", 1))
            case TokenType.L_PAREN:
                within.append(("", 1))
            case TokenType.COMMA if within and within[-1][0] == "list":
                within[-1] = "list", within[-1][1] + 1
            case TokenType.R_PAREN if within:
                kind, length = within.pop()
                if kind == "list":
                    within[-1] = "pivot", within[-1][1] * length
                    most = max(most, within[-1][1])
    return most


def without_pivots(tree: exp.Expr, source: Source) -> exp.Expr:
    """The tree with a SELECT in place of each PIVOT and UNPIVOT. Raises Rejected DP101 for what has no such form."""
    if "pivot" not in source.text.lower():
        return tree
    for node in reversed(list(tree.find_all(exp.Pivot))):  # what a pivot reads before the pivot
        above = node.parent
        if node.args.get("default_on_null"):
            raise _outside(node.expressions[0], "PIVOT with DEFAULT ON NULL", source)
        if isinstance(above, exp.Table | exp.Subquery) and node.arg_key == "pivots":
            if len(above.args["pivots"]) > 1:
                raise _outside(node, "one PIVOT of another", source)
            alias = node.args.get("alias")
            rows = above.copy()
            rows.set("pivots", None)
            rows.set("joins", None)
            joins = above.args.get("joins")
            above.replace(exp.Subquery(this=_select(node, rows, source), alias=alias, joins=joins))
        else:
            made = _select(node, node.this.copy(), source)
            made.set("with_", node.args.get("with_"))
            tree = made if node is tree else tree
            node.replace(made)
    return tree


def _outside(node: exp.Expr, what: str, source: Source) -> Rejected:
    return reject(
        "DP101", f"{what} is outside the accepted SQL", span=span_of(node, source.text), source=source,
        help=["use one aggregate for each value:  COUNT(*) FILTER (WHERE x = 'a')"],
    )  # fmt: skip


def _select(node: exp.Pivot, rows: exp.Expr, source: Source) -> exp.Query:
    return _unpivoted(node, rows, source) if node.args.get("unpivot") else _pivoted(node, rows, source)


def _pivoted(node: exp.Pivot, rows: exp.Expr, source: Source) -> exp.Select:
    lists = node.args.get("fields") or node.expressions
    calls = node.args.get("using") or node.expressions
    if not calls or not all(isinstance(i, exp.In) and i.expressions for i in lists):
        unlisted = next((i for i in lists if not isinstance(i, exp.In) or not i.expressions), node)
        key = unlisted.this if isinstance(unlisted, exp.In) else unlisted
        raise reject(
            "DP101", "PIVOT without a list of values is outside the accepted SQL", span=span_of(key, source.text),
            source=source,
            help=[f"list them:  {_text(key, source)} IN ('a', 'b')"],
        )  # fmt: skip
    columns = prod(len(i.expressions) for i in lists)
    if columns * len(calls) > MOST_COLUMNS:
        raise _outside(node, TOO_MANY, source)
    _require_few(node, [*calls, *(i.this for i in lists)], columns, source)
    theirs = node.args.get("columns") if node.args.get("prefixed_pivot_columns") else ()  # of a dialect of its own
    names = [c.name for c in theirs or ()]
    items: list[exp.Expr] = []
    for values in product(*(i.expressions for i in lists)):
        for call in calls:
            made = _sliced(call, [(i.this, v) for i, v in zip(lists, values, strict=True)], source)
            written = "_".join(v.alias_or_name or v.sql("duckdb").lower() for v in values)
            several = len(calls) > 1 or isinstance(call, exp.Alias)
            name = f"{written}_{call.alias or call.sql('duckdb').lower()}" if several else written
            items.append(exp.alias_(made, names[len(items)] if len(names) > len(items) else name, quoted=True))
    group = node.args.get("group")
    if group is not None:
        shown: list[exp.Expr] = [g.copy() for g in group.expressions]
    else:
        read = {c.name.lower(): c for part in (*lists, *calls) for c in part.find_all(exp.Column)}
        shown = [exp.Star(except_=[exp.column(c.this.copy()) for c in read.values()])]
    return exp.Select(expressions=[*shown, *items], from_=exp.From(this=rows), group=group or exp.Group(all=True))


def _sliced(call: exp.Expr, slices: list[tuple[exp.Expr, exp.Expr]], source: Source) -> exp.Expr:
    """The aggregate over the rows that have all these values."""
    inner, kept = call.unalias().copy(), [exp.EQ(this=k.copy(), expression=v.unalias().copy()) for k, v in slices]
    if isinstance(inner, exp.Filter):
        inner, kept = inner.this, [inner.expression.this, *kept]
    if not isinstance(inner, exp.AggFunc):
        raise _outside(call, "PIVOT by what is no aggregate", source)
    return exp.Filter(this=inner, expression=exp.Where(this=exp.and_(*kept, copy=False)))


def _unpivoted(node: exp.Pivot, rows: exp.Expr, source: Source) -> exp.Query:
    into = node.args.get("into")
    columns = node.expressions
    if into is not None:
        name, values = into.this, into.expressions
    elif node.args.get("fields"):
        (listed, *more), values = node.args["fields"], columns
        if more:
            raise _outside(node, "UNPIVOT by several lists", source)
        name, columns = listed.this, listed.expressions
    else:
        name, values = exp.to_identifier("name"), [exp.to_identifier("value")]
    if len(values) != 1 or not columns or not all(isinstance(c.unalias(), exp.Column) for c in columns):
        raise _outside(node, "UNPIVOT of anything but listed columns", source)
    read = [cast(exp.Column, c.unalias()) for c in columns]
    _require_few(node, [rows, *read], len(read), source)
    others = exp.Star(except_=[c.copy() for c in read])
    branches = []
    for column, shown in zip(read, columns, strict=True):
        told = exp.alias_(exp.Literal.string(shown.alias_or_name), name.name, quoted=True)
        value = exp.alias_(column.copy(), values[0].name, quoted=True)
        branch = exp.Select(expressions=[others.copy(), told, value], from_=exp.From(this=rows.copy()))
        there = exp.Not(this=exp.Is(this=column.copy(), expression=exp.Null()))
        branches.append(branch if node.args.get("include_nulls") else branch.where(there, copy=False))
    found: exp.Query = branches[0]
    for branch in branches[1:]:
        found = exp.Union(this=found, expression=branch, distinct=False)
    return found


def _require_few(node: exp.Pivot, copied: list[exp.Expr], times: int, source: Source) -> None:
    if times * sum(1 for each in copied for _ in each.walk()) > MOST_COPIED:
        raise _outside(node, "a PIVOT or UNPIVOT of so many columns of so long a text", source)


def _text(node: exp.Expr, source: Source) -> str:
    span = span_of(node, source.text)
    return source.text[span.start : span.end]
