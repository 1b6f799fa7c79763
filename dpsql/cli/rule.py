"""`dpsql rule`: the page of a diagnostic code."""

from __future__ import annotations

import sys

from dpsql.cli.exits import wants_color
from dpsql.diagnostics.pages_loader import load_page


def run(code: str) -> int:
    """Raises Rejected DP903 if there is no such code."""
    page = load_page(code)
    if wants_color(sys.stdout):
        from rich.console import Console
        from rich.markdown import Markdown

        Console(file=sys.stdout, width=min(Console().width, 100)).print(Markdown(page))
    else:
        print(page, end="")
    return 0
