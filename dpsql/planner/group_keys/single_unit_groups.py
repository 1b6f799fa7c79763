"""Private groups that can hold one unit only, so that partition selection would never show one: `GROUP BY order_id`.

A guess for the analyst's sake. Such a query is safe, but it costs budget and answers nothing.
"""

from __future__ import annotations

from collections.abc import Sequence

from dpsql.core.analysis.context import Context
from dpsql.core.analysis.facts import Facts
from dpsql.core.ir.expressions import Column
from dpsql.core.ir.nodes import Item
from dpsql.core.policy.units import IdUnit, PathUnit


def single_unit_keys(items: Sequence[Item], facts: Facts, ctx: Context) -> tuple[Item, ...]:
    """The group columns that make every group one unit's own; empty if none do.

    Two sets of columns do: a key of the relation (one row), and columns of one scan that find the unit of its rows: a
    declared key of the table, or the first hop of its path to the unit. And whatever the policy says is a unit's own.
    """
    bare = {i.expr.uid: i for i in items if isinstance(i.expr, Column)}
    found: dict[tuple[str, int], dict[str, int]] = {}
    for uid in bare:
        known = facts.columns[uid]
        if known.hint is not None and known.hint.table and not known.hint.public and not known.value.nullable:
            found.setdefault((known.hint.table, known.hint.scan), {})[known.hint.column.casefold()] = uid
    for (name, _), columns in found.items():
        table = ctx.table(name)
        if facts.ids and facts.units != (table.unit,):
            continue
        owners = [key.columns for key in table.keys] if facts.ids else []
        owners += [(own,) for own in table.belongs_to_unit]
        match table.protection:
            case PathUnit(path=path):
                owners.append(path[0].columns)
            case IdUnit(column=column):
                owners.append((table.per or column,))
        if table.copied is not None and table.copied.hop is not None:
            owners.append(table.copied.hop.columns)
        for owner in owners:
            if {c.casefold() for c in owner} <= columns.keys():
                return tuple(bare[columns[c.casefold()]] for c in owner)
    return tuple(bare.values()) if bare and facts.is_key(frozenset(bare)) else ()
