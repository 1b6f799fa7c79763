"""The way of one query. Read this file first.

    text ─ compile ─▶ plan ─ resolve ─▶ what is given, what the rest costs ─ charge ─▶ receipt
         ─ draw (ask, noise, store) ─▶ noisy numbers ─ post-process ─▶ answer

*Claim.* Whatever is killed and whenever: no noisy number is shown that is not charged, and the same question asked
twice at one time is charged once. *Why.* Charge, draw, store, show, in this order; the ledger's entry names the answers
before their noise is drawn, and a stored answer that no entry names is never given. Whoever has something to pay holds
the names of the releases until it is stored, and looks again after he got them. *When it would be false.* If the store
were asked for an answer under an address that stands for another question (answers/stored/address.py). *Tested by*
tests/answers/stored/test_reuse.py, tests/deep/answers/stored/test_processes.py.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from dpsql.answers.results.answer import Release
from dpsql.answers.stored.analyst_account import AnalystAccount
from dpsql.answers.stored.resolve import Resolution, resolve
from dpsql.diagnostics.errors import BudgetExceeded
from dpsql.planner.plan import Plan
from dpsql.planner.settings.query_settings import QuerySettings
from dpsql.service.planning.planning import WrittenQuery
from dpsql.service.planning.searches import with_held_limits
from dpsql.service.stages_of_a_run import StagesOfARun

if TYPE_CHECKING:
    from dpsql.service.service import Service


def compile(service: Service, question: WrittenQuery, settings: QuerySettings, *, looking: bool = False) -> Plan:
    """Text → plan, priced, with the SQL of its exact integers; from policy and public facts alone. Raises Rejected.

    looking: at a nominal ε where nobody has said one.
    """
    return service.planner.preview(question, settings) if looking else service.planner.plan(question, settings)


def run(
    service: Service,
    plan: Plan,
    open_account: Callable[[], AnalystAccount],
    *,
    fresh: bool = False,
) -> Release:
    """Plan → answer; see `Session.run`. open_account: opens the ledger and the stored answers, where they are needed.

    Raises Rejected (DP409, DP905), BudgetExceeded, CannotOpen (nothing ran), EngineError.
    """
    if fresh and not plan.known:
        return StagesOfARun(service, resolve(plan, open_account(), fresh=True), service.running).answer()
    if plan.known:
        return given(service, resolve(plan, None))
    while True:
        account = open_account()
        plan = with_held_limits(service, plan, account)
        found = resolve(plan, account)
        if plan.finding is None and found.is_held:
            return given(service, found)
        answer = account.store.alone(account.names(plan), partial(_alone, service, found, account))
        if answer is not None:
            return answer


def names(service: Service, plan: Plan, open_account: Callable[[], AnalystAccount]) -> set[str]:
    """What a run holds until it may leave. Raises CannotOpen."""
    if plan.known:
        return set()
    account = open_account()
    return account.names(with_held_limits(service, plan, account))


def held(
    service: Service, plan: Plan, open_account: Callable[[], AnalystAccount], *, refusing: bool = False
) -> Resolution | None:
    """A run for which nothing is drawn and nothing is charged, for `given`; None if there is something to pay.

    *Claim.* When its answer comes depends on no private row and on no other query. *Why.* It is made of numbers that
    the account has and of public tables; it waits for no name, not for `running`, and not for the engine where no table
    is read. *When it would be false.* If another query used the engine's one connection, over which public tables are
    read: a server gives it a process in which no query runs. *Tested by* tests/service/test_held.py.

    refusing: whether a price that no limit has room for is refused here, as a run would.
    Raises BudgetExceeded, CannotOpen.
    """
    if plan.known:
        return resolve(plan, None)
    account = open_account()
    plan = with_held_limits(service, plan, account)
    resolution = resolve(plan, account)
    if plan.finding is None and resolution.is_held:
        return resolution
    if refusing:
        try:
            account.require_room(plan, resolution.price)
        except BudgetExceeded as refusal:
            resolution.after(refusal)
    return None


def given(service: Service, found: Resolution) -> Release:
    """The answer of what is held. Raises CannotOpen, EngineError."""
    return StagesOfARun(service, found).answer()


def _alone(service: Service, looked: Resolution, account: AnalystAccount) -> Release | None:
    """Nobody else draws what this run may draw; None if whoever held the names before has found the limits of the plan:
    then it asks something else, under other names. looked: what it was given before it had the names.
    """
    if with_held_limits(service, looked.plan, account) is not looked.plan:
        return None
    resolution = looked.again().to_run()
    try:
        return StagesOfARun(service, resolution, service.running).answer()
    except BudgetExceeded as refusal:
        return StagesOfARun(service, resolution.after(refusal), service.running).answer()
