"""A policy whose database or ledger is a server: its address, where tables are, and what is refused of them by name."""

from __future__ import annotations

import re
from typing import Final

from dpsql.core.policy.positions import Loc
from dpsql.core.policy.server_address import (
    ServerError,
    Stored,
    kind_of_server,
    names_server,
    parse_server,
    parse_stored,
)
from dpsql.core.policy.source import SourceCall, SourceError, parse_source
from dpsql.policy.file.file_format import TableFile, TableUnitFile
from dpsql.policy.issues import Issue
from dpsql.policy.resolve.policy_names import PolicyScope

_ABSOLUTE: Final = re.compile(r"/|[A-Za-z][A-Za-z0-9+.-]*:/")
_PREPARED_AT: Final = "prepared_at: s3a://bucket/prepared"
_NOT_PLAIN: Final = re.compile(r"[\\*?\[\]{}%#]|/\.\.?(?:/|$)")
_SECRET: Final = re.compile(r"//[^/]*:[^/]*@")
_NO_CLUSTER: Final = ("is for tables on a Spark cluster: other copies stand beside the policy", "leave it out")


def check_server(scope: PolicyScope) -> bool:
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


def check_ledger(scope: PolicyScope) -> None:
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


def stored_in_server(scope: PolicyScope, name: str, spec: TableFile) -> Stored | None:
    """Where the policy says that a table stands; None if it is called so, or is no server's."""
    kind = kind_of_server(scope.file.database)
    if spec.source is None or kind is None or _names_files(spec.source, kind):
        return None
    try:
        return parse_stored(spec.source, kind)
    except ServerError as error:
        scope.issues.add(("tables", name, "source"), str(error), error.help)
        return None


def files_on_server(scope: PolicyScope, name: str, spec: TableFile) -> SourceCall | None:
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


def check_prepared_at(scope: PolicyScope) -> None:
    """Notes a folder of prepared tables where there is no cluster that could write it, or that is no place for them."""
    place = scope.file.prepared_at
    if place is None:
        return
    wrong = _wrong_folder(place, scope) if kind_of_server(scope.file.database) == "spark" else _NO_CLUSTER
    if wrong is not None:
        secret = _SECRET.search(place) is not None
        scope.issues.found.append(Issue(("prepared_at",), wrong[0], help=(wrong[1],), secret=secret))


def _wrong_folder(place: str, scope: PolicyScope) -> tuple[str, str] | None:
    """What is wrong with it, and a repair; None: nothing."""
    read = [path for t in scope.file.tables.values() for path in re.findall(r"'((?:[^']|'')*)'", t.source or "")]
    if _SECRET.search(place):
        return "holds a secret, which stands in no policy", f"give it to the cluster, and write  {_PREPARED_AT}"
    if not _ABSOLUTE.match(place):
        return "is no folder of the cluster", f"write all of it:  {_PREPARED_AT}, hdfs://…, /…"
    if not place.isprintable() or _NOT_PLAIN.search(place):
        return "is no plain path: it has a sign of patterns, or `..`", _PREPARED_AT
    if any(f"{place.rstrip('/')}/".startswith(f"{path.rstrip('/')}/") for path in read):
        return "lies in the files of a table: its copies would be read as rows", f"elsewhere:  {_PREPARED_AT}"
    return None


def _check_table(scope: PolicyScope, loc: Loc, spec: TableFile, spark: bool) -> None:
    if spec.prepared and not spark:
        scope.issues.add(
            (*loc, "prepared"), "is for data that DuckDB or Spark reads: here tables are read where they are",
            "leave  prepared  out: queries bound contributions as they run",
        )  # fmt: skip
    elif spec.prepared and scope.file.prepared_at is None:
        scope.issues.add(
            (*loc, "prepared"), "needs a folder that the cluster can write: there the copies will be",
            f"{_PREPARED_AT}  beside  database:  in the policy",
        )  # fmt: skip
    if spec.unit is not None and spec.unit.as_ is not None:
        scope.issues.add((*loc, "unit", "as"), "is not computed on a server", _made_id(spec.unit))


def _made_id(unit: TableUnitFile) -> str:
    """A column in place of `as`: of a UUID its text in small letters, for a cluster has no UUIDs."""
    column, type_ = '"' + (unit.column or "id").replace('"', '""') + '"', (unit.as_ or "").lower()
    made, type_ = (f"lower({column})", "varchar") if type_ == "uuid" else (f"CAST({column} AS {type_})", type_)
    return f"list  own_id: {{from: '{made}', type: {type_}}}  among its columns, and say  column: own_id"
