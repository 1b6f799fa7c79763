"""Columns of other tables that a prepared copy carries beside each of its rows.

A row of the copy has at most one partner in each carried table: the row that a declared key names. `dpsql prepare`
joins it once, and a query that joins the two reads one table instead.

*Claim.* What a row carries is a function of the rows of its own owner and of public rows. What it carries of a table
that is joined by the owner, and by nothing else, is the same in all rows of that owner. *Why.* The copy is made by
outer joins on unique keys, of which the analysis judges each like any query's; private partners are joined by their
owner, too. *When it would be false.* A carried table of another unit, or of two rows for one key: the first is not
found here, the second is refused when the copy is made. *Tested by* tests/service/test_carried.py,
tests/deep/service/test_prepared_neighbours.py.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from dpsql.core.ir.types import Kind
from dpsql.core.policy.tables import Carried, Column, Table, TableDomain
from dpsql.core.policy.units import IdUnit, PathUnit


@dataclass(frozen=True, slots=True)
class NoPartner:
    """Why a table cannot be carried, and the repair."""

    place: int
    message: str
    help: str


def carried(table: Table, tables: Mapping[str, Table], owner: Column) -> tuple[Carried, ...]:
    """What a copy of the table carries, each after those that it is found through. owner: the column of its owners."""
    return tuple(each for each in _all(table, tables, owner) if isinstance(each, Carried))


def not_carried(table: Table, tables: Mapping[str, Table], owner: Column) -> NoPartner | None:
    """The first of its `carries` that cannot be."""
    return next((each for each in _all(table, tables, owner) if isinstance(each, NoPartner)), None)


def _all(table: Table, tables: Mapping[str, Table], owner: Column) -> Iterator[Carried | NoPartner]:
    found: list[Carried] = []
    for place, wanted in enumerate(table.carries):
        other = tables[wanted.table]
        links = list(dict.fromkeys(_links(table, other, tables, found, owner)))
        if wanted.by:
            links = [link for link in links if _are_called(link[0], wanted.by)]
        if len(links) != 1:
            yield _unclear(place, table, other, links)
            continue
        ((columns, keys),) = links
        place_of = " by ".join([other.name, *([", ".join(wanted.by)] if wanted.by else [])])
        own = {
            name: replace(c, name=f"{place_of}.{name}", nullable=None, is_nullable=True, derived=None, computed=None)
            for name, c in other.columns.items()
            if c.sql_type is not None and (not wanted.columns or name in (*wanted.columns, *keys))
        }
        found.append(Carried(other.name, columns, keys, own))
        yield found[-1]


def _are_called(columns: Sequence[str], names: Sequence[str]) -> bool:
    """Whether columns of the copy may be called so: by their whole names, or as they were called in their table."""
    return len(columns) == len(names) and all(
        f".{column}".casefold().endswith(f".{name}".casefold()) for column, name in zip(columns, names, strict=True)
    )


def _links(
    table: Table, other: Table, tables: Mapping[str, Table], before: Sequence[Carried], owner: Column
) -> Iterator[tuple[tuple[str, ...], tuple[str, ...]]]:
    """Columns of the copy, and the key of the other table that they name: a row has one partner at most."""
    if not other.public and (
        other.unit != table.unit
        or other.prepared is None
        or owner.sql_type is None
        or owner.sql_type.kind is Kind.DOUBLE
    ):
        return
    keys = [k.columns for k in other.keys if (other.public or k.assumed) and _are_compared(other, k.columns)]
    if isinstance(other.protection, IdUnit) and (other.protection.column,) in keys:
        yield (owner.name,), (other.protection.column,)
    members = [(table, {name: name for name in table.columns})]
    members += [(tables[c.table], {name: column.name for name, column in c.columns.items()}) for c in before]
    for member, named in members:
        for columns, target, references in _declared(member):
            if target == other.name and references in keys and all(c in named for c in columns):
                yield tuple(named[c] for c in columns), references


def _are_compared(table: Table, columns: Sequence[str]) -> bool:
    """Whether rows are joined by these: by floating-point numbers they are not."""
    types = [c.sql_type for c in map(table.column, columns) if c is not None]
    return all(t is not None and t.kind is not Kind.DOUBLE for t in types)


def _declared(table: Table) -> Iterator[tuple[tuple[str, ...], str, tuple[str, ...]]]:
    """Foreign keys: those of paths, those that are declared, and lists of keys that are another table's."""
    found = dict.fromkeys((k.columns, k.table, k.references) for k in table.foreign_keys)
    hop = table.protection.path[0] if isinstance(table.protection, PathUnit) else table.copied and table.copied.hop
    if hop:
        found[hop.columns, hop.table, hop.references] = None
    for column in table.columns.values():
        if isinstance(column.domain, TableDomain):
            found[(column.name,), column.domain.table, (column.domain.column,)] = None
    yield from found


def _unclear(
    place: int, table: Table, other: Table, links: Sequence[tuple[tuple[str, ...], tuple[str, ...]]]
) -> NoPartner:
    if not links:
        return NoPartner(
            place,
            f"names `{other.name}`, to a key of which no column of `{table.name}` refers, nor of those before it",
            f"declare the key at `{other.name}` and a foreign key to it, or leave it out",
        )  # fmt: skip
    named = [", ".join(columns) for columns, _ in links]
    return NoPartner(
        place, f"names `{other.name}`, which is found by {' and by '.join(named)}",
        f"{{table: {other.name}, by: [{named[0]}]}}",
    )  # fmt: skip
