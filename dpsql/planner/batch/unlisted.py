"""A policy whose tables list no values: what the marginals of a batch are planned by.

A marginal's keys are the numbers of classes, one of which holds the rows with values that are not listed. By the
lists, such rows would be left out, as they are of a query that groups by the column. Facts are only taken away: what is
bounded without them is bounded with them.
"""

from __future__ import annotations

from dataclasses import replace

from dpsql.core.policy.policy import Policy


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
