"""A policy whose database or ledger is a server: its address, where tables are, and what is refused of them by name."""

from __future__ import annotations

import re
from typing import Final

from dpsql.core.policy.positions import Loc
from dpsql.core.policy.server import ServerError, Stored, kind_of_server, names_server, parse_server, parse_stored
from dpsql.core.policy.source import SourceCall, SourceError, parse_source
from dpsql.policy.file.file_format import TableFile, TableUnitFile
from dpsql.policy.issues import Issue
from dpsql.policy.resolve.names import Scope

_ABSOLUTE: Final = re.compile(r"/|[A-Za-z][A-Za-z0-9+.-]*:/")


def check_server(scope: Scope) -> bool:
    """Notes what is wrong with the server's address and with tables that it cannot hold. False: the address is none."""
    address = scope.file.database
    if not names_server(address):
        return True
    for name, table in scope.file.tables.items():
        _check_table(scope, ("tables", name), table, kind_of_server(address) == "spark")
    try:
        parse_server(address or "")
    except ServerError as error:
        scope.issues.found.append(Issue(("database",), f"{error}", help=(error.help,), secret=True))
        return False
    return True


def check_ledger(scope: Scope) -> None:
    """Notes what is wrong with the address of a ledger on a server."""
    address = scope.file.ledger
    if address is not None and kind_of_server(address) == "spark":
        scope.issues.add(
            ("ledger",), "is no ledger: Spark has no transactions", "ledger: postgresql://payer@host/ledger  or a file"
        )
    elif address is not None and names_server(address):
        try:
            parse_server(address)
        except ServerError as error:
            scope.issues.found.append(Issue(("ledger",), f"{error}", help=(error.help,), secret=True))


def stored_in_server(scope: Scope, name: str, spec: TableFile) -> Stored | None:
    """Where the policy says that a table stands; None if it is called so, or is no server's."""
    kind = kind_of_server(scope.file.database)
    if spec.source is None or kind is None or _names_files(spec.source, kind):
        return None
    try:
        return parse_stored(spec.source, kind)
    except ServerError as error:
        scope.issues.add(("tables", name, "source"), str(error), error.help)
        return None


def files_on_server(scope: Scope, name: str, spec: TableFile) -> SourceCall | None:
    """The files of a cluster that a table is; None if it is none of Spark's, or stands in the catalogue."""
    kind, loc = kind_of_server(scope.file.database), ("tables", name, "source")
    if spec.source is None or kind is None or not _names_files(spec.source, kind):
        return None
    try:
        call = parse_source(spec.source, remote=True)
    except SourceError as error:
        scope.issues.add(loc, str(error), "source: read_parquet('s3a://bucket/folder')")
        return None
    relative = [path for path in call.paths if not _ABSOLUTE.match(path)]
    if call.reader != "read_parquet":
        scope.issues.add(loc, f"`{call.reader}` is not read on Spark", "store the rows as Parquet")
    elif call.options:
        scope.issues.add(loc, f"the option `{call.options[0][0]}` is DuckDB's", f"leave  {call.options[0][0]}  out")
    elif relative:
        scope.issues.add(loc, f"'{relative[0]}' is no path of the cluster", "write all of it:  s3a://…, hdfs://…, /…")
    else:
        return call
    return None


def _names_files(source: str, kind: str) -> bool:
    return kind == "spark" and re.match(r"\s*read_\w+\s*\(", source) is not None


def _check_table(scope: Scope, loc: Loc, spec: TableFile, spark: bool) -> None:
    if spec.prepared:
        scope.issues.add(
            (*loc, "prepared"), "is for data that DuckDB reads: a server's tables are read where they are",
            "leave  prepared  out: queries bound contributions as they run",
        )  # fmt: skip
    if spec.unit is not None and spec.unit.as_ is not None:
        scope.issues.add((*loc, "unit", "as"), "is not computed on a server", _made_id(spec.unit))


def _made_id(unit: TableUnitFile) -> str:
    """A column in place of `as`: of a UUID its text in small letters, for a cluster has no UUIDs."""
    column, type_ = '"' + (unit.column or "id").replace('"', '""') + '"', (unit.as_ or "").lower()
    made, type_ = (f"lower({column})", "varchar") if type_ == "uuid" else (f"CAST({column} AS {type_})", type_)
    return f"list  own_id: {{from: '{made}', type: {type_}}}  among its columns, and say  column: own_id"
