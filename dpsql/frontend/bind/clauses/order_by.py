"""ORDER BY, LIMIT and OFFSET of a SELECT, a set operation or a window."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sqlglot import exp

from dpsql.core.ir.expressions import Expr, Literal, columns_of
from dpsql.core.ir.nodes import Limit, Node, Sort, SortKey
from dpsql.core.ir.types import BIGINT
from dpsql.core.value_classes import replace
from dpsql.diagnostics.errors import reject
from dpsql.diagnostics.together import Together
from dpsql.frontend.bind.clauses.group_by import Named, ordinal
from dpsql.frontend.bind.expressions.expressions import ExprBinder
from dpsql.frontend.bind.expressions.syntax_arguments import checked
from dpsql.frontend.bind.expressions.unknown_values import taken_as


def orders(order: exp.Expr | None, binder: ExprBinder, named: Named) -> list[SortKey]:
    """The terms of ORDER BY: positions and aliases of the SELECT list, or expressions. A constant orders nothing."""
    if order is None:
        return []
    together = Together()
    found: list[SortKey] = []
    nodes = checked(order, binder.source, "expressions")["expressions"]
    for node in nodes:
        inner = node.this if isinstance(node, exp.Ordered) else node
        if isinstance(inner, exp.Var) and inner.name.upper() == "ALL" and len(nodes) == 1:
            found += [sort_key(node, binder, e) for _, e in named]
            continue
        with together.attempt():
            found.append(sort_key(node, binder, ordinal(inner, named, binder)))
    together.settle()
    return [k for k in found if orders_something(k)]


def orders_something(key: SortKey) -> bool:
    """False for a constant: in SQL it would be printed as a position."""
    return bool(columns_of(key.expr))


def sort_key(node: exp.Expr, binder: ExprBinder, expr: Expr | None = None) -> SortKey:
    """One term of ORDER BY: `expr` if it is given, else what is written."""
    args = checked(node, binder.source, "this", "desc", "nulls_first")
    return SortKey(expr or binder.bind(args["this"]), bool(args.get("desc")), bool(args.get("nulls_first")))


def sorted_rows(node: Node, keys: list[SortKey], args: Mapping[str, Any], binder: ExprBinder) -> Node:
    """The rows in order, if there is one, and cut by LIMIT, FETCH and OFFSET. LIMIT 0 leaves none to put in order."""
    ordered = Sort(node, tuple(keys), binder.span(args["order"])) if keys else node
    if not is_cut(args):
        return ordered
    count, offset = args.get("limit"), args.get("offset")
    if count is not None and _is_all(count):
        count = None
    at = binder.span(next(clause for clause in (count, offset) if clause is not None))
    most, skipped = _amount(count, binder), _amount(offset, binder) or 0
    return Limit(node if most == 0 else ordered, most, skipped, at)


def is_cut(args: Mapping[str, Any]) -> bool:
    """Whether LIMIT, FETCH or OFFSET may leave rows out."""
    return "offset" in args or ("limit" in args and not _is_all(args["limit"]))


def _is_all(limit: exp.Expr) -> bool:
    """LIMIT ALL, which cuts nothing."""
    given = limit.args.get("expression")
    return isinstance(given, exp.Var) and given.name.upper() == "ALL" and not limit.args.get("limit_options")


def _amount(node: exp.Expr | None, binder: ExprBinder) -> int | None:
    if node is None:
        return None
    if isinstance(node, exp.Fetch):
        options = node.args.get("limit_options")
        if options is None:
            help = ["FETCH FIRST 10 ROWS ONLY"]
            raise reject("DP010", "FETCH ends with ROWS ONLY", span=binder.span(node), help=help)
        allowed = () if options.args.get("percent") or options.args.get("with_ties") else ("limit_options",)
        given = checked(node, binder.source, "direction", "count", *allowed).get("count")
        if given is None:  # FETCH FIRST ROW ONLY
            return 1
    else:
        given = checked(node, binder.source, "expression")["expression"]
    plain = replace(
        binder, entries=(), clause="LIMIT", aggregate=None, subquery=None, window=None, grouping=None, aliases={}
    )
    bound = taken_as(plain.bind(given), BIGINT)
    value = bound.value if isinstance(bound, Literal) else None
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 2**62:
        raise reject(
            "DP115", "LIMIT and OFFSET take a whole number", span=binder.span(node), help=["for example  LIMIT 10"]
        )
    return value
