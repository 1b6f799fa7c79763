"""IN, EXISTS and = ANY over a subquery as values: under OR, in CASE, in FILTER, as a group key.

Each row looks up its partner among the distinct rows of the subquery, in a LEFT join, which neither multiplies nor
drops rows; it has a match where it finds one. Whatever the rows are, that join is judged as any other.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from dpsql.core.ir.expressions import Column
from dpsql.core.ir.nodes import Aggregate, Equality, Item, Node
from dpsql.diagnostics.diagnostic import Span
from dpsql.diagnostics.errors import Rejected, reject
from dpsql.frontend.bind.parameters import Numbering


def is_asked(node: exp.Expr) -> bool:
    """Whether a condition is only asked whether it is true, so that NULL and false are the same there."""
    above = node.parent
    while isinstance(above, (exp.Paren, exp.And, exp.Or)):
        node, above = above, above.parent
    match above:
        case exp.Where() | exp.Having() | exp.CountIf():
            return True
        case exp.If():
            searched = not isinstance(above.parent, exp.Case) or above.parent.args.get("this") is None
            return searched and above.this is node
        case _:
            return False


def distinct(right: Node, equalities: Sequence[Equality], numbering: Numbering, span: Span) -> Aggregate:
    """What the right sides of equalities are in any row of the subquery, each combination once."""
    keys = []
    for pair in equalities:
        name = pair.right.name if isinstance(pair.right, Column) else "key"
        keys.append(Item(numbering.column(name, pair.right.type, span), pair.right))
    return Aggregate(right, tuple(keys), (), span, inner=True)


def not_tied(span: Span) -> Rejected:
    """A subquery of which no equality says which of its rows belong to a row."""
    return reject(
        "DP111", "IN, EXISTS and ANY over a subquery can stand here only with equalities", span=span,
        label="which of its rows belong to a row must be told by = alone",
        help=[
            "write the other conditions as a term of their own:  WHERE … AND EXISTS (SELECT …);"
            "  ask one query for each case of an OR"
        ],
    )  # fmt: skip


def may_be_null(subject: str, span: Span) -> Rejected:
    """An IN whose NULL would be shown, or turned by NOT into something else than false."""
    return reject(
        "DP111", "this IN may be NULL, which is neither true nor false", span=span,
        label="a value that is compared may be NULL",
        help=[f"ask whether it is true:  CASE WHEN {subject} IN (SELECT …) THEN 1 ELSE 0 END,  or use EXISTS"],
    )  # fmt: skip
