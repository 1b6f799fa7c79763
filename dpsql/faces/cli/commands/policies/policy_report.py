"""`dpsql policy report`: a policy, its budget and its promises as one page for those who answer for them."""

from __future__ import annotations

import datetime as dt

import dpsql
from dpsql.faces.cli.new_files import write_text
from dpsql.faces.report.deployment_entry import registry
from dpsql.faces.report.page import report
from dpsql.planner.computed import understood
from dpsql.policy.load import load_policy
from dpsql.service.accounts.ledgers import look_at_ledger, place_of
from dpsql.service.accounts.spending_story import SpendingStory


def run(
    file: str, output: str | None, ledger: str | None, data: bool, threads: int | None, memory_limit: str | None
) -> int:
    """Raises CannotOpen (policy, ledger; data only where they are asked for), Rejected DP903 (no place to write to)."""
    policy = understood(load_policy(file))
    found = look_at_ledger(policy, place_of(policy, ledger))
    try:
        story = None if found is None else SpendingStory.of(policy.unit_names, found.history())
    finally:
        if found is not None:
            found.close()
    measured = None
    if data:
        from dpsql.service.checks.verify import verify_policy

        measured = verify_policy(file, threads=threads, memory_limit=memory_limit)
    today = dt.datetime.now(dt.UTC).date()
    write_text(report(policy, story, measured, version=dpsql.__version__, today=today), output)
    return 0


def of_registry(file: str, output: str | None) -> int:
    """The policy in a registry's fields. Raises as `run` does."""
    write_text(registry(understood(load_policy(file)), dpsql.__version__), output)
    return 0
