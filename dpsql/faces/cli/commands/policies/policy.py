"""`dpsql policy check | schema | audit | show`: for the custodian who writes a policy and for whoever reviews it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict
from typing import Final

from dpsql.core.policy.policy import Policy
from dpsql.diagnostics.errors import reject
from dpsql.diagnostics.layout import escaped, printable
from dpsql.faces.cli.exits import complain
from dpsql.faces.cli.json_text import document
from dpsql.faces.cli.new_files import write_text
from dpsql.faces.cli.options import ExplainFormat
from dpsql.planner.computed import understood
from dpsql.planner.searches.would_be_found import would_be_found
from dpsql.policy.file.schema import policy_schema
from dpsql.policy.issues import did_you_mean
from dpsql.policy.load import load_policy
from dpsql.policy.tools.assumptions import Promised, grouped, promises, protection
from dpsql.policy.tools.decisions import undecided
from dpsql.policy.tools.show import describe, show_policy
from dpsql.policy.tools.unsaid import unsaid

_MOST: Final = 4
"""Things that are named in one line."""


def check(file: str, data: bool, since: str | None = None) -> int:
    """Raises CannotOpen with every mistake; with `data`, also where policy and data disagree, or the ledger
    cannot be used; with it a word, too, where policy and ledger say different budgets. since: the version that was
    used before; without it the ledger tells. Raises Rejected DP903 for one that is none.
    """
    from dpsql.faces.cli.commands.policies.policy_upgrade import changes

    policy: Policy = understood(load_policy(file))
    told: list[str] = []
    if data:
        policy, told = _with_data(policy)
    if warnings := unsaid(policy):
        complain(warnings)
    print(f"{file}: {summary(policy)}" + (", and the data agrees" if data else ""))
    for line in (*told, *_unasked(policy), *changes(policy, since)):
        print(line)
    return 0


def _unasked(policy: Policy) -> Iterator[str]:
    """What `search: auto` would change."""
    found = list(would_be_found(policy))
    if found:
        more = f"; and {len(found) - _MOST} more" if len(found) > _MOST else ""
        yield printable(f"`search: auto` would find, unasked: {'; '.join(found[:_MOST])}{more}")
        yield "  paid answers that would not be found any more: dpsql policy diff OLD NEW"


def _with_data(policy: Policy) -> tuple[Policy, list[str]]:
    """The policy with the data's types, and where budgets differ from the ledger's. Raises CannotOpen."""
    from dpsql.api.connection import connect
    from dpsql.faces.cli.commands.budgets.budget_additions import differences
    from dpsql.service.open_data import open_data

    if undecided(policy):
        found, engine = open_data(policy, None, None, None, None, drafted=True)
        engine.close()
        return found, []
    with connect(policy) as connection:
        found = connection.policy
        return found, list(differences(found, connection.ledger)) if connection.has_ledger else []


def summary(policy: Policy) -> str:
    """`policy clinic is valid: 3 tables (1 public), 1 unit, 14 promises to keep`."""
    public = sum(t.public for t in policy.tables.values())
    parts = [
        f"{_counted(len(policy.tables), 'table')} ({public} public)",
        _counted(len(policy.units), "unit"),
        f"{_counted(len(promises(policy)), 'promise')} that nothing enforces (`dpsql policy audit`)",
    ]
    return f"policy {policy.name} is valid: {', '.join(parts)}"


def schema(output: str | None) -> int:
    """Raises Rejected DP903 if the file cannot be written."""
    write_text(json.dumps(policy_schema(), indent=2, ensure_ascii=False) + "\n", output)
    return 0


def audit(file: str, format: ExplainFormat) -> int:
    """Raises CannotOpen."""
    policy = understood(load_policy(file))
    found = promises(policy)
    match format:
        case ExplainFormat.JSON:
            listed = [{**asdict(p), "page": p.page} for p in found]
            for promise in listed:
                promise.pop("column")
            print(document({"policy": policy.name, "promises": listed, "protection": list(protection(policy))}))
        case ExplainFormat.TEXT:
            groups = grouped(policy)
            kinds = f", of {_counted(len(groups), 'kind')}" if found else ""
            print(f"The guarantee of policy {policy.name} rests on {_counted(len(found), 'promise')}{kinds}.")
            for group in groups:
                print(printable("\n".join(_promised(group))))
            for line in protection(policy):
                print(printable(f"\nsomeone's protection when {line}"))
    return 0


def _promised(group: Promised) -> Iterator[str]:
    """What promises of one kind say, where they stand, and what follows if one is false: each said once."""
    yield f"\n{group.heading} ({len(group.promises)})"
    if group.kind == "not_null":
        yield from (f"  promise:  {claim}" for claim in group.claims)
    else:
        for p in group.promises:
            yield f"  promise:  {p.claim}   ({p.where})"
    yield f"  if false: {group.when_false}"
    yield f"  page:     {group.page}"


def show(file: str, table: str | None, format: ExplainFormat) -> int:
    """Raises CannotOpen; Rejected DP903 for a table that the policy does not list."""
    policy = understood(load_policy(file))
    name = None
    if table is not None:
        found = policy.table(table)
        if found is None:
            raise reject("DP903", f"the policy lists no table {table!r}{did_you_mean(table, policy.tables)}")
        name = found.name
    match format:
        case ExplainFormat.TEXT:
            print(printable(show_policy(policy, name)))
        case ExplainFormat.JSON:
            facts = describe(policy)
            shown = facts if name is None else facts["tables"][name]
            print(escaped(json.dumps(shown, indent=2, ensure_ascii=False)))
    return 0


def _counted(number: int, noun: str) -> str:
    return f"{number or 'no'} {noun}{'' if number == 1 else 's'}"
