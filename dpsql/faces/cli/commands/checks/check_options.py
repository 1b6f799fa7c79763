"""The command line of `dpsql check`: what can be configured (faces/check/examine/configuration.py), and what is
done.
"""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from typing import Annotated, Any, Final

import typer

from dpsql.faces.check.examine.configuration import MOST_JOBS, CheckOption, Configuration, declared, option

EXIT_CODES = "Exit codes: 0 clean, 1 findings, 2 could not check (policy, files, options)."


@dataclass(frozen=True, slots=True)
class Wish:
    """What is to be done with the findings, beyond the settings."""

    exit_zero: bool = option("switch", False, "Findings do not fail: 0 instead of 1.")
    allow_empty: bool = option("switch", False, "Finding no file is no failure.")
    fix: bool = option("switch", False, "Repair in the files what can be without a change of meaning.")
    diff: bool = option("switch", False, "Print what --fix would change; 1 if anything.")
    unsafe_fixes: bool = option("switch", False, "With --fix or --diff: guess what was meant, too.")
    statistics: bool = option("switch", False, "Print how often each code was found, instead of the findings.")
    budget_report: bool = option("switch", False, "Print what every statement would cost, instead of the findings.")
    write_baseline: str | None = option("text", None, "Write the findings to a baseline; 0.", "FILE")
    stdin_filename: str | None = option("text", None, "What the text on standard input is to be called.", "FILE")


_OPTIONS: Final = {**declared(Configuration), **declared(Wish)}


def check(
    paths: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="PATHS",
            help="Files, folders (their *.sql), quoted patterns, or `-`. Default: the current folder.",
        ),
    ] = None,
    **given: Any,
) -> int:
    """Check queries in files against a policy; no data needed.

    Settings come from the nearest `dpsql.toml`, or `[tool.dpsql]` of `pyproject.toml`; options are stronger.
    """
    from dpsql.faces.cli.commands.checks import check as command

    for name, value in given.items():
        if _OPTIONS[name].default is True:
            given[name] = not value  # --no-…
    wish = Wish(**{name: given.pop(name) for name in declared(Wish)})
    return command.run(paths or (["-"] if wish.stdin_filename else ["."]), given, wish)


def _parameter(name: str, option: CheckOption) -> inspect.Parameter:
    """An option as typer knows it. Its texts are read by the check."""
    own = f"--{name.replace('_', '-')}" if option.kind == "choice" else option.flag
    about = typer.Option(*dict.fromkeys((option.flag, own)), metavar=option.metavar, help=option.help)
    default, hint = None, option.type
    match option.kind:
        case "switch":
            default = False
        case "count":
            about.min, about.max = 1, MOST_JOBS
        case "text" | "path" | "amount":
            hint = str | None
        case _ if option.kind != "choice":
            hint = list[str] | None
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=Annotated[hint, about])


_PARAMETERS = [
    inspect.signature(check, eval_str=True).parameters["paths"],
    *(_parameter(name, each) for name, each in _OPTIONS.items() if each.flag),
]
check.__signature__ = inspect.Signature(_PARAMETERS)  # type: ignore[attr-defined]
check.__annotations__ = {each.name: each.annotation for each in _PARAMETERS}
