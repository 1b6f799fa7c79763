"""A JSON list of records, one line each; a clean report is `[]`."""

from __future__ import annotations

import json

from dpsql.checking.finding import Report
from dpsql.diagnostics.render import as_record


def render(report: Report) -> str:
    """The records of diagnostics/render.py."""
    records = [json.dumps(as_record(f.diagnostic, f.statement), ensure_ascii=False) for f in report.findings]
    return "[\n" + ",\n".join(f"  {record}" for record in records) + "\n]" if records else "[]"
