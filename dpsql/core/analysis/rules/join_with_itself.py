"""A table beside itself: SEMI and ANTI joins that compare each column of it with the same one.

Claim: k rows of the table that differ change at most k·f rows of such a join, f the most rows that agree on the columns
    compared. [tight]
Why: a row that comes or goes can change only rows with its own values there, itself among them: at most f.
When it would be false: an equality of two different columns, or of what is computed of one; a side on which several
    rows are made of one of the table's; a frequency made true by truncation.
Proved by: Itself.itself_sound, Rules.self_join_stable
Tested by: tests/deep/core/analysis/test_operator_tightness.py, tests/deep/core/analysis/test_broken_operator_rules.py,
    tests/core/analysis/test_table_and_itself.py

Example:
    >>> facts("SELECT COUNT(*) FROM calls a SEMI JOIN calls b ON a.phone = b.phone", rewritten=True)
    release COUNT(*)             public
    └─ join semi phone = phone   stability calls=10 rows · ≤ 5 and ≤ 5 matches
       ├─ scan calls             stability calls=2 rows
       └─ scan calls             stability calls=2 rows
"""

from __future__ import annotations

from dpsql.core.analysis.context import Derivation
from dpsql.core.ir.expressions import Column
from dpsql.core.ir.nodes import Filter, Join, Node, Project, Scan
from dpsql.core.numbers.cap import Cap, Finite


def self_join_frequency(node: Join, ctx: Derivation) -> Cap | None:
    """f of a join that compares columns of a table with themselves: most rows of it that agree on these columns."""
    left, right = _of_table(node.left), _of_table(node.right)
    if left is None or right is None or left[0].table != right[0].table:
        return None
    (scan, own), (_, other) = left, right
    compared = set()
    for pair in node.equalities:
        a, b = pair.left, pair.right
        place = own.get(a.uid) if isinstance(a, Column) else None
        if place is None or not isinstance(b, Column) or other.get(b.uid) != place:
            return None
        compared.add(scan.columns[place].uid)
    found = ctx.fact(scan).most_rows(frozenset(compared)) if compared else None
    return found if isinstance(found, Finite) else None


def _of_table(node: Node) -> tuple[Scan, dict[int, int]] | None:
    """The table of which each row makes one row at most, and of its bare columns their places in it."""
    match node:
        case Scan(columns=columns):
            return node, {c.uid: at for at, c in enumerate(columns)}
        case Filter(input=below):
            return _of_table(below)
        case Project(input=below, items=items):
            found = _of_table(below)
            if found is None:
                return None
            scan, known = found
            bare = {i.column.uid: i.expr.uid for i in items if isinstance(i.expr, Column)}
            return scan, {uid: known[was] for uid, was in bare.items() if was in known}
        case _:
            return None
