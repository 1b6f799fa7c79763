"""Tables that are read from a copy in which every unit has at most as many rows as its limit allows.

*Claim.* A policy `as_prepared` describes the copy: each table has a column with its rows' owner, and no owner has more
rows than the table's `max_rows_per_unit`. *Why.* Preparing keeps the first rows of each owner, in an order that looks
like chance; owners are found, and limits made true, by plans that the same analysis judges as any query's. *When it
would be false.* A copy of other declarations than the policy's, or of data in which some tables of a unit are older
than others: all tables of a unit are prepared at once, from one state of the data, or none is. *Tested by*
tests/core/policy/test_prepared.py, tests/deep/service/test_prepared_neighbours.py.

In a copy the owner stands in the row. That a row of another table is the one through which it was found is no fact any
more: the two may be joined by their owners.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from graphlib import TopologicalSorter
from hashlib import sha256
from types import MappingProxyType

from dpsql.core.ir.types import BIGINT, INTEGER
from dpsql.core.policy.carried import carried, not_carried
from dpsql.core.policy.policy import Policy
from dpsql.core.policy.tables import Column, Copied, RowLimit, Table
from dpsql.core.policy.units import IdUnit, PathUnit

TOTAL = Column("rows in all", "bigint", BIGINT, nullable=False, is_nullable=False)
"""Of a copy that leaves rows out: how many its row's owner had. Queries cannot name it; coverage counts by it."""

ANY_COPY = "any"
"""In place of a copy's identity where there is no data: what is known of every copy."""


def prepared_tables(policy: Policy) -> tuple[Table, ...]:
    """The tables that are to be read prepared, each after those through which its owners are found, and those that it
    carries."""
    wanted = {name: t for name, t in policy.tables.items() if t.prepared is not None}
    after = {name: {c.table for c in t.carries} & wanted.keys() for name, t in wanted.items()}
    for name, t in wanted.items():
        if isinstance(t.protection, PathUnit):
            after[name].add(t.protection.path[0].table)
    return tuple(wanted[name] for name in TopologicalSorter(after).static_order())


def copied_from(policy: Policy) -> tuple[str, ...]:
    """The tables that copies are made of: if one of them changes, all are stale."""
    wanted = prepared_tables(policy)
    return tuple(dict.fromkeys([*(t.name for t in wanted), *(c.table for t in wanted for c in t.carries)]))


def limit_of(table: Table) -> RowLimit | None:
    """The most rows of one unit that its copy has: the declared limit, or one where the id is a promised key."""
    if table.max_rows_per_unit is not None and not table.search_rows:
        return table.max_rows_per_unit
    column = table.protection.column.casefold() if isinstance(table.protection, IdUnit) else None
    alone = any(k.assumed and [c.casefold() for c in k.columns] == [column] for k in table.keys)
    return RowLimit(1, "assume") if alone else None


def owner_column(table: Table, tables: Mapping[str, Table]) -> Column:
    """The column of its copy that holds the owner: the id's own, or a further one that queries cannot name."""
    match table.protection:
        case IdUnit(column=column):
            found = table.column(column)
            assert found is not None
            return found
        case PathUnit(id_column=column) as path:
            home, found = path.home, tables[path.home].column(column)
            assert found is not None
            return Column(f"{column} of {home}", found.type, found.sql_type, nullable=False, is_nullable=False)
        case _:
            raise AssertionError("only tables of ids are prepared")


def as_prepared(
    policy: Policy,
    copy: str = ANY_COPY,
    wanted: Mapping[str, Table] | None = None,
    units: Mapping[str, Collection[str]] = MappingProxyType({}),
) -> Policy:
    """The policy of the prepared data; the same one where nothing is prepared.

    copy: the identity of the copy, which makes stored answers and plans of other data others. wanted: the tables that
    are read from it; by default those of `prepared: true`, and with a copy of `prepared: auto`, too. units: table →
    the columns whose grid integers the copy holds, too.
    """
    if wanted is None:
        wanted = {
            t.name: t for t in policy.tables.values() if t.prepared == "true" or (t.prepared and copy != ANY_COPY)
        }
    if not wanted:
        return policy
    tables = {
        name: copied(t, policy.tables, units.get(name, ()), copy) if name in wanted else t
        for name, t in policy.tables.items()
    }
    named = sha256(f"{policy.hash} {copy} {sorted(wanted)}".encode()).hexdigest()
    return replace(policy, tables=tables, hash=named)


def with_owners(policy: Policy) -> Policy:
    """The policy of any copy with its owners listed among the columns, for whoever makes up data of it."""
    tables = {
        name: t
        if t.copied is None
        else replace(
            t,
            columns=t.columns if t.copied.owner is None else {**t.columns, t.copied.owner.name: t.copied.owner},
            copied=replace(t.copied, owner=None, total=None),
        )
        for name, t in as_prepared(policy).tables.items()
    }
    return replace(as_prepared(policy), tables=tables)


def units_column(name: str) -> Column:
    """The column of a copy with the grid integers of a declared one; no query can name it."""
    return Column(f"{name} in units", "integer", INTEGER)


def copied(table: Table, tables: Mapping[str, Table], units: Collection[str] = (), copy: str = "") -> Table:
    """The table as its copy is: with owners in a column, its limit made true, its columns computed.

    units: the columns whose grid integers it has, too. copy: its identity.
    """
    limit, owner = limit_of(table), owner_column(table, tables)
    assert limit is not None
    assert isinstance(table.protection, (IdUnit, PathUnit))
    hop = table.protection.path[0] if isinstance(table.protection, PathUnit) else None
    cut = not limit.assumed
    integers = {name: units_column(name) for name in units}
    return replace(
        table,
        protection=IdUnit(table.protection.name, owner.name, table.protection.neighbours),
        source=None,
        max_rows_per_unit=RowLimit(limit.rows, "assume", limit.nobody_has_more),
        columns={name: replace(c, derived=None) for name, c in table.columns.items()},
        copied=Copied(
            None if hop is None else owner, hop, cut, TOTAL if cut else None, integers, copy,
            carried(table, tables, owner),
        ),
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Unfit:
    """Why a table cannot be prepared: below which key of its declaration, in words, and the repair."""

    key: str
    message: str
    help: str


def unfit(table: Table, tables: Mapping[str, Table]) -> Unfit | None:
    """What speaks against preparing a table; None if nothing does."""
    if not table.by_id:
        what = "the table is public" if table.public else "the unit is a number of rows"
        return Unfit("prepared", f"is for tables of an id, and {what}: there is nothing to bound", "leave it out")
    if table.search_rows:
        return Unfit(
            "prepared", "needs a declared limit, and this one is searched by each query", "max_rows_per_unit: 20"
        )
    if limit_of(table) is None:
        return Unfit(
            "prepared", "needs max_rows_per_unit: how many rows of one unit are copied", "max_rows_per_unit: 20"
        )
    for other in tables.values():
        if other.by_id and other.unit == table.unit and other.prepared != table.prepared:
            return Unfit(
                "prepared",
                f"must be said alike by all tables of unit `{table.unit}`, and `{other.name}` says "
                f"{'nothing' if other.prepared is None else other.prepared}: they are copied together or not at all",
                f"tables.{other.name}: prepared: {table.prepared}",
            )
    missing = not_carried(table, tables, owner_column(table, tables))
    if missing is not None:
        return Unfit("carries", missing.message, missing.help)
    for name, what in _made_columns(table, tables):
        if name.casefold() in (c.casefold() for c in table.columns):
            return Unfit("columns", f"has `{name}`, which is what {what} is called in a copy", "call it otherwise")
    return None


def _made_columns(table: Table, tables: Mapping[str, Table]) -> Iterator[tuple[str, str]]:
    """Those of its copy that every copy like it has, beside the declared ones, and what they hold."""
    limit = limit_of(table)
    if isinstance(table.protection, PathUnit):
        yield owner_column(table, tables).name, "the owner"
    if limit is not None and not limit.assumed:
        yield TOTAL.name, "the number of an owner's rows"
