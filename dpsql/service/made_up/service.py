"""A policy and what is made up of it, opened together: asked as the true data would be, for nothing.

*Claim.* No file and no server that the policy names is opened: not its data, not its ledger, not its prepared tables.
*Why.* The rows are made here, and the ledger is in memory; the policy that is handed on names neither. *When it would
be false.* If something opened a path of the policy's document. *Tested by* tests/service/made_up/test_service.py.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from dpsql.core.ir.periods import Closed
from dpsql.core.ir.types import INTEGER
from dpsql.core.ledger.closings import tables_that_grow
from dpsql.core.ledger.ledger import Caps, Entry, Failure, Receipt
from dpsql.core.ledger.memory import MemoryLedger
from dpsql.core.ledger.privacy_filter import Book
from dpsql.core.policy.catalogue import Catalogue, CatalogueColumn, CatalogueTable
from dpsql.core.policy.policy import IN_MEMORY, Policy
from dpsql.core.policy.tables import Column, Table, TableDomain
from dpsql.core.printing.computed import computed_columns
from dpsql.diagnostics.errors import CannotOpen
from dpsql.engines.synthetic import SyntheticEngine
from dpsql.planner.computed import understood
from dpsql.policy.issues import Issue
from dpsql.policy.resolve.from_catalogue import complete
from dpsql.service.made_up.made_up_rows import made_up_rows
from dpsql.service.service import Service


class FreeLedger(MemoryLedger):
    """Each charge is checked as if nothing had been spent before, and then costs nothing; answers stay named.

    *Claim.* What it lets pass is never counted for any data that somebody has. *Why.* It is a ledger of its own in
    memory, and a service that has it has made its rows itself. *When it would be false.* If a service over other rows
    were given it: nothing but this file makes one. *Tested by* tests/service/made_up/test_service.py.
    """

    def reserve(self, entry: Entry, caps: Caps) -> Receipt:
        """See `Ledger.reserve`. Raises BudgetExceeded for what no limit has room for even at first."""
        Book(self._book.accountant).check(entry, caps)
        return super().reserve(replace(entry, charges={}, received={}, regions={}, received_regions={}), Caps())

    def failures(self) -> Sequence[Failure]:
        """None counts: no row is anybody's."""
        return ()


FREE: Final = "free: the data is made up"


class MadeUpService(Service):
    """A service over made-up rows: the same plans, refusals, noise and ±; nobody is charged."""

    free = FREE

    def closed_periods(self) -> Mapping[str, Closed]:
        """As many periods as rows were made up of: nobody closes them."""
        return made_up_periods(self.policy)


def made_up_periods(policy: Policy) -> Mapping[str, Closed]:
    """What is closed where nobody closes anything."""
    return {table.name: Closed(_last_day(table)) for table in tables_that_grow(policy)}


_PERIODS: Final = 28
"""Of how many periods rows of a growing table are made up."""


def _last_day(table: Table) -> dt.date:
    assert table.grows is not None
    return table.grows.after(_PERIODS)


def made_up(policy: Policy, known: Catalogue | None = None) -> tuple[MadeUpService, Catalogue]:
    """A service over rows that are made up from the policy, and what they look like.

    known: names and types of the true data, where they are known; None: the policy's own, which must then say the type
    of each column. Raises CannotOpen: DP005 with each column that has none, and what the policy itself is refused for.
    """
    catalogue = known if known is not None else declared(policy)
    completed = replace(complete(policy, catalogue), name=policy.name, ledger=IN_MEMORY, ledger_head=None)
    completed = understood(replace(completed, database=None, prepared_at=None, tables=_nowhere(completed)))
    engine = SyntheticEngine()
    try:
        rows = made_up_rows(replace(completed, tables={n: _in_periods(t) for n, t in completed.tables.items()}))
        for name, table in completed.tables.items():
            columns = [c for c in table.columns.values() if c.computed is None]
            engine.create(name, [(c.name, (c.sql_type or INTEGER).name) for c in columns])
            engine.fill(name, [tuple(values[c.name] for c in columns) for values in rows[name]])
        engine.computed.update(computed_columns(completed, engine.dialect))
    except BaseException:
        engine.close()
        raise
    return MadeUpService(completed, engine, FreeLedger(completed.name, completed.privacy.accountant)), catalogue


def _in_periods(table: Table) -> Table:
    """With the days of its periods as bounds, where it grows."""
    if table.grows is None:
        return table
    day = replace(table.columns[table.grows.by], domain=None, bounds=(table.grows.first, _last_day(table)))
    return replace(table, columns={**table.columns, day.name: day})


def _nowhere(policy: Policy) -> dict[str, Table]:
    """Its tables, without the places that they are read from."""
    return {
        name: replace(table, source=None, stored=None, prepared=None, copied=None)
        for name, table in policy.tables.items()
    }


def declared(policy: Policy) -> Catalogue:
    """What the policy says of its data; of a public table without columns, those that others refer to.

    Raises CannotOpen DP005 with each column whose type it does not say.
    """
    issues = [
        Issue(
            ("tables", table.name, "columns", column.name),
            "has no type, and rows cannot be made up without one",
            help=(f"{column.name}: {{type: …}}", "or make them up beside the data, which has the type"),
            code="DP005",
        )
        for table in policy.tables.values()
        for column in table.columns.values()
        if column.sql_type is None and column.computed is None
    ]
    if issues:
        raise CannotOpen([issue.diagnostic(policy.places) for issue in issues])
    return Catalogue(tuple(_declared(table, policy) for table in policy.tables.values()))


def _declared(table: Table, policy: Policy) -> CatalogueTable:
    columns = [_column(c) for c in table.columns.values() if c.computed is None]
    return CatalogueTable(table.name, tuple(columns or _referred_to(table, policy)))


def _column(column: Column) -> CatalogueColumn:
    assert column.sql_type is not None
    return CatalogueColumn(column.name, column.sql_type.name, column.is_nullable)


def _referred_to(table: Table, policy: Policy) -> list[CatalogueColumn]:
    """Columns of a table that lists none, by what others say of them; a key that nobody refers to is a text."""
    found = {name: "VARCHAR" for key in table.keys for name in key.columns}
    for other in policy.tables.values():
        for key in other.foreign_keys:
            if key.table == table.name:
                found |= {r: _type(other.columns[c]) for c, r in zip(key.columns, key.references, strict=True)}
        for column in other.columns.values():
            if isinstance(column.domain, TableDomain) and column.domain.table == table.name:
                found[column.domain.column] = _type(column)
    return [CatalogueColumn(name, type_) for name, type_ in (found or {"name": "VARCHAR"}).items()]


def _type(column: Column) -> str:
    return "VARCHAR" if column.sql_type is None else column.sql_type.name
