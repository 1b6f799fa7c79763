"""What a policy's tables are in a server: each a relation in FROM, and the schema as a Catalogue."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from dpsql.core.engine import cannot_open
from dpsql.core.policy.catalogue import Catalogue, CatalogueColumn, CatalogueTable
from dpsql.core.policy.server_address import Stored
from dpsql.engines.postgres.catalogue import (
    DescribedRelation,
    ListedRelation,
    ServerColumn,
    described,
    listed,
    signature,
)
from dpsql.engines.postgres.catalogue_reader import CatalogueReader

_UNUSABLE: Final = "unusable"
"""In place of a type that policies do not have: no spelling of theirs is one of these."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """A table of a policy. place: where the policy says it stands. columns: their names as the policy writes them."""

    name: str
    place: Stored | None = None
    columns: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Relation:
    """A table of a policy as it was found. names: a column's own name → the policy's."""

    name: str
    found: DescribedRelation
    names: Mapping[str, str]

    @property
    def sql(self) -> str:
        """As it stands in FROM, where an alias follows: fully qualified, its columns as they are read and called."""
        usable = [c for c in self.found.columns if c.read.type]
        place = str(self.found.listed.place)
        if all(not c.read.sql and self._called(c) == c.name for c in usable):
            return place
        return f"(SELECT {', '.join(map(self._item, usable))} FROM {place} AS raw)"

    def _called(self, column: ServerColumn) -> str:
        return self.names.get(column.name, column.name)

    def _item(self, column: ServerColumn) -> str:
        raw = f"raw.{_quoted(column.name)}"
        return f"{column.read.sql.format(raw) if column.read.sql else raw} AS {_quoted(self._called(column))}"

    @property
    def table(self) -> CatalogueTable:
        """What a policy is told of it."""
        found = self.found
        columns = tuple(
            CatalogueColumn(self._called(c), c.read.type or _UNUSABLE, c.nullable, c.enumerated, c.read.why)
            for c in found.columns
        )

        def called(names: Sequence[str]) -> tuple[str, ...]:
            return tuple(self.names.get(name, name) for name in names)

        foreign = tuple(replace(key, columns=called(key.columns)) for key in found.foreign)
        return CatalogueTable(
            self.name, columns, called(found.primary), tuple(map(called, found.unique)), foreign, found.reads
        )


@dataclass(frozen=True, slots=True)
class Schema:
    """The relations that an engine knows, and the names of what else there is. signature: see catalogue.py."""

    relations: tuple[Relation, ...]
    others: tuple[str, ...] = ()
    signature: str = ""

    @property
    def numbers(self) -> tuple[int, ...]:
        """Of the relations, and of all that they read."""
        return tuple(sorted({number for r in self.relations for number in r.found.numbers}))

    def unchanged(self, rows: CatalogueReader) -> bool:
        """Whether all of it is still as it was."""
        return self.signature == signature(rows, self.numbers)

    def find(self, name: str) -> Relation | None:
        """The relation of this name, whatever its case."""
        return next((r for r in self.relations if r.name.casefold() == name.casefold()), None)

    @property
    def catalogue(self) -> Catalogue:
        """The schema, without values or sizes. What is not wanted is named, and no more."""
        taken = {r.name.casefold() for r in self.relations}
        others = [CatalogueTable(name, ()) for name in self.others if name.casefold() not in taken]
        return Catalogue(tuple(sorted([*(r.table for r in self.relations), *others], key=lambda t: t.name)))

    @property
    def essence(self) -> tuple[object, ...]:
        """What a policy was checked against: how each relation is read, its facts, and which share rows."""
        shared = [
            (a.name, b.name)
            for a in self.relations
            for b in self.relations
            if not set(a.found.reads).isdisjoint(b.found.reads)
        ]
        return tuple((r.sql, replace(r.table, reads=())) for r in self.relations), tuple(shared)

    @property
    def locks(self) -> str:
        """The statement that keeps all of them as they are until the transaction ends; empty if there are none."""
        places = dict.fromkeys(str(r.found.listed.place) for r in self.relations)
        return f"LOCK TABLE {', '.join(places)} IN ACCESS SHARE MODE" if places else ""

    @property
    def writable(self) -> tuple[str, ...]:
        """The relations whose rows the role may change."""
        return tuple(r.name for r in self.relations if r.found.listed.writable)


def load(rows: CatalogueReader, wanted: Sequence[Wanted] | None) -> Schema:
    """The relations of a policy's tables; None: all that may be read, by their own names.

    Raises CannotOpen (DP006) for a table that no query may read, (DP004) for a name that stands for several.
    """
    everything = listed(rows)
    if wanted is None:
        whole = [one for one in everything if one.readable and not one.part]
        usable = [d for d in described(rows, whole, everything) if not d.refused]
        return Schema(tuple(Relation(d.listed.name, d if d.listed.kind in "vm" else _alone(d), {}) for d in usable))
    pairs = [(w, one) for w in wanted if (one := _find(everything, w)) is not None]
    found = described(rows, [one for _, one in pairs], everything)
    relations = tuple(Relation(w.name, d, _names(w, d)) for (w, _), d in zip(pairs, found, strict=True))
    for relation in relations:
        if relation.found.refused:
            what, help = relation.found.refused
            raise cannot_open(f"table `{relation.name}` {what}", help)
    missing = len(pairs) < len(wanted)
    schema = Schema(relations, tuple(one.name for one in everything) if missing else ())
    return replace(schema, signature=signature(rows, schema.numbers))


def _alone(found: DescribedRelation) -> DescribedRelation:
    """A table whose parts are not listed: it reads itself, and is no view."""
    return replace(found, reads=found.reads[:1])


def _find(everything: Sequence[ListedRelation], wanted: Wanted) -> ListedRelation | None:
    """An exact match first, then one in another case."""
    if wanted.place is not None:
        return next((one for one in everything if one.place == wanted.place), None)
    for fold in (str, str.casefold):
        found = [one for one in everything if fold(wanted.name) in {fold(s) for s in _spellings(one)}]
        if len(found) > 1:
            raise cannot_open(
                f"the data has more than one table `{wanted.name}`",
                f"say which:  source: '{found[0].place}'",
                code="DP004",
            )
        if found:
            return found[0]
    return None


def _spellings(one: ListedRelation) -> Iterator[str]:
    yield one.name
    yield f"{one.place.schema}.{one.place.table}"


def _names(wanted: Wanted, found: DescribedRelation) -> dict[str, str]:
    """A column's own name → the policy's, where that is written otherwise."""
    own = {c.name.casefold(): c.name for c in found.columns}
    return {
        own[name.casefold()]: name for name in wanted.columns if name.casefold() in own and own[name.casefold()] != name
    }


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
