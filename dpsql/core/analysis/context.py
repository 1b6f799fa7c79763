"""What deriving facts may look at: the policy and public facts. Never data."""

from __future__ import annotations

from dataclasses import dataclass, field

from dpsql.core.analysis.facts import Facts
from dpsql.core.ir.nodes import Node
from dpsql.core.ir.public_facts import PublicFacts
from dpsql.core.ir.walk import Tagged
from dpsql.core.policy.policy import Policy
from dpsql.core.policy.tables import Table


@dataclass(frozen=True, slots=True)
class Context:
    """Policy, public facts, and the cap on the number of public keys.

    drafting: the tree is being rewritten, and its aggregates over private rows will be releases. The finished tree is
    derived without it, so that one that was forgotten is refused.
    """

    policy: Policy
    public: PublicFacts
    max_keys: int = 100_000
    drafting: bool = False

    def table(self, name: str) -> Table:
        """A table that `bind` has resolved."""
        table = self.policy.table(name)
        assert table is not None, name
        return table


@dataclass(frozen=True, slots=True)
class Derivation(Context):
    """One derivation: what it may look at, and what it has found, each node once. facts: of those derived so far."""

    facts: dict[Node, Tagged[Facts]] = field(default_factory=dict, compare=False, repr=False)

    @classmethod
    def begin(cls, ctx: Context, *, drafting: bool = False) -> Derivation:
        """One that has found nothing yet."""
        return cls(ctx.policy, ctx.public, ctx.max_keys, drafting)

    def fact(self, node: Node) -> Facts:
        """What was derived of this very node before."""
        return self.facts[node].fact
