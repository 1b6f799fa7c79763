"""Tables of docs/howto/shell.md, from the shell's own tables."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from docs.commands import options_of
from dpsql.cli.shell.command import shell
from dpsql.cli.shell.commands.table import GROUPS
from dpsql.cli.shell.config import ENVIRONMENT, PLAIN, SWITCHES
from dpsql.cli.shell.looks import OPTIONS, Looks


def _table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [header, ["---"] * len(header), *([cell.replace("|", "\\|") for cell in row] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def meta_commands() -> str:
    """Every meta-command by groups, with its other names."""
    parts = []
    for title, commands in GROUPS.items():
        rows = [
            (f"`{c.usage}`", c.help, ", ".join(f"`{name}`" for name in c.names[1:]))
            for c in commands
        ]  # fmt: skip
        parts += [f"### {title}", "", _table(("command", "what it does", "also"), rows), ""]
    return "\n".join(parts).rstrip("\n")


def pset_options() -> str:
    """Every option of \\pset with its values and its default."""
    rows = [(f"`{o.name}`", f"`{o.values}`", f"`{o.shown(Looks())}`", o.help) for o in OPTIONS.values()]
    return _table(("option", "values", "at first", "what it does"), rows)


def config_keys() -> str:
    """The keys of the configuration file that are no options of \\pset."""
    return _table(("key", "meaning"), [(f"`{key}`", text) for key, text in {**PLAIN, **SWITCHES}.items()])


def environment() -> str:
    """The environment variables."""
    rows = [(", ".join(f"`{n.strip()}`" for n in names.split(",")), text) for names, text in ENVIRONMENT.items()]
    return _table(("variable", "meaning"), rows)


def flags() -> str:
    """Arguments and options of `dpsql shell`."""
    return "\n".join(options_of(shell))
