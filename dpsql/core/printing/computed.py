"""Computed columns as SQL: a table is read with them beside its own, so that nothing else need know what they are.

*Claim.* The column's values are those that the analysis believes of its expression, NULL where there is none, and no
row makes it fail. *Why.* The expression is printed as any of a query is, over the same columns. *When it would be
false.* If another expression were printed than is analysed: both are the policy's one `Computed.expr`. *Tested by*
tests/service/test_computed.py, tests/deep/policy/test_computed_neighbours.py.
"""

from __future__ import annotations

from dpsql.core.analysis.context import Context
from dpsql.core.analysis.declared_columns import values_read
from dpsql.core.ir.public_facts import PublicFacts
from dpsql.core.policy.policy import Policy
from dpsql.core.policy.tables import Column, Table
from dpsql.core.printing.dialect import Dialect
from dpsql.core.printing.expressions import Names, spell


def computed_columns(policy: Policy, dialect: Dialect) -> dict[str, str]:
    """Table, in lower case → what is selected of it: its own columns, and those that are computed of them.

    Only of tables that have such, and that are not read from a copy, which holds them. Raises Rejected DP105: the
    dialect cannot compute one.
    """
    return {
        name.casefold(): ", ".join(_item(c, table, policy, dialect) for c in table.all_columns)
        for name, table in policy.tables.items()
        if table.copied is None and any(c.computed is not None for c in table.all_columns)
    }


def with_columns(relation: str, selected: str | None) -> str:
    """A relation in FROM, with what is selected of it; as it is, if nothing is."""
    return relation if selected is None else f"(SELECT {selected} FROM {relation} AS own)"


def computed_sql(column: Column, table: Table, policy: Policy, dialect: Dialect) -> str:
    """A computed column in a row of `own`. Raises Rejected DP105."""
    assert column.computed is not None
    expr = column.computed.expr
    assert expr is not None, column.name
    env = values_read(expr, table, Context(policy, PublicFacts()))
    columns = tuple(table.columns.values())
    sql = {place: dialect.column(f"own.{dialect.identifier(columns[place].name)}", env[place].type) for place in env}
    return spell(expr, Names(sql, env, dialect))[0]


def _item(column: Column, table: Table, policy: Policy, dialect: Dialect) -> str:
    name = dialect.identifier(column.name)
    return f"own.{name}" if column.computed is None else f"{computed_sql(column, table, policy, dialect)} AS {name}"
