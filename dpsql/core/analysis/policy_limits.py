"""What the policy's limits per unit mean for the rows of a relation.

Limits count joined rows. `lineitem JOIN orders` gives rows of lineitem, each with its one order. A limit on lineitem is
meant for exactly these rows; one on the orders of a customer would throw most of them away.

In a union the limits of both sides add up.

Any limit is sound, because it is enforced. Which one applies is a matter of what people mean by it.
"""

from __future__ import annotations

from collections.abc import Sequence

from dpsql.core.analysis.context import Derivation
from dpsql.core.analysis.facts import Facts
from dpsql.core.ir.expressions import Column, Expr
from dpsql.core.ir.nodes import Join, Node, Scan, SetKind, SetOperation, inputs
from dpsql.core.numbers.cap import Finite
from dpsql.core.value_classes import value


@value(frozen=True, slots=True)
class PolicyLimits:
    """C, M and G as the policy enforces them; None where it says nothing."""

    rows: int | None = None
    per_group: int | None = None
    groups: int | None = None

    def smaller(self, other: PolicyLimits) -> PolicyLimits:
        """The smallest of each kind."""
        return PolicyLimits(
            _least(self.rows, other.rows), _least(self.per_group, other.per_group), _least(self.groups, other.groups)
        )


def policy_limits(node: Node, ctx: Derivation) -> PolicyLimits:
    """Limits for the rows of `node`: of the private tables below that a join does not merely look up by a key.

    The facts of everything below must be known.
    """
    match node:
        case Scan(table=name):
            table = ctx.table(name)
            total = table.max_rows_per_unit
            cut = table.copied is not None and table.copied.cut
            enforced = None if total is None or (total.assumed and not cut) else total.rows
            return PolicyLimits(enforced, table.max_rows_per_group, table.max_groups_per_unit)
        case Join(left=left, right=right):
            known_left, known_right = ctx.fact(left), ctx.fact(right)
            if node.kind.filters or known_right.public:
                return policy_limits(left, ctx)
            if known_left.public:
                return policy_limits(right, ctx)
            single_left = _single(known_left, [e.left for e in node.equalities])
            single_right = _single(known_right, [e.right for e in node.equalities])
            if single_right and not single_left:
                return policy_limits(left, ctx)
            if single_left and not single_right:
                return policy_limits(right, ctx)
            return policy_limits(left, ctx).smaller(policy_limits(right, ctx))
        case SetOperation(kind=SetKind.UNION, left=left, right=right):
            a, b = _branch(left, ctx), _branch(right, ctx)
            return PolicyLimits(_sum(a.rows, b.rows), _sum(a.per_group, b.per_group), _sum(a.groups, b.groups))
        case SetOperation(left=left):
            return policy_limits(left, ctx)
        case _:
            found = PolicyLimits()
            for child in inputs(node):
                found = found.smaller(policy_limits(child, ctx))
            return found


def _branch(node: Node, ctx: Derivation) -> PolicyLimits:
    """Limits of one side of a union; what is proven of its rows per id is as good as a limit."""
    found, facts = policy_limits(node, ctx), ctx.fact(node)
    proven = facts.rows_of_an_id()
    if proven is None:
        return found
    whole = int(proven.value)
    return found.smaller(PolicyLimits(whole, whole, whole))


def _single(side: Facts, ends: Sequence[Expr]) -> bool:
    """Whether at most one row of this side can match."""
    most = side.most_rows(frozenset(e.uid for e in ends if isinstance(e, Column)))
    return isinstance(most, Finite) and most.value <= 1


def _least(a: int | None, b: int | None) -> int | None:
    return b if a is None else a if b is None else min(a, b)


def _sum(a: int | None, b: int | None) -> int | None:
    return None if a is None or b is None else a + b
