"""Columns of a policy in a few words: what stands beside them in a completion list or a hover."""

from __future__ import annotations

from dpsql.core.policy.tables import Column, TableDomain, ValuesDomain
from dpsql.policy.issues import shown


def type_text(column: Column) -> str:
    """`double`, `bigint not null`; `type from the data` where the policy leaves it out."""
    name = "type from the data" if column.sql_type is None else column.sql_type.name.lower()
    return name if column.is_nullable else f"{name} not null"


def bounds_text(column: Column) -> str:
    """`bounds [0, 5000]`, `bounds searched`, or nothing."""
    if column.bounds is None:
        return "bounds searched" if column.search_bounds else ""
    low, high = ("open" if end is None else shown(end) for end in column.bounds)
    return f"bounds {'searched within ' if column.search_bounds else ''}[{low}, {high}]"


def keys_text(column: Column) -> str:
    """Whether the groups of this column are known beforehand: `4 public groups`, `groups of icd10.code`, or nothing."""
    match column.domain:
        case None:
            return ""
        case ValuesDomain(values=values, null=null):
            count = len(values) + null
            return f"{count} public group{'' if count == 1 else 's'}"
        case TableDomain(table=table, column=name):
            return f"groups of {table}.{name}"


def column_text(column: Column) -> str:
    """All of it in one line."""
    return ", ".join(part for part in (type_text(column), bounds_text(column), keys_text(column)) if part)
