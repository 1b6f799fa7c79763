"""Joining private rows that belong to the same owner.

Claim: if every pair of rows that can match belongs to one id, still only that id's rows differ between neighbours:
    INNER, LEFT, SEMI and ANTI on the shared id, or on a foreign key of the unit path. FULL is refused.
Why: the rows of an id in the result are made of that id's rows alone, whatever other ids do. Pairs belong to one id if
    (a) a bare id column of one side equals one of the other, or (b) all columns of a foreign key of the unit path equal
    the key it references, bare and of one type: that key is promised unique, so that the row it names is the very row
    through which the owner is found, or (c) two foreign keys to the same key of the same table are equal: both owners
    are found through the same row.
When it would be false: an equality below OR, or on an expression of the id (two ids may share it); a referenced key
    that is enforced instead of promised (dropping duplicates moves other ids' rows); the padded side's id as the
    result's (it is NULL for rows that belong to somebody).
Proved by: Sound.joined_local, Sound.derive_sound. Not proved: foreign keys of a unit path, functions of the id
Tested by: tests/deep/core/analysis/test_operators.py, tests/core/analysis/test_join.py

Example:
    >>> facts("SELECT * FROM drugs d JOIN visits v ON d.visit = v.visit")
    join inner visit = visit   stability patient=1 id
    ├─ scan drugs              unit: through visits
    └─ scan visits             stability patient=1 id
"""

from __future__ import annotations

from dpsql.core.analysis.facts import Facts
from dpsql.core.analysis.rules.determined_by_unit import determined_columns
from dpsql.core.analysis.rules.join_multiplicity import joined_columns, keys_and_frequencies
from dpsql.core.ir.expressions import Column
from dpsql.core.ir.nodes import Join, JoinKind
from dpsql.core.numbers.cap import Cap
from dpsql.diagnostics.errors import reject


def joins_same_unit(node: Join, left: Facts, right: Facts) -> bool:
    """True if only rows of one owner can match."""
    if left.units != right.units or not (left.ids or left.hops) or not (right.ids or right.hops):
        return False
    pairs = [
        (e.left.uid, e.right.uid)
        for e in node.equalities
        if isinstance(e.left, Column) and isinstance(e.right, Column) and e.left.type == e.right.type
    ]
    return (
        any(a in left.ids and b in right.ids for a, b in pairs)
        or _on_hop(left, right, pairs)
        or _on_hop(right, left, [(b, a) for a, b in pairs])
        or _on_same_hop(left, right, pairs)
    )


def _on_hop(many: Facts, one: Facts, pairs: list[tuple[int, int]]) -> bool:
    """Whether a foreign key of `many` equals the promised key of a row in `one` that it references."""
    for hop in many.hops:
        for key in one.promised_keys:
            if key.table != hop.table or not _same(key.references, hop.references):
                continue
            own = dict(zip((r.lower() for r in key.references), key.columns, strict=True))
            if all((a, own[r.lower()]) in pairs for a, r in zip(hop.columns, hop.references, strict=True)):
                return True
    return False


def _same(key: tuple[str, ...], references: tuple[str, ...]) -> bool:
    return {c.lower() for c in key} == {c.lower() for c in references}


def _on_same_hop(left: Facts, right: Facts, pairs: list[tuple[int, int]]) -> bool:
    """Whether both sides refer to the same row of the same table of the path."""
    return any(
        a.table == b.table
        and a.references == b.references
        and all(pair in pairs for pair in zip(a.columns, b.columns, strict=True))
        for a in left.hops
        for b in right.hops
    )


def join_same_unit(node: Join, left: Facts, right: Facts, m_left: Cap, m_right: Cap) -> Facts:
    """Facts of a join on the owner. Raises Rejected DP220 for a FULL join."""
    if node.kind.filters:
        return Facts(
            left.columns, stability=left.stability, ids=left.ids, keys=left.keys, frequency=left.frequency,
            padding=left.padding, by_id=left.by_id, hops=left.hops, promised_keys=left.promised_keys,
            replaced=left.replaced, rule=f"{node.kind.value} join on the privacy unit",
        )  # fmt: skip
    if node.kind is JoinKind.FULL:
        raise reject(
            "DP220", "a FULL join leaves rows whose privacy unit stands in either of two columns", span=node.span,
            label="whose rows these are cannot be told from one column",
            help=["use a LEFT join from the table that has every id, or UNION ALL of the two tables"],
        )  # fmt: skip
    keys, frequency = keys_and_frequencies(node, left, right, m_left, m_right)
    ids, by_id, stability = left.ids, left.by_id, left.stability
    found = determined_columns(node, left.by_id, right, m_right, from_left=True)
    if node.kind is JoinKind.INNER:
        found |= determined_columns(node, right.by_id, left, m_left, from_left=False)
        ids, by_id = left.ids | right.ids, left.by_id | right.by_id
        stability = left.stability if left.ids else right.stability
    elif node.residual is None and all(
        isinstance(e.left, Column) and e.left.uid in left.by_id for e in node.equalities
    ):
        by_id = left.by_id | right.by_id  # the rows of an id have a partner all or none
    return Facts(
        joined_columns(node, left, right), stability=stability, ids=ids, keys=keys, frequency=frequency,
        by_id=by_id | found, hops=left.hops | right.hops, promised_keys=left.promised_keys | right.promised_keys,
        replaced=left.replaced,
        rule=("" if node.kind is JoinKind.INNER else f"{node.kind.value} ") + "join on the privacy unit",
    )  # fmt: skip
