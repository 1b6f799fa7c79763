"""`dpsql prepare`: copy the tables that say `prepared`, bounded once. 0 made, 2 not."""

from __future__ import annotations

from dpsql.diagnostics.layout import one_line, printable
from dpsql.faces.cli import exits
from dpsql.faces.cli.commands.policies.policy_verify import WARNING
from dpsql.service.preparing.prepare import prepare


def run(file: str, threads: int | None, memory_limit: str | None, progress: bool) -> int:
    """Raises dpsql.Error if policy or data cannot be opened, or the copy cannot be written."""
    made = prepare(file, threads=threads, memory_limit=memory_limit, progress=progress)
    lines = [f"{WARNING}.", ""]
    for name, t in made.tables.items():
        lines.append(one_line(f"{name}: {t.kept:,} of {t.rows:,} rows kept, of {t.units:,} units"))
    print(printable("\n".join([*lines, "", f"{made.place}: queries read it from now on"])))
    return exits.OK
