"""Joining private rows that may belong to different owners: finite only where frequencies are.

Claim. s: rows of a side that differ, per unit; f: most rows of a side that match one row of the other.
    INNER s_L·f_R + s_R·f_L · LEFT s_L·max(1, f_R) + p_R·f_L · FULL s_L·max(1, 2f_R) + s_R·max(1, 2f_L) ·
    SEMI/ANTI s_L + s_R·f_L [tight]; of a table with itself on the same columns s_L·f
    (`join_with_itself.py`). p_R = 2·s_R, or what the facts of a truncated or grouped side say. An id unit
    counts as rows: most rows of an id, which must be finite. The vectors of several units add entry by entry.
Why: L′⋈R′ and L⋈R differ at most by the partners of rows of L that differ, in one of R's states, and the partners of
    rows of R that differ, in one of L's. A left row may change between padded and not with each partner, hence 2; the
    same for FULL on either side. A left row of a SEMI or ANTI join appears or vanishes once.
When it would be false: a frequency that holds in one of the two databases only (they are promises about all
    neighbours, or made true by truncation below); rows without an id (dropped before: the id must not be NULL here).
Proved by: Ops.inner_stable, Ops.left_stable, Ops.full_stable, Ops.semi_stable, Ops.anti_stable,
    Rules.padded_lookup, Sound.derive_sound
Tested by: tests/deep/core/analysis/test_operators.py, tests/core/analysis/test_join.py

Example:
    >>> facts("SELECT COUNT(*) FROM calls c JOIN alarms a ON c.phone = a.phone", rewritten=True)
    release COUNT(*)                  public
    └─ join inner phone = phone       stability calls=6 rows · stability alarms=10 rows · ≤ 3 and ≤ 5 matches
       ├─ scan calls                  stability calls=2 rows
       └─ keep 3 rows of each phone   stability alarms=2 rows · ≤ 3 rows per phone
          └─ scan alarms              stability alarms=1 row
"""

from __future__ import annotations

from collections.abc import Mapping

from dpsql.core.analysis.context import Derivation
from dpsql.core.analysis.facts import Columns, Facts
from dpsql.core.analysis.rules.join_multiplicity import joined_columns, keys_and_frequencies
from dpsql.core.analysis.rules.join_with_itself import self_join_frequency
from dpsql.core.ir.expressions import Column
from dpsql.core.ir.nodes import Join, JoinKind
from dpsql.core.ir.short_text import identifier, qualified
from dpsql.core.numbers.cap import ONE, Cap, Unbounded, add, finite, larger, times
from dpsql.core.policy.period_ids import in_words
from dpsql.diagnostics.diagnostic import Diagnostic, Reason
from dpsql.diagnostics.errors import Rejected

Vector = Mapping[str, Cap]


def join_by_frequency(node: Join, left: Facts, right: Facts, m_left: Cap, m_right: Cap, ctx: Derivation) -> Facts:
    """Facts of a join of two private sides on something other than their owner. Raises Rejected DP230."""
    if isinstance(m_left, Unbounded) or (isinstance(m_right, Unbounded) and not node.kind.filters):
        raise _unbounded(node, left, right, m_left, m_right)
    by_rows = counted_by_rows(left, node), counted_by_rows(right, node)
    keys, frequency = keys_and_frequencies(node, left, right, m_left, m_right)
    same = self_join_frequency(node, ctx) if node.kind.filters else None
    changed = _stability(node, *by_rows, m_left, m_right) if same is None else _times(by_rows[0].stability, same)
    return Facts(
        joined_columns(node, left, right), stability=changed, keys=keys, frequency=frequency, replaced=left.replaced,
        rule=f"{node.kind.value} join by frequency",
        note=f"≤ {m_right} and ≤ {m_left} matches",
    )  # fmt: skip


def counted_by_rows(side: Facts, node: Join | None = None) -> Facts:
    """The same rows counted one by one instead of by their owner. Raises Rejected DP230 if an owner's are unlimited."""
    if not side.ids and not side.hops:
        return side
    (unit,) = side.stability
    most = side.rows_of_an_id(every_row=True)
    if most is None:
        tables = sorted({c.hint.table for c in side.columns.values() if c.hint is not None and not c.hint.public})
        raise Rejected(
            [
                Diagnostic(
                    "DP230",
                    f"rows of different privacy units meet, and nothing limits how many rows one {unit} has",
                    None,
                    None if node is None else node.span,
                    "one person's row can meet any number of other people's rows",
                    (
                        "join on the privacy unit's id, or along the foreign keys of its path",
                        f"or, custodian: promise for {' and '.join(tables) or 'the table'}:  "
                        "max_rows_per_unit: {rows: …, enforce: assume}",
                    ),
                )
            ]
        )
    rows = times(side.stability[unit], most)
    return Facts(
        side.columns, stability={unit: rows}, keys=side.keys, frequency=side.frequency, padding=side.padding,
        replaced=side.replaced,
    )  # fmt: skip


def _stability(node: Join, left: Facts, right: Facts, m_left: Cap, m_right: Cap) -> dict[str, Cap]:
    two = finite(2)
    match node.kind:
        case JoinKind.INNER | JoinKind.CROSS:
            parts = _times(left.stability, m_right), _times(right.stability, m_left)
        case JoinKind.LEFT:
            parts = _times(left.stability, larger(ONE, m_right)), _times(_padding(node, right), m_left)
        case JoinKind.FULL:
            parts = (
                _times(left.stability, larger(ONE, times(two, m_right))),
                _times(right.stability, larger(ONE, times(two, m_left))),
            )
        case JoinKind.SEMI | JoinKind.ANTI:
            parts = left.stability, _times(right.stability, m_left)
    return sums(*parts)


def _padding(node: Join, right: Facts) -> Vector:
    """p: what may change per left row in its partners and its padded row together, for all keys of the right side."""
    ends: Columns = frozenset(e.right.uid for e in node.equalities if isinstance(e.right, Column))
    if len(ends) == len(node.equalities) and ends:
        for known, changed in right.padding.items():
            if ends <= known:
                return changed
    return _times(right.stability, finite(2))


def _times(vector: Vector, factor: Cap) -> Vector:
    return {unit: times(cap, factor) for unit, cap in vector.items()}


def sums(a: Vector, b: Vector) -> dict[str, Cap]:
    """Two vectors of stabilities, added unit by unit."""
    found = dict(a)
    for unit, cap in b.items():
        found[unit] = add(found[unit], cap) if unit in found else cap
    return found


def _both(side: Facts) -> list[str]:
    """The two columns of a unit that is an id in one period."""
    own = {h.column for uid in side.ids if (h := side.columns[uid].hint) is not None}
    return sorted(told for name in own if (told := in_words(name)) != name)


def _unbounded(node: Join, left: Facts, right: Facts, m_left: Cap, m_right: Cap) -> Rejected:
    """Names the keys that may repeat without limit, and how to limit them."""
    help_ = []
    if (left.ids or left.hops) and left.units == right.units:
        help_ += [f"join on {both}, which are the privacy unit together" for both in _both(left)]
        help_.append("join on the privacy unit's id, or along the foreign keys of its path")
    for side, m, ends in (
        (left, m_left, [e.left for e in node.equalities]),
        (right, m_right, [e.right for e in node.equalities]),
    ):
        hints = [side.columns[e.uid].hint for e in ends if isinstance(e, Column)]
        by_rows = not side.ids and not side.hops  # an id has to be promised few rows as well: better join on it
        if by_rows and isinstance(m, Unbounded) and hints and all(h is not None for h in hints):
            columns = ", ".join(identifier(h.column) for h in hints if h is not None)
            help_.append(
                f"custodian: cap how often a key repeats, in tables.{qualified(hints[0].table)}:  "  # type: ignore[union-attr]
                f"max_frequency: [{{columns: [{columns}], rows: …, enforce: truncate}}]"
            )
    help_ = [*_whose(node, left, right), *dict.fromkeys(help_), *_looked_up(left, right)]
    reason = Reason(
        "DP230",
        "two private tables are joined on something other than their privacy unit",
        node.span,
        "one person's row can meet any number of other people's rows",
        tuple(help_) or ("join on equalities of columns, or join a public table instead",),
    )
    return Rejected([Diagnostic.from_reason(reason)])


def _looked_up(left: Facts, right: Facts) -> list[str]:
    """Tables whose rows are protected one by one, as a draft says of all: one of them may hold nothing about people."""
    sides = [side for side in (left, right) if not side.ids and not side.hops]
    tables = sorted(
        {c.hint.table for s in sides for c in s.columns.values() if c.hint is not None and not c.hint.public}
    )
    if len(sides) == 2 and len(tables) == 1:  # of itself
        return []
    return [
        f"custodian: if tables.{qualified(table)} says nothing about anybody, as a list of places does:  public: true"
        for table in tables
    ]


def _whose(node: Join, left: Facts, right: Facts) -> list[str]:
    """Where rows are protected one by one, and joined by one column of one type: it may say whose they are."""
    if left.ids or left.hops or right.ids or right.hops or len(node.equalities) != 1:
        return []
    (equality,) = node.equalities
    ends = [(side, e) for side, e in ((left, equality.left), (right, equality.right)) if isinstance(e, Column)]
    hints = [side.columns[e.uid].hint for side, e in ends]
    if len(hints) != 2 or len({e.type for _, e in ends}) != 1:
        return []
    if any(h is None or h.public for h in hints):
        return []
    tables: dict[str, list[str]] = {}
    for h in hints:
        tables.setdefault(identifier(h.column), []).append(f"tables.{qualified(h.table)}")  # type: ignore[union-attr]
    said = "  and  ".join(
        f"in {' and '.join(dict.fromkeys(found))}  unit: {{column: {column}}}" for column, found in tables.items()
    )
    return [
        f"custodian: if it says whose rows these are, protect all rows of one together:  {said}  with  "
        "max_rows_per_unit: 20  in each"
    ]
