"""What exact integers rest on beside the plan: of the policy, what declares the rows that are read, as hashes.

*Claim.* Two policies with equal hashes of the data, of each table that is scanned and of each column that is read give
an equal plan the same rows, and noise that was enough for one is enough for the other. *Why.* Rows come from the
database and a table's source, by the types and `from:` of its columns; whose they are, and how far they may be
believed, from the unit with its path, the limits and the promised keys. All of a declaration is hashed but what is
named here: domains, bounds and what a search goes by stand in the plan as keys, clips and grids; foreign keys bear
nothing; what else a copy holds beside the columns is a column of its own. A field that is added is hashed until
somebody argues why not. *When it would be false.* If a rule or a statement read what is left out, and the plan did not
say so; if what a copy is were not its identity. *Tested by* tests/answers/stored/test_policy_changes.py,
tests/deep/answers/stored/test_equal_addresses.py.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from dpsql.core.ir.expressions import columns_of
from dpsql.core.ir.fingerprint import fingerprint
from dpsql.core.policy.policy import Policy
from dpsql.core.policy.tables import Column, Table
from dpsql.core.policy.units import IdUnit, PathUnit


def of_data(policy: Policy) -> str:
    """Which data it is, and how losses are counted. The name stands for data that the policy does not name."""
    known = policy.worked_out.get(of_data)
    if known is None:
        said = (policy.name, policy.database, policy.data_version, policy.privacy)
        known = policy.worked_out[of_data] = fingerprint(said)
    return str(known)


def of_table(policy: Policy, name: str) -> str:
    """A table without its columns but the id, or those that lead to it, with the tables on the way."""
    known = policy.worked_out.get((of_table, name))
    if known is None:
        known = policy.worked_out[of_table, name] = fingerprint(*_table(policy, _declared(policy, name)))
    return str(known)


def of_column(policy: Policy, table: str, name: str) -> str:
    """A column, with those that it is computed of."""
    known = policy.worked_out.get((of_column, table, name))
    if known is None:
        own = _declared(policy, table)
        declared = own.column(name)
        said = ("undeclared", name) if declared is None else _column(policy, own, declared)
        known = policy.worked_out[of_column, table, name] = fingerprint(said)
    return str(known)


def _declared(policy: Policy, name: str) -> Table:
    found = policy.table(name)
    assert found is not None, name
    return found


def _table(policy: Policy, table: Table) -> tuple[object, ...]:
    copied = None if table.copied is None else replace(table.copied, units={})
    grows = None if table.grows is None else replace(table.grows, keep=None)  # the scan says what is read
    own = replace(table, columns={}, foreign_keys=(), prepared=None, copied=copied, grows=grows)
    match table.protection:
        case IdUnit(column=id_):
            return own, of_column(policy, table.name, id_)
        case PathUnit():
            return own, *_path(policy, table.name, table.protection)
    return (own,)


def _path(policy: Policy, at: str, unit: PathUnit) -> Iterator[str]:
    for columns, to, references in unit.path:
        yield from (of_column(policy, at, name) for name in columns)
        yield of_table(policy, to)
        yield from (of_column(policy, to, name) for name in references)
        at = to
    yield of_column(policy, at, unit.id_column)


def _column(policy: Policy, table: Table, column: Column) -> tuple[object, ...]:
    """As it is understood, however it is written: a type that is known has one spelling, and NULL its default."""
    own = replace(
        column, name=column.name.casefold(), type=None if column.sql_type is not None else column.type, nullable=None,
        domain=None, bounds=None, search_bounds=False, resolution=None, computed=None,
    )  # fmt: skip
    if column.computed is None:
        return (own,)
    places, expr = tuple(table.columns.values()), column.computed.expr
    # Which columns a text reads is not known before their types are: then it may be all that can be read so.
    others = [c for c in places if c.computed is None] if expr is None else [places[at] for at in columns_of(expr)]
    read = sorted(of_column(policy, table.name, other.name) for other in others)
    return own, column.computed.text, *read
