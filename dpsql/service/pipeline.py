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

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from dpsql.answers.results.answer import Release
from dpsql.answers.stored.analyst_account import AnalystAccount
from dpsql.answers.stored.resolve import (
    Resolution,
    all_new,
    names_held,
    nothing_drawn,
    resolve,
    resolve_again,
    resolve_to_run,
)
from dpsql.answers.stored.storing import store
from dpsql.core.noise.backends import EXACT, Backend, backend
from dpsql.core.release.charge import Charged
from dpsql.core.release.noisy import NoisyRelease, draw_release, wanted
from dpsql.diagnostics.errors import BudgetExceeded
from dpsql.planner.notes.notes import notes_of
from dpsql.planner.plan import Plan
from dpsql.planner.postprocessing.coverage import coverage_notes, covered
from dpsql.planner.postprocessing.noisy_rows import as_query
from dpsql.planner.postprocessing.run import AnswerRows, post_process
from dpsql.planner.postprocessing.searches.told import search_notes
from dpsql.planner.settings.query_settings import QuerySettings
from dpsql.service.accounts.ledgers import FORGETS
from dpsql.service.planning.planning import WrittenQuery
from dpsql.service.planning.searches import with_held_limits, with_limits

if TYPE_CHECKING:
    from dpsql.service.service import Service

T = TypeVar("T")


def compile(service: Service, question: WrittenQuery, settings: QuerySettings) -> Plan:
    """Text → plan, priced, with the SQL of its exact integers; from policy and public facts alone. Raises Rejected."""
    return service.planner.plan(question, settings)


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
        account = open_account()
        return _charged_and_run(service, plan, account, all_new(plan, account), service.running)
    found = held(service, plan, open_account)
    if found is not None:
        return given(service, found)
    account = open_account()
    plan = with_held_limits(service, plan, account)
    return account.store.alone(names_held(plan, account), lambda: _alone(service, plan, account))


def names(service: Service, plan: Plan, open_account: Callable[[], AnalystAccount]) -> set[str]:
    """What a run holds until it may leave. Raises CannotOpen."""
    if plan.known:
        return set()
    account = open_account()
    return names_held(with_held_limits(service, plan, account), account)


@dataclass(frozen=True, slots=True)
class Held:
    """A run for which nothing is drawn and nothing charged: of numbers that the account has, and of public tables.

    account: None where no number of anybody is needed.
    """

    plan: Plan
    account: AnalystAccount | None
    resolution: Resolution

    @property
    def reads_tables(self) -> bool:
        """Whether its answer depends on public rows, which may change."""
        return _reads_tables(self.plan, self.resolution)

    def gives_the_same(self, other: Held) -> bool:
        """Whether the answers are equal, if no table is read for either: the spelling of the query is in neither."""

        def parts(plan: Plan) -> tuple[object, ...]:
            return plan.hash, plan.notes, plan.coverage, plan.found

        return parts(self.plan) == parts(other.plan) and self.resolution == other.resolution


def held(
    service: Service, plan: Plan, open_account: Callable[[], AnalystAccount], *, refusing: bool = False
) -> Held | None:
    """A run for which nothing is drawn and nothing is charged, for `given`; None if there is something to pay.

    *Claim.* When its answer comes depends on no private row and on no other query. *Why.* It is made of numbers that
    the account has and of public tables; it waits for no name, not for `running`, and not for the engine where no table
    is read. *When it would be false.* If it were looked for where other queries run: public tables are read over the
    engine's one connection. A server asks a process in which none does. *Tested by* tests/service/test_held.py.

    refusing: whether a price that no limit has room for is refused here, as a run would.
    Raises BudgetExceeded, CannotOpen.
    """
    if plan.known:
        return Held(plan, None, nothing_drawn(plan))
    account = open_account()
    plan = with_held_limits(service, plan, account)
    resolution = resolve(plan, account)
    if plan.searches is None and resolution.is_held(plan):
        return Held(plan, account, resolution)
    if refusing:
        try:
            account.require_room(plan, resolution.price)
        except BudgetExceeded as refusal:
            resolve_again(plan, account, resolution, refusal)
    return None


def given(service: Service, found: Held) -> Release:
    """The answer of what is held. Raises CannotOpen, EngineError."""
    return _charged_and_run(service, found.plan, found.account, found.resolution)


def _alone(service: Service, plan: Plan, account: AnalystAccount) -> Release:
    """Nobody else draws what this run may draw. Whoever held the names before may have stored what it needs."""
    known = with_held_limits(service, plan, account)
    if known is not plan:
        return run(service, known, lambda: account)
    resolution = resolve_to_run(plan, account)
    try:
        return _charged_and_run(service, plan, account, resolution, service.running)
    except BudgetExceeded as refusal:
        again = resolve_again(plan, account, resolution, refusal)
        return _charged_and_run(service, plan, account, again, service.running)


def _charged_and_run(
    service: Service,
    plan: Plan,
    account: AnalystAccount | None,
    resolution: Resolution,
    running: AbstractContextManager[object] | None = None,
) -> Release:
    """Charge, draw, post-process and store; all but the last in one snapshot where any table is read.

    running: held while it is charged and while it is drawn; whoever waits before he draws, or until he may leave, holds
    up no other run.
    """
    # Asked for before anything is charged, and only where noise is to be drawn: stored answers need nobody.
    noise = backend(service.policy.noise) if resolution.draws(plan) else EXACT

    kept = _Kept(account)

    def drawn(charged: Charged) -> tuple[Charged, Plan, list[NoisyRelease], AnswerRows]:
        noisy = _drawn(service, plan.first, charged, noise, kept)
        limited = with_limits(service, plan, noisy, charged)
        if account is not None and limited is not plan:
            noisy = _drawn(service, limited, account.charge_reserved(limited, charged), noise, kept)
        with service.post_processing:
            return charged, limited, noisy, post_process(limited.post, noisy, service.engine, service.scratch)

    def alone(step: Callable[[], T]) -> T:
        """Do a step that asks the engine, if any of it does; the public facts are as they were planned."""

        def checked() -> T:
            service.facts.check_again(plan)
            return step()

        with running or nullcontext():
            return service.engine.in_snapshot(checked) if _reads_tables(plan, resolution) else step()

    try:
        if running is None or account is None or account.drawing is None:
            charged, limited, noisy, rows = alone(lambda: drawn(kept.charged(plan, resolution)))
        else:
            found = alone(lambda: kept.charged(plan, resolution))
            account.drawing()
            charged, limited, noisy, rows = alone(lambda: drawn(found))
    finally:
        kept.settle()
    if account is not None and charged.receipt is not None:
        account.ledger.finish()
    if account is not None and resolution.draws(plan):
        kept.remarks += account.failures_told()
    notes = _notes(service, limited, resolution, noisy, kept.remarks)
    names, types = tuple(c.name for c in plan.columns), tuple(c.type for c in plan.columns)
    return Release(names, types, charged.spent, notes, limited, tuple(noisy), rows)


class _Kept:
    """Stores what a run draws: at once; or, where others shall not see when that was, when it may leave.

    remarks: what the reader is told if an answer could not be stored. underway: until all of it is drawn; a run that
    failed, which a caller's stop is not, is noted where others may know of it.
    """

    def __init__(self, account: AnalystAccount | None) -> None:
        self.account, self.remarks = account, list[str]()
        self.underway = None if account is None else account.underway()
        self._later: list[Callable[[AnalystAccount], list[str]]] = []
        self._is_charged = False

    def charged(self, plan: Plan, resolution: Resolution) -> Charged:
        """Charge all that is not given. Raises BudgetExceeded, CannotOpen."""
        if self.account is None or self.underway is None:
            return Charged.nothing(resolution.given)
        try:
            found = self.account.charge(plan, resolution.given, self.underway.begin)
        except BaseException:
            self.underway.end()
            raise
        self._is_charged = True
        return found

    def failed(self) -> None:
        """The engine failed on private rows."""
        if self.underway is not None:
            self.underway.has_failed = True

    def keep(self, plan: Plan, charged: Charged, noisy: Sequence[NoisyRelease]) -> None:
        """What was drawn last of these."""
        if self.account is None:
            return
        if self.account.leaving is None:
            self.remarks += store(plan, self.account, charged, noisy)
        else:
            self._later.append(lambda account, found=tuple(noisy): store(plan, account, charged, found))  # type: ignore[misc]

    def settle(self) -> None:
        """All is drawn that will be, if anything was charged."""
        if not self._is_charged:
            return
        try:
            if self.account is not None and self.account.leaving is not None:
                self.account.leaving()
                for later in self._later:
                    self.remarks += later(self.account)
        finally:
            if self.underway is not None:
                self.underway.end()


def _drawn(service: Service, plan: Plan, charged: Charged, noise: Backend, kept: _Kept) -> list[NoisyRelease]:
    """Ask for exact integers, add noise, store: release by release, for a later one may read rows of earlier ones."""
    noisy: list[NoisyRelease] = []
    account = kept.account
    salt = 0 if charged.receipt is None or account is None else account.ledger.salt
    for planned, given in zip(plan.releases, charged.given, strict=True):
        read = [n for n in noisy if any(s.reads(n.planned.label) for s in planned.statements)]
        earlier = {n.planned.label: as_query(n, service.engine.dialect) for n in read}
        try:
            found = draw_release(planned, service.engine, charged.receipt, salt, earlier, given, noise)
        except Exception:
            if not (service.is_closed or service.is_cut):  # which stop what runs
                kept.failed()
            raise
        noisy.append(found)
        if wanted(planned.measured, given):
            kept.keep(plan, charged, noisy)
    return noisy


def _reads_tables(plan: Plan, resolution: Resolution) -> bool:
    """Whether a run asks the engine for anything: answers that are held wait for nobody's query."""
    if plan.reads_nothing:
        return False
    return resolution.draws(plan) or bool(plan.public or plan.post.public_tables) or not plan.post.steps


def _notes(
    service: Service, plan: Plan, resolution: Resolution, noisy: Sequence[NoisyRelease], remarks: Sequence[str]
) -> tuple[str, ...]:
    """What the reader of an answer is told, in this order."""
    expected = notes_of([r.measured for r in plan.releases], plan.source)
    return (
        *resolution.notes,
        *search_notes(plan.found),
        *coverage_notes(covered(plan.coverage, noisy)),
        *dict.fromkeys(remarks),
        # Stored numbers were made by other mechanisms than planned: a threshold that is told is the one that was.
        *notes_of([n.planned.measured for n in noisy], plan.source),
        *(note for note in plan.notes if note not in expected),
        *service.engine.notes,
        *((FORGETS,) if service.forgets and not plan.known else ()),
    )
