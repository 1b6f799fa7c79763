"""What a row of an id weighs, where marginals or totals of one table shall add up."""

from __future__ import annotations

from dpsql.core.ir.nodes import BoundContributions, Release


class WeighedByGroups(Exception):
    """The weight of a row depends on what is grouped by. rows: the limit on rows of an id under which it would not."""

    def __init__(self, what: str, rows: int | None) -> None:
        super().__init__(what)
        self.rows = rows


def limit_on_rows(release: Release) -> int | None:
    """C, where each row of an id weighs C/max(rows, C); None where every row weighs 1. Raises WeighedByGroups.

    *Claim.* Releases of one relation that have the same C give each row the same weight, whatever they group by. *Why.*
    rows is the number of the id's rows in the relation. Where an id has rows in one group at most, a limit on the rows
    of a group is such a C. *When it would be false.* Under limits on groups, or on the rows of one of several groups;
    for a release that keeps only some groups of an id; for releases of different relations, or limits. *Tested by*
    tests/service/test_batch_ids.py, tests/deep/service/test_batch_ids.py,
    tests/deep/planner/postprocessing/test_consistent_totals.py, tests/deep/answers/stored/test_summaries.py.
    """
    node = release.input
    if not isinstance(node, BoundContributions):
        return None
    if node.truncate_groups:
        raise WeighedByGroups("only some groups of an id are kept", node.rows)
    if node.rows is None and not node.one_group:
        rows = None if node.per_group is None or node.groups is None else node.per_group * node.groups
        raise WeighedByGroups("max_groups_per_unit and max_rows_per_group weigh a row by its groups", rows)
    return node.per_group if node.rows is None else node.rows
