"""Groups that a released list leaves out are not shown: with no row, they would be noise alone.

Rows are joined with released groups, or looked up in them: `JOIN (SELECT … GROUP BY k ORDER BY n DESC LIMIT 5)`, `k IN
(SELECT …)`, `k NOT IN (SELECT …)`. The public lists that the answer's keys come from have the other groups, too. They
are left out when all numbers are released, by the list as it was released: it is measured once.

Example:
    >>> before_after(
    ...     leave_out_unlisted,
    ...     "SELECT region, COUNT(*) FROM patients JOIN"
    ...     " (SELECT region AS r, COUNT(*) AS n FROM patients GROUP BY r HAVING n > 9) ON region = r GROUP BY region",
    ... )
    aggregate COUNT(*) by region      →  join semi region = r
    └─ join inner region = r             ├─ aggregate COUNT(*) by region
       ├─ scan patients                  │  └─ join inner region = r
       └─ filter count > 9               │     ├─ scan patients
          └─ aggregate COUNT(*) by r     │     └─ filter count > 9
             └─ scan patients            │        └─ aggregate COUNT(*) by r
                                         │           └─ scan patients
                                         └─ filter n > 9
                                            └─ aggregate COUNT(*) by r
                                               └─ scan patients
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from dpsql.core.ir.conditions import conjunction, conjuncts
from dpsql.core.ir.expressions import Call, Column, Expr, columns_of
from dpsql.core.ir.expressions import transform as transform_expr
from dpsql.core.ir.nodes import Aggregate, Equality, Filter, Item, Join, JoinKind, Node, output_columns
from dpsql.core.ir.types import BOOLEAN
from dpsql.core.ir.walk import renumbered, transform, unused_numbers, walk
from dpsql.core.value_classes import replace
from dpsql.planner.rewrites.rewrite_context import RewriteContext


def leave_out_unlisted(root: Node, ctx: RewriteContext) -> Node:
    """Keep of released groups those that the lists have that their rows were joined with."""
    if sum(isinstance(node, Aggregate) for node in walk(root)) < 2:
        return root
    numbers = unused_numbers(root)

    def change(node: Aggregate) -> Node:
        if node.inner or not node.keys or not ctx.private(node.input):
            return node
        found: Node = node
        for join in _Lists(ctx).of(node):
            copy, new = renumbered(join.right, lambda column: replace(column, uid=next(numbers)))
            found = _with_left(join, found, copy, new)
        return found

    return transform(root, Aggregate, change)


@dataclass
class _Lists:
    """The released lists that rows are joined with. pairs: what is equal in every row that is grouped."""

    ctx: RewriteContext
    pairs: list[Equality] = field(default_factory=list)
    joined: list[Node] = field(default_factory=list)
    looked_up: list[Join] = field(default_factory=list)

    def of(self, node: Aggregate) -> Iterator[Join]:
        """What the groups are to be joined with; the left sides stand for them and are to be replaced."""
        self._gather(node.input)
        for looked_up in self.looked_up:
            own = frozenset(c.uid for c in output_columns(looked_up.right))
            pairs = tuple(p for pair in looked_up.equalities if (p := _by_keys(pair, node.keys)) is not None)
            residual = looked_up.residual and _over_keys(looked_up.residual, node.keys, own)
            whole = len(pairs) == len(looked_up.equalities) and (residual is None) is (looked_up.residual is None)
            if whole or (pairs and looked_up.kind is JoinKind.SEMI):
                yield Join(looked_up.kind, node, looked_up.right, pairs, residual, looked_up.span)
        for listed in self.joined:
            if (join := self._of_joined(listed, node)) is not None:
                yield join

    def _of_joined(self, listed: Node, node: Aggregate) -> Join | None:
        own = frozenset(c.uid for c in output_columns(listed))
        pairs, terms = [], []
        for pair in self.pairs:
            turned = Equality(pair.right, pair.left)
            for side in (pair, turned):
                if columns_of(side.right) <= own and columns_of(side.right) and not columns_of(side.left) & own:
                    shown = next((k for k in node.keys if k.expr == side.right), None)
                    found = _by_keys(side, node.keys) if shown is None else Equality(shown.column, side.right)
                    pairs += [] if found is None else [found]
        known = {p.right for p in pairs}
        for key in node.keys:
            if columns_of(key.expr) <= own and columns_of(key.expr) and key.expr not in known:
                terms.append(Call("is_not_distinct_from", (key.column, key.expr), BOOLEAN))
        if not pairs:
            return None
        return Join(JoinKind.SEMI, node, listed, tuple(dict.fromkeys(pairs)), conjunction(terms), node.span)

    def _gather(self, node: Node) -> None:
        match node:
            case Filter(input=child, predicate=predicate):
                for term in conjuncts(predicate):
                    if isinstance(term, Call) and term.function == "eq":
                        self.pairs.append(Equality(*term.args))
                self._gather(child)
            case Join(kind=JoinKind.SEMI | JoinKind.ANTI, left=left, right=right):
                if self._released(right):
                    self.looked_up.append(node)
                self._gather(left)
            case Join(kind=JoinKind.INNER | JoinKind.CROSS, left=left, right=right, equalities=pairs):
                self.pairs += pairs
                for side in (left, right):
                    self._side(side)
            case Join(kind=JoinKind.LEFT, left=left, right=right):
                self._side(left)
                if self._released(right):
                    self.joined.append(right)
            case _:
                pass

    def _side(self, node: Node) -> None:
        if self._released(node):
            self.joined.append(node)
        else:
            self._gather(node)

    def _released(self, node: Node) -> bool:
        """Whether rows depend on private data through releases alone, and do so."""
        return not self.ctx.private(node) and any(
            isinstance(n, Aggregate) and not n.inner and self.ctx.private(n.input) for n in walk(node)
        )


def _by_keys(pair: Equality, keys: Sequence[Item]) -> Equality | None:
    """An equality of rows as one of their groups; None where it reads more than the keys."""
    left = _over_keys(pair.left, keys, frozenset())
    return None if left is None else Equality(left, pair.right)


def _over_keys(expr: Expr, keys: Sequence[Item], own: frozenset[int]) -> Expr | None:
    """What rows compute, of their groups' keys and the list's `own` columns; None where it reads more, or no key."""
    shown = {k.expr: k.column for k in keys}
    found = transform_expr(expr, lambda e: shown.get(e, e))
    read = columns_of(found) - own
    return found if read and read <= {c.uid for c in shown.values()} else None


def _with_left(join: Join, left: Node, right: Node, new: dict[int, Column]) -> Join:
    """The join over another left side, and over a copy of its right one with `new` columns."""

    def change(e: Expr) -> Expr:
        return new.get(e.uid, e) if isinstance(e, Column) else e

    pairs = tuple(Equality(p.left, transform_expr(p.right, change)) for p in join.equalities)
    residual = None if join.residual is None else transform_expr(join.residual, change)
    return replace(join, left=left, right=right, equalities=pairs, residual=residual)
