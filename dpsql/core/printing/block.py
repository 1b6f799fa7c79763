"""FROM and WHERE of one SELECT while it is being printed."""

from __future__ import annotations

from dpsql.core.printing.expressions import Names
from dpsql.core.value_classes import value


@value(frozen=True, slots=True)
class Block:
    """`FROM source WHERE where`, and how its columns are printed.

    simple: the source needs no parentheses in a join. lateral: it reads itself (UNNEST), so it cannot be joined as is.
    """

    source: str
    where: tuple[str, ...]
    names: Names
    simple: bool = True
    lateral: bool = False

    def clause(self) -> str:
        """FROM … WHERE …"""
        where = f"\nWHERE {' AND '.join(self.where)}" if self.where else ""
        return f"FROM {self.source}{where}"

    def filtered(self, *conditions: str) -> Block:
        """The same rows under further conditions."""
        return Block(self.source, (*self.where, *conditions), self.names, self.simple, self.lateral)
