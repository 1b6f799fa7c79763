"""FROM a, b, c in any order: each table is joined where a condition connects it, not where it happens to be written.

Inner joins may be taken in any order. The written order stays unless it would multiply tables that nothing connects
yet and another order would not: `FROM lineitem, customer, orders` joins orders before customer.

Example:
    >>> before_after(
    ...     order_joins,
    ...     "SELECT COUNT(*) FROM patients p, icd10 i, visits v WHERE v.patient = p.patient AND v.code = i.code",
    ... )
    join cross           →  join cross
    ├─ join cross           ├─ join cross
    │  ├─ scan patients     │  ├─ scan patients
    │  └─ scan icd10        │  └─ scan visits
    └─ scan visits          └─ scan icd10
"""

from __future__ import annotations

from collections.abc import Iterator

from dpsql.core.ir.conditions import conjunction, conjuncts, equality_between
from dpsql.core.ir.expressions import Call, Expr, columns_of
from dpsql.core.ir.nodes import Filter, Join, JoinKind, Node, Scan, Values, inputs, output_columns
from dpsql.core.ir.types import BOOLEAN
from dpsql.core.ir.walk import walk, with_inputs
from dpsql.diagnostics.diagnostic import Span
from dpsql.planner.rewrites.rewrite_context import RewriteContext


def order_joins(root: Node, ctx: RewriteContext) -> Node:
    """Reorder clusters of inner joins of which the written order leaves tables unconnected."""
    return root if all(_connects(n) for n in walk(root) if isinstance(n, Join)) else _ordered(root)


def _ordered(root: Node) -> Node:
    if not in_cluster(root):
        return with_inputs(root, tuple(_ordered(child) for child in inputs(root)))
    relations, terms = flattened(root)
    relations = [_ordered(r) for r in relations]
    written = _crosses(relations, terms) if len(relations) > 2 and not _each_connects(root) else 0
    best = _connected(relations, terms) if written else relations
    if not written or _crosses(best, terms) >= written:
        return _as_written(root, iter(relations))
    joined = best[0]
    for relation in best[1:]:
        joined = Join(JoinKind.CROSS, joined, relation, span=named_at(relation))
    predicate = conjunction(terms)
    assert isinstance(root, (Filter, Join))
    return joined if predicate is None else Filter(joined, predicate, root.span)


def _as_written(node: Node, relations: Iterator[Node]) -> Node:
    """A cluster with these relations in place of its own."""
    if not in_cluster(node):
        return next(relations)
    return with_inputs(node, tuple(_as_written(child, relations) for child in inputs(node)))


def in_cluster(node: Node) -> bool:
    if isinstance(node, Filter):
        return in_cluster(node.input)
    return isinstance(node, Join) and node.kind in (JoinKind.INNER, JoinKind.CROSS) and not node.scalar


def _connects(join: Join) -> bool:
    """Whether one relation is joined by an equality to those before it: what most queries say, and quickly seen."""
    equal = any(columns_of(e.left) and columns_of(e.right) for e in join.equalities)
    return equal and not in_cluster(join.right)


def _each_connects(node: Node) -> bool:
    """Whether each table of a cluster is."""
    while in_cluster(node):
        if isinstance(node, Join):
            if not _connects(node):
                return False
            node = node.left
        else:
            assert isinstance(node, Filter)
            node = node.input
    return True


def flattened(node: Node) -> tuple[list[Node], list[Expr]]:
    """The relations of a cluster in written order, and all of its conditions."""
    if not in_cluster(node):
        return [node], []
    if isinstance(node, Filter):
        relations, terms = flattened(node.input)
        return relations, terms + conjuncts(node.predicate)
    assert isinstance(node, Join)
    left, left_terms = flattened(node.left)
    right, right_terms = flattened(node.right)
    own = [Call("eq", (e.left, e.right), BOOLEAN, e.left.span) for e in node.equalities]
    rest = [] if node.residual is None else conjuncts(node.residual)
    return left + right, [*left_terms, *right_terms, *own, *rest]


def named_at(relation: Node) -> Span | None:
    """Where the query names a table of the relation."""
    return next((n.span for n in walk(relation) if isinstance(n, (Scan, Values)) and n.span is not None), None)


def _columns(relation: Node) -> frozenset[int]:
    return frozenset(c.uid for c in output_columns(relation))


def _joins(seen: frozenset[int], relation: Node, terms: list[Expr]) -> bool:
    own = _columns(relation)
    return any(equality_between(t, seen, own) is not None for t in terms)


def _connected(relations: list[Node], terms: list[Expr]) -> list[Node]:
    """The relations in written order, except that one that nothing connects yet waits for one that does."""
    found, left = [relations[0]], list(relations[1:])
    seen = _columns(found[0])
    while left:
        chosen = next((r for r in left if _joins(seen, r, terms)), left[0])
        left = [r for r in left if r is not chosen]
        found.append(chosen)
        seen |= _columns(chosen)
    return found


def _crosses(relations: list[Node], terms: list[Expr]) -> int:
    seen, count = _columns(relations[0]), 0
    for relation in relations[1:]:
        count += not _joins(seen, relation, terms)
        seen |= _columns(relation)
    return count
