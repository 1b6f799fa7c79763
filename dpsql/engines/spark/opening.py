"""A policy's data on a cluster: opened over Spark Connect at the address that the policy names."""

from __future__ import annotations

from dpsql.core.policy.policy import Policy
from dpsql.diagnostics.errors import reject
from dpsql.engines.open import Options
from dpsql.engines.spark.engine import SparkEngine
from dpsql.engines.spark.relations import Wanted


def open_policy(policy: Policy, options: Options) -> SparkEngine:
    """The engine of a policy. Raises CannotOpen (DP006), Rejected (DP903)."""
    assert policy.server is not None
    given = "a connection" if options.connection is not None else "frames" if options.frames else ""
    if given:
        raise reject(
            "DP903", f"{given} cannot be given: the policy's tables are on the cluster {policy.server}",
            help=["leave it out: dpsql asks the cluster in a session of its own"],
        )  # fmt: skip
    if options.threads is not None or options.memory_limit is not None:
        raise reject(
            "DP903", "threads and memory_limit are for data that dpsql reads itself",
            help=["at the cluster:  spark.executor.cores, spark.executor.memory"],
        )  # fmt: skip
    own = {t.name: tuple(c.name for c in t.columns.values() if c.computed is None) for t in policy.tables.values()}
    wanted = [Wanted(t.name, t.stored, t.source, own[t.name]) for t in policy.tables.values()]
    engine = SparkEngine.open(policy.server, wanted, progress=options.progress)
    engine.told = options.notes
    return engine
