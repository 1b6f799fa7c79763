"""A policy whose database or ledger is a server: its address, where tables are, and what is refused of them by name."""

from __future__ import annotations

from dpsql.core.policy.positions import Loc
from dpsql.core.policy.server import ServerError, Stored, names_server, parse_server, parse_stored
from dpsql.policy.file.file_format import TableFile
from dpsql.policy.issues import Issue
from dpsql.policy.resolve.names import Scope


def check_server(scope: Scope) -> bool:
    """Notes what is wrong with the server's address and with tables that it cannot hold. False: the address is none."""
    address = scope.file.database
    if not names_server(address):
        return True
    for name, table in scope.file.tables.items():
        _check_table(scope, ("tables", name), table)
    try:
        parse_server(address or "")
    except ServerError as error:
        scope.issues.found.append(Issue(("database",), f"{error}", help=(error.help,), secret=True))
        return False
    return True


def check_ledger(scope: Scope) -> None:
    """Notes what is wrong with the address of a ledger on a server."""
    address = scope.file.ledger
    if address is not None and names_server(address):
        try:
            parse_server(address)
        except ServerError as error:
            scope.issues.found.append(Issue(("ledger",), f"{error}", help=(error.help,), secret=True))


def stored_in_server(scope: Scope, name: str, spec: TableFile) -> Stored | None:
    """Where the policy says that a table stands; None if it is called so, or is no server's."""
    if spec.source is None or not names_server(scope.file.database):
        return None
    try:
        return parse_stored(spec.source)
    except ServerError as error:
        scope.issues.add(("tables", name, "source"), str(error), error.help)
        return None


def _check_table(scope: Scope, loc: Loc, spec: TableFile) -> None:
    if spec.prepared:
        scope.issues.add(
            (*loc, "prepared"), "is for data that DuckDB reads: a server's tables are read where they are",
            "leave  prepared  out: queries bound contributions as they run",
        )  # fmt: skip
    if spec.unit is not None and spec.unit.as_ is not None:
        view = "make a view that has the column, and declare the view"
        scope.issues.add((*loc, "unit", "as"), "is not computed on a server", view)
