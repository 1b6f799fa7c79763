"""What deriving facts may look at: the policy and public facts. Never data."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

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
    derived, drafted: the facts of one compilation; those that `drafting` may have made other than they are apart.
    sliced: number of a node, drafting → the node, and what its rows are made of (`disjoint_slices.py`).
    """

    policy: Policy
    public: PublicFacts
    max_keys: int = 100_000
    drafting: bool = False
    derived: dict[int, Tagged[Facts]] = field(default_factory=dict, compare=False, repr=False)
    drafted: dict[int, Tagged[Facts]] = field(default_factory=dict, compare=False, repr=False)
    sliced: dict[tuple[int, bool], tuple[Node, Any]] = field(default_factory=dict, compare=False, repr=False)

    def known(self, node: Node) -> Tagged[Facts] | None:
        """What was derived of this very node in this compilation; a draft only while drafting."""
        found = self.derived.get(id(node))
        return self.drafted.get(id(node)) if found is None and self.drafting else found

    def table(self, name: str) -> Table:
        """A table that `bind` has resolved."""
        table = self.policy.table(name)
        assert table is not None, name
        return table
