"""Rows that are made up from a policy alone: every promise holds that they can hold, and they are always the same.

*Claim.* No row depends on a row of the data. *Why.* Their only source is the policy, with the names and types of its
columns, and choices that follow from the policy's hash. *When it would be false.* If values of the data, or a
bound that was found in it, were given here. *Tested by* tests/service/made_up/test_rows.py.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from graphlib import CycleError, TopologicalSorter
from typing import Final

from dpsql.core.ir.types import INTEGER
from dpsql.core.policy.policy import Policy
from dpsql.core.policy.tables import Column, ForeignKey, Table, TableDomain, ValuesDomain
from dpsql.core.policy.units import IdUnit, PathUnit, RowUnit
from dpsql.engines.literals import NULL, fresh
from dpsql.service.made_up.made_up_values import next_value, some_values
from dpsql.service.made_up.repeatable_choices import Choosing

UNITS: Final = 1_000
"""Units of each privacy unit, by their ids."""
MOST_OF_A_UNIT: Final = 6
"""Rows of one unit in one table, where the policy allows as many."""
ROWS: Final = 3_000
"""Rows of a table whose unit is a number of rows; fewer where the policy says its size."""
PUBLIC: Final = 40
"""Rows of a public table."""

Values = dict[str, str]
"""Column → literal."""


def made_up_rows(policy: Policy) -> Mapping[str, Sequence[Values]]:
    """Table → its rows, each with all columns of the table that are no other ones' results. Types must be known."""
    maker = _Maker(policy)
    for name in _ordered(policy):
        maker.make(policy.tables[name])
    return {name: [values for _, values in rows] for name, rows in maker.rows.items()}


def _ordered(policy: Policy) -> list[str]:
    """Tables after those that they refer to; what goes round in a circle, as the policy has it."""
    wanted = {name: _referred(table) - {name} for name, table in policy.tables.items()}
    try:
        return list(TopologicalSorter(wanted).static_order())
    except CycleError:
        return sorted(wanted, key=lambda name: not policy.tables[name].public)


def _referred(table: Table) -> set[str]:
    found = {key.table for key in table.foreign_keys}
    found |= {c.domain.table for c in table.columns.values() if isinstance(c.domain, TableDomain)}
    if isinstance(table.protection, PathUnit):
        found.add(table.protection.path[0].table)
    return found


class _Maker:
    """Makes one table after the other. rows: of each, with the number of their unit; 0 where its rows are nobody's, or
    each is somebody's."""

    def __init__(self, policy: Policy) -> None:
        self._policy = policy
        self.rows: dict[str, list[tuple[int, Values]]] = {}
        self._of_unit: dict[tuple[str, int], list[Values]] = {}
        self._listed_of = {
            (c.name.casefold(), c.sql_type): c.domain
            for table in policy.tables.values()
            for c in table.columns.values()
            if isinstance(c.domain, ValuesDomain)
        }

    def make(self, table: Table) -> None:
        """The rows of a table, those left out that would break a promise."""
        choosing = Choosing(f"{self._policy.hash} {table.name}")
        kept = self.rows[table.name] = list[tuple[int, Values]]()
        counts: Counter[tuple[tuple[str, ...], ...]] = Counter()
        columns = [self._like_others(table, c) for c in table.columns.values() if c.computed is None]
        pools = {c: some_values(c, self._listed(c), choosing) for c in columns}
        for unit, given in self._begun(table, choosing):
            values = self._filled(table, pools, unit, given, len(kept) + 1, choosing)
            if values is None:
                continue
            limits = [(key.columns, 1) for key in table.keys] + [(f.columns, f.rows) for f in table.max_frequency]
            found = {(columns, tuple(values.get(c, NULL) for c in columns)): most for columns, most in limits}
            held = {at: most for at, most in found.items() if NULL not in at[1]}
            if all(counts[at] < most for at, most in held.items()):
                counts.update(held.keys())
                kept.append((unit, values))
        for unit, values in kept:
            self._of_unit.setdefault((table.name, unit), []).append(values)

    def _begun(self, table: Table, choosing: Choosing) -> Iterator[tuple[int, Values]]:
        """For each row its unit and what makes it that unit's."""
        limit = MOST_OF_A_UNIT if table.max_rows_per_unit is None else min(MOST_OF_A_UNIT, table.max_rows_per_unit.rows)
        match table.protection:
            case None:
                yield from ((0, {}) for _ in range(PUBLIC))
            case RowUnit():
                yield from ((0, {}) for _ in range(min(ROWS, table.size or ROWS)))
            case IdUnit():
                assert table.id_column is not None
                owner = table.id_column.name
                alone = any(key.columns == (owner,) for key in table.keys)
                type_ = table.id_column.sql_type or INTEGER
                for unit in range(1, UNITS + 1):
                    for _ in range(1 if alone else choosing.between(1, limit)):
                        yield unit, {owner: fresh(unit, type_)}
            case PathUnit(path=path):
                hop, of_unit = path[0], Counter[int]()
                for unit, target in self.rows.get(hop.table, ()):
                    for _ in range(choosing.between(0, 3)):
                        if of_unit[unit] < limit:
                            of_unit[unit] += 1
                            yield unit, {c: target[r] for c, r in zip(hop.columns, hop.references, strict=True)}

    def _filled(
        self,
        table: Table,
        pools: Mapping[Column, Sequence[str]],
        unit: int,
        given: Values,
        number: int,
        choosing: Choosing,
    ) -> Values | None:
        """A whole row; None where no row of another table can be referred to."""
        values = dict(given)
        for key in table.foreign_keys:
            target = self._target(table, key, unit, values, choosing)
            if target is None:
                return None
            values |= target
        alone = {key.columns for key in table.keys if len(key.columns) == 1}
        first = next(iter(pools), None) if table.public and not table.keys else None
        for column, pool in pools.items():
            if column.name not in values:
                is_new = (column.name,) in alone or column is first
                values[column.name] = next_value(column, number) if is_new else choosing.one_of(pool)
        return {column.name: values[column.name] for column in pools}

    def _target(self, table: Table, key: ForeignKey, unit: int, values: Values, choosing: Choosing) -> Values | None:
        """What a foreign key's columns hold: of a row of the same unit, if there is one. None: there is no row."""
        pairs = list(zip(key.columns, key.references, strict=True))
        if key.table not in self.rows or key.table == table.name:  # not made yet
            return {c: NULL for c, _ in pairs if c not in values and table.columns[c].is_nullable}
        fixed = [(c, r) for c, r in pairs if c in values]
        own = self._of_unit.get((key.table, unit), [])
        rows = own or [row for _, row in self.rows[key.table]]
        fitting = [row for row in rows if all(values[c] == row[r] for c, r in fixed)] if fixed else rows
        if not fitting:
            return None
        row = choosing.one_of(fitting)
        return {c: row[r] for c, r in pairs}

    def _like_others(self, table: Table, column: Column) -> Column:
        """A public table's column that says nothing has the values that a column of its name lists: to join them."""
        if not table.public or column.domain is not None or column.bounds is not None:
            return column
        return replace(column, domain=self._listed_of.get((column.name.casefold(), column.sql_type)))

    def _listed(self, column: Column) -> list[str]:
        """The values of the column that lists a domain."""
        domain = column.domain
        if not isinstance(domain, TableDomain):
            return []
        rows = (values.get(domain.column, NULL) for _, values in self.rows.get(domain.table, ()))
        return [value for value in dict.fromkeys(rows) if value != NULL]
