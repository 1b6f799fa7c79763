"""GROUP BY: which expressions are keys, and what may be read above the aggregate."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from sqlglot import exp

from dpsql.core.ir.by_identity import ByIdentity
from dpsql.core.ir.expressions import Call, Cast, Column, Expr, Literal, columns_of, walk
from dpsql.core.ir.nodes import Item
from dpsql.core.ir.step_count import take
from dpsql.core.value_classes import replace
from dpsql.diagnostics.errors import reject
from dpsql.diagnostics.together import Followup, Together
from dpsql.diagnostics.words import small
from dpsql.frontend.bind.clauses.grouping_sets import Groups, written_sets
from dpsql.frontend.bind.expressions.expressions import ExprBinder
from dpsql.frontend.bind.expressions.syntax_arguments import checked
from dpsql.frontend.bind.scope import VisibleColumn, has

Named = list[tuple[str, Expr]]
"""The SELECT items, with their names."""


def groups_of(
    group: exp.Expr | None,
    named: Named,
    aliases: Mapping[str, Expr],
    binder: ExprBinder,
    above: Callable[[Expr], bool],
) -> Groups:
    """The group columns and their sets; without GROUP BY one empty set.

    above: whether an expression reads an aggregate or a window. Raises Rejected.
    """
    if group is None:
        return Groups((), (frozenset(),))
    args = checked(group, binder.source, "expressions", "all", "rollup", "cube")
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
        found = _Found(binder, named)
        for e in dict.fromkeys(e for _, e in named if not above(e)):
            found.place(e)
        return Groups(tuple(found.keys.values()), (frozenset(range(len(found.keys))),))
    binder.aliases = unless_column(aliases, binder.entries)
    return _sets(_elements(args, binder), named, binder, above)


def _elements(args: Mapping[str, Any], binder: ExprBinder) -> list[exp.Expr]:
    """The elements of GROUP BY; `a, b WITH ROLLUP` (MySQL, T-SQL) is ROLLUP (a, b)."""
    nodes = list(args.get("expressions", []))
    for name, kind in (("rollup", exp.Rollup), ("cube", exp.Cube)):
        for given in args.get(name, []):
            checked(given, binder.source)
            nodes = [kind(expressions=nodes)]
    return nodes


def _sets(nodes: list[exp.Expr], named: Named, binder: ExprBinder, above: Callable[[Expr], bool]) -> Groups:
    written = written_sets(nodes, binder)
    several = any(isinstance(n, (exp.GroupingSets, exp.Rollup, exp.Cube)) for n in nodes)
    found, together = _Found(binder, named), Together()
    places: ByIdentity[exp.Expr, int | None] = ByIdentity()
    for node in (node for keys in written for node in keys):
        if node in places:
            continue
        places[node] = None
        with together.attempt():
            e = ordinal(node, named, binder) or binder.bind(node)
            if above(e):
                raise reject(
                    "DP108", "GROUP BY cannot contain an aggregate or a window function", span=e.span,
                    help=[
                        "group by columns of the tables; filter aggregates in HAVING, windows with QUALIFY",
                        "for quarters of all rows (NTILE) group by ranges of the value:  GROUP BY floor(x / 100)",
                    ],
                )  # fmt: skip
            if several and not columns_of(e):
                raise reject(
                    "DP101", "a constant cannot be a key of ROLLUP, CUBE or GROUPING SETS", span=binder.span(node),
                    help=["leave it out, or tell the sets apart with GROUPING(x)"],
                )  # fmt: skip
            places[node] = found.place(e)
    together.settle()
    sets = tuple(frozenset(at for node in keys if (at := places[node]) is not None) for keys in written)
    return Groups(tuple(found.keys.values()), sets, written == [()])


@dataclass(slots=True)
class _Found:
    """The group columns found so far: each expression once. A constant is none."""

    binder: ExprBinder
    named: Named
    keys: dict[Expr, Item] = field(default_factory=dict)

    def place(self, e: Expr) -> int | None:
        """The position of an expression among the keys."""
        if not columns_of(e):
            return None
        take(1 + len(self.keys) // 4)
        if e not in self.keys:
            take(len(self.named) // 4)
            name = next((n for n, x in self.named if x == e), e.name if isinstance(e, Column) else "key")
            self.keys[e] = Item(self.binder.numbering.column(name, e.type, e.span), e)
        return list(self.keys).index(e)


def ordinal(node: exp.Expr, named: Named, binder: ExprBinder) -> Expr | None:
    """The SELECT item at the position that a whole number in GROUP BY or ORDER BY gives; None for anything else."""
    if not isinstance(node, exp.Literal) or node.args.get("is_string"):
        return None
    at = str(node.this)
    position = small(at) or 0
    if not 1 <= position <= len(named):
        shown = at if len(at) < 20 else f"{at[:10]}…"
        raise reject(
            "DP101", f"position {shown} is not in the SELECT list", span=binder.span(node),
            help=[f"use a position from 1 to {len(named)}, or a name"],
        )  # fmt: skip
    name, found = named[position - 1]
    if name.lower() in binder.failed:
        raise Followup
    return found


def unless_column(aliases: Mapping[str, Expr], entries: Iterable[VisibleColumn]) -> dict[str, Expr]:
    """Aliases that GROUP BY and HAVING may use: a real column of the same name comes first."""
    known = tuple(entries)
    return {n: e for n, e in aliases.items() if not has(known, n)}


class Above:
    """Rewrites an expression of SELECT, HAVING or ORDER BY to read the aggregate's output instead of its input.

    known: numbers of the columns that are there above the aggregate, those of the keys apart.
    constants: columns that stand for a constant.
    """

    def __init__(
        self, keys: tuple[Item, ...], known: Iterable[int] = (), constants: Mapping[int, Literal] | None = None
    ) -> None:
        self.keys = {k.expr: k.column for k in keys}
        self.known = {k.column.uid for k in keys} | set(known)
        self.constants = constants or {}

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
            case Column(uid=uid) if uid in self.constants:
                return self.constants[uid]
            case _:
                return expr
