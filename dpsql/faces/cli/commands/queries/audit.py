"""`dpsql audit`: a query's claims attacked on made-up neighbouring databases. 0 not refuted, 1 refuted."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import assert_never

from dpsql.diagnostics.errors import Error, reject
from dpsql.diagnostics.layout import printable
from dpsql.faces.audit.audited_query import audit_query
from dpsql.faces.audit.report import as_json, as_text
from dpsql.faces.audit.run_audit import Audit
from dpsql.faces.cli import exits
from dpsql.faces.cli.inputs import one_query, pointing_into
from dpsql.faces.cli.json_text import document
from dpsql.faces.cli.options import ExplainFormat
from dpsql.planner.settings.query_settings import QuerySettings
from dpsql.service.privacy_settings import settled

LEAST_RUNS, MOST_RUNS = 100, 10_000_000


def run(
    policy: str,
    sql: str | None,
    file: str | None,
    epsilon: str | None,
    delta: str | None,
    runs: int,
    format: ExplainFormat,
    dialect: str,
) -> int:
    """Raises dpsql.Error."""
    if not LEAST_RUNS <= runs <= MOST_RUNS:
        raise reject("DP903", f"--runs is from {LEAST_RUNS:,} to {MOST_RUNS:,}, not {runs:,}")
    settings = replace(settled({"epsilon": epsilon, "delta": delta}, QuerySettings()), dialect=dialect)
    source = one_query(sql, file)
    found: Audit
    try:
        found = audit_query(policy, source, settings, runs=runs)
    except Error as error:
        raise pointing_into(error, source) from None
    match format:
        case ExplainFormat.TEXT:
            print(printable(as_text(found)))
        case ExplainFormat.JSON:
            print(document(as_json(found)))
        case _:
            assert_never(format)
    return exits.AUDIT_REFUTED if found.refuted else exits.OK


def kit(folder: str) -> int:
    """Write an audit kit into a new folder. Raises Rejected DP903."""
    from dpsql.faces.audit.kit.write import write

    print(f"wrote {write(Path(folder))}: python {Path(folder) / 'find.py'}", file=sys.stderr)
    return exits.OK
