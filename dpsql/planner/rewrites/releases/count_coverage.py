"""Coverage: how many units are above the limits of a release, counted by one more release of the same query.

Claim: one id changes one cell of the histogram by one; where ids are replaced, two cells.
Why: the tree counts totals per id, so that each id has one row (`core/analysis/rules/private_aggregate.py`). Nothing
    rests on this file: the tree is a plan like any other, and the analysis derives what it costs.
When it would be false: a unit that is counted once for each of its groups. Therefore the rows of an id's groups are
    reduced to those of its largest group before anything is compared.
Tested by: tests/deep/core/analysis/test_coverage_histogram.py

Counted are the limits that the bounding node enforces on numbers of this release. "Above" means more than the limit:
what is at the limit loses nothing. Of a prepared table the rows above its limit are gone; there the copy says, beside
each row, how many its owner had in the whole table.

Example:
    >>> release_before_after(
    ...     lambda r, f: next(count_coverage(r, 0, iter(range(999)))).node, "SELECT COUNT(*) FROM visits"
    ... )
    release COUNT(*)                                 →  release COUNT(*)
    └─ bound contributions of each patient: 12 rows     └─ group by above_0 ∈ (TRUE, FALSE)
       └─ scan visits                                      └─ keep private COUNT(*) by id
                                                              └─ filter patient IS NOT NULL
                                                                 └─ scan visits
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product

from dpsql.core.ir.components import Component, KeySource, RowCount
from dpsql.core.ir.expressions import Call, Column, Expr, Literal
from dpsql.core.ir.nodes import (
    Aggregate,
    AggregateCall,
    BoundContributions,
    Filter,
    GroupKeys,
    Item,
    Node,
    Release,
    Scan,
)
from dpsql.core.ir.recipes import Output
from dpsql.core.ir.types import BIGINT, BOOLEAN, HUGEINT, SqlType
from dpsql.core.policy.tables import Table
from dpsql.core.policy.units import IdUnit
from dpsql.frontend.aggregates.count import Count
from dpsql.planner.notes.enforced_limits import distinct_values, enforced, missed


@dataclass(frozen=True, slots=True)
class CoveringRelease:
    """A release that counts how many units are above limits of another one.

    node: its keys say, limit by limit, whether a unit is above. of: the place of the release that is limited.
    limits: each limit in words, as in `more than 5 rows`, in the order of the keys.
    """

    node: Release
    of: int
    limits: tuple[str, ...]


def count_coverage(release: Release, place: int, numbers: Iterator[int]) -> Iterator[CoveringRelease]:
    """What tells how many units are above the limits of a release: none where no limit takes anything away.

    place: of the release in its query. numbers: unused numbers of columns.
    """
    bounding = release.input
    if not isinstance(bounding, BoundContributions):
        return
    make = _Maker(release, bounding, place, numbers)
    rows = make.rows()
    if rows is not None:
        yield rows
    for component in release.components:
        most = distinct_values(release, component)
        if most is not None:
            yield make.distinct(component, most)


def count_cut(
    release: Release, place: int, tables: Mapping[str, Table], told: Container[str], numbers: Iterator[int]
) -> Iterator[tuple[str, CoveringRelease]]:
    """What tells how many units had more rows than were kept, of each prepared table whose rows a release misses, by
    its name.

    told: names of tables that need not be told of again.
    """
    for name in dict.fromkeys(missed(release, tables)):
        table = tables[name]
        assert table.copied is not None and isinstance(table.protection, IdUnit) and table.max_rows_per_unit is not None
        if name in told or table.copied.total is None:
            continue
        columns = {c.name: Column(next(numbers), c.name, c.sql_type) for c in table.all_columns if c.sql_type}
        id_, n = columns[table.protection.column], Column(next(numbers), "n", BIGINT)
        owned = Filter(Scan(name, tuple(columns.values()), None, name), Call("is_not_null", (id_,), BOOLEAN))
        key = Item(Column(next(numbers), "id", id_.type), id_)
        calls = (AggregateCall("max", columns[table.copied.total.name], n),)
        most = table.max_rows_per_unit.rows
        above = [(n, most, f"more than {_rows(most)} in the whole table {name}")]
        yield name, _histogram(release, place, Aggregate(owned, (key,), calls, inner=True), above, numbers)


@dataclass(frozen=True, slots=True)
class _Maker:
    release: Release
    bounding: BoundContributions
    place: int
    numbers: Iterator[int]

    def rows(self) -> CoveringRelease | None:
        """Limits on rows, on rows in a group, and on groups: one histogram over all of them."""
        limits = enforced(self.release)
        in_all, in_one, groups = limits.rows, limits.per_group, limits.groups
        per_id = self._per_id(in_groups=in_one is not None or groups is not None)
        above = []
        if in_all is not None:
            above.append((per_id.rows, in_all, f"more than {_rows(in_all)}"))
        if in_one is not None:
            above.append((per_id.in_one, in_one, f"more than {_rows(in_one)} in one group"))
        if groups is not None:
            above.append(
                (per_id.groups, groups, f"rows in more than {'1 group' if groups == 1 else f'{groups:,} groups'}")
            )
        return self._histogram(per_id.node, above) if above else None

    def distinct(self, c: Component, most: int) -> CoveringRelease:
        """The limit on different values of a COUNT(DISTINCT …)."""
        b = self.bounding
        assert c.arg is not None
        present: Expr = Call("is_not_null", (c.arg,), BOOLEAN)
        if c.filter is not None:
            present = Call("and", (present, c.filter), BOOLEAN)
        rows = Filter(self._rows_with_an_id(), present)
        listed = Aggregate(rows, self._keyed(b.id, *b.keys, c.arg), (), inner=True)
        owner, n = self._column("id", b.id.type), self._column("n", BIGINT)
        call = AggregateCall("count", None, n)
        per_id = Aggregate(listed, (Item(owner, listed.keys[0].column),), (call,), inner=True)
        what = f"more than {most:,} different values"
        return self._histogram(per_id, [(n, most, f"{what} in all groups together" if b.keys else what)])

    def _per_id(self, in_groups: bool) -> _PerId:
        b = self.bounding
        owner, n = self._column("id", b.id.type), self._column("n", BIGINT)
        counted = AggregateCall("count", None, n)
        if not in_groups:
            return _PerId(Aggregate(self._rows_with_an_id(), (Item(owner, b.id),), (counted,), inner=True), n, n, n)
        groups = Aggregate(self._rows_with_an_id(), self._keyed(b.id, *b.keys), (counted,), inner=True)
        total, largest, k = self._column("n", HUGEINT), self._column("m", BIGINT), self._column("k", BIGINT)
        calls = (
            AggregateCall("sum", n, total),
            AggregateCall("max", n, largest),
            AggregateCall("count", None, k),
        )
        node = Aggregate(groups, (Item(owner, groups.keys[0].column),), calls, inner=True)
        return _PerId(node, total, largest, k)

    def _rows_with_an_id(self) -> Node:
        """The rows that are bounded; without an id they are nobody's, and dropped."""
        return Filter(self.bounding.input, Call("is_not_null", (self.bounding.id,), BOOLEAN))

    def _keyed(self, *exprs: Expr) -> tuple[Item, ...]:
        return tuple(Item(self._column(f"k{i}", e.type), e) for i, e in enumerate(exprs))

    def _histogram(self, per_id: Node, above: list[tuple[Column, int, str]]) -> CoveringRelease:
        return _histogram(self.release, self.place, per_id, above, self.numbers)

    def _column(self, name: str, type_: SqlType) -> Column:
        return Column(next(self.numbers), name, type_)


def _histogram(
    release: Release, place: int, per_id: Node, above: Sequence[tuple[Column, int, str]], numbers: Iterator[int]
) -> CoveringRelease:
    """Units by whether they are above each limit. per_id: one row of each. above: its number, the limit, in words."""
    items = tuple(
        Item(
            Column(next(numbers), f"above_{i}", BOOLEAN),
            # No rule says that MAX and SUM of an id's counts are never NULL.
            Call("coalesce", (Call("gt", (n, Literal(most, n.type)), BOOLEAN), Literal(False, BOOLEAN)), BOOLEAN),
        )
        for i, (n, most, _) in enumerate(above)
    )
    cells = tuple(product((True, False), repeat=len(items)))
    keys = KeySource(tuple(range(len(items))), cells, "above the limit or not", covers=True)
    units = Output(Column(next(numbers), "units", BIGINT), Count(0), "COUNT(*)", release.span)
    keyed = GroupKeys(per_id, items, (keys,))
    node = Release(keyed, tuple(i.column for i in items), (RowCount(),), (units,), span=release.span)
    return CoveringRelease(node, place, tuple(words for _, _, words in above))


@dataclass(frozen=True, slots=True)
class _PerId:
    """One row per id, with its rows, those in its largest group, and its groups."""

    node: Aggregate
    rows: Column
    in_one: Column
    groups: Column


def _rows(count: int) -> str:
    return "1 row" if count == 1 else f"{count:,} rows"
