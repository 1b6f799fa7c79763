"""Project.

Claim: stability is that of the input; a column that is passed on bare keeps its id, key and frequency; any other
    expression loses them.
Why: one output row per input row, each a total function of its own row. [tight]
When it would be false: an id, key or frequency passed through an expression: f(id) may merge two ids.
Tested by: tests/property/test_stability.py, tests/unit/analysis/test_project.py
"""

from __future__ import annotations

from dataclasses import replace

from dpsql.analysis.facts import ColumnFact, Columns, Facts
from dpsql.analysis.values import evaluate
from dpsql.plan.expr import Column, columns_of
from dpsql.plan.nodes import Item, Project


def project(node: Project, below: Facts) -> Facts:
    """Facts of the projected rows."""
    return replace(added(node.items, below), rule="project", note="")


def added(items: tuple[Item, ...], below: Facts, keep: bool = False) -> Facts:
    """Facts when these columns are computed; with `keep`, the input's columns stay as well."""
    env = below.env
    columns = dict(below.columns) if keep else {}
    renamed: dict[int, set[int]] = {}
    by_id: set[int] = set(below.by_id) if keep else set()
    for item in items:
        hint = below.columns[item.expr.uid].hint if isinstance(item.expr, Column) else None
        columns[item.column.uid] = ColumnFact(evaluate(item.expr, env), hint)
        if isinstance(item.expr, Column):
            renamed.setdefault(item.expr.uid, set()).add(item.column.uid)
        if below.by_id and columns_of(item.expr) <= below.by_id:
            by_id.add(item.column.uid)
    if keep:
        for uid in below.columns:
            renamed.setdefault(uid, set()).add(uid)

    def carried(known: Columns) -> Columns | None:
        if not all(uid in renamed for uid in known):
            return None
        return frozenset(min(renamed[uid]) for uid in known)

    keys = frozenset(c for c in map(carried, below.keys) if c is not None)
    frequency = {c: cap for k, cap in below.frequency.items() if (c := carried(k)) is not None}
    ids = frozenset(new for uid in below.ids for new in renamed.get(uid, ()))
    return replace(below, columns=columns, ids=ids, keys=keys, frequency=frequency, by_id=frozenset(by_id))
