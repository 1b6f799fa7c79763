"""The policy and its data, opened together."""

from __future__ import annotations

from collections.abc import Mapping
from os import PathLike
from typing import TYPE_CHECKING

from dpsql.core.engine import Engine
from dpsql.core.policy.policy import Policy
from dpsql.diagnostics.errors import reject
from dpsql.engines.open import Options, open_engine
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
    given = policy if policy is not None else source
    if not isinstance(given, Policy | str | PathLike):
        raise reject("DP903", "a connection needs a policy", help=["dpsql.connect(connection, policy='policy.yaml')"])
    loaded = given if isinstance(given, Policy) else load_policy(given)
    tables, connection = by_table(loaded, frames or {}), None
    if not isinstance(source, Policy | str | PathLike):
        connection = source
    elif tables and loaded.database_path is not None:
        raise reject(
            "DP903", f"a frame is given for table `{next(iter(tables))}`, which lies in the policy's `database`",
            help=["leave the frame out, or ask the custodian to take `database` out of the policy"],
        )  # fmt: skip
    engine = open_engine(loaded, Options(connection, tables, threads, memory_limit, progress))
    try:
        return complete(loaded, engine.describe()), engine
    except BaseException:
        engine.close()
        raise
