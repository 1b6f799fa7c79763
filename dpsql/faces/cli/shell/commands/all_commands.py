"""The meta-commands: one table, from which they are called, `\\?` is printed and the documentation is made."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Final

from dpsql.diagnostics.diagnostic import Source, Span
from dpsql.diagnostics.errors import Error, Rejected, reject
from dpsql.faces.cli.shell.commands import query_commands as asking
from dpsql.faces.cli.shell.commands import refused_commands as refused
from dpsql.faces.cli.shell.commands import set_commands as setting
from dpsql.faces.cli.shell.commands import show_commands as looking
from dpsql.faces.cli.shell.commands import summary_commands as summed
from dpsql.faces.cli.shell.input.items import Meta
from dpsql.faces.cli.shell.input.meta_words import words
from dpsql.faces.cli.shell.output.wrapping import wrapped_lines
from dpsql.faces.cli.shell.state import Shell

_MANY: Final = 1_000
"""Arguments of a command that takes any number of them."""


@dataclass(frozen=True, slots=True)
class Command:
    """One meta-command.

    names: with their backslash, the usual one first. arguments: in words. most: of how many at the most.
    run: takes them. raw: it is given the rest of the line as it is, as one argument.
    """

    names: tuple[str, ...]
    arguments: str
    help: str
    run: Callable[[Shell, list[str]], None]
    most: int = 1
    raw: bool = False

    @property
    def usage(self) -> str:
        """How it is written."""
        return f"{self.names[0]} {self.arguments}".rstrip()


# fmt: off
GROUPS: Final[Mapping[str, tuple[Command, ...]]] = {
    "General": (
        Command(("\\?",), "[all]", "The meta-commands that are used most; all of them.", lambda s, a: show_help(s, a)),
        Command(("\\h", "\\help"), "[NAME]", "Help on a function, a clause or a code.", looking.help_on, _MANY),
        Command(("\\q", "\\quit", "\\exit"), "", "Leave the shell.", asking.leave, 0),
        Command(("\\conninfo",), "", "Policy, account, data and ledger of this shell.", looking.conninfo, 0),
    ),
    "Tables and policy": (
        Command(("\\d",), "[TABLE]", "List the tables, or show those like pat*: columns, keys.", looking.describe),
        Command(("\\d+",), "[TABLE]", "… and what may be asked, limits, what you have found.", looking.describe_more),
        Command(("\\dt",), "[TABLE]", "List the tables, or those like pat*.", looking.tables),
        Command(("\\df",), "[NAME]", "List the functions, or those that begin so or like pat*.", looking.functions),
        Command(("\\l", "\\list"), "", "The policy: its data, units and accountant.", looking.databases, 0),
        Command(("\\summaries",), "", "The summaries: of what, and what each would cost first.", summed.show, 0),
        Command(("\\policy",), "[TABLE]", "The policy in force, with every default filled in.", looking.policy),
    ),
    "Privacy": (
        Command(("\\budget",), "[history]", "What has been spent and what is left; with every query.", looking.budget),
        Command(("\\explain",), "[QUERY]", "The plan: sensitivities, noise, price. Free.", asking.explain, 1, True),
        Command(("\\cost",), "[QUERY]", "What a query would be charged now, and its ±. Free.", asking.cost, 1, True),
        Command(("\\notes",), "", "All notes of the last answer; below it stand three.", looking.notes, 0),
        Command(("\\epsilon",), "[E | off]", "What each query spends; `off`: as at the start.", setting.epsilon),
        Command(("\\delta",), "[D | off]", "δ of each query; `off`: as at the start.", setting.delta),
        Command(("\\intervals",), "[on | cols | off]", "Show `value ± half`, both ends, none.", setting.intervals),
        Command(("\\fresh",), "[on | off]", "Pay for new noise even where a stored answer would do.", setting.fresh),
    ),
    "Input": (
        Command(("\\g",), "[FILE]", "Run what was typed, or the last query; to a new file.", asking.go, 1, True),
        Command(("\\gx",), "[FILE]", "As \\g, one line for each value.", asking.go_expanded, 1, True),
        Command(("\\e", "\\edit"), "[FILE]", "Edit what was typed, the last query or a copy of FILE.", asking.edit),
        Command(("\\p", "\\print"), "", "Show what was typed, or the last query.", asking.show_pending, 0),
        Command(("\\r", "\\reset"), "", "Forget what was typed.", asking.reset, 0),
        Command(("\\i", "\\include"), "FILE", "Run a file.", asking.include),
        Command(("\\batch",), "FILE [skip] [explain]", "Counts and sums of a file at one price.", asking.batch, 3),
        Command(("\\ir",), "FILE", "Run a file; its name counts from the file that names it.", asking.include_relative),
        Command(("\\history", "\\s"), "[N|FILE|off|clear]", "Inputs: show, save, keep none, forget.", asking.history),
    ),
    "Output": (
        Command(("\\x",), "[on | off | auto]", "One line for each value.", setting.expanded),
        Command(("\\a",), "", "Aligned columns, or plain `|` between values.", setting.aligned, 0),
        Command(("\\t",), "[on | off]", "Rows only.", setting.tuples_only),
        Command(("\\H", "\\html"), "", "HTML, or tables again.", setting.html, 0),
        Command(("\\pset",), "[OPTION [VALUE]]", "Show or set how answers look.", setting.pset, 2),
        Command(("\\o", "\\out"), "[FILE]", "Write answers to a new file; to the screen again.", asking.output),
        Command(("\\echo",), "[-n] [TEXT …]", "Write a text.", asking.echo, _MANY),
        Command(("\\qecho",), "[-n] [TEXT …]", "Write a text to where answers go.", asking.echo_to_output, _MANY),
    ),
    "Variables": (
        Command(("\\set",), "[NAME [VALUE …]]", "Set a variable (`:NAME` in SQL); list all.", setting.assigned, _MANY),
        Command(("\\unset",), "NAME", "Remove a variable.", setting.unset),
    ),
    "Refused, with the reason": (
        Command(("\\timing",), "", "Times depend on private rows.", refused.timing),
        Command(("\\watch",), "", "A query asked again and again.", refused.watch, _MANY),
        Command(("\\copy",), "", "Rows to or from files.", refused.copy, 1, True),
        Command(("\\!",), "", "Other programs.", refused.program, 1, True),
    ),
}
# fmt: on
"""Every meta-command, in the order of the help."""

COMMANDS: Final = {name: command for group in GROUPS.values() for command in group for name in command.names}
FIRST: Final = (
    "\\d", "\\d+", "\\h", "\\cost", "\\explain", "\\epsilon", "\\budget", "\\g", "\\x", "\\i", "\\o", "\\q",
)  # fmt: skip
"""A dozen that whoever begins needs."""

DOTTED: Final = {
    ".tables": "\\dt", ".schema": "\\d", ".help": "\\?", ".quit": "\\q", ".exit": "\\q", ".read": "\\i",
    ".output": "\\o", ".print": "\\echo",
}  # fmt: skip
"""Commands of DuckDB's and SQLite's shells, and those that do the same here."""

_ELSEWHERE: Final = {
    "\\c": "a shell has one policy: leave it with  \\q  and start another:  dpsql shell POLICY",
    "\\connect": "a shell has one policy: leave it with  \\q  and start another:  dpsql shell POLICY",
    "\\w": "\\p  shows what was typed, and  \\history  what was asked",
}


def run_command(shell: Shell, item: Meta) -> None:
    """Do what a line of meta-commands says. Raises dpsql.Error."""
    text = item.text
    try:
        while text:
            text = _run_first(shell, text)
    except Error as error:
        if item.place.name != "<sql>":
            start = item.place.line + item.place.column
            source = Source("\n" * item.place.line + " " * item.place.column + item.text, item.place.name)
            span = Span(start, start + len(item.text))
            error.diagnostics = tuple(
                d if d.source is not None else replace(d, source=source, span=span) for d in error.diagnostics
            )
        raise


def _run_first(shell: Shell, text: str) -> str:
    """Run the first command of a line; what is left of it."""
    name, arguments = split_name(text)
    name = DOTTED.get(name.lower(), name)
    command = COMMANDS.get(name) or COMMANDS.get(name.rstrip("+"))  # of \dt+
    if command is None:
        raise unknown(name)
    if command.raw:
        command.run(shell, [arguments.strip()] if arguments.strip() else [])
        return ""
    if command.most < _MANY and arguments.rstrip().endswith(";"):
        arguments = arguments.rstrip()[:-1]  # of habit; a text of \\echo or \\set may end with one
    given, rest = words(arguments, shell.variables.get)
    if len(given) > command.most:
        raise reject(
            "DP903", f"{name} takes {'no' if command.most == 0 else f'at most {command.most}'} "
            f"argument{'' if command.most == 1 else 's'}, not {len(given)}", help=[f"write  {command.usage}"],
        )  # fmt: skip
    command.run(shell, given)
    return rest


def split_name(text: str) -> tuple[str, str]:
    """The command's name, with its backslash, and its arguments. psql's \\d+ and \\!ls are read, too."""
    if text.startswith(("\\!", "\\?")):
        return text[:2], text[2:]
    end = 1
    while end < len(text) and not text[end].isspace() and text[end] not in "\\'\"`;":
        end += 1
    return text[:end], text[end:]


def unknown(name: str) -> Rejected:
    """The refusal of a command that is none, with the likeliest meant."""
    if name.startswith("."):
        known = ", ".join(f"{dot} ({own})" for dot, own in DOTTED.items())
        return reject(
            "DP903", f"there is no {name} here", help=[f"\\?  lists what there is; of its like {known} are read"]
        )
    if name in _ELSEWHERE:
        return reject("DP903", f"there is no {name} here", help=[_ELSEWHERE[name]])
    close = difflib.get_close_matches(name, COMMANDS, n=1, cutoff=0.7)
    meant = [f"did you mean  {COMMANDS[close[0]].usage}"] if close else []
    return reject("DP903", f"there is no meta-command {name}", help=[*meant, "\\?  lists them"])


def show_help(shell: Shell, arguments: list[str]) -> None:
    """Print the first commands, or all. Raises Rejected DP903."""
    if arguments and arguments[0].lower() != "all":
        raise reject("DP903", f"\\? takes nothing or all, not {arguments[0]!r}", help=["\\? all", "\\h NAME"])
    lines = (help_text() if arguments else first_help()).splitlines()
    folded = [part for line in lines for part in wrapped_lines(line, shell.output.columns)]
    shell.output.write("\n".join(folded) + "\n", shell.looks.pager)


def first_help() -> str:
    """`\\?`: a dozen commands."""
    commands = [COMMANDS[name] for name in FIRST]
    size = max(len(c.usage) for c in commands)
    lines = [f"  {c.usage.ljust(size)}  {c.help}" for c in commands]
    return (
        "\n".join(["A query ends with ; and may have several lines.", "", *lines, "", "\\? all  lists the others."])
        + "\n"
    )


def help_text() -> str:
    """`\\? all`: every command in a line, by groups."""
    size = max(len(c.usage) for group in GROUPS.values() for c in group)
    lines: list[str] = []
    for title, commands in GROUPS.items():
        lines += [title, *(f"  {c.usage.ljust(size)}  {c.help}" for c in commands), ""]
    lines.append("A query ends with ; and may have several lines. SET epsilon = 0.2 works as \\epsilon 0.2.")
    return "\n".join(lines) + "\n"
