"""What holds for a node's rows in every pair of neighbouring databases. Beside the tree, never on it.

A fact is a claim that the noise relies on. Hints (declared bounds, declared domains) are kept in `Hint`: they
steer the rewrites and become facts only where the finished tree enforces them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field

from dpsql.core.ir.expressions import Column, Expr
from dpsql.core.ir.types import SqlType
from dpsql.core.numbers.cap import ONE, Cap, Finite, smaller
from dpsql.core.numbers.interval import Interval
from dpsql.core.value_classes import value
from dpsql.core.values.meaning import evaluate
from dpsql.core.values.value import Value

Columns = frozenset[int]


@value(frozen=True, slots=True)
class Hint:
    """Where a bare column comes from and what the policy says about it; used to choose clips and keys.

    table: empty for a computed column, of which the policy's limits say how far it is worth clipping.
    scan: number of the scan's first column, which differs between two scans of one table.
    """

    table: str
    column: str
    public: bool
    scan: int
    bounds: Interval | None = None


@value(frozen=True, slots=True)
class ColumnFact:
    """A column's values, and its origin if it is a bare table column."""

    value: Value
    hint: Hint | None = None


@value(frozen=True, slots=True)
class Contribution:
    """How much of a release one privacy unit can change, as enforced by the tree below it.

    by_rows: stability c of a row unit, or the rows C of an id over all groups; None where M and G are used, or where
        each row of an id is in another group.
    per_group, groups: M rows in each of G groups; `groups` alone may also stand beside `by_rows`. Without `by_rows` and
        `per_group` the release limits each component by itself (`Component.of_unit`), and no number of rows is known.
    released_groups: the number of groups of the release, if they are public.
    scaled: contributions are multiplied by exact integer weights (else every row counts 1).
    scaled_over_groups: an id may touch more groups than `groups`, and counts for less in each of them.
    ids: how many ids change between neighbours: 1, or 2 where one id's rows are replaced by another's.
    replaces_rows: the c rows are replaced by others, row by row, instead of added or removed (bounded DP).
    size: with `replaces_rows`, the public number of rows, which no replacement changes; None if a row may appear or
        vanish.
    """

    by_rows: int | None
    per_group: int | None = None
    groups: int | None = None
    scaled: bool = False
    scaled_over_groups: bool = False
    ids: int = 1
    replaces_rows: bool = False
    size: int | None = None
    released_groups: int | None = None

    @property
    def limits_rows(self) -> bool:
        """Whether any number of rows is known; if not, `rows` and what is made of it must not be asked."""
        return self.by_rows is not None or self.per_group is not None

    @property
    def rows(self) -> int:
        """Most (weighted) rows of a unit in the whole result: c, C or M·G."""
        if self.by_rows is not None:
            return self.by_rows
        assert self.per_group is not None and self.groups is not None
        return self.per_group * self.groups

    @property
    def rows_in_one_group(self) -> int:
        """Most (weighted) rows of a unit in one group: c, C or M."""
        return self.per_group if self.by_rows is None and self.per_group is not None else self.rows

    @property
    def l2_squared(self) -> int:
        """Square of the l2 norm of a unit's row counts over groups: c², C² or G·M²."""
        if self.by_rows is not None:
            return self.by_rows**2
        assert self.per_group is not None and self.groups is not None
        return self.groups * self.per_group**2

    @property
    def most_groups(self) -> int:
        """Most groups that a unit can touch: G, else as many as it has rows."""
        return self.groups if self.groups is not None else self.rows


def most_changed(contributions: Mapping[str, Contribution]) -> str:
    """The privacy unit that changes most: the first of those with the most rows."""
    if len(contributions) == 1:
        return next(iter(contributions))
    return max(sorted(contributions), key=lambda unit: contributions[unit].rows)


@value(frozen=True, slots=True)
class HopFact:
    """A row's owner is that of the row of `table` whose `references` equal `columns`, bare, in the same order.

    The policy promises that the references are unique. Either a foreign key of a unit path (`Facts.hops`), or the key
    of a row of that table itself (`Facts.promised_keys`).
    """

    columns: tuple[int, ...]
    table: str
    references: tuple[str, ...]


@value(frozen=True, slots=True)
class Facts:
    """Facts of one node.

    columns: every column that expressions above may read.
    stability: unit → most rows that differ (row units) or most ids whose rows differ (id units); empty: public rows.
    ids: columns that hold the id of the one id unit, bare. All private rows that made a row belong to that id, which
        is NULL only for rows that are nobody's. Empty: the rows of every unit are counted.
    keys: column sets unique in every neighbouring database, counting NULL as a value.
    frequency: column set → most rows that agree on it under `=`.
    padding: column set → unit → most rows of a LEFT join by these columns that may change for each row on its left:
        its partners and the padded row, which stands where it has none. Kept where it is less than 2 for each row here
        that differs.
    by_id: columns whose value is a function of the id.
    hops: foreign keys of the unit path that still tell the row's owner.
    promised_keys: of the private tables whose rows are part of the row, so that a foreign key can name them.
    contribution: what one unit can change in the release above; set by the bounding rules.
    replaced: neighbouring databases replace units instead of adding or removing them.
    replaced_rows: with `replaced`, for row units: unit → most rows that are replaced one by one (a row may also appear
        or vanish, if `size` is None); None where rows no longer correspond.
    size: the public number of rows, which no replacement changes; None if it is not public, or changes.
    empty: there is no row, in any database (`empty_relations.py`; set by `derive` for every node anew).
    rule, note: the rule that derived this, for EXPLAIN.
    """

    columns: Mapping[int, ColumnFact]
    stability: Mapping[str, Cap] = field(default_factory=dict)
    ids: Columns = frozenset()
    keys: frozenset[Columns] = frozenset()
    frequency: Mapping[Columns, Cap] = field(default_factory=dict)
    padding: Mapping[Columns, Mapping[str, Cap]] = field(default_factory=dict)
    by_id: Columns = frozenset()
    hops: frozenset[HopFact] = frozenset()
    promised_keys: frozenset[HopFact] = frozenset()
    contribution: Contribution | None = None
    replaced: bool = False
    replaced_rows: Mapping[str, Cap] | None = None
    size: int | None = None
    empty: bool = False
    rule: str = ""
    note: str = ""
    _known: dict[int, tuple[Expr, Value]] = field(default_factory=dict, init=False, compare=False, repr=False)
    _env: Mapping[int, Value] | None = field(default=None, init=False, compare=False, repr=False)

    @property
    def public(self) -> bool:
        """True if no row depends on private data."""
        return not self.stability

    @property
    def units(self) -> tuple[str, ...]:
        """Names of the privacy units whose rows these are."""
        return tuple(sorted(self.stability))

    @property
    def env(self) -> Mapping[int, Value]:
        """Column → value, for `evaluate`; without key domains, whose images are slow to compute and rarely asked."""
        if self._env is None:
            object.__setattr__(self, "_env", _WithoutDomains(self.columns))
        return self._env  # type: ignore[return-value]

    def value(self, expr: Expr) -> Value:
        """What is known of an expression over these rows, without key domains; evaluated once. Raises DP106."""
        known = self._known.get(id(expr))  # of the very same object, as in `ByIdentity`
        if known is None:
            known = self._known[id(expr)] = expr, evaluate(expr, self.env)
        return known[1]

    def type_of(self, expr: Expr) -> SqlType:
        """The type of an expression over these rows. Raises DP106."""
        return self.columns[expr.uid].value.type if isinstance(expr, Column) else self.value(expr).type

    @property
    def key_env(self) -> dict[int, Value]:
        """Column → value with its domain of group keys."""
        return {uid: fact.value for uid, fact in self.columns.items()}

    @property
    def one_row_per_id(self) -> bool:
        """True if no id has two rows: counting rows is counting ids, and is measured only once."""
        return any(self.is_key(frozenset({uid})) for uid in self.ids)

    def is_key(self, columns: Columns) -> bool:
        """True if no two rows agree on all of `columns`."""
        return columns in self.keys or any(key <= columns for key in self.keys)

    def most_rows(self, columns: Columns) -> Cap | None:
        """The least known bound on rows that agree on `columns` under `=`; None if there is none."""
        if self.is_key(columns):
            return ONE
        best: Cap | None = None
        for known, cap in self.frequency.items():
            if known <= columns:
                best = cap if best is None else smaller(best, cap)
        return best

    def rows_of_an_id(self, every_row: bool = False) -> Finite | None:
        """The least finite bound on the rows of one id, by any of the equal id columns; None if there is none.

        every_row: by columns only that are never NULL, so that no row is left uncounted.
        """
        chosen = [uid for uid in self.ids if not (every_row and self.columns[uid].value.nullable)]
        found = [cap for uid in chosen if isinstance(cap := self.most_rows(frozenset({uid})), Finite)]
        return min(found, key=lambda cap: cap.value, default=None)


@value(frozen=True, slots=True)
class _WithoutDomains(Mapping[int, Value]):
    columns: Mapping[int, ColumnFact]

    def __getitem__(self, uid: int) -> Value:
        value = self.columns[uid].value
        return value if value.domain is None else value.without_domain()

    def __iter__(self) -> Iterator[int]:
        return iter(self.columns)

    def __len__(self) -> int:
        return len(self.columns)
