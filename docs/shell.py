"""Tables of docs/howto/shell.md, from the shell's own tables."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from dpsql.faces.cli.shell.commands.all_commands import GROUPS
from dpsql.faces.cli.shell.looks import OPTIONS, Looks
from dpsql.faces.cli.shell.shell_config import ENVIRONMENT, PLAIN, SWITCHES


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table of Markdown."""
    lines = [header, ["---"] * len(header), *([cell.replace("|", "\\|") for cell in row] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def meta_commands() -> str:
    """Every meta-command by groups, with its other names."""
    rows = []
    for title, commands in GROUPS.items():
        rows.append((f"**{title}**", ""))
        rows += [(", ".join(f"`{name}`" for name in (c.usage, *c.names[1:])), c.help) for c in commands]
    return table(("command", "what it does"), rows)


def pset_options() -> str:
    """Every option of \\pset with its values and its default."""
    rows = [(f"`{o.name}`", f"`{o.values}`", f"`{o.shown(Looks())}`", o.help) for o in OPTIONS.values()]
    return table(("option", "values", "at first", "what it does"), rows)


def settings() -> str:
    """The keys of the configuration file that are no options of \\pset, and the environment variables."""
    variables = {key: name for key in PLAIN if (name := f"DPSQL_{key.upper()}") in ENVIRONMENT}
    said = "As the [option](../reference/cli.md#dpsql-shell) of this name."
    rows = [(", ".join(f"`{key}`" for key in PLAIN), said), *((f"`{key}`", text) for key, text in SWITCHES.items())]
    rows += [(", ".join(f"`{name}`" for name in variables.values()), "The same.")]
    own = {names: text for names, text in ENVIRONMENT.items() if names not in variables.values()}
    rows += [(f"`{names.replace(', ', '`, `')}`", text) for names, text in own.items()]
    return table(("key, variable", "meaning"), rows)
