"""Tables of public keys: rows of public tables and lists, filtered and joined while planning.

Every table here holds at least the key tuples that rows of the query can have; leaving a condition or a join out makes
it longer, never wrong.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from dpsql.core.ir.expressions import Column, Expr, LiteralValue, columns_of
from dpsql.core.ir.step_count import take
from dpsql.core.values.domains import ENUMERABLE
from dpsql.core.values.meaning import Env
from dpsql.planner.group_keys.compute import Condition, decided_by

Tuple = tuple[LiteralValue, ...]


@dataclass(frozen=True, slots=True)
class KeyTable:
    """Distinct tuples of values of some columns.

    covers: no row of the query has other values. sort: the order of the rows means nothing.
    """

    columns: tuple[int, ...]
    rows: tuple[Tuple, ...]
    covers: bool
    sort: bool

    def project(self, wanted: Iterable[int]) -> KeyTable:
        """These columns alone, without repetitions."""
        keep = [i for i, uid in enumerate(self.columns) if uid in set(wanted)]
        if len(keep) == len(self.columns):
            return self
        take(1 + len(self.rows) // 16)
        rows = tuple(dict.fromkeys(tuple(row[i] for i in keep) for row in self.rows))
        return KeyTable(tuple(self.columns[i] for i in keep), rows, self.covers, self.sort)

    def where(self, terms: Sequence[Expr], env: Env) -> KeyTable:
        """The rows for which every condition may hold."""
        known = frozenset(self.columns)
        tests = [Condition(t, env, known) for t in terms if decided_by(t, known)]
        if not tests:
            return self
        kept = []
        take(len(tests) + len(self.rows) * len(tests) // 16)
        for row in self.rows:
            values = dict(zip(self.columns, row, strict=True))
            if all(t.may_hold(values) for t in tests):
                kept.append(row)
        return KeyTable(self.columns, tuple(kept), self.covers, self.sort)


def by_variable(
    grouped: dict[int, list[Column]], held: Sequence[Column], found: Iterable[Sequence[Any]], sort: bool
) -> KeyTable:
    """Rows of a table by variable; those in which columns that must be equal differ are left out."""
    places = [[held.index(c) for c in same] for same in grouped.values()]
    rows: dict[tuple[LiteralValue, ...], None] = {}
    for row in found:
        if all(row[i] == row[same[0]] for same in places for i in same[1:]):
            values = (row[same[0]] for same in places)
            rows[tuple(str(v) if isinstance(v, UUID) else v for v in values)] = None
    return KeyTable(tuple(grouped), tuple(rows), True, sort)


def without_null(table: KeyTable, columns: frozenset[int]) -> KeyTable:
    """The rows that have a value in each of these columns."""
    at = [i for i, uid in enumerate(table.columns) if uid in columns]
    if not at:
        return table
    rows = tuple(row for row in table.rows if all(row[i] is not None for i in at))
    return KeyTable(table.columns, rows, table.covers, table.sort)


def joined(a: KeyTable, b: KeyTable, most: int) -> KeyTable | None:
    """Pairs of rows that agree on the common columns (all pairs if there are none); None above `most` of them."""
    common = [uid for uid in a.columns if uid in b.columns]
    rest = [i for i, uid in enumerate(b.columns) if uid not in common]
    at_a, at_b = ([t.columns.index(uid) for uid in common] for t in (a, b))
    partners: dict[Tuple, list[Tuple]] = {}
    for row in b.rows:
        partners.setdefault(tuple(row[i] for i in at_b), []).append(tuple(row[i] for i in rest))
    found: dict[Tuple, None] = {}
    take(1 + (len(a.rows) + len(b.rows)) // 16)
    for row in a.rows:
        for other in partners.get(tuple(row[i] for i in at_a), ()):
            found[row + other] = None
            if len(found) > most:
                return None
    take(len(found) // 16)
    columns = (*a.columns, *(b.columns[i] for i in rest))
    return KeyTable(columns, tuple(found), a.covers and b.covers, a.sort and b.sort)


def combined(
    tables: Sequence[KeyTable], items: Sequence[Expr], terms: Sequence[Expr], env: Env, most: int
) -> list[KeyTable]:
    """Tables joined where they share columns, and multiplied where one item or condition reads several of them.

    Columns that nothing reads any more are dropped. Where a product would be too long, the tables stay as they are.
    """
    key_columns = frozenset(uid for item in items for uid in columns_of(item))
    item_columns = [*(columns_of(i) for i in items)]
    too_long: set[tuple[frozenset[int], frozenset[int]]] = set()

    def reduced(table: KeyTable, others: Sequence[KeyTable]) -> KeyTable:
        """Filtered, and without the columns that only conditions read which can tell nothing more."""
        elsewhere = frozenset(uid for t in others for uid in t.columns)
        later = [read for t in terms if (read := columns_of(t)) & elsewhere and not read <= set(table.columns)]
        return table.where(terms, env).project(key_columns | elsewhere | frozenset().union(*later))

    left = list(tables)
    left = [reduced(t, [o for o in left if o is not t]) for t in left]
    while True:
        pair = _next(left, key_columns, item_columns, terms, too_long)
        if pair is None:
            return [t for t in left if key_columns & set(t.columns)]
        a, b = pair
        product = joined(a, b, most if set(a.columns) & set(b.columns) else ENUMERABLE)
        if product is None:
            too_long.add((frozenset(a.columns), frozenset(b.columns)))
            continue
        at = left.index(a)
        rest = [t for t in left if t is not a and t is not b]
        left = [*rest[:at], reduced(product, rest), *rest[at:]]


def _next(
    tables: Sequence[KeyTable],
    key_columns: frozenset[int],
    items: Sequence[frozenset[int]],
    terms: Sequence[Expr],
    too_long: set[tuple[frozenset[int], frozenset[int]]],
) -> tuple[KeyTable, KeyTable] | None:
    """The next two tables to combine, joins before products, short ones first."""
    take(len(tables) ** 2)
    pairs = [
        (a, b)
        for i, a in enumerate(tables)
        for b in tables[i + 1 :]
        if (frozenset(a.columns), frozenset(b.columns)) not in too_long
    ]
    pairs.sort(key=lambda p: len(p[0].rows) * len(p[1].rows))
    for a, b in pairs:
        if set(a.columns) & set(b.columns):
            return a, b
    for a, b in pairs:
        one, other = frozenset(a.columns), frozenset(b.columns)
        if not key_columns & one or not key_columns & other or len(a.rows) * len(b.rows) > ENUMERABLE:
            continue
        read = [*items, *(decided_by(t, one | other) for t in terms)]
        if any(r & one and r & other for r in read):
            return a, b
    return None
