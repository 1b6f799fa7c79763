"""Octaves: how many units have totals of which size, counted by a release of their own.

Claim: one id changes one cell of the histogram by one; where ids are replaced, two cells.
Why: the tree has one row for each id, with the total of its own rows (`core/analysis/rules/private_aggregate.py`), or
    the sum of the squares of its totals by group, and that row is in at most one octave. Nothing rests on this file:
    the tree is a plan like any other, and the analysis derives what it costs. Whatever limit is read from its noisy
    numbers, the next release is clipped at it.
When it would be false: totals that other ids' rows could change, such as sums of DOUBLEs. Therefore integers of a grid
    are added up.
Tested by: tests/deep/planner/test_searches.py, tests/planner/test_roots_of_squares.py

Example:
    >>> release_before_after(
    ...     lambda r, f: rows_of_units(r.input, iter(range(999))), "SELECT COUNT(*) FROM visits"
    ... )
    release COUNT(*)                                 →  release COUNT(*)
    └─ bound contributions of each patient: 12 rows     └─ group by octave ∈ octaves 0…62
       └─ scan visits                                      └─ keep private COUNT(*) by id
                                                              └─ filter is_not_null(patient)
                                                                 └─ scan visits
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

from dpsql.core.ir.components import Component, DistinctCount, KeySource, RowCount, ValueSum
from dpsql.core.ir.contributions import SATURATED, Norm
from dpsql.core.ir.expressions import Call, Cast, Column, Expr, Literal
from dpsql.core.ir.nodes import (
    Aggregate,
    AggregateCall,
    BoundContributions,
    Filter,
    GroupKeys,
    Item,
    Node,
    Release,
    SetColumn,
    SetKind,
    SetOperation,
    output_columns,
)
from dpsql.core.ir.recipes import Output
from dpsql.core.ir.types import BIGINT, BOOLEAN, DOUBLE, HUGEINT, INTEGER, Kind, SqlType
from dpsql.frontend.aggregates.count import Count
from dpsql.functions.domains.octaves import LAST

WORD: Final = 2**62
"""Squares of totals are added up in two parts, above and below this, so that no sum of them leaves 128 bits."""


@dataclass(frozen=True, slots=True)
class Histogram:
    """Makes releases that count ids by their totals.

    keyed: the rows of the release whose limit is searched, with its group columns. id: whose totals. numbers: unused
    numbers of columns. one_group: whether each id has rows in one group at most. A declared cap ends no octaves of
    totals: how many units lie above it tells what it cuts.
    """

    keyed: GroupKeys
    id: Column
    numbers: Iterator[int]
    one_group: bool

    def of_rows(self, component: Component | None = None, norm: Norm = "l1") -> Release:
        """Of the rows that a count counts: of all groups, or the root of their squares. None: of all rows."""
        arg, where = (None, None) if component is None else (component.arg, component.filter)
        n = self._column("n", BIGINT)
        counted = AggregateCall("count", arg, n, filter=where)
        if norm == "l2":
            return self._roots(self._by_id_and_group(counted), n)
        return self._octaves(self._by_id(self._rows(), self.id, counted), n)

    def of_groups(self, at_most: int | None) -> Release:
        """Of the groups that an id has rows in. at_most: a declared cap; more are counted with it."""
        groups = Aggregate(self._rows(), self._keyed(self.id, *self._keys), (), inner=True)
        return self._counted(groups, at_most)

    def of_values(self, component: DistinctCount) -> Release:
        """Of the different values that a COUNT(DISTINCT …) counts, in all groups together."""
        present: Expr = Call("is_not_null", (component.arg,), BOOLEAN)
        if component.filter is not None:
            present = Call("and", (present, component.filter), BOOLEAN)
        rows = Filter(self._rows(), present)
        return self._counted(Aggregate(rows, self._keyed(self.id, *self._keys, component.arg), (), inner=True))

    def of_totals(self, component: ValueSum, norm: Norm = "l1") -> Release:
        """Of the sizes of totals of a SUM: of all groups, or the root of their squares. component: with its grid."""
        total = self._column("s", HUGEINT)
        call = AggregateCall("sum", component.arg, total, filter=component.filter, summed=component)
        if not self._keys:
            return self._octaves(self._by_id(self._rows(), self.id, call), total)
        groups = self._by_id_and_group(call)
        if norm == "l2":
            return self._roots(groups, total)
        whole = self._column("c", HUGEINT)
        size = AggregateCall("sum", Call("abs", (_within(total, -SATURATED, SATURATED),), HUGEINT), whole)
        return self._octaves(self._by_id(groups, groups.keys[0].column, size), whole)

    def _counted(self, listed: Aggregate, at_most: int | None = None) -> Release:
        n = self._column("n", BIGINT)
        return self._octaves(self._by_id(listed, listed.keys[0].column, AggregateCall("count", None, n)), n, at_most)

    def _roots(self, groups: Aggregate, total: Column) -> Release:
        """By the least octave b with Σ total² ≤ 4^b: of an id's totals of all groups. No root is taken."""
        held = _within(total, -SATURATED, SATURATED)
        square, word = Call("mul", (held, held), HUGEINT), Literal(WORD, BIGINT)
        high, low = self._column("h", HUGEINT), self._column("l", HUGEINT)
        per_id = self._by_id(
            groups, groups.keys[0].column,
            AggregateCall("sum", Call("intdiv", (square, word), HUGEINT), high),
            AggregateCall("sum", Call("mod", (square, word), HUGEINT), low),
        )  # fmt: skip
        above = Call("mul", (_within(high, 0, WORD), word), HUGEINT)  # octave 62, however much more it is
        squares = Call("add", (above, _within(low, 0, WORD * 2**40)), HUGEINT)
        words = Call("intdiv", (Call("add", (squares, Literal(WORD - 1, BIGINT)), HUGEINT), word), HUGEINT)
        beyond = Call("add", (_half(Call("octave", (words,), INTEGER)), Literal(LAST // 2, INTEGER)), INTEGER)
        small = Call("le", (squares, word), BOOLEAN)
        return self._counted_by(
            per_id, Call("case", (small, _half(Call("octave", (squares,), INTEGER)), beyond), INTEGER)
        )

    def _by_id_and_group(self, call: AggregateCall) -> Aggregate:
        return Aggregate(self._rows(), self._keyed(self.id, *self._keys), (call,), inner=True)

    def _by_id(self, rows: Node, id: Column, *calls: AggregateCall) -> Aggregate:
        return Aggregate(rows, (Item(self._column("id", id.type), id),), calls, inner=True)

    @property
    def _keys(self) -> tuple[Column, ...]:
        """The group columns, unless each id is in one group."""
        return () if self.one_group else tuple(item.column for item in self.keyed.items)

    def _keyed(self, *exprs: Expr) -> tuple[Item, ...]:
        return tuple(Item(self._column(f"k{i}", e.type), e) for i, e in enumerate(exprs))

    def _rows(self) -> Node:
        """Those that are bounded; without an id they are nobody's, and dropped."""
        return Filter(self.keyed, Call("is_not_null", (self.id,), BOOLEAN))

    def _octaves(self, per_id: Node, total: Expr, at_most: int | None = None) -> Release:
        last = LAST
        if at_most is not None:
            last = min(LAST, (at_most - 1).bit_length())
            cap = Literal(at_most, total.type)
            total = Call("clip", (total, Literal(-at_most, total.type), cap), total.type)
        return self._counted_by(per_id, Call("octave", (total,), INTEGER), last)

    def _counted_by(self, per_id: Node, key: Expr, last: int = LAST) -> Release:
        octave = Item(self._column("octave", INTEGER), key)
        keys = KeySource((0,), tuple((b,) for b in range(last + 1)), f"octaves 0…{last}")
        units = Output(self._column("units", BIGINT), Count(0), "COUNT(*)")
        keyed = GroupKeys(per_id, (octave,), (keys,))
        return Release(keyed, (octave.column,), (RowCount(),), (units,))

    def _column(self, name: str, type_: SqlType) -> Column:
        return Column(next(self.numbers), name, type_)


def of_values(rows: Node, id: Column | None, x: Expr, grid: Fraction, numbers: Iterator[int]) -> Release:
    """How many units have values of which size and sign.

    id: whose rows they are: each spreads one weight over the octaves of its values. None: each row counts.
    """
    octave = Column(next(numbers), "octave", INTEGER)
    item = Item(octave, Call("signed_octave", (_in_units(x, grid),), INTEGER))
    keys = KeySource((0,), tuple((b,) for b in range(-LAST - 1, LAST + 2)), f"octaves -{LAST}…{LAST}, by sign")
    keyed = GroupKeys(rows, (item,), (keys,))
    below: Node = keyed if id is None else BoundContributions(keyed, id, (octave,), 1)
    units = Output(Column(next(numbers), "units", BIGINT), Count(0), "COUNT(*)")
    return Release(below, (octave,), (RowCount(),), (units,))


def _within(x: Expr, low: int, high: int) -> Expr:
    return Call("clip", (x, _whole(low), _whole(high)), HUGEINT)


def _whole(n: int) -> Literal:
    return Literal(n, BIGINT if abs(n) < 2**63 else HUGEINT)


def _half(octave: Expr) -> Expr:
    """Of an octave, rounded up: b with n ≤ 4^b instead of n ≤ 2^b."""
    return Call("intdiv", (Call("add", (octave, Literal(1, INTEGER)), INTEGER), Literal(2, INTEGER)), INTEGER)


def _in_units(x: Expr, grid: Fraction) -> Expr:
    """x as a whole number of units of the grid; one that is beyond all octaves is in the last."""
    if x.type.kind is Kind.INTEGER:
        return x
    top = float(SATURATED * grid)
    held = Call("clip", (Cast(x, DOUBLE), Literal(-top, DOUBLE), Literal(top, DOUBLE)), DOUBLE)
    return Cast(Call("mul", (held, Literal(float(1 / grid), DOUBLE)), DOUBLE), HUGEINT)


def together(histograms: Sequence[Release], numbers: Iterator[int]) -> tuple[Node, tuple[Column, ...]]:
    """All histograms as one question, and its columns: one below the other."""
    node: Node = histograms[0]
    columns = output_columns(node)
    for other in histograms[1:]:
        named = (Column(next(numbers), c.name, c.type) for c in columns)
        pairs = tuple(SetColumn(*each) for each in zip(named, columns, output_columns(other), strict=True))
        node = SetOperation(SetKind.UNION, True, node, other, pairs)
        columns = output_columns(node)
    return node, columns
