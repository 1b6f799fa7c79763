"""What `search: auto` would find unasked under a policy that does not say so: told to its custodian."""

from __future__ import annotations

from collections.abc import Iterator

from dpsql.core.policy.policy import Policy
from dpsql.core.policy.tables import Column, Table
from dpsql.planner.searches.limits_to_search import WORTH_SEARCHING


def would_be_found(policy: Policy) -> Iterator[str]:
    """Table by table; nothing under a policy that says `auto` or `refuse`."""
    for table in policy.tables.values() if policy.search == "allow" else ():
        if not table.public and table.size is None:
            yield from _limits(table)
            yield from (f"bounds of {table.name}.{c.name}" for c in table.columns.values() if _is_open(c, table))


def _limits(table: Table) -> Iterator[str]:
    per_unit, per_group, groups = table.max_rows_per_unit, table.max_rows_per_group, table.max_groups_per_unit
    if table.search_rows or not table.by_id or _has_one_row(table):
        return
    if per_unit is None and per_group is None:
        yield f"how many rows of one {table.unit} count in {table.name}"
    elif per_unit is not None and per_unit.rows >= WORTH_SEARCHING:
        yield f"how many of at most {per_unit.rows:,} rows count in {table.name}"
    elif per_group is not None and groups is not None and per_group > 1 and per_group * groups >= WORTH_SEARCHING:
        yield f"how many of at most {per_group} × {groups} rows count in public groups of {table.name}"


def _has_one_row(table: Table) -> bool:
    id_column = table.id_column
    keys = ((table.primary_key,) if table.primary_key else ()) + table.unique
    return id_column is not None and any(key.columns == (id_column.name,) for key in keys)


def _is_open(column: Column, table: Table) -> bool:
    """Whether its values are added up, and nobody says how large they are."""
    keys = {n for key in table.keys for n in key.columns} | {n for key in table.foreign_keys for n in key.columns}
    is_key = column.name in keys or column is table.id_column or column.domain is not None
    ends = column.bounds or (None, None)
    return column.grid is not None and None in ends and not (is_key or column.search_bounds)
