"""GROUP BY: which expressions are keys, and what may be read above the aggregate."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from sqlglot import exp

from dpsql.diagnostics.errors import reject
from dpsql.plan.expr import Call, Cast, Column, Expr, Literal, walk
from dpsql.plan.nodes import Item
from dpsql.sql.aggregates import AggregateCollector
from dpsql.sql.bind_expr import ExprBinder
from dpsql.sql.checked import checked
from dpsql.sql.scope import Entry, has

Named = list[tuple[str, Expr]]
"""The SELECT items, with their names."""


def keys(
    group: exp.Expr | None,
    named: Named,
    aliases: Mapping[str, Expr],
    binder: ExprBinder,
    collector: AggregateCollector,
) -> tuple[Item, ...]:
    """The group columns; () without GROUP BY. Raises Rejected."""
    if group is None:
        return ()
    args = checked(group, binder.source, "expressions", "all")
    if group.args.get("all") is not None and (args.get("all") is None or "expressions" in args):
        raise reject(
            "DP101", "GROUP BY takes ALL alone, or a list of expressions", span=binder.span(group),
            help=["write GROUP BY ALL, or GROUP BY and the expressions"],
        )  # fmt: skip
    if not args:
        raise reject(
            "DP010", "syntax error: GROUP BY names nothing", span=binder.span(group),
            help=["write the expressions to group by, or GROUP BY ALL"],
        )  # fmt: skip
    if args.get("all"):
        chosen = [(n, e) for n, e in named if not collector.reads(e)]
        exprs = list(dict.fromkeys(e for _, e in chosen))
    else:
        exprs = []
        binder.aliases = unless_column(aliases, binder.entries)
        for node in args.get("expressions", []):
            if isinstance(node, exp.Rollup | exp.Cube | exp.GroupingSets):
                what = "GROUPING SETS" if isinstance(node, exp.GroupingSets) else type(node).__name__.upper()
                raise reject(
                    "DP101", f"{what} is not supported yet", span=binder.span(node),
                    help=["ask one query for each set of columns"],
                )  # fmt: skip
            exprs.append(ordinal(node, named, binder) or binder.bind(node))
    keys: dict[Expr, Item] = {}
    for e in exprs:
        if collector.reads(e):
            raise reject(
                "DP108", "GROUP BY cannot contain an aggregate", span=e.span,
                help=["group by columns of the tables; filter aggregates in HAVING"],
            )  # fmt: skip
        if not isinstance(e, Literal) and e not in keys:
            name = next((n for n, x in named if x == e), e.name if isinstance(e, Column) else "key")
            keys[e] = Item(binder.numbering.column(name, e.type, e.span), e)
    return tuple(keys.values())


def ordinal(node: exp.Expr, named: Named, binder: ExprBinder) -> Expr | None:
    """The SELECT item at the position that a whole number in GROUP BY or ORDER BY gives; None for anything else."""
    if not isinstance(node, exp.Literal) or node.args.get("is_string"):
        return None
    at = str(node.this)
    if not at.isdigit() or not 1 <= int(at) <= len(named):
        raise reject(
            "DP101", f"position {at} is not in the SELECT list", span=binder.span(node),
            help=[f"use a position from 1 to {len(named)}, or a name"],
        )  # fmt: skip
    return named[int(at) - 1][1]


def unless_column(aliases: Mapping[str, Expr], entries: Iterable[Entry]) -> dict[str, Expr]:
    """Aliases that GROUP BY and HAVING may use: a real column of the same name comes first."""
    known = tuple(entries)
    return {n: e for n, e in aliases.items() if not has(known, n)}


class Above:
    """Rewrites an expression of SELECT, HAVING or ORDER BY to read the aggregate's output instead of its input."""

    def __init__(self, keys: tuple[Item, ...], collector: AggregateCollector, joined: Iterable[int] = ()) -> None:
        """joined: numbers of the columns that are joined above the aggregate."""
        self.keys = {k.expr: k.column for k in keys}
        self.known = {k.column.uid for k in keys} | {c.column.uid for c in collector.calls} | set(joined)

    def __call__(self, expr: Expr) -> Expr:
        placed = self._replace(expr)
        for e in walk(placed):
            if isinstance(e, Column) and e.uid not in self.known:
                raise reject(
                    "DP109", f"{e.name} is neither grouped nor aggregated", span=e.span or expr.span,
                    help=[f"add {e.name} to GROUP BY, or aggregate it"],
                )  # fmt: skip
        return placed

    def _replace(self, expr: Expr) -> Expr:
        if expr in self.keys:
            return replace(self.keys[expr], span=expr.span)
        match expr:
            case Call(args=args):
                return replace(expr, args=tuple(self._replace(a) for a in args))
            case Cast(arg=arg):
                return replace(expr, arg=self._replace(arg))
            case _:
                return expr
