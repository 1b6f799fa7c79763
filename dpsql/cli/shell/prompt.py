"""The words before the cursor: the policy's name with what is left of the budget."""

from __future__ import annotations

from dpsql.cli.shell.accounts import tightest
from dpsql.cli.shell.state import Shell
from dpsql.diagnostics.errors import Error
from dpsql.diagnostics.layout import one_line


def prompt_text(shell: Shell) -> str:
    """`clinic[ε 2.35/3.00]=> `: what is left and the limit; `clinic=> ` without a limit; `?` if the ledger fails."""
    name = one_line(shell.connection.policy.name)
    try:
        left = tightest(shell)
    except Error:
        return f"{name}[?]=> "
    return f"{name}=> " if left is None else f"{name}[{left}]=> "


def continuation_text(shell: Shell, width: int = 0) -> str:
    """`clinic-> ` before the further lines of a statement, as wide as the prompt."""
    return f"{one_line(shell.connection.policy.name)}-> ".rjust(width)
