"""`dpsql budget --plot`: spent and left as bars, then spending over time against the limits, and over the days of the
rows where these have budgets of their own, as one HTML file without scripts.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from dpsql.core.ledger.ledger import Receipt
from dpsql.core.policy.policy import Policy
from dpsql.diagnostics.errors import reject
from dpsql.faces.report import charts
from dpsql.faces.report.markup import document, section, text
from dpsql.faces.report.spending import Panel, panels
from dpsql.faces.report.style import style
from dpsql.service.accounts.spending_story import SpendingStory


def check(file: str) -> None:
    """Raise Rejected DP903 before anything is read if a plot cannot be made in this form."""
    if Path(file).suffix.lower() not in (".html", ".htm"):
        raise reject("DP903", f"unknown form of plot: {file}", help=["name a file that ends in .html"])


def write(file: str, policy: Policy, entries: Sequence[Receipt], analyst: str | None) -> None:
    """Draw the ledger's entries into a file. Raises Rejected DP903 if it cannot be written."""
    drawn = panels(policy, SpendingStory.of(policy.unit_names, entries), analyst)
    try:
        Path(file).write_text(as_html(policy.name, drawn), encoding="utf-8")
    except OSError as error:
        reason = (error.strerror or "unknown reason").lower()
        raise reject("DP903", f"the plot cannot be written: {reason}", help=["name another file"]) from None


def as_html(name: str, drawn: Sequence[Panel]) -> str:
    """One page: for each panel its bars, and the same over time where there was an entry."""
    parts = [f"<main><header><p class=eyebrow>Budget</p><h1>{text(name)}</h1></header>"]
    for number, panel in enumerate(drawn):
        over_time = f"<h3>Over time</h3>{charts.over_time(panel)}" if panel.lines[0].drawn else ""
        by_period = charts.by_period(panel)
        periods = f"<h3>By {panel.every} of the rows</h3>{by_period}" if by_period else ""
        parts.append(section(f"p{number}", text(panel.title), charts.bars(panel), over_time, periods))
    return document(f"Budget of {name}", style(), "".join([*parts, "</main>"]))
