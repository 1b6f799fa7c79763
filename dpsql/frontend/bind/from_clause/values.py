"""VALUES: rows written in the query, as a relation of constants."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from dpsql.core.ir.expressions import Expr, Literal, LiteralValue, children
from dpsql.core.ir.nodes import Values
from dpsql.core.ir.types import Kind, SqlType
from dpsql.core.values.constants import literal
from dpsql.core.values.value import Missing
from dpsql.diagnostics.diagnostic import Span
from dpsql.diagnostics.errors import Rejected, reject
from dpsql.diagnostics.words import with_article
from dpsql.frontend.bind.expressions.expressions import ExprBinder
from dpsql.frontend.bind.expressions.syntax_arguments import checked
from dpsql.frontend.bind.scope import BoundRelation, VisibleColumn
from dpsql.functions.cast import cast
from dpsql.functions.function import SignatureError

MOST_ROWS = 2_000
"""Most rows that one VALUES may hold; longer lists belong into a table."""

_KINDS = frozenset(
    {Kind.BOOLEAN, Kind.INTEGER, Kind.DECIMAL, Kind.DOUBLE, Kind.VARCHAR, Kind.DATE, Kind.TIMESTAMP, Kind.TIME}
)


def bind_values(node: exp.Values, binder: ExprBinder) -> BoundRelation:
    """The rows of a VALUES list. Columns are called col0, col1, … and have one type each.

    binder: binds the cells; it sees no columns. Raises Rejected: DP101, DP106, DP115.
    """
    binder.numbering.leaf(binder.span(node))
    rows = [_cells(row, binder) for row in checked(node, binder.source, "expressions", "alias")["expressions"]]
    named = node.args.get("alias")
    if named is not None and named.args.get("this") is None:  # (VALUES (1) (2)): a comma is missing
        raise reject(
            "DP101", "names of columns stand behind the name of a relation", span=binder.span(named),
            help=["write a comma between rows, or name the relation:  (VALUES (1), (2)) AS t(x)"],
        )  # fmt: skip
    if len(rows) > MOST_ROWS:
        raise reject(
            "DP101", f"VALUES with more than {MOST_ROWS:,} rows", span=binder.span(node),
            help=["custodian: provide a long list as a public table"],
        )  # fmt: skip
    width = len(rows[0])
    uneven = next((r for r in rows if len(r) != width), None)
    if uneven is not None:
        raise reject(
            "DP101", f"the rows of VALUES have {width} and {len(uneven)} entries", span=uneven[0].span,
            help=["give every row as many entries as the first has"],
        )  # fmt: skip
    columns = [_of_one_type(cells, binder) for cells in zip(*rows, strict=True)]
    shown = tuple(binder.numbering.column(f"col{i}", type_) for i, (type_, _) in enumerate(columns))
    held = tuple(zip(*(values for _, values in columns), strict=True))
    return BoundRelation(Values(shown, held, binder.span(node)), tuple(VisibleColumn("", c.name, c) for c in shown))


def _cells(row: exp.Expr, binder: ExprBinder) -> list[Literal]:
    cells = checked(row, binder.source, "expressions")["expressions"] if isinstance(row, exp.Tuple) else [row]
    return [_constant(binder.bind(cell), binder) for cell in cells]


def _constant(bound: Expr, binder: ExprBinder) -> Literal:
    if isinstance(bound, Literal):
        return bound
    value = binder.value(bound)
    if isinstance(value.constant, Missing):
        raise reject(
            "DP115", "a row of VALUES holds constants only", span=bound.span,
            help=["write the value itself, or pass it as a parameter:  ?, $1 or $name"],
        )  # fmt: skip
    return Literal(value.constant, value.type, bound.span)


def _of_one_type(cells: Sequence[Literal], binder: ExprBinder) -> tuple[SqlType, list[LiteralValue]]:
    """The common type of a column's cells, and their values in it. Texts are read as what stands beside them."""
    at = cells[0].span or Span(0, 1)
    target, alike = cells[0].type, tuple(cells)
    if len({c.type for c in cells}) > 1:
        try:
            unified = binder.call("coalesce", tuple(cells), at)
        except Rejected:
            kinds = " and ".join(dict.fromkeys(str(c.type) for c in cells if c.value is not None))
            raise reject(
                "DP106", f"a column of VALUES mixes {kinds}", span=at,
                help=["write all values of the column in one type"],
            ) from None  # fmt: skip
        target, alike = unified.type, tuple(c for c in children(unified) if isinstance(c, Literal))
    if target.kind not in _KINDS:
        what = "only NULL" if target.kind is Kind.NULL else f"{target} values"
        raise reject(
            "DP106", f"a column of VALUES holds {what}", span=at,
            help=["give it a type, e.g.  CAST(NULL AS INTEGER)" if target.kind is Kind.NULL else "use another type"],
        )  # fmt: skip
    return target, [_converted(c, target) for c in alike]


def _converted(cell: Literal, target: SqlType) -> LiteralValue:
    try:
        value = cast(literal(cell.value, cell.type), target).constant
    except SignatureError:
        value = None
    if isinstance(value, Missing) or (value is None and cell.value is not None):
        raise reject(
            "DP106", f"{cell.value!r} is not {with_article(target)}", span=cell.span,
            help=["write all values of the column in one type"],
        )  # fmt: skip
    return value
