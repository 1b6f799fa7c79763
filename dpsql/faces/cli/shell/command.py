"""`dpsql shell` on the command line: its arguments and options. What it does is in start.py, loaded when it is used."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

import typer

from dpsql.faces.cli import options as o
from dpsql.faces.cli.grouped import grouped
from dpsql.faces.cli.one_screen import OneScreen

_ORDER = "dpsql.order"


class InOrder(OneScreen):
    """Remembers in which order `-c` and `-f` were given."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """As usual."""
        given = list(args)
        rest = super().parse_args(ctx, args)
        _, _, found = self.make_parser(ctx).parse_args(args=given)
        ctx.meta[_ORDER] = [p.name for p in found if p.name in ("command", "file")]
        return rest


@dataclass(frozen=True, slots=True, kw_only=True)
class ShellOptions:
    """The command line as it is given."""

    policy: Annotated[
        str | None, typer.Argument(metavar="POLICY", help="The policy file. Default: what DPSQL_POLICY names.")
    ] = None
    command: Annotated[
        list[str] | None,
        typer.Option("--command", "-c", metavar="SQL", help="Run statements or a meta-command, and leave."),
    ] = None
    file: Annotated[
        list[str] | None,
        typer.Option("--file", "-f", metavar="FILE", help="Run a file, and leave; in order with -c."),
    ] = None
    variable: Annotated[
        list[str] | None,
        typer.Option("--variable", "-v", metavar="NAME=VALUE", help="Set a variable, as \\set does; repeatable."),
    ] = None
    pset: Annotated[
        list[str] | None,
        typer.Option("--pset", "-P", metavar="NAME=VALUE", help="Set an option, as \\pset does; repeatable."),
    ] = None
    format: Annotated[o.Format | None, typer.Option("--format", help="How to print answers. Default: table.")] = None
    csv: Annotated[bool, typer.Option("--csv", help="Short for --format csv.")] = False
    json: Annotated[bool, typer.Option("--json", help="Short for --format json.")] = False
    no_align: Annotated[bool, typer.Option("--no-align", "-A", help="Short for --format unaligned.")] = False
    tuples_only: Annotated[bool, typer.Option("--tuples-only", "-t", help="Rows only: no header and no footer.")] = (
        False
    )
    expanded: Annotated[bool, typer.Option("--expanded", "-x", help="One line for each value.")] = False
    output: Annotated[
        str | None, typer.Option("--output", "-o", metavar="FILE", help="Write answers to a new file.")
    ] = None
    epsilon: o.Epsilon = None
    delta: o.Delta = None
    allow_dearer: o.AllowDearer = None
    limits: o.Limits = None
    analyst: o.Analyst = None
    ledger: o.Ledger = None
    dialect: Annotated[
        str | None, typer.Option("--dialect", metavar="NAME", help="The SQL dialect that is typed; else duckdb.")
    ] = None
    draft: o.Draft = False
    threads: o.Threads = None
    memory_limit: o.MemoryLimit = None
    quiet: Annotated[
        bool, typer.Option("--quiet", "-q", help="No greeting; no footer beside csv, jsonl, markdown and html.")
    ] = False
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Run costly queries without a question.")] = False
    no_history: Annotated[bool, typer.Option("--no-history", help="Neither read nor keep what is typed.")] = False
    no_config: Annotated[bool, typer.Option("--no-config", "-X", help="Read no configuration file.")] = False

    @property
    def shown_as(self) -> str | None:
        """The format, also where it has an option of its own; None: not given."""
        short = {"csv": self.csv, "json": self.json, "unaligned": self.no_align}
        return self.format.value if self.format else next((name for name in reversed(short) if short[name]), None)


@grouped
def shell(context: typer.Context, options: ShellOptions) -> int:
    """Ask at a prompt, or run files and pipes, with psql's letters and habits. `dpsql POLICY` is short for it.

    Away from a terminal there is no prompt, no colour and no question, and the first error ends it.
    """
    from dpsql.faces.cli.shell.start import run

    given = {"command": iter(options.command or ()), "file": iter(options.file or ())}
    return run(options, [(name, next(given[name])) for name in context.meta.get(_ORDER, ())])
