"""Meta-commands that psql has and that are refused here, each with its reason."""

from __future__ import annotations

from dpsql.diagnostics.errors import reject
from dpsql.faces.cli.shell.state import Shell


def timing(shell: Shell, arguments: list[str]) -> None:
    """Off it may be, on it may not."""
    if arguments and arguments[0].lower() in ("off", "false", "0"):
        shell.output.tell("Timing is off.")
        return
    raise reject(
        "DP906", "\\timing stays off: how long a query takes depends on private rows, and no ε covers that",
        help=["custodian: measure outside of dpsql,  time dpsql query …,  and do not pass the figures on"],
        notes=["whoever has a clock of his own can time queries all the same; see docs/threat-model.md"],
    )  # fmt: skip


def watch(shell: Shell, arguments: list[str]) -> None:
    """Repetition."""
    raise reject(
        "DP906", "\\watch is refused: asked again, a query gets its stored answer, or spends the budget every time",
        help=["run it again yourself with  \\g:  where the answer is stored, that costs nothing"],
        notes=["the custodian raises `data_version` when there are new data; stored answers are not used after that"],
    )  # fmt: skip


def copy(shell: Shell, arguments: list[str]) -> None:
    """Rows."""
    raise reject(
        "DP906", "\\copy is refused: rows of private tables do not leave the database, and none are written into it",
        help=["an answer goes to a file with  \\o FILE  and  \\pset format csv"],
        notes=["answers are noisy and were paid for, so they may be copied; rows are neither"],
    )  # fmt: skip


def program(shell: Shell, arguments: list[str]) -> None:
    """Programs."""
    raise reject(
        "DP906", "\\! is refused: the shell starts no programs for what is typed at its prompt",
        help=["use another terminal, or press Ctrl-Z and come back with  fg"],
        notes=["a custodian may let analysts in with nothing but this shell; a program could read the data itself"],
    )  # fmt: skip
