"""UNNEST of a list that is cut to a declared length.

Claim: ROW: l·k [tight]. ID: still only that id's rows differ, and an id has at most l times as many. Replaced rows stay
    replaced, l for each.
Why: a row becomes at most l rows, made of itself alone.
When it would be false: a list that is not cut by the emitted SQL, or cut in an order that is not its own.
Proved by: Near.flat_map_stable, Freq.unnested_most, Sound.derive_sound
Tested by: tests/deep/core/analysis/test_operators.py, tests/core/analysis/test_unnest.py

Example:
    >>> facts("SELECT * FROM calls, UNNEST(tags) t(tag)")
    unnest the first 3 of tags   stability calls=6 rows
    └─ scan calls                stability calls=2 rows
"""

from __future__ import annotations

from dataclasses import replace

from dpsql.core.analysis.facts import ColumnFact, Facts
from dpsql.core.ir.nodes import Unnest
from dpsql.core.ir.types import Kind
from dpsql.core.numbers.cap import finite, times
from dpsql.core.numbers.interval import everything
from dpsql.core.values.value import Value, type_range
from dpsql.diagnostics.diagnostic import Reason
from dpsql.diagnostics.errors import reject


def unnest(node: Unnest, below: Facts) -> Facts:
    """Facts of the rows, one per element of the list."""
    listed = below.value(node.list).type
    if listed.kind is not Kind.LIST or listed.item is None:
        raise reject("DP106", f"UNNEST needs a list, not {listed}", span=node.span, help=["name a list column"])
    item = listed.item
    lost = Reason(
        "DP202", "the elements of a list have no declared bounds", node.span, "",
        (f"bound them in the query:  CLIP({node.column.name}, lower, upper)",),
    )  # fmt: skip
    value = Value(item, everything(lost), type_range(item), True, item.kind is not Kind.DOUBLE)
    most = finite(node.most)
    frequency = {columns: times(cap, most) for columns, cap in below.frequency.items()}
    frequency.update(dict.fromkeys(below.keys, most))  # one row of a key becomes at most that many
    found = Facts(
        {**below.columns, node.column.uid: ColumnFact(value)}, stability=below.stability, ids=below.ids,
        frequency=frequency, by_id=below.by_id, hops=below.hops, promised_keys=below.promised_keys,
        replaced=below.replaced, replaced_rows=below.replaced_rows, rule=f"unnest ×{node.most}",
    )  # fmt: skip
    if below.ids or below.hops or below.public:
        return found
    return replace(
        found,
        stability={unit: times(cap, most) for unit, cap in below.stability.items()},
        replaced_rows=None
        if below.replaced_rows is None
        else {unit: times(cap, most) for unit, cap in below.replaced_rows.items()},
    )
