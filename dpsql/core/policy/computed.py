"""`from:` of any expression: a column that is computed of others of its table, by our own functions.

*Claim.* It is a column like any other: a total function of one row, so that rows of neighbouring databases that are
equal have equal values in it, and what the policy declares of its values is enforced, or promised, as of any column.
*Why.* The expression is bound like one of a query, refused where it reads more than a row of the table, and printed by
us where the table is read (core/printing/computed.py); the custodian's text never reaches an engine. *When it would be
false.* If it read other rows, the clock, or chance; if a value made it fail. *Tested by*
tests/frontend/test_computed.py, tests/deep/policy/test_computed_neighbours.py.
"""

from __future__ import annotations

from dataclasses import dataclass

from dpsql.core.ir.expressions import Expr


@dataclass(frozen=True, slots=True)
class Computed:
    """text: as the policy writes it. expr: the same, understood: a column's number in it is that column's place in the
    table; None until all types are known."""

    text: str
    expr: Expr | None = None

    def __str__(self) -> str:
        return self.text
