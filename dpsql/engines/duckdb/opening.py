"""A policy's data in DuckDB: opened from what the policy names, or on a connection of the caller's."""

from __future__ import annotations

from dpsql.core.policy.policy import Policy
from dpsql.diagnostics.errors import reject
from dpsql.engines.duckdb.engine import DuckDBEngine
from dpsql.engines.duckdb.read_as import Made
from dpsql.engines.open import OpenOptions


def open_policy(policy: Policy, options: OpenOptions) -> DuckDBEngine:
    """The engine of a policy. Raises CannotOpen (DP006), Rejected (DP903)."""
    made = {
        t.name: tuple(
            Made(c.name, c.derived, c.sql_type)
            for c in t.columns.values()
            if c.derived is not None and c.sql_type is not None
        )
        for t in policy.tables.values()
    }
    made = {table: columns for table, columns in made.items() if columns}
    threads, memory_limit, progress = options.threads, options.memory_limit, options.progress
    if options.connection is None:
        sources = {t.name: t.source for t in policy.tables.values() if t.source is not None}
        read = set() if options.copies is None else set(options.copies.tables)
        stored = any(name not in read and t.source is None for name, t in policy.tables.items())
        opened = DuckDBEngine.open(
            policy.database_path if stored else None, sources, policy.directory, frames=options.frames,
            threads=threads, memory_limit=memory_limit, progress=progress, made=made, copies=options.copies,
        )  # fmt: skip
        opened.told = options.notes
        return opened
    if threads is not None or memory_limit is not None:
        raise reject(
            "DP903", "threads and memory_limit are for data that dpsql opens",
            help=["on a connection of your own:  SET threads = 4;  SET memory_limit = '8GB'"],
        )  # fmt: skip
    engine = DuckDBEngine.wrap(
        options.connection,  # type: ignore[arg-type]  # which looks itself
        progress=progress, made=made, optimizers=options.optimizers,
    )  # fmt: skip
    engine.told = options.notes
    try:
        for name, frame in options.frames.items():
            engine.register(name, frame.value)
    except BaseException:
        engine.close()
        raise
    return engine
