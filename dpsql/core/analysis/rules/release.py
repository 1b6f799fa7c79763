"""Release: the only node above which everything is public.

Claim: its rows depend on private data only through noisy integers, which are calibrated to the contribution given here.
    Of a row unit that is c rows, or c replaced rows where rows are replaced one by one. Of an id unit it is the
    enforced limits, or the proven frequency of the id. Of several units the noise follows the one that changes most. An
    id that has one row in each group has at most as many rows as there are groups for it.
Why: an aggregate over rows that differ by at most c moves by at most c·B in all.
When it would be false: an unbounded stability or frequency (refused here, with its reason); a frequency that the tree
    below no longer has (it is derived from the finished tree); a unit lost on the way (ids empty for an id unit).
Proved by: End.release_of_rows, End.release_of_ids, End.replaced_ids. Not proved: replaced rows, groups of an id
Tested by: tests/deep/core/analysis/test_stability.py, tests/deep/core/analysis/test_contribution_bounding.py,
tests/deep/core/analysis/test_replace_one.py

Example:
    >>> facts("SELECT AVG(age) FROM patients WHERE age > 17", rewritten=True)
    release AVG(age)      public
    └─ filter age > 17    stability patient=1 id
       └─ scan patients   stability patient=1 id
"""

from __future__ import annotations

from dpsql.core.analysis.context import Context
from dpsql.core.analysis.facts import ColumnFact, Contribution, Facts, most_changed
from dpsql.core.analysis.public_groups import groups_of_an_id, released_groups
from dpsql.core.ir.nodes import GroupKeys, Release, Scan, keyed_by
from dpsql.core.ir.recipes import Output
from dpsql.core.ir.walk import walk
from dpsql.core.numbers.cap import Cap, Finite, Unbounded
from dpsql.core.value_classes import replace
from dpsql.core.values.value import Value, type_range
from dpsql.diagnostics.diagnostic import Diagnostic, Reason
from dpsql.diagnostics.errors import Rejected, reject


def release(node: Release, below: Facts, ctx: Context) -> Facts:
    """Facts of the released (public) rows; refuses what has no finite contribution."""
    if below.public:
        raise reject("DP101", "a release of public rows", span=node.span)
    if not ctx.drafting:  # contributions are bounded last
        contribution(node, below)
    columns = {c.uid: ColumnFact(Value(c.type, range=type_range(c.type), finite=True)) for c in node.keys}
    columns |= {o.column.uid: ColumnFact(_released(o)) for o in node.outputs}
    keys = frozenset({frozenset(k.uid for k in node.keys)})
    return Facts(columns, keys=keys, rule="release", note="")


def _released(output: Output) -> Value:
    """A released number: of averages and variances it is known where they were clamped to, for later releases."""
    column = output.column
    return Value(column.type, output.recipe.span, type_range(column.type), output.recipe.nullable)


def contribution(node: Release, below: Facts) -> Contribution:
    """What the unit that changes most can change in this release. Raises Rejected DP210, DP211 with the reason."""
    found = contributions(node, below)
    return found[most_changed(found)]


def contributions(node: Release, below: Facts) -> dict[str, Contribution]:
    """Unit → what one of it can change in this release. Raises Rejected DP210, DP211, DP220 with the reason."""
    released = released_groups(keyed_by(node))
    if not below.ids:
        if below.replaced_rows is not None:
            return {
                unit: Contribution(_whole(cap), replaces_rows=True, size=below.size, released_groups=released)
                for unit, cap in below.replaced_rows.items()
            }
        return {unit: Contribution(_whole(cap), released_groups=released) for unit, cap in below.stability.items()}
    (unit,) = below.units
    if below.contribution is not None:
        return {unit: _replaced(replace(below.contribution, released_groups=released), below)}
    keyed = keyed_by(node)
    rows, groups = proven_rows(keyed, below), groups_of_an_id(keyed, below.by_id)
    if rows is None:
        known = below.most_rows(below.ids)
        why = known.reasons[0] if isinstance(known, Unbounded) else no_limit(node, below)
        raise Rejected([Diagnostic.from_reason(why)])
    few = None if groups is None else min(groups, rows)
    found = Contribution(rows, groups=few, released_groups=released)
    if one_row_per_group(keyed, below):
        found = Contribution(None, 1, rows, released_groups=released)
    return {unit: _replaced(found, below)}


def proven_rows(keyed: GroupKeys, facts: Facts) -> int | None:
    """Most rows of one id in all groups that a release shows, as the tree proves it; None if nothing does.

    facts: of the rows with their key columns.
    """
    known = facts.most_rows(facts.ids)
    known = known if isinstance(known, Finite) else facts.rows_of_an_id()
    found = None if known is None else _whole(known)
    groups = groups_of_an_id(keyed, facts.by_id)
    if groups is None or not one_row_per_group(keyed, facts):
        return found
    return groups if found is None else min(found, groups)


def one_row_per_group(keyed: GroupKeys, facts: Facts) -> bool:
    """Whether no id has two rows in one group. facts: of the rows with their key columns."""
    keys = frozenset(item.column.uid for item in keyed.items)
    return any(facts.is_key(frozenset({uid}) | keys) for uid in facts.ids)


def _replaced(found: Contribution, below: Facts) -> Contribution:
    """Where ids are replaced, two ids change: the old one's rows go, the new one's come."""
    return replace(found, ids=2) if below.replaced and below.ids else found


def _whole(cap: Cap) -> int:
    if isinstance(cap, Unbounded):
        raise Rejected([Diagnostic.from_reason(cap.reasons[0])])
    return max(1, -(-cap.value.numerator // cap.value.denominator))  # private rows are never released without noise


def no_limit(node: Release, below: Facts) -> Reason:
    """Nothing says how many rows one id may contribute."""
    tables = sorted({c.hint.table for c in below.columns.values() if c.hint is not None and not c.hint.public})
    tables = tables or sorted({part.table for part in walk(node) if isinstance(part, Scan)})  # as above a UNION
    where = f"tables.{tables[0]}" if len(tables) == 1 else f"each of tables.{', tables.'.join(tables)} that has none"
    return Reason(
        "DP211",
        "nothing limits how many rows one privacy unit contributes",
        node.span,
        f"rows of {' and '.join(tables)} per {' and '.join(below.units)} are not limited",
        (
            f"custodian: add to {where}:  max_rows_per_unit: 20",
            "or both, for grouped queries:  max_groups_per_unit: 5  and  max_rows_per_group: 4",
            "or, in this query:  SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (max_rows_contributed = 20) …",
        ),
    )
