"""What an analyst may ask, as text: the tables of a policy, or the columns of one."""

from __future__ import annotations

from dpsql.core.policy.policy import Policy
from dpsql.diagnostics.errors import reject
from dpsql.policy.issues import did_you_mean
from dpsql.policy.tools.show import table_text, whose_rows


class Description(str):
    """A text that a prompt of Python shows as it is."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


def described(policy: Policy, name: str | None) -> Description:
    """The tables, or one of them by any of its names. Raises Rejected DP102."""
    if name is None:
        return Description("\n".join(f"{t.name}: {whose_rows(t)}" for t in policy.tables.values()))
    found = policy.called(*name.split("."))
    if found is None:
        raise reject("DP102", f"the policy lists no table {name!r}{did_you_mean(name, policy.tables)}")
    return Description(table_text(found))
