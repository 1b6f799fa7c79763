"""Which components a release is made of, where several forms say the same: the form with the least total error.

Example:
    >>> before_after(choose_components, "SELECT SUM(age), COUNT(*) FROM patients")
    release SUM(CLIP(age, 0, 110)), COUNT(*)  →  release COUNT(*), SUM(CLIP(age, 0, 110) - middle)
    └─ scan patients                             └─ scan patients
"""

from __future__ import annotations

from dpsql.core.analysis.derive import derive_once
from dpsql.core.ir.nodes import BoundContributions, Node, Release
from dpsql.core.ir.walk import transform
from dpsql.planner.rewrites.bounds.choose_grids import gridded
from dpsql.planner.rewrites.releases.cut_slices import in_slices, weighed_pivot
from dpsql.planner.rewrites.releases.same_rows import families
from dpsql.planner.rewrites.releases.share_sums import shared_sums, sum_forms
from dpsql.planner.rewrites.releases.size_covariances import size_covariances
from dpsql.planner.rewrites.releases.split_counts import split_counts
from dpsql.planner.rewrites.rewrite_context import RewriteContext


def choose_components(root: Node, ctx: RewriteContext) -> Node:
    """Choose for every release whether sums share the noise of counts, counts that of slices, covariances are one."""
    error = ctx.error
    if error is None:
        return _scaled_alike(root, ctx) if ctx.consistent else root

    def change(node: Release) -> Node:
        rows = derive_once(node.input, ctx.analysis)
        facts = rows.fact
        # Plain forms first, so that they are taken where the others are no better.
        forms = [
            form
            for plain in sum_forms(node, facts)
            for form in (plain, split_counts(plain, facts), size_covariances(plain, facts), weighed_pivot(plain))
        ]
        different = [form for at, form in enumerate(forms) if all(form is not other for other in forms[:at])]
        return (
            node
            if len(different) == 1
            else min(different, key=lambda form: error(in_slices(gridded(form, rows), rows), facts))
        )

    return transform(root, Release, change)


def _scaled_alike(root: Node, ctx: RewriteContext) -> Node:
    """Sums of ids whose totals shall add up are scaled with a count: one that is clipped per id adds up nowhere."""
    family = {release for each in families(root) for release in each}

    def change(node: Release) -> Node:
        if node not in family or not isinstance(node.input, BoundContributions):
            return node
        return shared_sums(node, derive_once(node.input, ctx.analysis).fact)

    return transform(root, Release, change)
