"""PEP 249 over a session: connections, cursors, type objects; and the SQLAlchemy dialect `dpsql://`."""

from dpsql.dbapi.connection import Connection, connect
from dpsql.dbapi.cursor import Cursor

__all__ = ["Connection", "Cursor", "connect"]
