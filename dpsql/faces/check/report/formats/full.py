"""Findings with source lines, carets and repairs, for people."""

from __future__ import annotations

from dpsql.diagnostics.render import render_text
from dpsql.faces.check.report.finding import Report


def render(report: Report, color: bool = False) -> str:
    """`color` adds ANSI colours."""
    return render_text([finding.diagnostic for finding in report.findings], color, spends=False)
