"""Tables of docs/howto/shell.md, from the shell's own tables."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

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
        rows = [(", ".join(f"`{name}`" for name in (c.usage, *c.names[1:])), c.help) for c in commands]
        parts += [f"### {title}", "", _table(("command", "what it does"), rows), ""]
    return "\n".join(parts).rstrip("\n")


def pset_options() -> str:
    """Every option of \\pset with its values and its default."""
    rows = [(f"`{o.name}`", f"`{o.values}`", f"`{o.shown(Looks())}`", o.help) for o in OPTIONS.values()]
    return _table(("option", "values", "at first", "what it does"), rows)


def settings() -> str:
    """The keys of the configuration file that are no options of \\pset, and the environment variables."""
    keys = {**PLAIN, **SWITCHES}
    same = {key: name for key in keys if ENVIRONMENT.get(name := f"DPSQL_{key.upper()}") == keys[key]}
    rows = [(f"`{key}`", f"`{same[key]}`" if key in same else "", text) for key, text in keys.items()]
    rows += [("", f"`{v.replace(', ', '`, `')}`", text) for v, text in ENVIRONMENT.items() if v not in same.values()]
    return _table(("key", "variable", "meaning"), rows)
