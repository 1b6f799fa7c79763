"""Bounding what one id contributes.

Claim: one id changes the weighted counts of the release above by at most `rows` in all (l1), or by at most
    `per_group` in each group and `per_group · groups` in all.
Why: the emitted SQL multiplies each contribution by an exact integer weight that depends on that id's rows alone, so
    only its own vector moves when it is added; Σ over its K groups of at most M·G/max(K, G) is at most M·G. With
    truncation only the first G groups of the id stay. Rows whose id is NULL are dropped. The limits are chosen by
    planner/rewrites/bounds/bound_contributions.py, the weights printed by core/printing/shapes/weighted.py.
When it would be false: `few_groups` claimed although more groups are possible; an id that is no bare column (two ids
    could share weights); a node whose limits come from a promise rather than from the emitted weights.
Proved by: Release.only_its_own, Bounds.rows_l1, Bounds.groups_l1, Bounds.groups_linf, End.release_of_ids
Tested by: tests/deep/core/analysis/test_contribution_bounding.py

Example:
    >>> facts("SELECT COUNT(*) FROM visits", rewritten=True)
    release COUNT(*)                         public
    └─ bound contributions of each patient   stability patient=1 id · ≤ 12 rows per id
       └─ scan visits                        stability patient=1 id
"""

from __future__ import annotations

from dpsql.core.analysis.facts import Contribution, Facts
from dpsql.core.analysis.public_groups import groups_of_an_id
from dpsql.core.ir.nodes import BoundContributions, GroupKeys
from dpsql.diagnostics.errors import Rejected, reject


def bound_contributions(node: BoundContributions, below: Facts) -> Facts:
    """Facts of the rows with the contribution that the node enforces."""
    if node.id.uid not in below.ids:
        raise _contradiction("DP220", node, "contributions are not bounded by the privacy unit's id")
    if node.few_groups and not _few(node, below):
        raise _contradiction("DP211", node, "more groups are possible than the plan claims")
    if node.rows is not None and node.groups is not None and not (node.few_groups or node.truncate_groups):
        raise _contradiction("DP211", node, "nothing limits the groups that the plan counts on")
    over_groups = bool(node.keys) and not (node.truncate_groups or node.few_groups)
    contribution = Contribution(node.rows, node.per_group, node.groups, scaled=True, scaled_over_groups=over_groups)
    limits = (
        "each total per id is limited by itself" + (f", in ≤ {node.groups} groups" if node.groups is not None else "")
        if not contribution.limits_rows
        else f"≤ {node.rows} rows in ≤ {node.groups} groups per id"
        if node.rows is not None and node.few_groups
        else f"≤ {node.rows} rows per id"
        if node.rows is not None
        else f"≤ {node.groups} groups × {node.per_group} rows per id"
        if node.keys and node.groups != 1
        else f"≤ {node.per_group} rows per id"
    )
    return Facts(
        below.columns, stability=below.stability, ids=below.ids, keys=below.keys, frequency=below.frequency,
        padding=below.padding, by_id=below.by_id, hops=below.hops, promised_keys=below.promised_keys,
        contribution=contribution, replaced=below.replaced, replaced_rows=below.replaced_rows, size=below.size,
        rule="bound contributions", note=limits,
    )  # fmt: skip


def _contradiction(code: str, node: BoundContributions, message: str) -> Rejected:
    """Refusal of what no rewrite makes."""
    return reject(
        code, message, span=node.id.span, help=["please report this query: the planner contradicts itself"]
    )  # fmt: skip


def _few(node: BoundContributions, below: Facts) -> bool:
    """Whether no id can have rows in more than `groups` of the groups that are released."""
    if not node.keys:
        return True
    possible = groups_of_an_id(node.input, below.by_id) if isinstance(node.input, GroupKeys) else None
    return possible is not None and node.groups is not None and possible <= node.groups
