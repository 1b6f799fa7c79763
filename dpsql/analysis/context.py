"""What deriving facts may look at: the policy and public facts. Never data."""

from __future__ import annotations

from dataclasses import dataclass, field

from dpsql.analysis.facts import Facts
from dpsql.diagnostics.diagnostic import Span
from dpsql.diagnostics.errors import Rejected, reject
from dpsql.plan.public import PublicFacts
from dpsql.plan.walk import Tagged
from dpsql.policy.models import Policy
from dpsql.policy.tables import Table


@dataclass(frozen=True, slots=True)
class Context:
    """Policy, public facts, and the cap on the number of public keys; `derived` remembers facts in one compilation."""

    policy: Policy
    public: PublicFacts
    max_keys: int = 100_000
    derived: dict[int, Tagged[Facts]] = field(default_factory=dict, compare=False, repr=False)

    def table(self, name: str) -> Table:
        """A table that `bind` has resolved."""
        table = self.policy.table(name)
        assert table is not None, name
        return table

    def unsupported_path(self, table: str, span: Span | None) -> Rejected:
        """Refusal of a table that reaches its unit through foreign keys."""
        return reject(
            "DP220", f"{table} reaches its privacy unit through a path, which is not supported yet", span=span,
            help=["custodian: add the unit's id as a column of the table and declare  unit: {column: …}"],
        )  # fmt: skip
