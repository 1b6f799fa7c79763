"""The command line, from the annotations of the commands themselves."""

from __future__ import annotations

import inspect
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from enum import Enum
from typing import Any, Literal, get_args, get_origin, get_type_hints

import typer
from typer.models import ArgumentInfo, OptionInfo, ParameterInfo

from dpsql.faces.cli.app import app

COMMON = 2
"""What so many commands or more share is said once."""


def reference() -> str:
    """A section for each command with its arguments and options, before them those that several share."""
    commands = list(_commands("dpsql", app))
    counted = Counter(row for _, command in commands for row in _rows(command).values())
    shared = {row: None for _, command in commands for row in _rows(command).values() if counted[row] >= COMMON}
    lines = ["## Options of several commands", "", *_table(shared)]
    for name, command in commands:
        found, rows = _parameters(command), _rows(command)
        arguments = [(p, i) for p, i, _ in found if isinstance(i, ArgumentInfo)]
        shown = [_place(p, i) if p.default is p.empty else f"[{_place(p, i)}]" for p, i in arguments]
        usage = " ".join([name, *shown, *(["[options]"] if len(found) > len(arguments) else [])])
        lines += ["", f"## {name}", "", "```text", usage, "```", "", inspect.getdoc(command) or ""]
        own = [row for row in rows.values() if row not in shared]
        also = [option for option, row in rows.items() if row in shared and option.startswith("-")]
        lines += ["", *_table(own)] if own else []
        lines += ["", f"{'Also' if own else 'Options:'} {', '.join(f'`{option}`' for option in also)}."] if also else []
    return "\n".join(lines)


def _table(rows: Iterable[str]) -> list[str]:
    return ["| | |", "|---|---|", *rows]


def _rows(command: Callable[..., Any]) -> dict[str, str]:
    """The name of each argument and option, and its line in the table."""
    return {_names(p, i)[0]: _row(p, i, t) for p, i, t in _parameters(command)}


def _parameters(command: Callable[..., Any]) -> list[tuple[inspect.Parameter, ParameterInfo, Any]]:
    """What a command can be given, with its declaration and its type."""
    hints = get_type_hints(command, include_extras=True)
    parameters = [p for p in inspect.signature(command).parameters.values() if hints[p.name] is not typer.Context]
    return [(p, *_info(hints[p.name])) for p in parameters]


def _commands(name: str, group: typer.Typer) -> Iterator[tuple[str, Callable[..., Any]]]:
    for command in group.registered_commands:
        assert command.callback is not None
        yield f"{name} {command.name or command.callback.__name__.replace('_', '-')}", command.callback
    for inner in group.registered_groups:
        assert inner.typer_instance is not None and isinstance(inner.name, str)
        yield from _commands(f"{name} {inner.name}", inner.typer_instance)


def _info(hint: Any) -> tuple[ParameterInfo, Any]:
    """The typer declaration within an Annotated type, and the type."""
    type_, *rest = get_args(hint)
    (info,) = [r for r in rest if isinstance(r, ParameterInfo)]
    return info, type_


def _place(p: inspect.Parameter, info: ParameterInfo) -> str:
    return str(info.metavar or p.name.upper())


def _names(p: inspect.Parameter, info: ParameterInfo) -> list[str]:
    if isinstance(info, OptionInfo):
        first = [info.default] if isinstance(info.default, str) else []  # where typer keeps the first name
        return [*first, *(info.param_decls or [])] or [f"--{p.name.replace('_', '-')}"]
    return [_place(p, info)]


def _row(p: inspect.Parameter, info: ParameterInfo, type_: Any) -> str:
    name = ", ".join(f"`{n}`" for n in _names(p, info))
    if isinstance(info, OptionInfo) and type_ is not bool:
        name += " " + (" \\| ".join(_choices(type_)) or _place(p, info))
    default = p.default.value if isinstance(p.default, Enum) else p.default
    known = default not in (p.empty, None, False, ()) and default != []
    text = " ".join((info.help or "").split()).replace("|", "\\|")
    return f"| {name} | {text}{f' Default: `{default}`.' if known else ''} |"


def _choices(type_: Any) -> list[str]:
    if get_origin(type_) is Literal:
        return [str(a) for a in get_args(type_)]
    if isinstance(type_, type) and issubclass(type_, Enum):
        return [str(e.value) for e in type_]
    return [c for a in get_args(type_) for c in _choices(a)]
