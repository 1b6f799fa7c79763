"""Meta-commands that change how answers look, what they cost, and variables."""

from __future__ import annotations

import re
from typing import Final

from dpsql.answers.results.cell_texts import cell
from dpsql.diagnostics.errors import reject
from dpsql.diagnostics.layout import printable
from dpsql.faces.cli.options import Format
from dpsql.faces.cli.shell.looks import OPTIONS, changed, option
from dpsql.faces.cli.shell.output.wrapping import wrapped
from dpsql.faces.cli.shell.state import Shell
from dpsql.faces.cli.table_layout import plain_table

_NAME: Final = re.compile(r"\w+")
_OFF: Final = ("off", "default")


def _set(shell: Shell, name: str, value: str | None) -> None:
    shell.looks = changed(shell.looks, name, value)
    _tell(shell, f"{name}: {option(name).shown(shell.looks)}")


def _tell(shell: Shell, text: str) -> None:
    """What changed, to somebody at a prompt."""
    if shell.prompting and not shell.quiet:
        shell.output.tell(printable(text))


def _first(arguments: list[str]) -> str | None:
    return arguments[0] if arguments else None


def pset(shell: Shell, arguments: list[str]) -> None:
    """Show all options, show or switch one, or set it."""
    match arguments:
        case []:
            rows = [[cell(o.name), cell(o.shown(shell.looks)), cell(o.values)] for o in OPTIONS.values()]
            header = ("option", "now", "values")
            columns = shell.output.columns
            shell.output.tell(plain_table(header, rows if columns is None else wrapped(header, rows, columns)))
        case [name] if not option(name).switches:
            shell.output.tell(printable(f"{option(name).name}: {option(name).shown(shell.looks)}"))
        case [name, *value]:
            _set(shell, option(name).name, _first(value))


def expanded(shell: Shell, arguments: list[str]) -> None:
    """One line for each value."""
    _set(shell, "expanded", _first(arguments))


def tuples_only(shell: Shell, arguments: list[str]) -> None:
    """Rows only."""
    _set(shell, "tuples_only", _first(arguments))


def intervals(shell: Shell, arguments: list[str]) -> None:
    """How intervals are shown; without an argument: how they are."""
    if arguments:
        _set(shell, "intervals", arguments[0])
    else:
        shell.output.tell(f"intervals: {shell.looks.intervals}")


def aligned(shell: Shell, arguments: list[str]) -> None:
    """Aligned or not."""
    _set(shell, "format", "unaligned" if shell.looks.format is Format.TABLE else "table")


def html(shell: Shell, arguments: list[str]) -> None:
    """HTML or tables."""
    _set(shell, "format", "table" if shell.looks.format is Format.HTML else "html")


def epsilon(shell: Shell, arguments: list[str]) -> None:
    """Set or show ε."""
    _amount(shell, "epsilon", arguments)


def delta(shell: Shell, arguments: list[str]) -> None:
    """Set or show δ."""
    _amount(shell, "delta", arguments)


def _amount(shell: Shell, name: str, arguments: list[str]) -> None:
    if arguments:
        amount = None if arguments[0].lower() in _OFF else arguments[0]
        shell.set_amount(name, amount)
        _tell(shell, shell.confirmation(name, amount))
    else:
        shell.output.tell(printable(f"{name}: {shell.amount(name)}"))


def fresh(shell: Shell, arguments: list[str]) -> None:
    """New noise even where an answer is stored."""
    wanted = arguments[0].lower() if arguments else ("off" if shell.fresh else "on")
    if wanted not in ("on", "off"):
        raise reject("DP903", f"\\fresh cannot be {arguments[0]!r}", help=["write  \\fresh on  or  \\fresh off"])
    shell.fresh = wanted == "on"
    _tell(shell, f"fresh: {wanted}")


def assigned(shell: Shell, arguments: list[str]) -> None:
    """Set a variable to its values, put together; or list them all."""
    if not arguments:
        for name, value in sorted(shell.variables.items()):
            shell.output.tell(printable(f"{name} = '{value}'"))
        return
    assign(shell, arguments[0], "".join(arguments[1:]))


def assign(shell: Shell, name: str, value: str) -> None:
    """Give a variable its value. Raises Rejected DP903 for a name that is none."""
    if not _NAME.fullmatch(name):
        raise reject(
            "DP903", f"a variable cannot be called {name!r}", help=["a name has letters, digits and underscores"]
        )
    if name == "ON_ERROR_STOP" and value.lower() not in ("on", "off", "true", "false", "1", "0", ""):
        raise reject("DP903", f"ON_ERROR_STOP cannot be {value!r}", help=["it is on or off"])
    shell.variables[name] = value


def unset(shell: Shell, arguments: list[str]) -> None:
    """Remove a variable."""
    if not arguments:
        raise reject("DP903", "\\unset needs the name of a variable", help=["\\set  lists them"])
    shell.variables.pop(arguments[0], None)
