"""A bound that is left to a search, and that nothing has searched, is refused.

Example:
    >>> before_after(refuse_unsearched, "SELECT SUM(CLIP(cost, AUTO)) FROM visits")
    refused, DP101: AUTO is not searched here
"""

from __future__ import annotations

from dpsql.core.ir.nodes import Aggregate, Node
from dpsql.core.ir.walk import transform
from dpsql.diagnostics.errors import reject
from dpsql.frontend.bind.searched_clips import searched_in
from dpsql.planner.rewrites.context import RewriteContext


def refuse_unsearched(root: Node, ctx: RewriteContext) -> Node:
    """The plan itself. Raises Rejected DP101 for a CLIP to AUTO."""

    def look(node: Node) -> Node:
        for call in node.calls if isinstance(node, Aggregate) else ():
            clip = searched_in(call.arg)
            if clip is not None:
                raise reject(
                    "DP101", "AUTO is not searched here", span=clip.span,
                    help=["write the bounds themselves:  CLIP(x, lower, upper)"],
                )  # fmt: skip
        return node

    return transform(root, look)
