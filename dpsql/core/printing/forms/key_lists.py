"""Lists (F9): a row counts in a group, cell or choice of a public list, and in no other.

*Claim.* No row adds to a key, cell or choice that is not listed, and which are released is no matter of the data.
*Why.* The engine drops what is in no list by a condition on the row alone; and what it gives is matched with the list
once more (core/release/key_matching.py): a key that is not there is not released, one without rows counts 0. *When it
would be false.* Rows dropped by the engine, and not by the reader, where it compares otherwise (texts by their bytes,
0.0 and -0.0); a list that is made of the data.
*Not proved:* it is a filter; that the reader compares as the engine is tested.
*Tested by* tests/core/printing/test_group_conditions.py,
tests/core/release/test_key_matching.py, tests/deep/planner/test_key_lists.py. On every engine:

    SELECT t.city AS k0, COUNT(*) AS m0 FROM t WHERE (t.city IN ('a', 'b')) IS TRUE OR t.city IS NULL GROUP BY 1

DuckDB asks the groups where it may: `HAVING CASE WHEN COUNT(*) > 0 THEN t1.city IN ('a', 'b') END`.
"""

from __future__ import annotations

from dataclasses import dataclass

from dpsql.core.ir.components import KeySource
from dpsql.core.ir.expressions import Column, LiteralValue
from dpsql.core.ir.types import Kind, SqlType
from dpsql.core.printing.dialect import Dialect
from dpsql.core.values.key_lists import LazyKeys, run_of


def member(d: Dialect, sql: str, type_: SqlType, source: KeySource, place: int = 0) -> str:
    """Whether a printed value is one of the list's values at this place, NULL included where it is one of them."""
    keys = source.keys
    if source.ends is not None:
        inside, null = _between(d, sql, type_, *source.ends), keys[-1] == (None,)
    else:
        if isinstance(keys, LazyKeys):
            held, null, run = keys.domain.values, keys.domain.null, keys.run
        else:
            held, null = _values(source, place)
            run = run_of(held)
        if not held:
            return f"({sql} IS NULL)" if null else "FALSE"
        if run is not None:
            inside = _between(d, sql, type_, *run)
        else:
            inside = d.member(sql, [d.constant(v, type_) for v in held])
    return f"({inside} OR {sql} IS NULL)" if null else f"({inside})"


@dataclass(frozen=True, slots=True)
class OfGroups:
    """`member` of a text as the groups are asked, once for each: of a key column, in a list at this place.

    *Claim.* Of groups inside the list the integers are the same. *Why.* Rows of one key are all inside or all outside.
    *When it would be false.* A condition on more than the key; what rows outside a list add to anything but their own
    group (weights of ids: shapes/weighted.py asks the rows). *Tested by* tests/core/printing/test_group_conditions.py.
    """

    key: Column
    source: KeySource
    place: int

    def may_wait(self, d: Dialect) -> bool:
        """Whether the groups are asked: not of numbers, of which rows are asked cheaply."""
        text = self.key.type.kind is Kind.VARCHAR and d.having_member("", ()) is not None
        return text and any(key[self.place] is not None for key in self.source.keys)

    def printed(self, d: Dialect, sql: str) -> str:
        """sql: the key."""
        held, null = _values(self.source, self.place)
        inside = d.having_member(sql, [d.constant(v, self.key.type) for v in held])
        assert inside is not None
        return f"({inside} OR {sql} IS NULL)" if null else inside


def _values(source: KeySource, place: int) -> tuple[list[LiteralValue], bool]:
    """The values at a place of a list, and whether NULL is one."""
    values = [key[place] for key in source.keys]
    return [v for v in values if v is not None], None in values


def _between(d: Dialect, sql: str, type_: SqlType, first: LiteralValue, last: LiteralValue) -> str:
    return f"{sql} BETWEEN {d.constant(first, type_)} AND {d.constant(last, type_)}"
