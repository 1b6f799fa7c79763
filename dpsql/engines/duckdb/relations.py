"""Which relation of DuckDB's catalogue a table name of the policy stands for, and the schema as a Catalogue."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from dpsql.core.engine import cannot_open
from dpsql.core.policy.catalogue import Catalogue, CatalogueColumn, CatalogueKey, CatalogueTable
from dpsql.core.printing.dialects.duckdb import quoted
from dpsql.engines.duckdb.files.parquet import Place, believing_views, folded
from dpsql.engines.duckdb.read_as import Made, enum_values, may_become_null, read_as, relation_sql
from dpsql.engines.duckdb.views.stored_views import source_of
from dpsql.engines.duckdb.views.views import reads_of

Rows = Callable[[str], list[tuple[Any, ...]]]

_RELATIONS = (
    "SELECT database_name, schema_name, table_name, false, sql FROM duckdb_tables() WHERE NOT internal "
    "UNION ALL SELECT database_name, schema_name, view_name, true, sql FROM duckdb_views() WHERE NOT internal"
)
_COLUMNS = (
    "SELECT database_name, schema_name, table_name, column_name, data_type, is_nullable FROM duckdb_columns() "
    "WHERE NOT internal ORDER BY column_index ASC"
)
_CONSTRAINTS = (
    "SELECT database_name, schema_name, table_name, constraint_type, constraint_column_names, referenced_table, "
    "referenced_column_names FROM duckdb_constraints() ORDER BY constraint_index ASC"
)
_MACROS = "SELECT macro_definition FROM duckdb_functions() WHERE NOT internal AND macro_definition IS NOT NULL"
_COLLATE = re.compile(r"\bCOLLATE\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Relation:
    """A table or view at `place` (database, schema, table).

    name: how a policy calls it. hides: True for sources and registered frames, which come before stored tables.
    collated: True if a column has a collation, or, for a view, may have one.
    credulous: True if it may be a view of Parquet files in which DuckDB overlooks values; see files/parquet.py.
    text: the SQL of a view that is stored.
    columns: the names of its columns, in lower case. made: what the policy makes of them; see read_as.py.
    casts: its columns that are read as another type, and as which; see read_as.py.
    """

    place: Place
    name: str
    view: bool
    hides: bool
    collated: bool
    credulous: bool = False
    casts: tuple[tuple[str, str], ...] = ()
    made: tuple[Made, ...] = ()
    columns: frozenset[str] = frozenset()
    text: str = field(default="", compare=False)

    @property
    def sql(self) -> str:
        """As it stands in FROM: fully qualified and quoted, its columns of the types that policies know."""
        return relation_sql(".".join(map(quoted, self.place)), self.casts, self.made, self.columns)


def relations_of(
    rows: Rows,
    home: str,
    first: str,
    registered: Mapping[str, bool] | None,
    made: Mapping[str, tuple[Made, ...]] | None = None,
) -> tuple[Relation, ...]:
    """All relations that a policy may name.

    home: the database whose tables are called by `table` (schema main) or `schema.table`; relations of any other are
        called `database.schema.table`.
    first: the database whose main schema holds sources or registered frames, called by their bare names.
    registered: the names in `first` that count, and whether each stands for a query of DuckDB's, whose columns may have
        a collation; None for all, none of which has.
    made: table of the policy, in lower case → the columns that it makes of the data's.
    """
    found = rows(_RELATIONS)

    def hides(database: str, schema: str, table: str) -> bool:
        return database == first and schema == "main" and (registered is None or table in registered)

    def plain(database: str, schema: str, table: str) -> bool:
        return hides(database, schema, table) and not (registered is not None and registered[table])

    views = {tuple(place): sql or "" for *place, view, sql in found if view and not plain(*place)}
    macros = [sql for (sql,) in rows(_MACROS)] if views else []  # the text of a macro is not the view's
    any_collation = any(_COLLATE.search(sql or "") for sql in (*(sql for *_, sql in found), *macros))
    credulous = believing_views(views, macros)
    casts: dict[Place, list[tuple[str, str]]] = {}
    names: dict[Place, set[str]] = {}
    for database, schema, table, column, type_, _ in rows(_COLUMNS):
        names.setdefault((database, schema, table), set()).add(folded(column))
        if (known := read_as(type_)) is not None:
            casts.setdefault((database, schema, table), []).append((column, known))
    relations: list[Relation] = []
    for database, schema, table, view, sql in found:
        place, hidden = (database, schema, table), hides(database, schema, table)
        collated = any_collation or not sql if view else bool(_COLLATE.search(sql or ""))
        merges = collated and not plain(*place)
        name, cast = _name(place, home, hidden), tuple(casts.get(place, ()))
        own, columns = (made or {}).get(folded(name), ()), frozenset(names.get(place, ()))
        overlooks = place in credulous
        relations.append(Relation(place, name, view, hidden, merges, overlooks, cast, own, columns, sql or ""))
    return tuple(sorted(relations, key=lambda r: (not r.hides, folded(r.name), r.place)))


def _name(place: Place, home: str, hides: bool) -> str:
    database, schema, table = place
    if hides or (database == home and schema == "main"):
        return table
    return f"{schema}.{table}" if database == home else ".".join(place)


def find(relations: tuple[Relation, ...], name: str, home: str) -> Relation | None:
    """The relation that `name` stands for, or None.

    Sources come first, then an exact match, then one in another case.
    Raises: CannotOpen (DP004) if two stored relations fit equally well.
    """
    for hides in (True, False):
        group = [(spelling, r) for r in relations if r.hides is hides for spelling in _spellings(r, home)]
        for matches in (
            {r for spelling, r in group if spelling == name},
            {r for spelling, r in group if folded(spelling) == folded(name)},
        ):
            if len(matches) == 1:
                return matches.pop()
            if matches:
                raise cannot_open(
                    f"the data has more than one table `{name}`",
                    "write the table's name in the policy with its schema, as  schema.table",
                    code="DP004",
                )
    return None


def _spellings(relation: Relation, home: str) -> tuple[str, ...]:
    database, schema, table = relation.place
    if relation.hides:
        return (relation.name,)
    full = ".".join(relation.place)
    return (relation.name, f"{schema}.{table}", full) if database == home else (full,)


def catalogue_of(rows: Rows, relations: tuple[Relation, ...], home: str) -> Catalogue:
    """The schema of all relations that are called by a name of their own, by name."""
    columns: dict[Place, list[CatalogueColumn]] = {}
    for database, schema, table, column, type_, nullable in rows(_COLUMNS):
        known, may_be_null = read_as(type_) or type_, bool(nullable) or may_become_null(type_)
        found = CatalogueColumn(column, known, may_be_null, enum_values(type_))
        columns.setdefault((database, schema, table), []).append(found)
    constraints: dict[Place, list[tuple[Any, ...]]] = {}
    for database, schema, table, *rest in rows(_CONSTRAINTS):
        constraints.setdefault((database, schema, table), []).append(tuple(rest))
    reads = reads_of(rows, [r.place for r in relations])
    tables: dict[str, CatalogueTable] = {}
    for r in relations:
        if r.hides or (r.place[0] == home and folded(r.name) not in tables):
            table = _table(r, tuple(columns.get(r.place, ())), constraints.get(r.place, []), reads[r.place])
            tables.setdefault(folded(r.name), table)
    return Catalogue(tuple(tables[name] for name in sorted(tables)))


def _table(
    r: Relation, columns: tuple[CatalogueColumn, ...], constraints: list[tuple[Any, ...]], reads: tuple[str, ...]
) -> CatalogueTable:
    gone = {folded(m.name) for m in r.made}
    columns = (
        *(c for c in columns if folded(c.name) not in gone),
        *(CatalogueColumn(m.name, str(m.type)) for m in r.made),
    )
    changed = gone | {folded(name) for name, type_ in r.casts if type_ == "TIMESTAMP"}  # two may be equal: no key
    constraints = [constraint for constraint in constraints if changed.isdisjoint(map(folded, constraint[1]))]
    primary = [tuple(own) for kind, own, _, _ in constraints if kind == "PRIMARY KEY"]
    unique = tuple(tuple(own) for kind, own, _, _ in constraints if kind == "UNIQUE")
    schema = r.place[1]
    prefix = "" if schema == "main" else f"{schema}."
    foreign = tuple(
        CatalogueKey(tuple(own), prefix + table, tuple(others))
        for kind, own, table, others in constraints
        if kind == "FOREIGN KEY"
    )
    source = (r.view and source_of(r.text, reads)) or ""
    return CatalogueTable(r.name, columns, primary[0] if primary else (), unique, foreign, reads, source)
