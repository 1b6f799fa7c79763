"""What prepared tables say of themselves, and whether it still is of the data and the policy at hand."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field

from dpsql.core.policy.policy import Policy
from dpsql.core.policy.prepared import prepared_tables
from dpsql.core.policy.tables import Table

FORMAT = 6
"""Raised when copies come to be made otherwise: those of another format are made anew."""


@dataclass(frozen=True, slots=True)
class TableCopy:
    """rows: of the table. kept: of its copy. units: with rows in the copy. most: rows of one of them.

    integers: column → what its grid integers rest on (`said_of`). look: what its files look like; see `Writer.copy`.
    """

    rows: int
    kept: int
    units: int
    most: int
    integers: Mapping[str, str] = field(default_factory=dict)
    look: str = ""


@dataclass(frozen=True, slots=True)
class Manifest:
    """identity: a random name, part of every address that reads the copy. declared: what of the policy it rests on.

    looks: part of the data → what it looked like. tables: name → how much of it was kept; exact, for the custodian
    alone.
    """

    identity: str
    declared: str
    looks: Mapping[str, str]
    engine: str
    tables: Mapping[str, TableCopy]
    format: int = FORMAT

    def text(self) -> str:
        """As it is written."""
        return json.dumps(asdict(self), sort_keys=True)

    @classmethod
    def read(cls, text: str) -> Manifest | None:
        """What was written; None for another format."""
        found = json.loads(text)
        if found.pop("format", None) != FORMAT:
            return None
        tables = {name: TableCopy(**each) for name, each in found.pop("tables").items()}
        return cls(tables=tables, **found)

    def stale(self, policy: Policy, looks: Mapping[str, str], engine: str) -> str:
        """Why it is not of this policy and this data, in words; empty if it is."""
        if self.declared != declared(policy):
            return "the policy says something else of these tables since"
        if self.engine != engine:
            return f"they were prepared with {self.engine}, and this is {engine}"
        if looks != self.looks or not all(looks.values()):
            return "the data has changed since"
        return ""


def _of_carried(table: Table) -> str:
    columns = [(c.name, str(c.sql_type), str(c.derived or c.computed)) for c in table.columns.values()]
    return str((columns, table.keys, table.foreign_keys, [str(c.domain) for c in table.columns.values()]))


def declared(policy: Policy) -> str:
    """A hash of what copies are made by: whose rows, which columns of which type, which limits, from where.

    Of other tables, too, whose rows they are and where they lie: whether two tables have the same rows and different
    units is looked at when the copies are made, and cannot be seen in them.
    """
    others = [(t.name, t.public, str(t.protection), str(t.source), str(t.stored)) for t in policy.tables.values()]
    said = [
        (
            t.name, str(t.max_rows_per_unit),
            [(c.name, str(c.sql_type), str(c.derived or c.computed)) for c in t.columns.values()],
            [str(k) for k in t.keys],
            [(str(c), _of_carried(policy.tables[c.table])) for c in t.carries],
        )
        for t in prepared_tables(policy)
    ]  # fmt: skip
    return hashlib.sha256(repr((policy.database, policy.data_version, others, said)).encode()).hexdigest()
