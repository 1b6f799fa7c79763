"""The privacy unit's id goes through UNION ALL unasked, and a FULL join on it is a UNION ALL, too.

`SELECT price FROM a UNION ALL SELECT price FROM b` has as many rows with one more column. If that is the id, rows still
have an owner. Where equal rows become one (UNION, INTERSECT, EXCEPT), another column would keep them apart: none is
added.

A FULL join of two sides that meet on their owner is their LEFT join, and the right side's rows without a partner,
padded. Either part has an id of its own. COALESCE of both ids is that id, on which a third table may be joined.

Example:
    >>> from dpsql.planner.rewrites.releases.keep_private import keep_private
    >>> before_after(
    ...     keep_private, "SELECT COUNT(*) FROM patients p FULL JOIN visits v ON p.patient = v.patient"
    ... )
    join full patient = patient  →  union all
    ├─ scan patients                ├─ join left patient = patient
    └─ scan visits                  │  ├─ scan patients
                                    │  └─ scan visits
                                    └─ join anti patient = patient
                                       ├─ scan visits
                                       └─ scan patients
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import combinations

from dpsql.core.analysis.derive import derive_once
from dpsql.core.analysis.facts import Facts
from dpsql.core.analysis.rules.join_same_unit import joins_same_unit
from dpsql.core.ir.expressions import Call, Column, Expr, Literal
from dpsql.core.ir.expressions import transform as transform_expr
from dpsql.core.ir.nodes import (
    Aggregate,
    Equality,
    Filter,
    Join,
    JoinKind,
    Node,
    SetColumn,
    SetKind,
    SetOperation,
    output_columns,
)
from dpsql.core.ir.walk import renumbered
from dpsql.planner.rewrites.rewrite_context import RewriteContext

Pair = tuple[Column, Column]


@dataclass(slots=True)
class Ids:
    """Adds ids to set operations of a plan; `numbers` are those that no column of it has.

    known: numbers of the two ids that a FULL join had → the column that holds whichever is there.
    """

    ctx: RewriteContext
    numbers: Iterator[int]
    known: dict[frozenset[int], Column] = field(default_factory=dict)

    def united(self, node: SetOperation) -> SetOperation:
        """A UNION ALL of rows of one unit, with the id as its last column if no column holds it yet."""
        if node.kind is not SetKind.UNION or not node.all:
            return node
        if not (self.ctx.private(node.left) and self.ctx.private(node.right)):
            return node
        left, right = (derive_once(n, self.ctx.analysis).fact for n in (node.left, node.right))
        held = ((c.left, c.right) for c in node.columns)
        if left.units != right.units or any(_are_ids(a, b, left, right) for a, b in held):
            return node
        found = _owners(node.left, node.right, left, right)
        return node if found is None else replace(node, columns=(*node.columns, self._column(*found)))

    def parted(self, node: Join) -> Node:
        """A FULL join on the owner as a union of two joins that have an id; any other join as it is."""
        if node.kind is not JoinKind.FULL or not (self.ctx.private(node.left) and self.ctx.private(node.right)):
            return node
        left, right = (derive_once(n, self.ctx.analysis).fact for n in (node.left, node.right))
        found = _owners(node.left, node.right, left, right)
        if found is None or not joins_same_unit(node, left, right):
            return node
        swapped = tuple(Equality(e.right, e.left) for e in node.equalities)
        alone = Join(JoinKind.ANTI, node.right, node.left, swapped, node.residual, node.span)
        first, in_first = renumbered(replace(node, kind=JoinKind.LEFT), self.fresh)
        second, in_second = renumbered(alone, self.fresh)
        padded = {c.uid for c in output_columns(node.left)}
        columns = tuple(
            SetColumn(c, in_first[c.uid], Literal(None, c.type) if c.uid in padded else in_second[c.uid])
            for c in output_columns(node)
        )
        own = self._column(in_first[found[0].uid], in_second[found[1].uid])
        for e in node.equalities:
            if isinstance(e.left, Column) and isinstance(e.right, Column) and _are_ids(e.left, e.right, left, right):
                self.known[frozenset((e.left.uid, e.right.uid))] = own.column
        return SetOperation(SetKind.UNION, True, first, second, (*columns, own), node.span)

    def either(self, node: Node) -> Node:
        """The node with COALESCE of the two ids of a FULL join below it replaced by their one column."""
        if not self.known:
            return node
        match node:
            case Filter(predicate=predicate):
                return replace(node, predicate=self._use(predicate))
            case Join(equalities=pairs, residual=residual):
                used = tuple(Equality(self._use(e.left), self._use(e.right)) for e in pairs)
                return replace(node, equalities=used, residual=None if residual is None else self._use(residual))
            case Aggregate(keys=keys, calls=calls):
                called = tuple(
                    replace(
                        c,
                        arg=None if c.arg is None else self._use(c.arg),
                        second=None if c.second is None else self._use(c.second),
                        filter=None if c.filter is None else self._use(c.filter),
                    )
                    for c in calls
                )
                return replace(node, keys=tuple(replace(k, expr=self._use(k.expr)) for k in keys), calls=called)
            case _:
                return node

    def _use(self, expr: Expr) -> Expr:
        def change(e: Expr) -> Expr:
            if isinstance(e, Call) and e.function == "coalesce" and all(isinstance(a, Column) for a in e.args):
                own = self._one([a for a in e.args if isinstance(a, Column)])
                return e if own is None else replace(own, span=e.span)
            return e

        return transform_expr(expr, change)

    def _one(self, ids: list[Column]) -> Column | None:
        """The column that holds whichever of these ids is there; None if they are not those of FULL joins.

        Those of a row are of one unit, so that it does not matter which comes first.
        """
        while len(ids) > 1:
            found = ((a, b, self.known.get(frozenset((a.uid, b.uid)))) for a, b in combinations(ids, 2))
            merged = next(((a, b, own) for a, b, own in found if own is not None), None)
            if merged is None:
                return None
            ids = [*(c for c in ids if c not in merged[:2]), merged[2]]
        return ids[0]

    def fresh(self, column: Column) -> Column:
        """A column like another one, with a number of its own."""
        return Column(next(self.numbers), column.name, column.type)

    def _column(self, left: Column, right: Column) -> SetColumn:
        return SetColumn(self.fresh(left), left, right)


def _are_ids(a: Expr, b: Expr, left: Facts, right: Facts) -> bool:
    if not isinstance(a, Column) or not isinstance(b, Column) or a.type != b.type:
        return False
    return a.uid in left.ids and b.uid in right.ids


def _owners(a: Node, b: Node, left: Facts, right: Facts) -> Pair | None:
    """An id column of each side, of one type."""
    pairs = (
        (x, y)
        for x in output_columns(a)
        if x.uid in left.ids
        for y in output_columns(b)
        if y.uid in right.ids and x.type == y.type
    )
    return next(pairs, None)
