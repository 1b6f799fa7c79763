"""The policy and its data, opened together."""

from __future__ import annotations

from collections.abc import Mapping
from os import PathLike
from typing import TYPE_CHECKING

from dpsql.core.engine import Engine
from dpsql.core.policy.policy import Policy
from dpsql.diagnostics.errors import reject
from dpsql.engines.open import OpenOptions, open_engine
from dpsql.planner.computed import compute, understood
from dpsql.policy.load import load_policy
from dpsql.policy.resolve.from_catalogue import complete
from dpsql.policy.tools.decisions import decided
from dpsql.service.frame_tables import by_table
from dpsql.service.preparing.find import FoundCopies, find

if TYPE_CHECKING:
    import duckdb


def open_data(
    source: str | PathLike[str] | Policy | duckdb.DuckDBPyConnection,
    policy: str | PathLike[str] | Policy | None,
    frames: Mapping[str, object] | None,
    threads: int | None,
    memory_limit: str | None,
    progress: bool = False,
    *,
    prepared: bool = True,
    optimizers: str | None = None,
    drafted: bool = False,
) -> tuple[Policy, Engine]:
    """The policy, completed with the data's types, and its data, opened as `dpsql.connect` says. The caller closes it.

    prepared: whether prepared tables are read, of which the policy then tells; else the data as it is.
    optimizers: "ours" if the user of a connection agrees to them. drafted: for a custodian, who looks at data under a
    policy that is a draft, too; nothing is answered under one.
    Raises CannotOpen, Rejected DP903.
    """
    if optimizers not in (None, "ours"):
        raise reject("DP903", f"optimizers={optimizers!r} is not known", help=["optimizers='ours', or leave it out"])
    named = policy if policy is not None else source
    if not isinstance(named, Policy | str | PathLike):
        raise reject("DP903", "a connection needs a policy", help=["dpsql.connect(connection, policy='policy.yaml')"])
    loaded = understood(named if isinstance(named, Policy) else load_policy(named))
    if not drafted:
        decided(loaded)
    tables, connection = by_table(loaded, frames or {}), None
    if not isinstance(source, Policy | str | PathLike):
        connection = source
    elif tables and loaded.database_path is not None:
        raise reject(
            "DP903", f"a frame is given for table `{next(iter(tables))}`, which lies in the policy's `database`",
            help=["leave the frame out, or ask the custodian to take `database` out of the policy"],
        )  # fmt: skip
    given = "a connection" if connection is not None else "a frame" if tables else ""
    found = find(loaded, given) if prepared else FoundCopies()
    options = OpenOptions(connection, tables, threads, memory_limit, progress, found.copies, found.notes, optimizers)
    engine = open_engine(found.described(loaded), options)
    try:
        described = found.described(understood(complete(loaded, engine.describe())))
        compute(described, engine)
        return described, engine
    except BaseException:
        engine.close()
        raise
