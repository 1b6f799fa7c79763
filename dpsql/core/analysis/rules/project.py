"""Project.

Claim: stability is that of the input. A column that is passed on bare keeps its id, key and frequency, and stays a
    function of the id. Any other expression loses them. Rows that lose their id are counted one by one from there on.
Why: one output row per input row, each a total function of its own row. [tight]
When it would be false: an id, key or frequency passed through an expression: f(id) may merge two ids, and an engine may
    compute it otherwise on two rows (planner/distinct_values.py guesses, and the release enforces); the stability
    of an id unit (ids that differ) read as a number of rows once nothing tells whose they are.
Proved by: Near.project_stable, Freq.projected_most, Sound.derive_sound
Tested by: tests/deep/core/analysis/test_operators.py, tests/deep/core/analysis/test_stability.py,
tests/core/analysis/test_project.py

Example:
    >>> facts("SELECT visit + 1 AS next, patient FROM visits", "keys")
    project next, patient   stability patient=1 id
    └─ scan visits          stability patient=1 id · key (visit)
    >>> facts("SELECT cost FROM visits")
    project cost     stability patient=unbounded rows
    └─ scan visits   stability patient=1 id
"""

from __future__ import annotations

from itertools import islice, product

from dpsql.core.analysis.facts import ColumnFact, Columns, Facts, HopFact
from dpsql.core.ir.expressions import Column
from dpsql.core.ir.nodes import Item, Project
from dpsql.core.numbers.cap import Cap, Unbounded, times
from dpsql.core.value_classes import replace
from dpsql.diagnostics.diagnostic import Reason

MOST_NAMES = 64
"""Most new names that one column set is followed under; forgetting one only loses precision."""


def project(node: Project, below: Facts) -> Facts:
    """Facts of the projected rows."""
    found = replace(with_columns(node.items, below), rule="project")
    if not below.ids or found.ids:
        return found
    (unit,) = below.stability
    rows = None if found.hops else below.rows_of_an_id(every_row=True)
    lost: Cap = Unbounded((_id_lost(node, below),))
    return replace(
        found, stability={unit: lost if rows is None else times(below.stability[unit], rows)}, by_id=frozenset()
    )


def _id_lost(node: Project, below: Facts) -> Reason:
    names = sorted({h.column for uid in below.ids if (h := below.columns[uid].hint) is not None})
    return Reason(
        "DP220",
        "the privacy unit's id is left out below, so it cannot be told whose the rows are",
        node.span,
        "rows of one person can no longer be counted",
        (f"select {names[0] if names else 'the id'} as well, bare",),
    )


def with_columns(items: tuple[Item, ...], below: Facts, keep: bool = False) -> Facts:
    """Facts when these columns are computed; with `keep`, the input's columns stay as well."""
    columns = dict(below.columns) if keep else {}
    renamed: dict[int, set[int]] = {}
    by_id: set[int] = set(below.by_id) if keep else set()
    for item in items:
        hint = below.columns[item.expr.uid].hint if isinstance(item.expr, Column) else None
        columns[item.column.uid] = ColumnFact(below.value(item.expr), hint)
        if isinstance(item.expr, Column):
            renamed.setdefault(item.expr.uid, set()).add(item.column.uid)
            if item.expr.uid in below.by_id:
                by_id.add(item.column.uid)
    if keep:
        for uid in below.columns:
            renamed.setdefault(uid, set()).add(uid)

    def carried(known: Columns) -> list[Columns]:
        """The set under all of its new names; nothing if one of its columns is gone."""
        names = [sorted(renamed.get(uid, ())) for uid in known]
        return [frozenset(choice) for choice in islice(product(*names), MOST_NAMES)]

    keys = frozenset(new for known in below.keys for new in carried(known))
    frequency = {new: cap for known, cap in below.frequency.items() for new in carried(known)}
    kept = {frozenset(uid for uid in known if uid in renamed): caps for known, caps in below.padding.items()}
    padding = {new: caps for known, caps in kept.items() if known for new in carried(known)}
    ids = frozenset(new for uid in below.ids for new in renamed.get(uid, ()))

    def owned(known: frozenset[HopFact]) -> frozenset[HopFact]:
        return frozenset(
            replace(hop, columns=tuple(min(renamed[uid]) for uid in hop.columns))
            for hop in known
            if all(uid in renamed for uid in hop.columns)
        )

    return Facts(
        columns, stability=below.stability, ids=ids, keys=keys, frequency=frequency, padding=padding,
        by_id=frozenset(by_id), hops=owned(below.hops), promised_keys=owned(below.promised_keys),
        replaced=below.replaced, replaced_rows=below.replaced_rows, size=below.size,
    )  # fmt: skip
