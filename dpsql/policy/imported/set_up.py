"""A set-up of another system in words of ours: what it says, what is open, and what changes in meaning."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from dpsql.core.ir.types import parse_type

Amounts = dict[str, str]
"""`epsilon`, `delta` or `rho`, as they are written."""

_TYPES = {
    "INT": "bigint", "INT64": "bigint", "NUMBER": "bigint", "BYTEINT": "bigint", "STRING": "varchar", "TEXT": "varchar",
    "FLOAT64": "double", "FLOAT": "double", "BOOL": "boolean", "DATETIME": "timestamp", "TIMESTAMP_NTZ": "timestamp",
    "TIMESTAMP_TZ": "timestamptz", "TIMESTAMP_LTZ": "timestamptz",
}  # fmt: skip


@dataclass(slots=True)
class ImportedColumn:
    """A column. open: what a person has to decide of it."""

    name: str
    type: str = ""
    bounds: tuple[str, str] | None = None
    domain: tuple[str, ...] = ()
    domain_of: tuple[str, str] | None = None
    nullable: bool = True
    open: str = ""


@dataclass(slots=True)
class ImportedTable:
    """A table. unit: whose rows it holds, as a policy says it: (`column`, id) or (`rows`, k); None where it is public.
    file: what the set-up reads it from. whole: whether all of its columns are named. limits: key of
    the policy → number. open: what has to be decided."""

    name: str
    unit: tuple[str, str] | None = None
    of: str = ""
    replaced: bool = False
    file: str = ""
    source: str = ""
    whole: bool = True
    columns: dict[str, ImportedColumn] = field(default_factory=dict)
    limits: dict[str, int] = field(default_factory=dict)
    open: list[str] = field(default_factory=list)

    def column(self, name: str) -> ImportedColumn:
        """The column of this name in whatever case; a new one if there is none."""
        known = {other.casefold(): other for other in self.columns}
        return self.columns.setdefault(known.get(name.casefold(), name), ImportedColumn(name))


@dataclass(slots=True)
class Imported:
    """A whole set-up. budget: all that may be learned. query: what a query costs that says nothing. analysts: name →
    (budget, the most of one query). changes: what means something else here. open: decisions about the budget."""

    system: str
    name: str
    tables: dict[str, ImportedTable] = field(default_factory=dict)
    accountant: str = ""
    budget: Amounts = field(default_factory=dict)
    query: Amounts = field(default_factory=dict)
    analysts: dict[str, tuple[Amounts, Amounts]] = field(default_factory=dict)
    changes: list[str] = field(default_factory=list)
    open: list[str] = field(default_factory=list)
    database: str = ""

    def table(self, name: str) -> ImportedTable:
        """The table of this name in whatever case; a new one if there is none."""
        known = {other.casefold(): other for other in self.tables}
        return self.tables.setdefault(known.get(name.casefold(), name), ImportedTable(name))


class NotUnderstood(ValueError):
    """The file is no set-up of the system that it was said to be of; the message says what is missing, and a place."""


def known_type(text: str) -> str:
    """A type of another system as a policy names it; empty where there is none."""
    word = re.split(r"[\s(]", text.strip().upper())[0]
    named = _TYPES.get(word, text.strip())
    if word in ("NUMBER", "DECIMAL", "NUMERIC") and (scale := re.search(r",\s*([1-9]\d*)\s*\)", text)):
        named = re.sub(r"^\w+", "decimal", text.strip()) if int(scale[1]) else named
    found = parse_type(named)
    return "" if found is None else found.name.lower()
