"""Inner and cross join.

Claim. ROW: with a public side of which at most m rows match any one private row, stability is m·k; without
    equalities m is the public side's size. ID: joined with a public side, or with a private side of the same unit on
    the bare id, still only that id's rows change. Any other join of two private sides is unbounded.
Why: a row that differs takes part in at most m output rows [tight]; rows joined on the id belong to that id. The
    residual predicate is a filter on the joined rows.
When it would be false: m counted under another comparison than the join's (so both sides have the same type, and the
    public side's columns are bare); an equality on an expression of the id (f(id) may merge ids); the public side of
    an equality reading private columns (cannot be: each side reads its own input).
Tested by: tests/property/test_stability.py, tests/unit/analysis/test_join.py
"""

from __future__ import annotations

from dataclasses import replace

from dpsql.analysis.context import Context
from dpsql.analysis.facts import Columns, Facts
from dpsql.analysis.values import evaluate
from dpsql.diagnostics.diagnostic import Reason
from dpsql.diagnostics.errors import reject
from dpsql.numbers.cap import ONE, Cap, Finite, Unbounded, finite, smaller, times
from dpsql.plan.expr import Column
from dpsql.plan.nodes import Equality, Filter, Join, Node, Project, Scan
from dpsql.plan.public import FrequencyOf, RowsOf
from dpsql.types import Kind, SqlType


def join(node: Join, left: Facts, right: Facts, ctx: Context) -> Facts:
    """Facts of the joined rows."""
    columns = {**left.columns, **right.columns}
    if node.residual is not None:
        evaluate(node.residual, {uid: c.value for uid, c in columns.items()})
    for pair in node.equalities:
        _same_type(pair, left, right)
    m_left = _most_matches(node.left, left, tuple(e.left for e in node.equalities), node, ctx)
    m_right = _most_matches(node.right, right, tuple(e.right for e in node.equalities), node, ctx)
    frequency: dict[Columns, Cap] = {c: times(cap, m_right) for c, cap in left.frequency.items()}
    for known, cap in right.frequency.items():
        new = times(cap, m_left)
        frequency[known] = smaller(frequency[known], new) if known in frequency else new
    keys: set[Columns] = {a | b for a in left.keys for b in right.keys}
    if m_right == ONE:
        keys |= left.keys
    if m_left == ONE:
        keys |= right.keys
    merged = Facts(columns, keys=frozenset(keys), frequency=frequency, rule="public join")
    if left.public and right.public:
        return merged
    if not left.public and not right.public:
        return _both_private(node, left, right, merged)
    private, m = (left, m_right) if right.public else (right, m_left)
    if private.ids:
        return replace(
            merged, unit=private.unit, ids=private.ids, stability=private.stability, replaced=private.replaced,
            by_id=private.by_id | _determined(node, left, right, m, private), rule="join a public table", note="",
        )  # fmt: skip
    stability = {unit: times(cap, m) for unit, cap in private.stability.items()}
    return replace(
        merged, unit=private.unit, stability=stability, replaced=private.replaced,
        rule=f"join a public table ×{m}", note="",
    )  # fmt: skip


def _both_private(node: Join, left: Facts, right: Facts, merged: Facts) -> Facts:
    same = left.unit == right.unit and left.ids and right.ids
    on_id = any(
        isinstance(e.left, Column)
        and isinstance(e.right, Column)
        and e.left.uid in left.ids
        and e.right.uid in right.ids
        for e in node.equalities
    )
    if same and on_id:
        return replace(
            merged, unit=left.unit, ids=left.ids | right.ids, stability=left.stability, replaced=left.replaced,
            by_id=left.by_id | right.by_id, rule="join on the privacy unit", note="",
        )  # fmt: skip
    how = "join them on the privacy unit's id" if same else "join a public table instead"
    raise reject(
        "DP230", "two private tables are joined on something other than their privacy unit", span=node.span,
        label="one person's row can meet any number of other people's rows", help=[how],
    )  # fmt: skip


def _determined(node: Join, left: Facts, right: Facts, m: Cap, private: Facts) -> Columns:
    """Columns of the public side are functions of the id if its one matching row is found by functions of the id."""
    public = right if private is left else left
    ends = [e.left if private is left else e.right for e in node.equalities]
    if m == ONE and ends and all(isinstance(e, Column) and e.uid in private.by_id for e in ends):
        return frozenset(public.columns)
    return frozenset()


def _most_matches(node: Node, facts: Facts, ends: tuple[object, ...], join: Join, ctx: Context) -> Cap:
    """m: most rows of one side that can match a given row of the other.

    A number declared for a public table is noted as used, so that the run checks it against the table.
    """
    columns = frozenset(e.uid for e in ends if isinstance(e, Column))
    best = facts.most_rows(columns) if columns else None
    if not facts.public:
        return best if best is not None else _unbounded(join, "a private table")
    table = _table_of(node)
    if table is None:
        return best if best is not None else _unbounded(join, "a public relation")
    if not ends:
        rows = ctx.public.number(RowsOf(table.table))
        return finite(rows) if rows is not None else _unbounded(join, table.table)
    chosen = tuple(sorted(c.name for c in table.columns if c.uid in columns))
    if not chosen:
        return best if best is not None else _unbounded(join, table.table)
    request = FrequencyOf(table.table, chosen)
    if isinstance(best, Finite):
        ctx.public.used[request] = int(best.value)
        return best
    measured = ctx.public.number(request)
    return _unbounded(join, table.table, chosen) if measured is None else finite(max(1, measured))


def _table_of(node: Node) -> Scan | None:
    """The one public table a side consists of, filtered or projected: filtering never raises a frequency."""
    match node:
        case Scan():
            return node
        case Filter(input=child) | Project(input=child):
            return _table_of(child)
        case _:
            return None


def _unbounded(node: Join, what: str, columns: tuple[str, ...] = ()) -> Unbounded:
    listed = ", ".join(columns)
    if columns:
        label = "each match copies the row"
        repair = (
            f"custodian: declare for {what}:  unique: [[{listed}]]   or   "
            f"max_frequency: [{{columns: [{listed}], rows: …, enforce: assume}}]"
        )
    elif node.equalities:
        label, repair = "the key of the other side is computed", f"join on a bare column of {what}:  ON … = column"
    else:
        label, repair = "every row matches", f"join on an equality with a column of {what}:  ON … = column"
    return Unbounded(
        (
            Reason(
                "DP210",
                f"nothing bounds how many rows of {what} match one row in this join",
                node.span,
                label,
                (repair,),
            ),
        )
    )


def _same_type(pair: Equality, left: Facts, right: Facts) -> None:
    a, b = evaluate(pair.left, left.env).type, evaluate(pair.right, right.env).type
    span = pair.left.span or pair.right.span
    if a.kind is Kind.DOUBLE or b.kind is Kind.DOUBLE:
        raise reject(
            "DP117", "floating-point columns cannot be join keys", span=span,
            help=["join on an integer, text or date column"],
        )  # fmt: skip
    if not _exact_comparison(a, b):
        raise reject(
            "DP117", f"join keys have different types: {a} and {b}", span=span,
            label="how often a key repeats would depend on the conversion",
            help=["join columns of the same type, or change the type in the data"],
        )  # fmt: skip


def _exact_comparison(a: SqlType, b: SqlType) -> bool:
    """Whether comparing the two types converts neither in a way that merges values."""
    return a == b or (a.kind is Kind.INTEGER and b.kind is Kind.INTEGER)
