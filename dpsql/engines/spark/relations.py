"""What a policy's tables are on a cluster: each a view of our session over files, and the schema as a Catalogue.

A table of the catalogue has to be one of Spark's own over Parquet: nothing else tells which files a query reads.
"""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from dpsql.core.engine import cannot_open
from dpsql.core.policy.catalogue import Catalogue, CatalogueColumn, CatalogueTable
from dpsql.core.policy.server_address import Stored
from dpsql.core.policy.source import SourceCall
from dpsql.diagnostics.errors import CannotOpen
from dpsql.engines.spark import DIALECT
from dpsql.engines.spark.engine_types import Read, read_as
from dpsql.engines.spark.files import File, looked_at, plain, versioned
from dpsql.engines.spark.folders import look_of

_UNUSABLE: Final = "unusable"
"""In place of a type that policies do not have: no spelling of theirs is one of these."""
_TABLES: Final = ("MANAGED", "EXTERNAL")
_VERSIONED: Final = ("delta", "iceberg", "hudi")
_NOBODY: Final = ("TABLE_OR_VIEW_NOT_FOUND", "SCHEMA_NOT_FOUND", "CATALOG_NOT_FOUND", "REQUIRES_SINGLE_PART_NAMESPACE")
"""Conditions of a name that nothing has."""


@dataclass(frozen=True, slots=True)
class Copy:
    """What the files of a prepared table look like (`look_of`). ends: a column, its least and its greatest integer."""

    look: str
    ends: tuple[tuple[str, int, int], ...] = ()

    @staticmethod
    def changed() -> CannotOpen:
        """Where they are others."""
        return cannot_open("the prepared tables are not those that were prepared", "dpsql prepare POLICY")


@dataclass(frozen=True, slots=True)
class Wanted:
    """A table of a policy. place: where the policy says it stands. source: the files that it is instead.

    columns: their names as the policy writes them. copy: what is known of it, where it is read prepared.
    """

    name: str
    place: Stored | None = None
    source: SourceCall | None = None
    columns: tuple[str, ...] = ()
    copy: Copy | None = None


@dataclass(frozen=True, slots=True)
class FoundColumn:
    """A column as it was found. called: its name in the policy."""

    name: str
    called: str
    read: Read
    nullable: bool


@dataclass(frozen=True, slots=True)
class Relation:
    """A table of a policy as it was found. place: in the catalogue; empty for files. view: its name in our session."""

    wanted: Wanted
    place: tuple[str, ...]
    view: str
    columns: tuple[FoundColumn, ...]

    @property
    def sql(self) -> str:
        """As it stands in FROM, where an alias follows."""
        return in_session(self.view)

    @property
    def full_name(self) -> str:
        """A table of the catalogue, as SQL writes it."""
        return ".".join(map(DIALECT.identifier, self.place))

    def rows(self, session: Any) -> Any:
        """Its rows as a plan of the client, whose files are listed when it is first analysed.

        It has an option that nothing reads and no plan of another session has: nobody's cached rows stand in for it.
        """
        reader = session.read.option("dpsql", session.session_id)
        if self.wanted.source is not None:
            return reader.parquet(*self.wanted.source.paths)
        return reader.table(self.full_name)

    def usable(self, rows: Any) -> Any:
        """The columns that a policy can have, called as it does."""
        items = [f"{self._read(c.name)} AS {DIALECT.identifier(c.called)}" for c in self.columns if c.read.type]
        return rows.selectExpr(*(items or ["1 AS nothing"]))

    def _read(self, column: str) -> str:
        """A column of the files. Nothing else bounds what is added up of an integer that was prepared."""
        name, copy = DIALECT.identifier(column), self.wanted.copy
        for of, low, high in () if copy is None else copy.ends:
            if of == column:
                return f"CASE WHEN {name} BETWEEN {low} AND {high} THEN {name} END"
        return name

    def table(self, files: Sequence[str]) -> CatalogueTable:
        """What a policy is told of it."""
        columns = tuple(
            CatalogueColumn(c.called, c.read.type or _UNUSABLE, c.nullable, why=c.read.why) for c in self.columns
        )
        return CatalogueTable(self.wanted.name, columns, reads=(*([self.full_name] if self.place else []), *files))


@dataclass(frozen=True, slots=True)
class Pinned:
    """The files of a snapshot. files: view of a relation → its files. looks: each file → what it was like."""

    files: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    looks: Mapping[str, File] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Schema:
    """The relations that an engine knows, and the names of what else there is."""

    relations: tuple[Relation, ...]
    others: tuple[str, ...] = ()

    def find(self, name: str) -> Relation | None:
        """The relation of this name, whatever its case."""
        return next((r for r in self.relations if r.wanted.name.casefold() == name.casefold()), None)

    def catalogue(self, pinned: Pinned) -> Catalogue:
        """The schema, without values or sizes. What is not wanted is named, and no more."""
        told = [r.table(pinned.files.get(r.view, ())) for r in self.relations]
        others = [CatalogueTable(name, ()) for name in self.others if self.find(name) is None]
        return Catalogue(tuple(sorted([*told, *others], key=lambda t: t.name)))

    @property
    def essence(self) -> tuple[object, ...]:
        """What a policy was checked against."""
        return tuple((r.view, r.place, r.columns) for r in self.relations)


def pin(session: Any, schema: Schema, last: Pinned | None) -> Pinned:
    """The files as they are now, in views of our session; the views of the last snapshot where these are the same.

    Raises CannotOpen (DP006) for a table whose columns are others now, or whose files cannot be told.
    """
    rows = {relation: relation.rows(session) for relation in schema.relations}
    files = {relation.view: _listed_now(session, relation, plan) for relation, plan in rows.items()}
    looks = looked_at(session, sorted({path for paths in files.values() for path in paths}))
    if looks is None:
        raise cannot_open("the files of the tables cannot be looked at one by one", "may they be read and listed?")
    for relation in rows:
        copy = relation.wanted.copy
        if copy is not None and copy.look != look_of(files[relation.view], looks):
            raise copy.changed()
    pinned = Pinned(files, looks)
    if pinned == last:
        return last
    for relation, plan in rows.items():
        if last is None or last.files[relation.view] != files[relation.view]:
            _refuse(session, relation, files[relation.view])
        if columns_of(plan, relation.wanted) != relation.columns:
            raise cannot_open("the tables' schema has changed since the data was opened", "open it again")
        relation.usable(plan).createOrReplaceTempView(relation.view)
    if not unchanged(session, pinned, list(files)):
        raise cannot_open("the files of the tables change all the time", "ask when nobody writes them")
    return pinned


def _listed_now(session: Any, relation: Relation, rows: Any) -> tuple[str, ...]:
    """The files of a relation, and not those that the session remembers."""
    with contextlib.suppress(Exception):
        if relation.place:
            session.sql(f"REFRESH TABLE {relation.full_name}")
        return plain(rows.inputFiles())
    if relation.wanted.copy is not None:
        raise relation.wanted.copy.changed()
    raise cannot_open(f"table `{relation.wanted.name}` is gone, or may no longer be read", "open the data again")


def unchanged(session: Any, pinned: Pinned, views: Sequence[str]) -> bool:
    """Whether these views are made of the files that they were made of, and these are what they were."""
    if any(plain(session.table(in_session(view)).inputFiles()) != pinned.files[view] for view in views):
        return False
    paths = sorted({path for view in views for path in pinned.files[view]})
    return looked_at(session, paths) == {path: pinned.looks[path] for path in paths}


def in_session(view: str) -> str:
    """A view of our session as it stands in FROM: no table of anybody's is called so."""
    return ".".join(map(DIALECT.identifier, ("system", "session", view)))


def load(session: Any, wanted: Sequence[Wanted] | None) -> Schema:
    """The relations of a policy's tables; None: all that may be read, by their own names.

    Raises CannotOpen (DP006) for a table that no query may read.
    """
    if wanted is None:
        return Schema(tuple(_all(session)))
    found = tuple(r for i, one in enumerate(wanted) if (r := _relation(session, one, i)) is not None)
    others = () if len(found) == len(wanted) else tuple(name for name, _ in _listed(session))
    return Schema(found, others)


def _relation(session: Any, wanted: Wanted, number: int) -> Relation | None:
    """None: there is no such table. Raises CannotOpen (DP006) for one that no query may read."""
    view = f"dpsql_{number}_{re.sub(r'[^a-z0-9]', '_', wanted.name.lower())[:60]}"
    place: tuple[str, ...] = ()
    if wanted.source is None:
        parts = wanted.place.parts if wanted.place is not None else tuple(wanted.name.split("."))
        place = (*_outer(session)[: 3 - len(parts)], *parts) if len(parts) < 3 else parts
        if _described(session, place) is None:
            return None
    relation = Relation(wanted, place, view, ())
    _refuse(session, relation, ())
    try:
        rows = relation.rows(session)
        columns, files = columns_of(rows, wanted), plain(rows.inputFiles())
    except Exception:
        columns, files = None, ()
    if columns is None and wanted.copy is not None:
        raise wanted.copy.changed()
    if columns is None:
        _refuse(session, relation, [f"{path}/-" for path in wanted.source.paths] if wanted.source else ())
        raise cannot_open(
            f"table `{wanted.name}` cannot be read", "are there files, of one schema, that the cluster may read?"
        )
    _refuse(session, relation, files)
    return replace(relation, columns=columns)


def _refuse(session: Any, relation: Relation, files: Sequence[str]) -> None:
    """Raises CannotOpen (DP006) for a table whose files are not the whole of it, or not all of it."""
    told = _described(session, relation.place) if relation.place else {"type": _TABLES[0], "provider": "parquet"}
    found = _refused(told or {})
    if found is None and (format_ := versioned(session, files)):
        found = _other_versions(format_)
    if found is not None:
        raise cannot_open(f"table `{relation.wanted.name}` {found[0]}", found[1])


def columns_of(rows: Any, wanted: Wanted) -> tuple[FoundColumn, ...]:
    """The columns of a relation, called as the policy calls them."""
    fields = rows.schema.jsonValue()["fields"]
    spelled = [entry["name"].casefold() for entry in fields]
    names = {name.casefold(): name for name in wanted.columns}
    found = []
    for entry in fields:
        name = entry["name"]
        twice = spelled.count(name.casefold()) > 1
        read = Read(why="a name that another column has in another case") if twice else read_as(entry)
        found.append(FoundColumn(name, names.get(name.casefold(), name), read, bool(entry.get("nullable", True))))
    return tuple(found)


def _all(session: Any) -> Iterator[Relation]:
    for number, (name, place) in enumerate(_listed(session)):
        told = _described(session, place)
        if told is not None and _refused(told) is None:
            relation = _relation(session, Wanted(name, Stored(place[1], place[2], place[0])), number)
            if relation is not None:
                yield relation


def _outer(session: Any) -> tuple[str, str]:
    """The catalogue and the schema that a session begins with."""
    (row,) = session.sql("SELECT current_catalog() AS c, current_schema() AS s").toArrow().to_pylist()
    return row["c"], row["s"]


def _listed(session: Any) -> list[tuple[str, tuple[str, str, str]]]:
    """The tables of the session's catalogue: as a policy may call each, and where it stands."""
    catalogue, own = _outer(session)
    found = []
    for (schema,) in _rows(session, f"SHOW SCHEMAS IN {DIALECT.identifier(catalogue)}"):
        inner = f"{DIALECT.identifier(catalogue)}.{DIALECT.identifier(schema)}"
        for _, table, temporary, *_ in _rows(session, f"SHOW TABLES IN {inner}"):
            if not temporary:
                found.append((table if schema == own else f"{schema}.{table}", (catalogue, schema, table)))
    return sorted(found)


def _rows(session: Any, sql: str) -> list[tuple[Any, ...]]:
    table = session.sql(sql).toArrow()
    return list(zip(*(column.to_pylist() for column in table.columns), strict=True))


def _described(session: Any, place: Sequence[str]) -> Mapping[str, Any] | None:
    """What the catalogue says of a table; None: it has none of this name; nothing of one that it cannot describe."""
    name = ".".join(map(DIALECT.identifier, place))
    try:
        ((told,),) = _rows(session, f"DESCRIBE TABLE EXTENDED {name} AS JSON")
        return dict(json.loads(told))
    except Exception as error:
        condition = getattr(error, "getCondition", lambda: "")() or ""
        return None if condition.startswith(_NOBODY) else {}


def _refused(told: Mapping[str, Any]) -> tuple[str, str] | None:
    """What is wrong with a table, and a repair; None: nothing."""
    kind, provider = str(told.get("type", "")).upper(), str(told.get("provider", "")).lower()
    if "VIEW" in kind:
        return "is a view: which files it reads, and what it computes, is not pinned", "declare the tables it reads"
    if provider in _VERSIONED:
        return _other_versions(provider)
    if provider != "parquet" or kind not in _TABLES:
        return (
            f"is of format {provider or 'unknown'}; only Spark's own tables over Parquet are read",
            "name its files, if they are Parquet:  source: read_parquet('s3a://bucket/folder')",
        )
    return None


def _other_versions(format_: str) -> tuple[str, str]:
    return (
        f"is a table of {format_.capitalize()}, whose versions dpsql does not read",
        "store its rows as Parquet:  CREATE TABLE … USING parquet AS SELECT …",
    )
