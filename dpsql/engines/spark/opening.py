"""A policy's data on a cluster: opened over Spark Connect at the address that the policy names."""

from __future__ import annotations

from dpsql.core.policy.policy import Policy
from dpsql.core.policy.source import SourceCall
from dpsql.core.policy.tables import Table
from dpsql.diagnostics.errors import reject
from dpsql.engines.open import Copies, OpenOptions
from dpsql.engines.spark.engine import SparkEngine
from dpsql.engines.spark.folders import folder_of
from dpsql.engines.spark.relations import Copy, Wanted


def open_policy(policy: Policy, options: OpenOptions) -> SparkEngine:
    """The engine of a policy. Raises CannotOpen (DP006), Rejected (DP903)."""
    assert policy.server is not None
    given = "a connection" if options.connection is not None else "frames" if options.frames else ""
    if given:
        raise reject(
            "DP903", f"{given} cannot be given: the policy's tables are on the cluster {policy.server}",
            help=["leave it out: dpsql asks the cluster in a session of its own"],
        )  # fmt: skip
    refuse_limits(options)
    engine = SparkEngine.open(policy.server, wanted_of(policy, options.copies), progress=options.progress)
    engine.told = options.notes
    return engine


def refuse_limits(options: OpenOptions) -> None:
    """Raises Rejected (DP903) for limits that are not ours to set."""
    if options.threads is not None or options.memory_limit is not None:
        raise reject(
            "DP903", "threads and memory_limit are for data that dpsql reads itself",
            help=["at the cluster:  spark.executor.cores, spark.executor.memory"],
        )  # fmt: skip


def wanted_of(policy: Policy, copies: Copies | None = None) -> list[Wanted]:
    """The tables of a policy, those of `copies` from there."""
    return [_wanted(table, copies) for table in policy.tables.values()]


def _wanted(table: Table, copies: Copies | None) -> Wanted:
    if copies is None or table.name not in copies.tables:
        own = tuple(c.name for c in table.columns.values() if c.computed is None)
        return Wanted(table.name, table.stored, table.source, own)
    source = SourceCall("read_parquet", (folder_of(copies.place, table.name),))
    ends = tuple((column, low, high) for column, (low, high) in copies.ends.get(table.name, {}).items())
    copy = Copy(copies.looks[table.name], ends)
    return Wanted(table.name, source=source, columns=tuple(table.columns), copy=copy)
