"""Joining private rows with public ones.

Claim. P public, m: most rows of P that match one private row, k: the rows of T that differ.
    ROW: T INNER P: m·k [tight] · T LEFT P: max(1, m)·k [tight] · P LEFT T: 2m·k [tight] ·
    T FULL P: max(1, 2m)·k [tight] · T CROSS P: |P|·k [tight] · T SEMI/ANTI P: k [tight] · P SEMI/ANTI T: m·k [tight].
    ID: T INNER, LEFT, CROSS, SEMI, ANTI P: still only that id's rows differ. P LEFT, SEMI, ANTI T and FULL: refused.
    Replaced rows stay replaced one by one in T INNER, LEFT, CROSS, SEMI, ANTI P; a public size survives a LEFT join
    with m ≤ 1, and a CROSS join with rows written in the query (of a table only the most rows are known).
Why: a private row that differs takes part in at most m output rows. Where rows of P are padded, each of its m partners
    may also change between padded and not, hence 2m. (If only columns of T are counted, the rewrite narrow_joins makes
    it an INNER join, and m is enough.) SEMI and ANTI are filters on T's own row. P SEMI T: each of the m rows of P that
    match a row of T may appear or vanish.
When it would be false: m counted under another comparison than the join's. P LEFT T under an id: the padded rows are
    nobody's, and come and go with somebody's rows; P SEMI T: whose the remaining public row is cannot be told.
Proved by: Ops.inner_stable, Ops.left_stable, Ops.full_stable, Sound.derive_sound. Not proved: replaced rows one by
    one, public sizes
Tested by: tests/deep/core/analysis/test_operators.py, tests/deep/core/analysis/test_replace_one.py,
tests/core/analysis/test_join.py, tests/core/analysis/test_join_public.py,
tests/deep/core/analysis/test_operator_tightness.py

Example:
    >>> facts("SELECT * FROM calls c JOIN phonebook p ON c.phone = p.phone")
    join inner phone = phone   stability calls=2 rows
    ├─ scan calls              stability calls=2 rows
    └─ scan phonebook          public
    >>> facts("SELECT * FROM phonebook p LEFT JOIN calls c ON c.phone = p.phone")
    join left phone = phone   stability calls=4 rows
    ├─ scan phonebook         public
    └─ scan calls             stability calls=2 rows
"""

from __future__ import annotations

from dpsql.core.analysis.facts import Facts
from dpsql.core.analysis.rules.determined_by_unit import determined_columns
from dpsql.core.analysis.rules.join_multiplicity import joined_columns, keys_and_frequencies
from dpsql.core.ir.expressions import Column
from dpsql.core.ir.nodes import Join, JoinKind
from dpsql.core.numbers.cap import ONE, Cap, finite, larger, times
from dpsql.core.value_classes import replace
from dpsql.diagnostics.errors import Rejected, reject


def join_with_public(node: Join, left: Facts, right: Facts, m_left: Cap | None, m_right: Cap | None) -> Facts:
    """Facts of a join of which exactly one side is private. m: None for a SEMI or ANTI join with a public table."""
    private, from_left = (left, True) if right.public else (right, False)
    if m_left is None or m_right is None:  # a filter on the private row itself
        return Facts(
            left.columns, stability=left.stability, ids=left.ids, keys=left.keys, frequency=left.frequency,
            padding=left.padding, by_id=left.by_id, hops=left.hops, promised_keys=left.promised_keys,
            replaced=left.replaced, replaced_rows=left.replaced_rows,
            rule=f"{node.kind.value} join with a public table",
        )  # fmt: skip
    m = m_right if from_left else m_left
    keys, frequency = keys_and_frequencies(node, left, right, m_left, m_right)
    found = Facts(
        joined_columns(node, left, right), stability=private.stability, ids=private.ids, keys=keys, frequency=frequency,
        by_id=private.by_id, hops=private.hops, promised_keys=private.promised_keys, replaced=private.replaced,
    )  # fmt: skip
    if private.ids or private.hops:
        kept = not from_left and node.kind not in (JoinKind.INNER, JoinKind.CROSS)
        if kept or node.kind is JoinKind.FULL:
            raise _public_side_kept(node, private, from_left)
        public = right if from_left else left
        by_id = private.by_id | determined_columns(node, private.by_id, public, m, from_left)
        return replace(found, by_id=by_id, rule="join a public table")
    factor = _factor(node.kind, from_left, m)
    stability = {unit: times(cap, factor) for unit, cap in private.stability.items()}
    rule = f"{node.kind.value} join with a public table ×{factor}"
    if node.kind is JoinKind.INNER or node.kind is JoinKind.CROSS:
        rule = f"join a public table ×{factor}"
    row_wise = node.kind is not JoinKind.FULL and (from_left or node.kind in (JoinKind.INNER, JoinKind.CROSS))
    if private.replaced_rows is None or not row_wise:
        return replace(found, stability=stability, rule=rule)
    public = right if from_left else left
    size = None
    if node.kind is JoinKind.LEFT and factor == ONE:
        size = private.size
    elif _whole_product(node) and private.size is not None and public.size is not None:
        size = private.size * public.size
    replaced = {unit: times(cap, factor) for unit, cap in private.replaced_rows.items()}
    return replace(found, stability=stability, replaced_rows=replaced, size=size, rule=rule)


def _whole_product(node: Join) -> bool:
    return node.kind is JoinKind.CROSS and node.residual is None and not node.equalities


def _factor(kind: JoinKind, from_left: bool, m: Cap) -> Cap:
    """Output rows that change for each private row that differs."""
    match kind:
        case JoinKind.INNER | JoinKind.CROSS | JoinKind.SEMI | JoinKind.ANTI:
            return m
        case JoinKind.LEFT:
            return larger(ONE, m) if from_left else times(finite(2), m)
        case JoinKind.FULL:
            return larger(ONE, times(finite(2), m))


def _public_side_kept(node: Join, private: Facts, from_left: bool) -> Rejected:
    """Rows of the public side that stay without a partner belong to nobody, and show who has none."""
    sides = [(e.left, e.right) if from_left else (e.right, e.left) for e in node.equalities]
    names = [
        ours.name
        for ours, theirs in sides  # a name that the public side has too would be ambiguous
        if isinstance(ours, Column) and ours.name.isidentifier()
        if not (isinstance(theirs, Column) and theirs.name.lower() == ours.name.lower())
    ]
    if not names and not private.hops:  # behind a path the id stands in a table that the query need not read
        names = sorted({c.hint.column for uid in private.ids if (c := private.columns.get(uid)) and c.hint is not None})
    count = f"COUNT({names[0]})" if names else "a count of a column of the private table"
    return reject(
        "DP220", f"this {node.kind.value.upper()} join keeps public rows that belong to no privacy unit",
        span=node.span, label="their number depends on other people's rows",
        help=[f"use an inner join, or count what belongs to somebody:  {count}"],
    )  # fmt: skip
