"""The imperative shell: opens data, policy and ledger, measures public facts, plans, and runs."""

from dpsql.session.check import check
from dpsql.session.connection import Connection, connect
from dpsql.session.query import Query

__all__ = ["Connection", "Query", "check", "connect"]
