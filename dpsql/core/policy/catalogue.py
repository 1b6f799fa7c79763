"""What a database says about itself: names, types, nullability and keys. A value; it holds no data.

An engine's `describe()` returns one; drafting and completing a policy take it, so `policy/` imports no engine.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class CatalogueColumn:
    """A column as the engine has it; `type` in the engine's spelling.

    enumerated: what the type itself lists (an ENUM's texts), for a draft to propose. They may have been made of private
        rows: no query is planned by them, and no message compares them with anything.
    why: of a type that policies do not have, what it is, in words, and perhaps a repair behind a semicolon.
    """

    name: str
    type: str
    nullable: bool = True
    enumerated: tuple[str, ...] = ()
    why: str = ""


@dataclass(frozen=True, slots=True)
class CatalogueKey:
    """A foreign key the database declares: `columns` refer to `references` of `table`."""

    columns: tuple[str, ...]
    table: str
    references: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class CatalogueTable:
    """A table or view: columns in order, primary key, unique constraints, foreign keys.

    reads: what its rows are made of, by names that mean the same in one catalogue: itself first, then, of a view or a
        source, the tables and files behind it.
    source: of a view that is nothing but the rows of files, what stands for it in a policy; else empty.
    """

    name: str
    columns: tuple[CatalogueColumn, ...]
    primary_key: tuple[str, ...] = ()
    unique: tuple[tuple[str, ...], ...] = ()
    foreign_keys: tuple[CatalogueKey, ...] = ()
    reads: tuple[str, ...] = ()
    source: str = ""

    def column(self, name: str) -> CatalogueColumn | None:
        """The column of this name, whatever its case."""
        wanted = name.casefold()
        return next((c for c in self.columns if c.name.casefold() == wanted), None)


@dataclass(frozen=True, slots=True)
class Catalogue:
    """All tables an engine can see."""

    tables: tuple[CatalogueTable, ...]

    def table(self, name: str) -> CatalogueTable | None:
        """The table of this name, whatever its case."""
        wanted = name.casefold()
        return next((t for t in self.tables if t.name.casefold() == wanted), None)
