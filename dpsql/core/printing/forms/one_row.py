"""One row of an id (F8): grouped by the id alone, its rows become one; by the id and keys, one for each key.

*Claim.* Of private rows that are grouped by the bare column of the id, each id has one row at most. *Why.* GROUP BY
gives each value of a column one row, and that value is written as it is, but for a DOUBLE, of which both zeros are
made one: no two groups hold one id. *When it would be false.* A key that is computed of the id, or printed in another
form in the list than in GROUP BY; an id with two forms that the engine tells apart.
*Proved by* Freq.groups_once.
*Tested by*
tests/core/analysis/test_aggregate.py, tests/core/printing/test_waist.py,
tests/deep/core/analysis/test_operators.py, tests/engines/test_dialect_contract.py. On every engine:

    SELECT t1.id AS c1, SUM(…) AS c2 FROM t AS t1 WHERE t1.id IS NOT NULL GROUP BY t1.id

The WHERE is of the release above, which drops rows without an id.
"""

from __future__ import annotations

from dpsql.core.ir.expressions import Column, Expr
from dpsql.core.ir.types import Kind, SqlType
from dpsql.core.printing.expressions import Names, spell
from dpsql.core.printing.waist import text


def key_of_group(expr: Expr, column: Column, names: Names, private: bool) -> str:
    """A key, as it is listed and grouped by."""
    sql, value = text(expr, names) if private else spell(expr, names)
    if value.is_constant:
        sql = names.dialect.cast(sql, column.type)  # a bare number in GROUP BY and ORDER BY names a column of the list
    return one_zero(sql, column.type, names) if private else sql


def one_zero(sql: str, type_: SqlType, names: Names) -> str:
    """Zero has one sign: which of two equal values stands for both would depend on the order of rows."""
    return names.dialect.positive_zero(sql, type_) if type_.kind is Kind.DOUBLE else sql
