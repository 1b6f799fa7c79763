"""What each row of a relation is made of: the table rows behind it, and the conditions they satisfy.

A row of a tree stands for one row of each table below it, or for NULLs where an outer join padded it. Group keys are
looked for among the rows that these conditions let through, so a condition that does not hold must not be listed here,
and one that is left out only makes the list of keys longer.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import assert_never

from dpsql.core.analysis.context import Derivation
from dpsql.core.analysis.derive import derive_once
from dpsql.core.analysis.empty_relations import never
from dpsql.core.ir.conditions import conjuncts
from dpsql.core.ir.expressions import Call, Column, Expr
from dpsql.core.ir.expressions import transform as transform_expr
from dpsql.core.ir.nodes import (
    Aggregate,
    BoundContributions,
    Filter,
    GroupKeys,
    Item,
    Join,
    JoinKind,
    Limit,
    Node,
    Project,
    Release,
    Scan,
    SetOperation,
    Sort,
    Truncate,
    Unnest,
    Values,
    Window,
    output_columns,
)
from dpsql.core.ir.types import BOOLEAN
from dpsql.core.value_classes import replace, value
from dpsql.core.values.value import Value

Padding = frozenset[int]
"""Columns of one side of an outer join: where it pads, all of them are NULL at once."""
NEVER: frozenset[Padding] = frozenset()


@value(frozen=True, slots=True)
class RowCondition:
    """A condition over table columns that is true for every row, unless one of these paddings made it up."""

    condition: Expr
    unless: frozenset[Padding] = NEVER


@value(frozen=True, slots=True)
class Origin:
    """A column that expressions are traced back to.

    source: its Scan or Values; the SetOperation that made it; None if nothing is known of its keys but `value`.
    """

    column: Column
    value: Value
    source: Scan | Values | SetOperation | None = None
    public: bool = False


@dataclass(frozen=True, slots=True)
class PaddedExpression:
    """An expression on the padded side of an outer join: its value for a row of that side, or NULL."""

    expr: Expr
    rows: RelationRows


@value(frozen=True, slots=True)
class RelationRows:
    """The rows of a tree.

    origins: the columns below, by number. definitions: what projected columns are, in terms of origins.
    computed: origins that are expressions of a padded side. terms: conditions. paddings: what may be padded.
    """

    origins: dict[int, Origin]
    definitions: dict[int, Expr]
    computed: dict[int, PaddedExpression]
    terms: tuple[RowCondition, ...]
    paddings: frozenset[Padding]

    def resolve(self, expr: Expr) -> Expr:
        """The expression in terms of origins."""
        if not self.definitions:
            return expr
        return transform_expr(expr, lambda e: self.definitions.get(e.uid, e) if isinstance(e, Column) else e)


def rows_of(node: Node, ctx: Derivation) -> RelationRows:
    """What the rows of `node` are made of. The tree must have facts."""
    match node:
        case Scan() | Values():
            return _leaf(node, ctx)
        case Filter(input=child, predicate=predicate):
            return _where(rows_of(child, ctx), [predicate])
        case Project(input=child, items=items):
            return _defined(rows_of(child, ctx), items)
        case Aggregate(input=child, keys=keys, calls=calls):
            # A group stands for any of its rows; a result without keys, which is there even of no rows, for none.
            below = _defined(rows_of(child, ctx), keys) if keys else _nothing()
            return _opaque(below, node, {c.column.uid for c in calls}, ctx)
        case Join():
            return _join(node, ctx)
        case SetOperation(columns=columns):
            return _opaque(_nothing(), node, {c.column.uid for c in columns}, ctx)
        case Unnest(input=child, column=column):
            return _opaque(rows_of(child, ctx), node, {column.uid}, ctx)
        case Window(input=child, calls=windows):
            return _opaque(rows_of(child, ctx), node, {w.column.uid for w in windows}, ctx)
        case Release():
            return _opaque(_nothing(), node, {c.uid for c in output_columns(node)}, ctx)
        case GroupKeys(input=child, items=items):
            return _defined(rows_of(child, ctx), items)
        case Truncate(input=child) | Sort(input=child) | Limit(input=child) | BoundContributions(input=child):
            return rows_of(child, ctx)
        case _:
            assert_never(node)


def _nothing() -> RelationRows:
    return RelationRows({}, {}, {}, (), NEVER)


def _leaf(node: Scan | Values, ctx: Derivation) -> RelationRows:
    facts = derive_once(node, ctx).fact
    origins = {c.uid: Origin(c, facts.columns[c.uid].value, node, facts.public) for c in node.columns}
    return replace(_nothing(), origins=origins)


def _opaque(below: RelationRows, node: Node, uids: set[int], ctx: Derivation) -> RelationRows:
    """Columns that the node computes, and of which only their facts are known."""
    facts = derive_once(node, ctx).fact
    source = node if isinstance(node, SetOperation) else None
    new = {c.uid: Origin(c, facts.columns[c.uid].value, source) for c in output_columns(node) if c.uid in uids}
    return replace(below, origins={**below.origins, **new})


def _defined(below: RelationRows, items: Iterable[Item]) -> RelationRows:
    new = {i.column.uid: below.resolve(i.expr) for i in items}
    return replace(below, definitions={**below.definitions, **new})


def _where(below: RelationRows, conditions: Iterable[Expr], unless: frozenset[Padding] = NEVER) -> RelationRows:
    """What a constant leaves no row for shows all keys that it would show with rows."""
    new = [RowCondition(t, unless) for c in conditions for t in conjuncts(below.resolve(c)) if not never(t)]
    return replace(below, terms=(*below.terms, *new))


def _join(node: Join, ctx: Derivation) -> RelationRows:
    """A SEMI join stands for a row of the left side and one that it matches; of an ANTI join's right side none is left.

    The ON condition of an outer join says nothing about rows that are padded, nor does any condition of the side that
    is missing there.
    """
    left = rows_of(node.left, ctx)
    if node.kind is JoinKind.ANTI:
        return left
    right = rows_of(node.right, ctx)
    unless = NEVER
    if node.narrowed or node.kind in (JoinKind.LEFT, JoinKind.FULL):
        right, padding = _padded(right)
        unless |= padding
    if node.kind is JoinKind.FULL:
        left, padding = _padded(left)
        unless |= padding
    both = RelationRows(
        {**left.origins, **right.origins},
        {**left.definitions, **right.definitions},
        {**left.computed, **right.computed},
        left.terms + right.terms,
        left.paddings | right.paddings,
    )
    conditions: list[Expr] = [Call("eq", (e.left, e.right), BOOLEAN) for e in node.equalities]
    return _where(both, conditions if node.residual is None else [*conditions, node.residual], unless)


def _padded(side: RelationRows) -> tuple[RelationRows, frozenset[Padding]]:
    """The side where it may be missing. What was computed from its columns is NULL there, too: it has to stay whole."""
    if not side.origins:
        return side, NEVER
    origins, computed = dict(side.origins), dict(side.computed)
    definitions: dict[int, Expr] = {}
    for uid, expr in side.definitions.items():
        if isinstance(expr, Column):
            definitions[uid] = expr
            continue
        origins[uid] = Origin(Column(uid, "computed", expr.type), Value(expr.type))
        computed[uid] = PaddedExpression(expr, side)
    mark = frozenset({frozenset(origins)})
    terms = tuple(RowCondition(t.condition, t.unless | mark) for t in side.terms)
    return RelationRows(origins, definitions, computed, terms, side.paddings | mark), mark
