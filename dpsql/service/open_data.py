"""The policy and its data, opened together."""

from __future__ import annotations

from collections.abc import Mapping
from os import PathLike
from typing import TYPE_CHECKING

from dpsql.core.engine import Engine, cannot_open
from dpsql.core.policy.policy import Policy
from dpsql.diagnostics.errors import reject
from dpsql.engines.open import GivenFrame, OpenOptions, open_engine
from dpsql.planner.computed import compute, understood
from dpsql.policy.issues import did_you_mean, listed
from dpsql.policy.load import load_policy
from dpsql.policy.resolve.from_catalogue import complete
from dpsql.policy.tools.decisions import decided
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


def by_table(policy: Policy, frames: Mapping[str, object]) -> dict[str, GivenFrame]:
    """The frames by the names of their tables as the policy writes them.

    Raises CannotOpen DP004 for a name that is no table of the policy, DP903 for a table whose rows the policy itself
    says where to find: nobody but the custodian changes that.
    """
    given: object = frames
    if not isinstance(given, Mapping):
        raise reject("DP903", "frames are given by the name of their table", help=["frames={'visits': visits}"])
    found: dict[str, GivenFrame] = {}
    for name, frame in frames.items():
        key: object = name
        table = policy.table(key) if isinstance(key, str) else None
        if table is None:
            hint = did_you_mean(str(name), policy.tables)
            raise cannot_open(
                f"a frame is named `{name}`, but the policy has no such table{hint}",
                f"the policy declares {listed(policy.tables)}",
                code="DP004",
            )
        if table.source is not None:
            raise reject(
                "DP903", f"a frame is given for table `{table.name}`, whose `source` is in the policy",
                help=["leave the frame out, or ask the custodian to take `source` out of the policy"],
            )  # fmt: skip
        if table.name in found:
            raise reject("DP903", f"two frames are given for table `{table.name}`", help=["leave one of them out"])
        own = [c for c in table.columns.values() if not c.made_of]
        found[table.name] = GivenFrame(frame, {c.name: c.sql_type for c in own if c.sql_type is not None})
    return found
