"""Writes the files that are made from the code: `make generate`. A test refuses stale ones.

To add a file, add a line to GENERATED: its path from the top of the repository, and a function that returns its text.
A file that is partly written by hand holds blocks between `<!-- generated: name -->` and `<!-- end -->`; a block's name
is a key of BLOCKS.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

from docs import api, choosing, commands, dashboards, diagrams, grammar_text, http_api, keys, picture, plots, shell
from dpsql.diagnostics.codes import CODES

ROOT = Path(__file__).resolve().parent.parent
GROUPS = {
    "0": "Policy and syntax",
    "1": "Outside the accepted SQL",
    "2": "Unbounded sensitivity",
    "3": "Group keys",
    "4": "Budget",
    "5": "Utility warnings",
    "9": "Housekeeping",
}


def diagnostics_index() -> str:
    """The list of all diagnostic codes, with links to their pages."""
    lines = [
        "# Diagnostics",
        "",
        "Every refusal has a code, a place in the text and a repair. `dpsql rule DP201` prints the page of a code.",
    ]
    for digit, heading in GROUPS.items():
        lines += ["", f"## DP{digit}xx: {heading}", "", "| code | meaning |", "|---|---|"]
        for entry in CODES.values():
            if entry.code[2] == digit:
                lines.append(f"| [{entry.code}](../dpsql/diagnostics/pages/{entry.page}) | {entry.title} |")
    return "\n".join(lines) + "\n"


def filled(name: str) -> str:
    """A hand-written file with its generated blocks made anew."""

    def block(found: re.Match[str]) -> str:
        return f"<!-- generated: {found[1]} -->\n{BLOCKS[found[1]]()}\n<!-- end -->"

    text = (ROOT / name).read_text(encoding="utf-8")
    return re.sub(r"<!-- generated: ([\w-]+) -->\n.*?<!-- end -->", block, text, flags=re.DOTALL)


BLOCKS: dict[str, Callable[[], str]] = {
    "explain-text": picture.explain_block,
    "explain-json": picture.json_block,
    "python-api": api.reference,
    "cli": commands.reference,
    "http-api": http_api.addresses,
    "odds": plots.odds,
    "policy-keys": keys.policy_keys,
    "query-settings": keys.query_settings,
    "sizes": choosing.sizes,
    "start-odds": choosing.odds,
    "shell-commands": shell.meta_commands,
    "shell-options": shell.pset_options,
    "shell-settings": shell.settings,
}

GENERATED: dict[str, Callable[[], str]] = {
    "docs/diagnostics.md": diagnostics_index,
    **diagrams.PICTURES,
    **plots.PICTURES,
    **dashboards.PICTURES,
    "docs/reference/sql.md": grammar_text.sql_page,
    "dpsql/faces/cli/shell/commands/clauses.json": grammar_text.clauses,
    **{
        name: partial(filled, name)
        for name in (
            "README.md",
            "docs/for-boards.md",
            "docs/howto/choose-epsilon.md",
            "docs/reference/policy.md",
            "docs/reference/settings.md",
            "docs/howto/shell.md",
            "docs/reference/api.md",
            "docs/reference/cli.md",
            "docs/reference/explain.md",
            "docs/reference/python.md",
        )
    },
}


def stale() -> list[str]:
    """The generated files that differ from what would be written now."""
    return [
        name
        for name, text in GENERATED.items()
        if not (ROOT / name).exists() or (ROOT / name).read_text(encoding="utf-8") != text()
    ]


def main() -> int:
    for name in stale():
        (ROOT / name).write_text(GENERATED[name](), encoding="utf-8")
        print(f"wrote {name}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
