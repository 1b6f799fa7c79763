"""How many rows a release may count, as far as declared numbers tell: public sizes, listed ids, keys of listed values.

For warnings only (`warnings.py`): nothing here is a fact that noise relies on, and nothing comes from private data.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Final

from dpsql.core.analysis.facts import Columns, Facts
from dpsql.core.ir.expressions import Column
from dpsql.core.ir.nodes import (
    Aggregate,
    BoundContributions,
    Filter,
    GroupKeys,
    Join,
    JoinKind,
    Project,
    Release,
    SetKind,
    SetOperation,
    Truncate,
    Unnest,
    key_sources,
    keyed_by,
)
from dpsql.core.ir.walk import Tagged
from dpsql.core.numbers.cap import Finite

_LARGEST: Final = 10**15
"""More is no limit: such numbers come from columns whose bounds are those of their type."""


@dataclass(frozen=True, slots=True)
class Most:
    """At most this many, and the declared numbers that say so, for a message."""

    count: int
    why: str


@dataclass(frozen=True, slots=True)
class DeclaredSizes:
    """How much a release can count, by declared numbers. None: none of them tells.

    total: rows in all groups together. per_group: in one group. units: privacy units. groups: public groups, 0 where
    they are private or their list is not known.
    """

    total: Most | None
    per_group: Most | None
    units: Most | None
    groups: int

    @property
    def average(self) -> Most | None:
        """Rows of a group on average, rounded up; never more than one group can have."""
        if self.total is None or self.groups < 2:
            return self.per_group
        share = Most(-(-self.total.count // self.groups), f"{self.total.why}, in {self.groups:,} groups")
        return share if self.per_group is None or share.count < self.per_group.count else self.per_group


def declared_sizes(below: Tagged[Facts], node: Release) -> DeclaredSizes:
    """What the rows of a release's input (`below`) can be at most."""
    facts = below.fact
    units = _units(facts)
    total = _least(_rows(below), _listed(facts, frozenset()), _counted(facts, units, in_one_group=False))
    grouped = _group_columns(node)
    within = _listed(facts, grouped) if grouped else None
    per_group = _least(total, within, _counted(facts, units, in_one_group=True))
    sources = key_sources(node) if node.keys else ()
    groups = prod(len(source.keys) for source in sources) if sources else 0
    return DeclaredSizes(total, per_group, units, groups)


def _units(facts: Facts) -> Most | None:
    """How many ids the policy lists, or lets lie between the bounds of the id's column."""
    found = None
    for uid in facts.ids:
        column = facts.columns.get(uid)
        if column is None or column.value.domain is None:
            continue
        domain = column.value.domain
        count = domain.size - int(domain.null)  # rows without an id are nobody's, and left out
        where = f" of {column.hint.column}" if column.hint is not None else ""
        found = _least(found, Most(count, f"{count:,} values{where}"))
    return found


def _counted(facts: Facts, units: Most | None, in_one_group: bool) -> Most | None:
    """Rows that the limits per unit let be counted."""
    if units is None:
        return None
    c = facts.contribution
    if c is not None and not c.limits_rows:
        return None
    if c is not None:
        rows = c.rows_in_one_group if in_one_group else c.rows
    else:
        proven = facts.rows_of_an_id()
        if proven is None:
            return None
        rows = int(proven.value)
    return Most(units.count * rows, units.why if rows == 1 else f"{units.why}, at most {rows:,} rows each")


def _listed(facts: Facts, columns: Columns) -> Most | None:
    """Rows that agree on these columns, by the least of the keys whose other columns have listed or bounded values."""
    found = None
    for key in facts.keys:
        rows = _product(facts, key - columns)
        if rows is not None:
            names = ", ".join(sorted(_name(facts, uid) for uid in key))
            found = _least(found, Most(rows, f"`unique: [{names}]`"))
    if columns and (facts.is_key(columns) or not any(facts.columns[uid].value.nullable for uid in columns)):
        promised = facts.most_rows(columns)  # of rows with a NULL it says nothing, and they are one group
        if isinstance(promised, Finite):
            names = ", ".join(sorted(_name(facts, uid) for uid in columns))
            found = _least(
                found, Most(int(promised.value), f"at most {int(promised.value):,} rows with the same {names}")
            )
    return found


def _product(facts: Facts, columns: Columns) -> int | None:
    """How many combinations of values these columns have; None if one of them has no list."""
    rows = 1
    for uid in columns:
        size = _size(facts, uid)
        if size is None:
            return None
        rows *= size
    return rows


def _size(facts: Facts, uid: int) -> int | None:
    column = facts.columns.get(uid)
    return None if column is None or column.value.domain is None else column.value.domain.size


def _name(facts: Facts, uid: int) -> str:
    column = facts.columns.get(uid)
    return column.hint.column if column is not None and column.hint is not None else "…"


def _group_columns(node: Release) -> Columns:
    """The columns of the input that are group keys as they stand."""
    return frozenset(item.expr.uid for item in keyed_by(node).items if isinstance(item.expr, Column))


def _rows(tagged: Tagged[Facts]) -> Most | None:
    """Rows of a node, from the public sizes below it."""
    if tagged.fact.size is not None and not tagged.fact.public:
        return Most(tagged.fact.size, f"a public size of {tagged.fact.size:,} rows")
    match tagged.node:
        case Filter() | Project() | GroupKeys() | BoundContributions() | Truncate() | Aggregate():
            return _rows(tagged.inputs[0])
        case Unnest(most=most):
            return _times(_rows(tagged.inputs[0]), most, f"at most {most} elements each")
        case SetOperation(kind=SetKind.UNION):
            left, right = map(_rows, tagged.inputs)
            if left is None or right is None:
                return None
            return Most(left.count + right.count, f"{left.why} and {right.why}")
        case SetOperation():
            return _rows(tagged.inputs[0])
        case Join() as join:
            return _joined(join, *tagged.inputs)
        case _:
            return None


def _joined(join: Join, left: Tagged[Facts], right: Tagged[Facts]) -> Most | None:
    """Pairs of rows: of the private side, times the rows of the other one that can match."""
    if join.kind.filters:
        return _rows(left)
    ends_left = frozenset(e.left.uid for e in join.equalities if isinstance(e.left, Column))
    ends_right = frozenset(e.right.uid for e in join.equalities if isinstance(e.right, Column))
    sides = [(left, right, ends_right), (right, left, ends_left)]
    if join.kind is JoinKind.FULL:
        return None
    for one, other, ends in sides[:1] if join.kind is JoinKind.LEFT else sides:
        matching, rows = other.fact.most_rows(ends), _rows(one)
        if rows is not None and isinstance(matching, Finite) and (other.fact.public or matching.value <= 1):
            return _times(rows, max(1, int(matching.value)), f"at most {int(matching.value)} partners each")
    return None


def _times(rows: Most | None, factor: int, why: str) -> Most | None:
    if rows is None or factor == 1:
        return rows
    return Most(rows.count * factor, f"{rows.why}, {why}")


def _least(*found: Most | None) -> Most | None:
    known = [most for most in found if most is not None and most.count < _LARGEST]
    return min(known, key=lambda most: most.count, default=None)
