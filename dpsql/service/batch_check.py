"""What can be said about a batch without data, engine or budget."""

from __future__ import annotations

from dpsql.core.ir.public_facts import PublicFacts
from dpsql.core.policy.policy import Policy
from dpsql.core.policy.prepared import as_prepared
from dpsql.diagnostics.diagnostic import Source
from dpsql.diagnostics.errors import Rejected
from dpsql.planner.settings import Settings
from dpsql.service.batch_design import designed, marginal_settings, read_members, require_additive, written_in
from dpsql.service.check import static_plan


def check_batch(text: str, policy: Policy, settings: Settings, *, skip_refused: bool = False) -> None:
    """Refuse what a run would refuse for its text. Lists of values that public tables have are not known here: what
    needs them is left to the run. Raises Rejected."""
    policy, public = as_prepared(policy), PublicFacts()
    written = written_in(Source(text))
    read = read_members(written, policy, skip_refused)
    try:
        design = designed(written, read, policy, public, skip_refused)
    except Rejected:
        if public.missing:
            return
        raise
    if public.missing:
        return
    plan = static_plan(Source(design.sql), policy, settings=marginal_settings(settings, design))
    require_additive(plan)
