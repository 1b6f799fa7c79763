"""Joins: which rule applies, and what all of them share.

Claim: of two public sides the result is public; one private side is joined by the rule of `join_with_public`; two sides
    that meet on their owner by that of `join_same_unit`; any other two private sides by that of `join_by_frequency`.
Why: each rule states its own; where several are valid the one that keeps the id is the tighter.
When it would be false: a condition that can fail, or equal keys of different types (both refused here); sides whose
    units have different neighbouring relations (refused here: no single distance would describe them).
Proved by: Sound.derive_sound
Tested by: tests/deep/core/analysis/test_operators.py, tests/core/analysis/test_join.py

Example:
    >>> facts("SELECT * FROM patients p JOIN visits v ON p.patient = v.patient JOIN icd10 i ON v.code = i.code")
    join inner code = code            stability patient=1 id
    ├─ join inner patient = patient   stability patient=1 id
    │  ├─ scan patients               stability patient=1 id
    │  └─ scan visits                 stability patient=1 id
    └─ scan icd10                     public
"""

from __future__ import annotations

from dpsql.core.analysis.context import Derivation
from dpsql.core.analysis.facts import Facts
from dpsql.core.analysis.rules.join_by_frequency import join_by_frequency
from dpsql.core.analysis.rules.join_multiplicity import joined_columns, keys_and_frequencies, most_matches, same_type
from dpsql.core.analysis.rules.join_same_unit import join_same_unit, joins_same_unit
from dpsql.core.analysis.rules.join_with_public import join_with_public
from dpsql.core.ir.nodes import Join
from dpsql.core.values.meaning import evaluate
from dpsql.diagnostics.errors import reject


def join(node: Join, left: Facts, right: Facts, ctx: Derivation) -> Facts:
    """Facts of the joined rows."""
    if node.residual is not None:
        evaluate(node.residual, {uid: c.value for uid, c in {**left.columns, **right.columns}.items()})
    for pair in node.equalities:
        same_type(pair, left, right)
    public_left, public_right = left.public, right.public
    if public_left and public_right and node.kind.filters:
        return Facts(left.columns, keys=left.keys, frequency=left.frequency, rule=f"{node.kind.value} join")
    if public_right and node.kind.filters:
        return join_with_public(node, left, right, None, None)
    m_left = most_matches(node.left, left, tuple(e.left for e in node.equalities), node, ctx)
    m_right = most_matches(node.right, right, tuple(e.right for e in node.equalities), node, ctx)
    if public_left and public_right:
        keys, frequency = keys_and_frequencies(node, left, right, m_left, m_right)
        return Facts(joined_columns(node, left, right), keys=keys, frequency=frequency, rule="public join")
    if public_left or public_right:
        return join_with_public(node, left, right, m_left, m_right)
    if left.replaced != right.replaced:
        raise reject(
            "DP230", "the two tables change in different ways between neighbouring databases", span=node.span,
            label="rows of one are added or removed, those of the other are replaced",
            help=["custodian: give all units that are queried together the same `neighbours`"],
        )  # fmt: skip
    if joins_same_unit(node, left, right):
        return join_same_unit(node, left, right, m_left, m_right)
    return join_by_frequency(node, left, right, m_left, m_right, ctx)
