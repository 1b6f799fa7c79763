"""UNNEST: one row per element of a list column, cut to the length that the policy declares.

In a SELECT list it means what it means in FROM: the rows are multiplied before they are grouped.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from dpsql.core.ir.expressions import Column, Expr
from dpsql.core.ir.nodes import Filter, Join, Node, Project, Scan, Unnest, inputs, output_columns
from dpsql.core.ir.types import Kind
from dpsql.core.policy import tables as declared
from dpsql.core.policy.policy import Policy
from dpsql.diagnostics.diagnostic import Source
from dpsql.diagnostics.errors import reject
from dpsql.frontend.bind.expressions.expressions import ExprBinder
from dpsql.frontend.bind.expressions.syntax_arguments import checked, column_names
from dpsql.frontend.bind.scope import VisibleColumn
from dpsql.frontend.text.spans import span_of

_REPAIR = "write  FROM t, UNNEST(t.tags) AS u(tag)  with a list column of a table"


def listed(item: exp.Expr) -> exp.Unnest | None:
    """The UNNEST that a FROM item is, with or without LATERAL; None if it is something else."""
    if isinstance(item, exp.Unnest):
        return item
    if isinstance(item, exp.Lateral) and isinstance(item.this, exp.Unnest):
        return item.this
    return None


def selected(items: Sequence[exp.Expr]) -> exp.Explode | None:
    """The UNNEST of a SELECT list that may be moved into FROM: the only one, an item of its own, beside no window."""
    plain = [item.this if isinstance(item, exp.Alias) else item for item in items]
    found = [item for item in plain if isinstance(item, exp.Explode)]
    if len(found) != 1 or found[0].expressions or any(item.find(exp.Window) for item in plain):
        return None
    return found[0]


def bind_unnest(
    item: exp.Expr, node: Node, binder: ExprBinder, policy: Policy, alias: exp.Expr | None
) -> tuple[Unnest, VisibleColumn]:
    """The rows of `node`, one for each element of their list, and the element as a column.

    item: an UNNEST as `listed` or `selected` finds it. binder: sees the columns of `node`. alias: the FROM item's, or
        None.
    Raises Rejected: DP101, DP106, DP210 (no declared length), and those of names.
    """
    source = binder.source
    if item.args.get("offset"):
        raise reject(
            "DP101", "WITH ORDINALITY is not supported", span=binder.span(item),
            help=["leave it out: elements are counted, not numbered"],
        )  # fmt: skip
    at = binder.span(item)
    if isinstance(item, exp.Explode):
        lists = [checked(item, source, "this")["this"]]
    else:
        lists = checked(item, source, "expressions", "alias")["expressions"]
    if len(lists) != 1:
        raise reject("DP101", "UNNEST of several lists at once", span=at, help=["unnest one list column"])
    (written,) = lists
    if not isinstance(written, exp.Column):
        raise reject("DP101", "UNNEST of something that is no column", span=at, help=[_REPAIR])
    column = binder.bind(written)
    assert isinstance(column, Column)
    if column.type.kind is not Kind.LIST or column.type.item is None:
        raise reject("DP106", f"UNNEST needs a list, not {column.type}", span=at, help=["name a list column"])
    found = origin(node, column)
    if found is None:
        raise reject(
            "DP101", "UNNEST of a computed list", span=at, label=f"{column.name} is no column of a table here",
            help=[_REPAIR],
        )  # fmt: skip
    table, name = found
    known = policy.table(table)
    policy_column: declared.Column | None = None if known is None else known.column(name)
    if policy_column is None or policy_column.max_length is None:
        raise reject(
            "DP210", f"nothing bounds how many elements {table}.{name} has", span=at,
            label="each element becomes a row",
            help=[f"custodian: declare under tables.{table}.columns.{name}:  max_length: …"],
        )  # fmt: skip
    relation, label = _names(alias, source)
    element = binder.numbering.column(label, column.type.item, at)
    entry = VisibleColumn(relation, label, element, also="unnest")
    return Unnest(node, column, policy_column.max_length, element, at), entry


def _names(alias: exp.Expr | None, source: Source) -> tuple[str, str]:
    """(table, column): an alias without column names names both."""
    if alias is None:
        return "unnest", "unnest"
    names = checked(alias, source, "this", "columns")
    columns = column_names(names.get("columns", []), source)
    if len(columns) > 1:
        raise reject(
            "DP101", f"{len(columns)} column names for 1 column", span=span_of(alias, source.text),
            help=["UNNEST gives one column"],
        )  # fmt: skip
    relation = names["this"].name if "this" in names else "unnest"
    return relation, columns[0] if columns else relation


def origin(node: Node, column: Expr) -> tuple[str, str] | None:
    """(table, column) that a column of a node is, unchanged; None if it is computed."""
    if not isinstance(column, Column):
        return None
    match node:
        case Scan(table=table, columns=columns):
            return next(((table, c.name) for c in columns if c.uid == column.uid), None)
        case Project(input=child, items=items):
            return next((origin(child, i.expr) for i in items if i.column.uid == column.uid), None)
        case Filter() | Join() | Unnest():
            below = (n for n in inputs(node) if any(c.uid == column.uid for c in output_columns(n)))
            return next((origin(n, column) for n in below), None)
        case _:
            return None
