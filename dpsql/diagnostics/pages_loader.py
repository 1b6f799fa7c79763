"""The page of a code: what `dpsql rule CODE` prints and what the documentation shows."""

from __future__ import annotations

import difflib
from importlib import resources

from dpsql.diagnostics.codes import CODES, Code
from dpsql.diagnostics.errors import reject


def find_code(text: str) -> Code:
    """The line of the table for a code as a user writes it (`DP201`, `dp201`, `201`).

    Raises: Rejected (DP903) if there is no such code.
    """
    wanted = text.strip().upper()
    if wanted.isascii() and wanted.isdigit():
        wanted = f"DP{wanted:0>3}"
    found = CODES.get(wanted)
    if found is None:
        near = difflib.get_close_matches(wanted, CODES, n=3)
        hints = [f"did you mean {', '.join(near)}?"] if near else []
        raise reject("DP903", f"there is no diagnostic code {text.strip()!r}", help=[*hints, "codes look like DP201"])
    return found


def load_page(code: str) -> str:
    """The Markdown page of a code.

    Raises: Rejected (DP903) if there is no such code.
    """
    return (resources.files("dpsql.diagnostics") / "pages" / find_code(code).page).read_text(encoding="utf-8")
