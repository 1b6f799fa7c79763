"""A JSON list of records, one line each; a clean report is `[]`. Files that could not be read have a record too."""

from __future__ import annotations

import json

from dpsql.diagnostics.layout import escaped
from dpsql.diagnostics.render import as_record
from dpsql.faces.check.report.finding import Report
from dpsql.faces.check.report.formats.texts import whole


def render(report: Report) -> str:
    """The records of diagnostics/render.py."""
    found = [as_record(f.diagnostic, f.statement) for f in report.findings]
    found += [as_record(diagnostic) for diagnostic in report.unreadable]
    return "[\n" + ",\n".join(f"  {escaped(json.dumps(whole(record)))}" for record in found) + "\n]" if found else "[]"
