"""The policy and its data, opened together."""

from __future__ import annotations

from collections.abc import Mapping
from os import PathLike
from typing import TYPE_CHECKING

from dpsql.core.engine import Engine
from dpsql.core.policy.policy import Policy
from dpsql.diagnostics.errors import reject
from dpsql.policy.load import load_policy
from dpsql.policy.resolve.from_catalogue import complete
from dpsql.service.frames import by_table

if TYPE_CHECKING:
    import duckdb


def open_data(
    source: str | PathLike[str] | Policy | duckdb.DuckDBPyConnection,
    policy: str | PathLike[str] | Policy | None,
    frames: Mapping[str, object] | None,
    threads: int | None,
    memory_limit: str | None,
    progress: bool = False,
) -> tuple[Policy, Engine]:
    """The policy, completed with the data's types, and its data, opened as `dpsql.connect` says. The caller closes it.

    Raises CannotOpen, Rejected DP903.
    """
    from dpsql.engines.duckdb.engine import DuckDBEngine

    given = policy if policy is not None else source
    if not isinstance(given, Policy | str | PathLike):
        raise reject("DP903", "a connection needs a policy", help=["dpsql.connect(connection, policy='policy.yaml')"])
    loaded = given if isinstance(given, Policy) else load_policy(given)
    engine: DuckDBEngine
    tables = by_table(loaded, frames or {})
    if isinstance(source, Policy | str | PathLike):
        if tables and loaded.database_path is not None:
            raise reject(
                "DP903", f"a frame is given for table `{next(iter(tables))}`, which lies in the policy's `database`",
                help=["leave the frame out, or ask the custodian to take `database` out of the policy"],
            )  # fmt: skip
        sources = {t.name: t.source for t in loaded.tables.values() if t.source is not None}
        engine = DuckDBEngine.open(
            loaded.database_path, sources, loaded.directory, frames=tables,
            threads=threads, memory_limit=memory_limit, progress=progress,
        )  # fmt: skip
        tables = {}
    elif threads is not None or memory_limit is not None:
        raise reject(
            "DP903", "threads and memory_limit are for data that dpsql opens",
            help=["on a connection of your own:  SET threads = 4;  SET memory_limit = '8GB'"],
        )  # fmt: skip
    else:
        engine = DuckDBEngine.wrap(source, progress=progress)
    try:
        for name, frame in tables.items():
            engine.register(name, frame.value)
        return complete(loaded, engine.describe()), engine
    except BaseException:
        engine.close()
        raise
