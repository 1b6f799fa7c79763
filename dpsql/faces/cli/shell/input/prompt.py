"""The words before the cursor: the policy's name with what is left of the budget."""

from __future__ import annotations

import re
from typing import Final

from dpsql.diagnostics.errors import Error
from dpsql.diagnostics.layout import one_line
from dpsql.faces.cli.shell.commands.accounts import tightest
from dpsql.faces.cli.shell.state import Shell

_PIECE: Final = re.compile(
    r"""--[^\n]*|\b[eE]'(?:[^'\\]|\\.|'')*+'|'(?:[^']|'')*+'|"(?:[^"]|"")*+"|/\*|[();]|"""
    r"""(?<!\w)\$(?P<tag>(?:[^\W\d]\w*)?)\$.*?\$(?P=tag)\$|\b[eE]'|['"]|(?<!\w)\$(?:[^\W\d]\w*)?\$""",
    re.DOTALL,
)
"""What is whole first, then what only begins."""
_COMMENT_MARK: Final = re.compile(r"/\*|\*/")


def prompt_text(shell: Shell) -> str:
    """`clinic[ε 2.35/3.00]=> `: what is left and the limit; `clinic=> ` without a limit; `?` if the ledger fails."""
    name = one_line(shell.connection.policy.name)
    try:
        left = tightest(shell)
    except Error:
        return f"{name}[?]=> "
    return f"{name}=> " if left is None else f"{name}[{left}]=> "


def continuation_text(shell: Shell, typed: str, width: int = 0) -> str:
    """`clinic-> ` before the further lines of a statement, as wide as the prompt, with the sign of what is open.

    typed: the input up to that line.
    """
    return f"{one_line(shell.connection.policy.name)}{open_sign(typed)}> ".rjust(width)


def open_sign(text: str) -> str:
    """As in psql: `'` in a text, `$` in one of dollars, `"` in a name, `*` in a comment, `(` in parentheses; else `-`.

    For the eye only: where an input ends is decided by the tokens of its dialect.
    """
    depth, at = 0, 0
    while piece := _PIECE.search(text, at):
        at = piece.end()
        match piece[0]:
            case "/*":
                end = _comment_end(text, at)
                if end is None:
                    return "*"
                at = end
            case "(":
                depth += 1
            case ")":
                depth = max(0, depth - 1)
            case ";":
                depth = 0
            case "'" | '"':
                return piece[0]
            case "e'" | "E'":
                return "'"
            case other if other[0] == "$" and piece["tag"] is None:
                return "$"
    return "(" if depth else "-"


def _comment_end(text: str, at: int) -> int | None:
    """Behind the comment that is open at `at`; comments may stand in comments."""
    depth = 1
    for mark in _COMMENT_MARK.finditer(text, at):
        depth += 1 if mark[0] == "/*" else -1
        if not depth:
            return mark.end()
    return None
