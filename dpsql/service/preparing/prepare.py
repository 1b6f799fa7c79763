"""`dpsql prepare`: copy the tables that say `prepared`, with at most their limit of rows of each unit."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from os import PathLike
from pathlib import Path

from dpsql.core.policy.policy import Policy
from dpsql.core.policy.prepared import copied, owner_column, prepared_tables
from dpsql.core.policy.tables import Table
from dpsql.diagnostics.errors import reject
from dpsql.engines.open import Copies, Options, Writer, files_of, open_writer, place_of_copy, replacing
from dpsql.planner.computed import compute, understood
from dpsql.planner.rewrites.read_stored_integers import said_of
from dpsql.policy.load import load_policy
from dpsql.policy.resolve.from_catalogue import complete
from dpsql.service.preparing.copy_sql import copy_sql, staged, stored_forms
from dpsql.service.preparing.manifest import Manifest, TableCopy, declared, look_of, place_of


@dataclass(frozen=True, slots=True)
class Preparation:
    """What was prepared: exact numbers about private data, for the custodian alone.

    path: the file that was made. tables: table → the rows it has, those that were kept, and the units that have any.
    """

    path: Path
    tables: Mapping[str, TableCopy]


def prepare(
    policy: str | PathLike[str] | Policy,
    *,
    threads: int | None = None,
    memory_limit: str | None = None,
    progress: bool = False,
) -> Preparation:
    """Make the prepared tables of a policy anew, beside it. Queries read them from then on.

    Nothing is charged. Who has the data open goes on with what he has opened. What does not fit into memory is spilled.
    Raises CannotOpen: policy or data cannot be opened, or the file cannot be written; DP008: no table says `prepared`,
    or the data changed meanwhile. Raises EngineError.
    """
    loaded = understood(policy if isinstance(policy, Policy) else load_policy(policy))
    if not prepared_tables(loaded):
        raise reject(
            "DP008", "no table of the policy is to be prepared",
            help=["custodian: say  prepared: true  at every table of a unit"],
        )  # fmt: skip
    path = place_of(loaded)
    with replacing(path) as new:
        files = {file: look_of(file) for file in files_of(loaded)}
        options = Options(
            threads=threads, memory_limit=memory_limit, progress=progress, copies=Copies(new, writing=True)
        )
        writer = open_writer(loaded, options)
        try:
            known = understood(complete(loaded, writer.describe()))
            compute(known, writer)
            found = _copy_all(known, writer)
            made = Manifest(
                secrets.token_hex(16), declared(loaded), files, f"{writer.dialect.name} {writer.version}", found
            )
            writer.finish(made.text())
        finally:
            writer.close()
        if made.stale(loaded, files_of(loaded), made.engine):
            raise reject(
                "DP008", "the data changed while it was prepared", help=["prepare it when nobody writes to it"]
            )
    return Preparation(path, found)


def _copy_all(policy: Policy, writer: Writer) -> dict[str, TableCopy]:
    """Copy each table, after those through which its owners are found."""
    salt, done, found = secrets.randbits(62), set[str](), dict[str, TableCopy]()
    now = policy

    def where(name: str) -> str:
        return place_of_copy(name) if name in done else writer.table_sql(name)

    for name in (t.name for t in prepared_tables(policy)):
        table = policy.tables[name]
        sql = copy_sql(table, now, writer.dialect, where, salt)
        writer.write(f"CREATE TABLE {place_of_copy(name)} AS {sql}")
        found[name] = _counted(table, policy, writer)
        now = staged(now, table, copied(table, policy.tables))
        done.add(name)
    return found


def _counted(table: Table, policy: Policy, writer: Writer) -> TableCopy:
    owner = writer.dialect.identifier(owner_column(table, policy.tables).name)
    whole = writer.fetch(f"SELECT COUNT(*) FROM {writer.table_sql(table.name)}")
    kept = writer.fetch(f"SELECT COUNT(*), COUNT(DISTINCT {owner}) FROM {place_of_copy(table.name)}")
    integers = {name: said_of(form) for name, form in stored_forms(table).items()}
    return TableCopy(int(whole.columns[0][0]), int(kept.columns[0][0]), int(kept.columns[1][0]), integers)
