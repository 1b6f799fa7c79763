"""Keys of a policy's tables as PostgreSQL's constraints, each unique one with an index."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dpsql.core.policy.tables import Table


@dataclass(frozen=True, slots=True)
class Constraint:
    """A key of a table. kind: "p", "u" or "f". index: that of PostgreSQL's, for p and u."""

    oid: int
    name: str
    kind: str
    table: int
    columns: tuple[str, ...]
    index: int = 0
    to: int = 0
    to_name: str = ""
    to_columns: tuple[str, ...] = ()

    @property
    def definition(self) -> str:
        """As `pg_get_constraintdef` writes it."""
        columns = ", ".join(map(quoted, self.columns))
        match self.kind:
            case "p":
                return f"PRIMARY KEY ({columns})"
            case "u":
                return f"UNIQUE ({columns})"
        return f"FOREIGN KEY ({columns}) REFERENCES {quoted(self.to_name)}({', '.join(map(quoted, self.to_columns))})"


def quoted(name: str) -> str:
    """A name as PostgreSQL shows it: in quotes only where it needs them."""
    plain = name.isidentifier() and name.isascii() and name == name.lower()
    return name if plain else '"' + name.replace('"', '""') + '"'


def constraints(tables: Sequence[tuple[int, Table]], first: int) -> list[Constraint]:
    """Primary, unique and foreign keys, in the order of tables. first: the oid from which they are numbered."""
    oids = {table.name: oid for oid, table in tables}
    found: list[Constraint] = []
    at = first
    for oid, table in tables:
        for kind, key in [("p", table.primary_key), *(("u", k) for k in table.unique)]:
            if key is not None:
                name = f"{table.name}_pkey" if kind == "p" else "_".join([table.name, *key.columns, "key"])
                found.append(Constraint(at + 1, name, kind, oid, key.columns, at))
                at += 2
        for f in table.foreign_keys:
            name = "_".join([table.name, *f.columns, "fkey"])
            found.append(Constraint(at, name, "f", oid, f.columns, 0, oids[f.table], f.table, f.references))
            at += 1
    return found
