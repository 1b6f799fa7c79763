"""`dpsql prepare`: copy the tables that say `prepared`, with at most their limit of rows of each unit."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from os import PathLike

from dpsql.core.engine import Engine
from dpsql.core.policy.carried import carried
from dpsql.core.policy.policy import Policy
from dpsql.core.policy.prepared import copied, limit_of, owner_column, prepared_tables
from dpsql.core.policy.tables import RowLimit, Table
from dpsql.diagnostics.errors import reject
from dpsql.engines.open import OpenOptions, Writer, copies_of
from dpsql.planner.computed import compute, understood
from dpsql.planner.rewrites.bounds.read_stored_integers import said_of
from dpsql.policy.load import load_policy
from dpsql.policy.resolve.from_catalogue import complete
from dpsql.service.preparing.copy_sql import copy_sql, staged, stored_forms
from dpsql.service.preparing.manifest import Manifest, TableCopy, declared


@dataclass(frozen=True, slots=True)
class Preparation:
    """What was prepared: exact numbers about private data, for the custodian alone.

    place: the file that was made, or the folder. tables: table → the rows it has, those that were kept, and the units
    that have any.
    """

    place: str
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
    identity, options = (
        secrets.token_hex(16),
        OpenOptions(threads=threads, memory_limit=memory_limit, progress=progress),
    )
    with copies_of(loaded) as store:
        looks = store.looks()
        with store.writing(identity, options) as writer:
            known = understood(complete(loaded, writer.describe()))
            compute(known, writer)
            found = _copy_all(known, writer)
            made = Manifest(identity, declared(loaded), looks, store.version, found)
            if made.stale(loaded, store.looks(), store.version):
                raise reject(
                    "DP008", "the data changed while it was prepared", help=["prepare it when nobody writes to it"]
                )
            writer.finish(made.text())
    return Preparation(store.place(identity), found)


def _copy_all(policy: Policy, writer: Writer) -> dict[str, TableCopy]:
    """Copy each table, after those through which its owners are found."""
    salt, done, found = secrets.randbits(62), set[str](), dict[str, TableCopy]()
    now = policy

    def where(name: str) -> str:
        return writer.copied(name) if name in done else writer.table_sql(name)

    for name in (t.name for t in prepared_tables(policy)):
        table = policy.tables[name]
        limit, owner = limit_of(table), owner_column(table, policy.tables).name
        assert limit is not None
        _each_has_one_partner(table, now, where, writer)
        select = copy_sql(table, now, writer.dialect, where, salt)
        look = writer.copy(name, select, owner, together=not limit.assumed)
        found[name] = replace(_counted(table, limit, owner, writer), look=look)
        now = staged(now, table, copied(table, policy.tables))
        done.add(name)
    return found


def _each_has_one_partner(table: Table, now: Policy, where: Callable[[str], str], engine: Engine) -> None:
    """Raises Rejected DP008: a carried table has two rows of one key."""
    for each in carried(table, now.tables, owner_column(table, now.tables)):
        keys = ", ".join(map(engine.dialect.identifier, each.keys))
        some = " AND ".join(f"{engine.dialect.identifier(k)} IS NOT NULL" for k in each.keys)
        found = engine.fetch(
            f"SELECT COUNT(*) AS n FROM (SELECT {keys} FROM {where(each.table)} AS t0 WHERE {some} "
            f"GROUP BY {keys} HAVING COUNT(*) > 1) AS g"
        )
        if found.columns[0][0]:
            raise reject(
                "DP008", f"`{table.name}` carries `{each.table}`, and two rows of `{each.table}` have one key",
                help=[f"custodian: make ({', '.join(each.keys)}) unique there, or leave it out of  carries"],
            )  # fmt: skip


def _counted(table: Table, limit: RowLimit, owner: str, writer: Writer) -> TableCopy:
    """How much was kept. What queries rest on is looked at, too, though the plan has made it so."""
    whole = writer.fetch(f"SELECT COUNT(*) AS n FROM {writer.table_sql(table.name)} AS t0")
    kept, units, most = counted_in(writer, writer.copied(table.name), owner)
    if not limit.assumed and most > limit.rows:
        raise reject(
            "DP008", f"the copy of table `{table.name}` has {most} rows of one unit, and its limit is {limit.rows}",
            help=["the copy is not taken; please report this, it is a bug of dpsql"],
        )  # fmt: skip
    integers = {name: said_of(form) for name, form in stored_forms(table).items()}
    return TableCopy(int(whole.columns[0][0]), kept, units, most, integers)


def counted_in(engine: Engine, copy: str, owner: str) -> tuple[int, int, int]:
    """What a copy has: rows, units, and the most rows of one. copy: its relation. owner: the column of its owners."""
    owners = f"SELECT COUNT(*) AS n FROM {copy} AS t0 GROUP BY {engine.dialect.identifier(owner)}"
    found = engine.fetch(
        f"SELECT COALESCE(SUM(n), 0) AS k, COUNT(*) AS u, COALESCE(MAX(n), 0) AS m FROM ({owners}) AS g"
    )
    (kept,), (units,), (most,) = found.columns
    return int(kept), int(units), int(most)
