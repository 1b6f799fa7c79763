"""Which table of the policy each given frame holds the rows of."""

from __future__ import annotations

from collections.abc import Mapping

from dpsql.core.engine import cannot_open
from dpsql.core.policy.policy import Policy
from dpsql.diagnostics.errors import reject
from dpsql.engines.open import GivenFrame
from dpsql.policy.issues import did_you_mean, listed


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
