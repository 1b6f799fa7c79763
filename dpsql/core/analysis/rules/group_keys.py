"""Group keys: the columns a release is grouped by.

Claim: stability, keys and frequencies are those of the input; the key columns are functions of their row.
Why: it is a projection followed by a filter to the public key list; both are row-wise.
When it would be false: a key that is not a total function of one row, or a floating-point key (two spellings of a
    value could be one group for the engine and two for us); both are refused when the keys are made.
Proved by: Near.project_stable, Near.filter_stable, Sound.derive_sound
Tested by: tests/deep/core/analysis/test_stability.py

Example:
    >>> facts("SELECT region, COUNT(*) FROM patients GROUP BY region", rewritten=True)
    release COUNT(*)      public
    └─ group by region    stability patient=1 id · domain of patients.region
       └─ scan patients   stability patient=1 id
"""

from __future__ import annotations

from dpsql.core.analysis.facts import Facts
from dpsql.core.analysis.rules.project import with_columns
from dpsql.core.ir.nodes import GroupKeys
from dpsql.core.value_classes import replace


def group_keys(node: GroupKeys, below: Facts) -> Facts:
    """Facts of the rows with their key columns."""
    if node.sources is None:
        note = "private keys" if node.items else "no groups"
    else:
        note = " × ".join(s.origin for s in node.sources) or "no groups"
    return replace(with_columns(node.items, below, keep=True), rule="group keys", note=note)
