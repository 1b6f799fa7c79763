"""The command line, from the annotations of the commands themselves."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from enum import Enum
from typing import Any, Literal, get_args, get_origin, get_type_hints

import typer
from typer.models import ArgumentInfo, OptionInfo, ParameterInfo

from dpsql.cli.app import app


def reference() -> str:
    """A section for each command with its arguments and options."""
    lines: list[str] = []
    for name, command in _commands("dpsql", app):
        found = _parameters(command)
        arguments = [(p, i) for p, i, _ in found if isinstance(i, ArgumentInfo)]
        shown = [_place(p, i) if p.default is p.empty else f"[{_place(p, i)}]" for p, i in arguments]
        usage = " ".join([name, *shown, *(["[options]"] if len(found) > len(arguments) else [])])
        lines += [f"## {name}", "", "```text", usage, "```", "", inspect.getdoc(command) or "", ""]
        if found:
            lines += [*options_of(command), ""]
    return "\n".join(lines).rstrip("\n")


def options_of(command: Callable[..., Any]) -> list[str]:
    """The table of a command's arguments and options."""
    return ["| | |", "|---|---|", *(_row(p, i, t) for p, i, t in _parameters(command))]


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


def _row(p: inspect.Parameter, info: ParameterInfo, type_: Any) -> str:
    if isinstance(info, OptionInfo):
        first = [info.default] if isinstance(info.default, str) else []  # where typer keeps the first name
        names = ", ".join(f"`{n}`" for n in [*first, *(info.param_decls or [])] or [f"--{p.name.replace('_', '-')}"])
        value = "" if type_ is bool else " " + (" \\| ".join(_choices(type_)) or str(info.metavar or p.name.upper()))
        name = names + value
    else:
        name = f"`{_place(p, info)}`"
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
