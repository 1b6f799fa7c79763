"""`dpsql rule`: the page of a diagnostic code."""

from __future__ import annotations

import io
import shutil
import sys

from dpsql.diagnostics.pages_loader import load_page
from dpsql.faces.cli.exits import wants_color


def run(code: str) -> int:
    """Raises Rejected DP903 if there is no such code."""
    page = load_page(code)
    print(for_terminal(page, shutil.get_terminal_size().columns) if wants_color(sys.stdout) else page, end="")
    return 0


def for_terminal(page: str, columns: int) -> str:
    """A page with its headings, tables and code in colour, no wider than people like to read."""
    from rich.console import Console
    from rich.markdown import Markdown

    console = Console(file=io.StringIO(), width=min(columns, 100), force_terminal=True, color_system="standard")
    with console.capture() as shown:
        console.print(Markdown(page))
    return shown.get()
