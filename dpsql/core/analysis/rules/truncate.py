"""Truncation: a declared frequency or key made true by leaving rows out.

Claim. Keep τ rows per key: ROW 2k [tight]. Drop keys above τ: ROW τ·k [tight]. ID, with the id among the columns: still
    only that id's rows differ. Afterwards at most τ rows agree on the columns under `=`. In a LEFT join that looks up
    the truncated rows by these columns, at most 2k (kept) or (τ+1)·k (dropped) partners and padded rows change.
Why: one more row of a key may push another out: one leaves, one enters. One more row of a key that is full at τ drops
    all τ. Which rows stay depends on the salted hash of the row itself and on the rows of its key alone. A row that is
    pushed out and the one that takes its place are two changes, and a padded row comes or goes only with the first or
    last partner. Rows with a NULL among the columns match nothing under `=` and all stay.
When it would be false: an order that is not total over the row's columns (equal rows are interchangeable); under an id,
    columns without the id (one id's rows would push out another's); a limit declared for other columns.
Proved by: Ops.keep_stable, Ops.drop_stable, Freq.keep_few, Rules.flips_drop, Sound.derive_sound
Tested by: tests/deep/core/analysis/test_operators.py, tests/core/analysis/test_truncate.py

Example:
    >>> facts("SELECT COUNT(*) FROM calls WHERE phone IN (SELECT phone FROM alarms)", rewritten=True)
    release COUNT(*)                  public
    └─ join semi phone = phone        stability calls=2 rows · stability alarms=10 rows · ≤ 3 and ≤ 5 matches
       ├─ scan calls                  stability calls=2 rows
       └─ keep 3 rows of each phone   stability alarms=2 rows · ≤ 3 rows per phone
          └─ scan alarms              stability alarms=1 row
"""

from __future__ import annotations

from dataclasses import replace

from dpsql.core.analysis.facts import Facts
from dpsql.core.ir.nodes import Truncate
from dpsql.core.numbers.cap import finite, smaller, times
from dpsql.diagnostics.errors import reject


def truncate(node: Truncate, below: Facts) -> Facts:
    """Facts of the rows that are left. Raises Rejected DP220."""
    columns = frozenset(c.uid for c in node.columns)
    cap = finite(node.rows)
    frequency = dict(below.frequency)
    frequency[columns] = smaller(frequency[columns], cap) if columns in frequency else cap
    note = f"≤ {node.rows} rows per {', '.join(c.name for c in node.columns)}"
    found = Facts(
        below.columns, stability=below.stability, ids=below.ids, keys=below.keys, frequency=frequency,
        by_id=below.by_id, hops=below.hops, promised_keys=below.promised_keys, replaced=below.replaced,
        rule="drop frequent keys" if node.drop else "truncate", note=note,
    )  # fmt: skip
    if below.ids or below.hops:
        if not columns & below.ids:
            raise reject("DP220", "rows of different privacy units would be cut together", span=node.columns[0].span)
        return found
    factor = cap if node.drop else finite(2)
    padded = finite(node.rows + 1) if node.drop else finite(2)
    return replace(
        found,
        stability={unit: times(s, factor) for unit, s in below.stability.items()},
        padding={columns: {unit: times(s, padded) for unit, s in below.stability.items()}},
    )
