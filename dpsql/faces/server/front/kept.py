"""What one connection keeps by name: prepared statements and portals, of both a bounded number."""

from __future__ import annotations

from typing import Final

from dpsql.core.ir.types import VARCHAR
from dpsql.faces.server.front.commands import commands as c
from dpsql.faces.server.front.error_fields import ProtocolFault
from dpsql.faces.server.front.portals import Columns, Portal, PreparedStatement
from dpsql.faces.server.packed_rows import held_by

MOST_PORTALS: Final = 50
MOST_PREPARED: Final = 1_000
MOST_PREPARED_TEXT: Final = 4_000_000
"""Characters of all prepared statements."""
MOST_BOUND: Final = 1_000_000
"""Bytes of the values of all portals."""
MOST_HELD: Final = 4_000_000
"""Bytes of the answers that all portals hold; who holds more than that asks for no further one."""


class KeptStatements:
    """Statements and portals by name. Every method that is given a name raises Fault where PostgreSQL has an error."""

    def __init__(self) -> None:
        self._prepared: dict[str, PreparedStatement] = {}
        self._portals: dict[str, Portal] = {}

    def statement(self, name: str) -> PreparedStatement:
        """A prepared statement."""
        found = self._prepared.get(name)
        if found is None:
            raise ProtocolFault("26000", f'prepared statement "{name[:100]}" does not exist')
        return found

    def portal(self, name: str) -> Portal:
        """A portal, which may be a cursor."""
        found = self._portals.get(name)
        if found is None:
            raise ProtocolFault("34000", f'cursor "{name[:100]}" does not exist')
        return found

    def require_new_statement(self, name: str) -> None:
        """The unnamed one may be replaced."""
        if name and name in self._prepared:
            raise ProtocolFault("42P05", f'prepared statement "{name[:100]}" already exists')

    def require_new_portal(self, name: str) -> None:
        """The unnamed one may be replaced."""
        if name and name in self._portals:
            raise ProtocolFault("42P03", f'cursor "{name[:100]}" already exists')

    def keep_statement(self, name: str, prepared: PreparedStatement) -> None:
        """Under this name from now on."""
        others = [p for other, p in self._prepared.items() if other != name]
        if len(others) >= MOST_PREPARED or sum(len(p.sql) for p in [*others, prepared]) > MOST_PREPARED_TEXT:
            raise ProtocolFault("53400", "a connection keeps no more prepared statements than it has", "DEALLOCATE ALL")
        self._prepared[name] = prepared

    def keep_portal(self, name: str, portal: Portal) -> None:
        """Under this name from now on."""
        if name not in self._portals and len(self._portals) >= MOST_PORTALS:
            raise ProtocolFault("53400", f"a connection keeps at most {MOST_PORTALS} cursors", "CLOSE ALL")
        if sum(p.bound for other, p in self._portals.items() if other != name) + portal.bound > MOST_BOUND:
            raise ProtocolFault("53400", f"the values of all cursors have at most {MOST_BOUND:,} bytes", "CLOSE ALL")
        self._portals[name] = portal

    def require_room(self) -> None:
        """For one answer more. Raises Fault before anything is asked."""
        answers = [p.answer for p in self._portals.values() if p.answer is not None]
        if sum(held_by(a.rows) for a in answers) > MOST_HELD:
            raise ProtocolFault("53400", f"the cursors of a connection hold at most {MOST_HELD:,} bytes", "CLOSE ALL")

    def forget_statement(self, name: str | None) -> None:
        """DEALLOCATE; None for all of them."""
        if name is None:
            self._prepared.clear()
        else:
            self.statement(name)
            del self._prepared[name]

    def forget_portal(self, name: str | None) -> None:
        """CLOSE; None for all of them."""
        if name is None:
            self._portals.clear()
        else:
            self.portal(name)
            del self._portals[name]

    def drop(self, kind: str, name: str) -> None:
        """The message Close: of what is not there nothing is said. kind: "S" or "P"."""
        if kind == "S":
            self._prepared.pop(name, None)
        else:
            self._portals.pop(name, None)

    def end_of_transaction(self) -> None:
        """Portals end, except for cursors WITH HOLD."""
        self._portals = {name: portal for name, portal in self._portals.items() if portal.hold}

    # --- their columns ---------------------------------------------------------------------------------------------

    def columns(self, prepared: PreparedStatement) -> Columns | None:
        """The columns of what a statement gives; None if it gives no rows."""
        match prepared.command:
            case c.QueryCommand():
                return None if prepared.described is None else prepared.described.shown
            case c.Show(name="all"):
                return (("name", VARCHAR), ("setting", VARCHAR))
            case c.Show(name=name):
                return ((name, VARCHAR),)
            case c.Fetch(cursor=name, move=False):
                return self.columns_of_portal(self.portal(name))
            case c.ExecutePrepared(name=name):
                return self.columns(self.statement(name))
            case c.Nothing(column=column) if column:
                return ((column, VARCHAR),)
        return None

    def columns_of_portal(self, portal: Portal) -> Columns | None:
        """The same of a portal; of a cursor, those of its query."""
        if portal.answer is not None:
            return portal.answer.columns
        if portal.cursor or isinstance(portal.statement.command, c.QueryCommand):
            return None if portal.described is None else portal.described.shown
        return self.columns(portal.statement)
