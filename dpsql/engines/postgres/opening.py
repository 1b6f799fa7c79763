"""A policy's data in PostgreSQL: opened from the server that the policy names."""

from __future__ import annotations

from dpsql.core.policy.policy import Policy
from dpsql.diagnostics.errors import reject
from dpsql.engines.open import OpenOptions
from dpsql.engines.postgres.engine import PostgresEngine
from dpsql.engines.postgres.relations import Wanted


def open_policy(policy: Policy, options: OpenOptions) -> PostgresEngine:
    """The engine of a policy. Raises CannotOpen (DP006), Rejected (DP903)."""
    assert policy.server is not None
    given = "a connection" if options.connection is not None else "frames" if options.frames else ""
    if given:
        raise reject(
            "DP903", f"{given} cannot be given: the policy's tables are in the server {policy.server}",
            help=["leave it out: dpsql reads the server over a connection of its own, in transactions of its own"],
        )  # fmt: skip
    if options.threads is not None or options.memory_limit is not None:
        raise reject(
            "DP903", "threads and memory_limit are for data that dpsql reads itself",
            help=["on the server:  ALTER ROLE reader SET work_mem = '256MB'"],
        )  # fmt: skip
    own = {t.name: tuple(c.name for c in t.columns.values() if c.computed is None) for t in policy.tables.values()}
    wanted = [Wanted(t.name, t.stored, own[t.name]) for t in policy.tables.values()]
    engine = PostgresEngine.open(policy.server, wanted, progress=options.progress)
    engine.told = options.notes
    return engine
