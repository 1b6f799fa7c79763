"""What marginals of a batch are planned by: a policy whose tables list no values, and sums that weigh rows as counts.

A marginal's keys are the numbers of classes, one of which holds the rows with values that are not listed. By the
lists, such rows would be left out, as they are of a query that groups by the column. Facts are only taken away: what is
bounded without them is bounded with them.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from dpsql.core.analysis.facts import Facts
from dpsql.core.ir.nodes import Aggregate, Node, Release
from dpsql.core.ir.walk import Tagged, transform
from dpsql.core.policy.policy import Policy
from dpsql.core.value_classes import replace
from dpsql.diagnostics.errors import reject


def without_lists(policy: Policy) -> Policy:
    """The same policy, by hash too, without domains and bounds of columns."""
    known: Policy | None = policy.worked_out.get(without_lists)
    if known is None:
        tables = {
            name: replace(
                table,
                columns={
                    n: replace(c, domain=None, bounds=None, search_bounds=False) for n, c in table.columns.items()
                },
            )
            for name, table in policy.tables.items()
        }
        known = policy.worked_out[without_lists] = replace(policy, tables=tables)
    return known


def summed_by_row(root: Node) -> Node:
    """A query of which each row counts in a SUM with the weight that it has in a COUNT(*).

    *Claim.* The totals of an id in all groups add up to its total without groups, but for the rounding of weights: less
    than 1/F of a row or grid unit for each id and group. *Why.* A limit C of rows weighs each row of an id by
    C/max(rows, C), which no grouping changes; a sum alone is clipped by what its groups hold. *When it would be false.*
    Under limits on groups, or on the rows of a group: a batch refuses those. *Tested by*
    tests/service/test_batch_sums.py.
    """

    def change(node: Aggregate) -> Node:
        return replace(node, calls=tuple(replace(c, by_row=True) if c.function == "sum" else c for c in node.calls))

    return transform(root, Aggregate, change)


def shares_of(shares: Sequence[Fraction], releases: Sequence[Tagged[Facts]]) -> dict[int, Fraction]:
    """Number of the one column of each release → its part of the whole. Raises Rejected DP904."""
    found = [t.node for t in releases if isinstance(t.node, Release)]
    if len(found) != len(shares) or any(len(node.outputs) != 1 for node in found):
        raise reject("DP904", "the marginals of the batch are not those that it planned; nothing was run")
    return {node.outputs[0].column.uid: share for node, share in zip(found, shares, strict=True)}
