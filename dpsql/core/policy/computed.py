"""`from:` of any expression: a column that is computed of others of its table, by our own functions.

*Claim.* It is a column like any other: a total function of one row, so that rows of neighbouring databases that are
equal have equal values in it, and what the policy declares of its values is enforced, or promised, as of any column.
*Why.* An expression of ours (core/ir/expressions.py) reads columns of one row, and its functions are total and read
neither clock nor chance. It is printed by us where the table is read (core/printing/computed.py); the custodian's text
never reaches an engine. So neighbours of the data are neighbours of what is read, also where an id, a key or a hop is
computed. *When it would be false.* If a function read other rows, or failed. *Tested by*
tests/deep/policy/test_computed_neighbours.py, tests/functions/test_function_contract.py.
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
