"""Several quantiles in one call: QUANTILE_CONT(x, [0.25, 0.5]) is a list of two aggregates, and [1] is one of them.

Each is measured, and paid, by itself; the list is made of the answers. An answer shows it, and nothing else reads it.
"""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp

from dpsql.core.ir.expressions import Call, Column, Expr
from dpsql.core.ir.expressions import walk as walk_expr
from dpsql.core.ir.nodes import Node, Project
from dpsql.core.ir.walk import expressions, walk
from dpsql.diagnostics.errors import reject
from dpsql.frontend.bind.aggregates.quantiles import position
from dpsql.frontend.bind.expressions.expressions import ExprBinder
from dpsql.frontend.bind.expressions.function_names import listed_shares
from dpsql.frontend.bind.expressions.syntax_arguments import checked

_HARMLESS = ("value_constructor", "bracket_notation", "struct_name_inheritance")
"""How a list is written."""


def listed(node: exp.Expr, binder: ExprBinder) -> list[exp.Expr] | None:
    """The calls that a call with a list of p stands for; None for every other aggregate. Raises Rejected."""
    found = None if isinstance(node, exp.Bracket) else listed_shares(node)
    if found is None:
        return None
    given = checked(found, binder.source, "expressions", *_HARMLESS).get("expressions", [])
    if not given:
        raise reject(
            "DP106", "a list of quantiles needs a p", span=binder.span(node), help=["as in  [0.25, 0.5, 0.75]"]
        )
    return [_with(node, p) for p in given]


def element(node: exp.Expr, binder: ExprBinder) -> exp.Expr | None:
    """Of an indexed call with a list of p the call of the one that is read; None for everything else."""
    if not isinstance(node, exp.Bracket) or listed_shares(node) is None:
        return None
    calls = listed(node.this.unnest(), binder)
    assert calls is not None
    return calls[position(node, len(calls), binder)]


def _with(node: exp.Expr, p: exp.Expr) -> exp.Expr:
    """The call with one p in place of the list."""
    made = node.copy()
    found = listed_shares(made)
    assert found is not None
    found.replace(p.copy())
    return made


def require_only_shown(root: Node) -> None:
    """Refuse what reads a list of quantiles, of a query that makes one. Raises Rejected DP101."""
    lists = {
        item.column.uid
        for node in walk(root)
        if isinstance(node, Project)
        for item in node.items
        if isinstance(item.expr, Call) and item.expr.function == "list_of"
    }
    # A column that only passes a list on is one, too.
    for node in reversed(list(walk(root))):
        if isinstance(node, Project):
            lists |= {i.column.uid for i in node.items if isinstance(i.expr, Column) and i.expr.uid in lists}
    for node in walk(root):
        for found in _read(node):
            for e in walk_expr(found):
                if _is_list(e) or (isinstance(e, Column) and e.uid in lists):
                    raise reject(
                        "DP101", "a list of quantiles can be shown, but not compared, sorted or computed with",
                        span=e.span or found.span,
                        help=["write a column for each, or read one of the list:  QUANTILE_CONT(x, [0.25, 0.75])[1]"],
                    )  # fmt: skip


def _read(node: Node) -> Iterator[Expr]:
    """The expressions of a node that do more than to show a list."""
    for found in expressions(node):
        if not isinstance(node, Project):
            yield found
        elif isinstance(found, Call) and found.function == "list_of":
            yield from found.args
        elif not isinstance(found, Column):
            yield found


def _is_list(e: Expr) -> bool:
    return isinstance(e, Call) and e.function == "list_of"
