"""What a server's catalogue says of tables: where they are, their columns and keys, and what views read.

Facts are those that the server makes true for every row: NOT NULL columns, and validated constraints, of tables whose
rows all are in them. A parent's keys do not hold for what inherits from it, and nothing holds for a foreign table.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from dpsql.core.policy.catalogue import CatalogueKey
from dpsql.core.policy.server_address import DEFAULT_SCHEMA, Stored
from dpsql.engines.postgres.catalogue_reader import CatalogueReader
from dpsql.engines.postgres.engine_types import Read, ServerType, read_as
from dpsql.engines.postgres.view_contents import refused_contents

_RELATIONS: Final = """
SELECT c.oid, n.nspname, c.relname, CAST(c.relkind AS text), c.relispopulated, row_security_active(c.oid),
  has_schema_privilege(n.oid, 'USAGE') AND has_table_privilege(c.oid, 'SELECT'),
  has_table_privilege(c.oid, 'INSERT, UPDATE, DELETE, TRUNCATE'),
  EXISTS (SELECT 1 FROM pg_inherits AS i WHERE i.inhrelid = c.oid)
FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f') AND c.relpersistence <> 't'
  AND n.nspname NOT IN ('pg_catalog', 'information_schema', 'pg_toast')
ORDER BY n.nspname, c.relname"""
_COLUMNS: Final = """
SELECT a.attrelid, a.attname, a.atttypid, a.atttypmod,
  a.attnotnull AND NOT EXISTS (SELECT 1 FROM pg_constraint AS k WHERE k.conrelid = a.attrelid AND k.contype = 'n'
    AND NOT k.convalidated AND a.attnum = ANY (k.conkey)),
  format_type(a.atttypid, a.atttypmod), coalesce(NOT o.collisdeterministic, false)
FROM pg_attribute AS a LEFT JOIN pg_collation AS o ON o.oid = a.attcollation
WHERE a.attrelid = ANY (CAST(%s AS oid[])) AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attrelid, a.attnum"""
_TYPES: Final = """
WITH RECURSIVE found(number) AS (
  SELECT unnest(CAST(%s AS oid[]))
  UNION SELECT x.number FROM found AS f JOIN pg_type AS t ON t.oid = f.number
  CROSS JOIN LATERAL (VALUES (t.typbasetype), (t.typelem)) AS x(number) WHERE x.number <> 0)
SELECT t.oid, n.nspname, t.typname, CAST(t.typtype AS text), t.typbasetype, t.typtypmod, t.typelem
FROM pg_type AS t JOIN pg_namespace AS n ON n.oid = t.typnamespace WHERE t.oid IN (SELECT f.number FROM found AS f)"""
_ENUMS: Final = """
SELECT enumtypid, enumlabel FROM pg_enum WHERE enumtypid = ANY (CAST(%s AS oid[])) ORDER BY enumtypid, enumsortorder"""
_CONSTRAINTS: Final = """
SELECT c.conrelid, CAST(c.contype AS text),
  (SELECT array_agg(CAST(a.attname AS text) ORDER BY k.place) FROM unnest(c.conkey) WITH ORDINALITY AS k(number, place)
   JOIN pg_attribute AS a ON a.attrelid = c.conrelid AND a.attnum = k.number),
  c.confrelid,
  (SELECT array_agg(CAST(a.attname AS text) ORDER BY k.place) FROM unnest(c.confkey) WITH ORDINALITY AS k(number, place)
   JOIN pg_attribute AS a ON a.attrelid = c.confrelid AND a.attnum = k.number)
FROM pg_constraint AS c
WHERE c.conrelid = ANY (CAST(%s AS oid[])) AND c.contype IN ('p', 'u', 'f') AND c.convalidated ORDER BY c.oid"""
_BELOW: Final = """
WITH RECURSIVE below(top, number) AS (
  SELECT t.number, t.number FROM unnest(CAST(%s AS oid[])) AS t(number)
  UNION SELECT b.top, x.number FROM below AS b CROSS JOIN LATERAL (
    SELECT i.inhrelid FROM pg_inherits AS i WHERE i.inhparent = b.number
    UNION SELECT d.refobjid FROM pg_rewrite AS r JOIN pg_depend AS d
      ON d.classid = 'pg_rewrite'::regclass AND d.objid = r.oid AND d.refclassid = 'pg_class'::regclass
    WHERE r.ev_class = b.number) AS x(number))
SELECT b.top, b.number, n.nspname, c.relname, CAST(c.relkind AS text),
  EXISTS (SELECT 1 FROM pg_inherits AS i WHERE i.inhparent = c.oid)
FROM below AS b JOIN pg_class AS c ON c.oid = b.number JOIN pg_namespace AS n ON n.oid = c.relnamespace
WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f') ORDER BY b.top, b.number <> b.top, n.nspname, c.relname"""
_SIGNATURE: Final = """
SELECT coalesce(md5(string_agg(concat_ws('|', c.oid, c.relname, c.relnamespace, c.relkind, c.relispopulated,
  row_security_active(c.oid), CASE WHEN c.relkind IN ('v', 'm') THEN pg_get_viewdef(c.oid) END,
  (SELECT string_agg(concat_ws(',', a.attname, a.atttypid, a.atttypmod, a.attnotnull, a.attcollation), ';'
     ORDER BY a.attnum) FROM pg_attribute AS a WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped),
  (SELECT string_agg(concat_ws(',', k.oid, k.convalidated, k.conkey), ';' ORDER BY k.oid)
   FROM pg_constraint AS k WHERE k.conrelid = c.oid),
  (SELECT string_agg(CAST(i.inhrelid AS text), ';' ORDER BY i.inhrelid) FROM pg_inherits AS i WHERE i.inhparent = c.oid)
  ), '/' ORDER BY c.oid)), '')
FROM pg_class AS c WHERE c.oid = ANY (CAST(%s AS oid[]))"""


@dataclass(frozen=True, slots=True)
class ListedRelation:
    """A relation as the server lists it.

    kind: `r` table, `p` partitioned, `v` view, `m` materialized, `f` foreign. cut: whether row security hides rows.
    writable: whether the role may change its rows. part: whether another table's rows hold its own.
    """

    number: int
    place: Stored
    kind: str
    populated: bool
    cut: bool
    readable: bool
    writable: bool
    part: bool

    @property
    def name(self) -> str:
        """What a policy calls it that says nothing of its place."""
        plain = self.place.schema == DEFAULT_SCHEMA
        return self.place.table if plain else f"{self.place.schema}.{self.place.table}"


@dataclass(frozen=True, slots=True)
class ServerColumn:
    """A column. shown: its type as the server writes it."""

    name: str
    read: Read
    nullable: bool
    shown: str
    enumerated: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class DescribedRelation:
    """What is known of a relation.

    reads: what its rows are made of, itself first; numbers: the same by their numbers. refused: why no query may read
    it, and a repair; empty: it may.
    """

    listed: ListedRelation
    columns: tuple[ServerColumn, ...]
    primary: tuple[str, ...] = ()
    unique: tuple[tuple[str, ...], ...] = ()
    foreign: tuple[CatalogueKey, ...] = ()
    reads: tuple[str, ...] = ()
    refused: tuple[str, ...] = ()
    numbers: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class _Below:
    number: int
    identity: str
    kind: str
    parent: bool


def signature(rows: CatalogueReader, numbers: Sequence[int]) -> str:
    """A text that is another one where anything has changed that relations of these numbers are described by."""
    return str(rows(_SIGNATURE, list(numbers))[0][0])


def listed(rows: CatalogueReader) -> tuple[ListedRelation, ...]:
    """All tables, views and foreign tables of the database, temporary ones left out."""
    return tuple(
        ListedRelation(number, Stored(schema, table), *rest) for number, schema, table, *rest in rows(_RELATIONS)
    )


def described(
    rows: CatalogueReader, wanted: Sequence[ListedRelation], everything: Sequence[ListedRelation]
) -> tuple[DescribedRelation, ...]:
    """What the catalogue says of some relations, in their order. everything: all there are, for names of keys."""
    numbers = [one.number for one in wanted]
    columns = _columns(rows, numbers)
    below: dict[int, list[_Below]] = {}
    for top, number, schema, table, kind, parent in rows(_BELOW, numbers):
        below.setdefault(top, []).append(_Below(number, str(Stored(schema, table)), kind, parent))
    hidden = refused_contents(rows, (b.number for each in below.values() for b in each if b.kind in "vm"))
    keys: dict[int, list[tuple[str, tuple[str, ...], int, tuple[str, ...]]]] = {}
    for number, kind, own, other, others in rows(_CONSTRAINTS, numbers):
        keys.setdefault(number, []).append((kind, tuple(own or ()), other, tuple(others or ())))
    names = {one.number: one.name for one in everything}
    return tuple(
        _described(
            one,
            columns.get(one.number, ()),
            below.get(one.number, []),
            keys.get(one.number, []),
            names,
            _refused(one, below.get(one.number, []), hidden),
        )
        for one in wanted
    )


def _described(
    one: ListedRelation,
    columns: tuple[ServerColumn, ...],
    below: Sequence[_Below],
    keys: Iterable[tuple[str, tuple[str, ...], int, tuple[str, ...]]],
    names: Mapping[int, str],
    refused: tuple[str, ...],
) -> DescribedRelation:
    reads = tuple(dict.fromkeys(b.identity for b in below))
    numbers = tuple(b.number for b in below)
    whole = one.kind == "p" or (one.kind == "r" and not any(b.parent for b in below))
    if refused or not whole:
        plain = tuple(replace(c, nullable=True) for c in columns)
        return DescribedRelation(one, plain, reads=reads, refused=refused, numbers=numbers)
    usable = {c.name for c in columns if c.read.type}
    held = [key for key in keys if usable.issuperset(key[1])]
    return DescribedRelation(
        one,
        columns,
        next((own for kind, own, _, _ in held if kind == "p"), ()),
        tuple(own for kind, own, _, _ in held if kind == "u"),
        tuple(CatalogueKey(own, names[to], theirs) for kind, own, to, theirs in held if kind == "f" and to in names),
        reads,
        numbers=numbers,
    )


def _refused(one: ListedRelation, below: Sequence[_Below], hidden: Mapping[int, str]) -> tuple[str, ...]:
    if not one.readable:
        place = one.place
        return (
            "may not be read by this role",
            f'GRANT USAGE ON SCHEMA "{place.schema}" TO reader;  GRANT SELECT ON {place} TO reader',
        )
    if one.cut:
        return (
            "shows a part of its rows only: a policy of row security decides about each",
            "ALTER ROLE reader BYPASSRLS, or store the rows that may be read as a table",
        )
    if not one.populated:
        return "is a materialized view without rows", f"REFRESH MATERIALIZED VIEW {one.place}"
    store = "store its rows as a table:  CREATE TABLE … AS …"
    for b in below:
        which = "" if b.number == one.number else f", as {b.identity} does, which it reads"
        if b.kind == "f":
            return f"reads a foreign table{which}: it has no snapshot and no facts", store
        if b.number in hidden:
            return f"{hidden[b.number]}{which}: nothing says which rows that reads", store
    return ()


def _columns(rows: CatalogueReader, numbers: Sequence[int]) -> dict[int, tuple[ServerColumn, ...]]:
    found = rows(_COLUMNS, numbers)
    types = {
        number: ServerType(number, *rest)
        for number, *rest in rows(_TYPES, sorted({type_ for _, _, type_, *_ in found}))
    }
    spelled: dict[tuple[int, str], int] = {}
    for relation, name, *_ in found:
        key = relation, name.casefold()
        spelled[key] = spelled.get(key, 0) + 1
    columns: dict[int, list[ServerColumn]] = {}
    for relation, name, type_, modifier, not_null, shown, merges in found:
        read = read_as(types, type_, modifier, merges, shown)
        if spelled[relation, name.casefold()] > 1:
            read = Read(why=f"{shown}, and another column's name differs in case only")
        columns.setdefault(relation, []).append(ServerColumn(name, read, not not_null or read.may_be_null, shown))
    wanted = {c.read.enumerated for own in columns.values() for c in own if c.read.enumerated is not None}
    labels: dict[int, list[str]] = {}
    for type_, label in rows(_ENUMS, sorted(wanted)) if wanted else ():
        labels.setdefault(type_, []).append(label)
    return {
        relation: tuple(replace(c, enumerated=tuple(labels.get(c.read.enumerated or 0, ()))) for c in own)
        for relation, own in columns.items()
    }
