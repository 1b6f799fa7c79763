"""What a question about the schema may use, and how DuckDB holds it."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

TEXT, BOOL, INT4, OID = "text", "boolean", "integer", "oid"


class NotListed(Exception):
    """A question that is not answered: what in it is not on the list, in words."""


@dataclass(frozen=True, slots=True)
class KnownNames:
    """What a question may use.

    relations: (schema, name) → column → PostgreSQL's type. empty: those of them that never hold a row.
    functions: name → how many arguments it may have → PostgreSQL's types of these and of the result; each is there in
    DuckDB as `name_n`. constants: names without arguments → type and value. oid_of: the oid of a `regclass`, `regtype`,
    `regnamespace` or `regproc` that is written as text, or None; its name, from an oid, is the function `kind_name`.
    zero_based: columns whose subscripts count from 0. table_functions: relations that are written as calls.
    """

    relations: Mapping[tuple[str, str], Mapping[str, str]]
    empty: frozenset[tuple[str, str]]
    functions: Mapping[str, Mapping[int, tuple[tuple[str, ...], str]]]
    constants: Mapping[str, tuple[str, str | None]]
    oid_of: Callable[[str, str], int | None]
    zero_based: frozenset[str] = frozenset()
    table_functions: frozenset[str] = frozenset()

    def is_missing(self, place: tuple[str, str]) -> bool:
        """Whether a relation is one of a catalogue, and not of ours: it has no rows."""
        return bool(place[0]) and place not in self.relations

    def arguments(self, name: str, count: int) -> tuple[str, ...]:
        """The types of a function's arguments."""
        return self.functions[name][count][0]


@dataclass(frozen=True, slots=True)
class CatalogueQuestion:
    """What DuckDB is asked, and the answer's columns by PostgreSQL's names and types. sql None: there are no rows.

    missing: functions and relations of PostgreSQL's that are not known here, which say nothing.
    """

    sql: str | None
    columns: tuple[tuple[str, str], ...]
    parameters: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()


_ACTS = re.compile(
    r"pg_(advisory|backup|cancel|catalog|copy|create|drop|export|file|import|ls|log|logical|notify|promote|read|reload"
    r"|replication|rotate|sleep|start|stat_file|stop|switch|sync|terminate|try|wal|write)"
)
_REMARKS = re.compile(r"pg_\w+|has_\w+_privilege|(inet|txid|obj|shobj|col)_\w+")
_YES_OR_NO = re.compile(r"has_|pg_(\w+_)?(is|has)_")


def unknown_result(function: str) -> str | None:
    """The type of what a function of PostgreSQL's catalogue says that is not listed: FALSE or NULL. None for one that
    is not of the catalogue, or that does something."""
    if not _REMARKS.fullmatch(function) or _ACTS.match(function):
        return None
    return BOOL if _YES_OR_NO.match(function) else TEXT


_DUCKDB = {
    "oid": "UINTEGER", "name": "VARCHAR", "text": "VARCHAR", "character varying": "VARCHAR", '"char"': "VARCHAR",
    "json": "VARCHAR", "character": "VARCHAR", "bpchar": "VARCHAR",
    "smallint": "SMALLINT", "integer": "INTEGER", "bigint": "BIGINT", "boolean": "BOOLEAN", "numeric": "DOUBLE",
    "double precision": "DOUBLE", "real": "FLOAT", "xid": "UINTEGER",
    "int2vector": "SMALLINT[]", "oidvector": "UINTEGER[]", "anyarray": "VARCHAR[]",
}  # fmt: skip


def duckdb_type(name: str) -> str:
    """How DuckDB holds a type of the catalogue: texts, unless it is a number, a truth value or an array."""
    if name.endswith("[]"):
        return duckdb_type(name[:-2]) + "[]"
    return _DUCKDB.get(name, "VARCHAR")
