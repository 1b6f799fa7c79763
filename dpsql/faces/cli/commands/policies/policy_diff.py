"""`dpsql policy diff`: what a change of the policy would lose of stored answers. 0 nothing, 1 something."""

from __future__ import annotations

import sys
from typing import Any, Final, assert_never

from dpsql.answers.results.cell_texts import cell
from dpsql.diagnostics.layout import printable
from dpsql.faces.cli import exits
from dpsql.faces.cli.answer_text import loss_json
from dpsql.faces.cli.commands.budgets.budget import shortened
from dpsql.faces.cli.json_text import document
from dpsql.faces.cli.options import ExplainFormat
from dpsql.faces.cli.table_layout import print_table
from dpsql.service.checks.policy_change import Change, StoredQuestion, change

_UNTOLD: Final = "not found by the old policy either: asked with parameters, in a dialect, or as part of a batch"


def run(old: str, new: str, ledger: str | None, format: ExplainFormat) -> int:
    """Raises CannotOpen (a policy, its data, the ledger)."""
    found = change(old, new, ledger)
    match format:
        case ExplainFormat.TEXT:
            _print(found)
        case ExplainFormat.JSON:
            parts = ("lost", found.lost), ("kept", found.kept), ("untold", found.untold)
            print(document({name: [_as_json(s) for s in stored] for name, stored in parts}))
        case _:
            assert_never(format)
    return exits.CHECK_FINDINGS if found.lost or found.untold else exits.OK


def _print(found: Change) -> None:
    for title, stored in ("lost", found.lost), ("cannot be told", found.untold):
        if stored:
            header = (title, "accounts", "price") if stored is found.lost else (title, "accounts")
            print_table(header, [_row(s)[: len(header)] for s in stored], sys.stdout)
            print()
    for s in found.lost:
        if s.why:
            print(printable(f"{shortened(s.name or s.statement)}: {s.why}"))
    if found.untold:
        print(_UNTOLD)
    print(f"{len(found.lost)} lost, {len(found.kept)} kept of what is stored; nothing was spent")


def _row(stored: StoredQuestion) -> list[Any]:
    name = f"summary {stored.name}" if stored.name else stored.statement
    return [cell(shortened(name)), cell(", ".join(stored.accounts)), cell(str(stored.price))]


def _as_json(stored: StoredQuestion) -> dict[str, Any]:
    return {
        "summary": stored.name or None,
        "statement": stored.statement,
        "accounts": list(stored.accounts),
        "price": loss_json(stored.price),
        "why": stored.why or None,
    }
