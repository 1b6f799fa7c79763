"""Where a CSV file does not fit its `source:`: for the custodian, who may look there. No value of the file is told."""

from __future__ import annotations

import contextlib
from typing import NamedTuple

import duckdb

from dpsql.core.policy.source import SourceCall, Struct
from dpsql.engines.duckdb.locked.connections import start


class CsvFault(NamedTuple):
    """file, line (1-based): where. column: the one at fault. type: which it should have; None: `what` is wrong."""

    file: str
    line: int
    column: str | None
    type: str | None
    what: str


_FIRST = (
    "SELECT s.file_path, e.line, e.column_name, e.error_type FROM reject_errors AS e JOIN reject_scans AS s "
    "USING (scan_id, file_id) ORDER BY e.file_id, e.line LIMIT 1"
)


def first_fault(call: SourceCall) -> CsvFault | None:
    """The first line that a call of `read_csv` over absolute paths cannot read; None if none is known."""
    if call.reader != "read_csv":
        return None
    columns = dict(call.options).get("columns")
    types = dict(columns.items) if isinstance(columns, Struct) else {}
    with start() as connection, contextlib.suppress(duckdb.Error):
        rejecting = call.with_options((("store_rejects", True), ("rejects_limit", 1)))
        connection.execute(f"SELECT COUNT(COLUMNS(*)) FROM {rejecting.sql()}").fetchall()
        found = connection.execute(_FIRST).fetchone()
        if found is not None:
            file, line, column, what = found
            cast = str(what) == "CAST"
            return CsvFault(str(file), int(line), column, str(types.get(column)) if cast else None, str(what).lower())
    return None
