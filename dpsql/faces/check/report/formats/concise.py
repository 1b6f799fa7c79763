"""One line a finding: `path:line:column: CODE message`."""

from __future__ import annotations

from dpsql.diagnostics.layout import inert
from dpsql.diagnostics.render import render_concise
from dpsql.faces.check.report.finding import Report
from dpsql.faces.check.report.formats.texts import no_command


def render(report: Report) -> str:
    """The lines in order; empty for a clean report."""
    lines = render_concise([finding.diagnostic for finding in report.findings]).split("\n")
    return inert("\n".join(map(no_command, lines)))
