"""A run: its stages one after the other, from the charge to the answer.

*Claim.* No exact integer is asked for before all that the plan's stages may draw is charged. *Why.* The charge is made
of the plan's releases, those behind a search at their price, and stands before the first stage; a search hands on what
the rest is planned of, and that is drawn only under an entry that the core makes of what was reserved
(`core/release/charge.py`). *When it would be false.* If a stage could ask for a release that it does not declare: it is
handed noisy numbers alone. *Tested by* tests/core/release/test_reserved.py, tests/service/test_searches.py,
tests/service/test_stages.py.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING

from dpsql.answers.results.answer import Release
from dpsql.answers.stored.analyst_account import AnalystAccount
from dpsql.answers.stored.refining import combined
from dpsql.answers.stored.resolve import Resolution
from dpsql.answers.stored.storing import store
from dpsql.core.engine import AsksAgain
from dpsql.core.noise.backends import EXACT, backend
from dpsql.core.release.charge import Charged
from dpsql.core.release.noisy import GivenAnswers, NoisyRelease, draw_release, wanted
from dpsql.core.release.planned import PlannedRelease
from dpsql.diagnostics.note import OF_RELEASES, Note, in_order
from dpsql.planner.notes.notes import notes_of
from dpsql.planner.plan import Plan
from dpsql.planner.postprocessing.noisy_rows import as_query
from dpsql.planner.stages.keys_first import KeysFirst
from dpsql.planner.stages.stage import HandedOn
from dpsql.service.accounts.ledgers import FORGETS
from dpsql.service.planning.searches import with_keys, with_limits

if TYPE_CHECKING:
    from dpsql.service.service import Service


class StagesOfARun:
    """One run of a plan; all but storing in one snapshot where any table is read.

    plan: with the limits that were found, once they are. charged: at the price of all. running: held while it is
    charged and while it is drawn; whoever waits before he draws, or until he may leave, holds up no other run.
    """

    def __init__(
        self,
        service: Service,
        resolution: Resolution,
        running: AbstractContextManager[object] | None = None,
    ) -> None:
        """Raises CannotOpen: the policy's source of noise is not there. It is asked for before anything is charged, and
        only where noise is to be drawn: stored answers need nobody.
        """
        self._service, self._resolution, self._running = service, resolution, running
        self._account, self._reads_tables = resolution.account, resolution.reads_tables
        self._noise = backend(service.policy.noise) if resolution.draws else EXACT
        self._kept = _Kept(resolution.account)
        self.plan, self._handed = resolution.plan, HandedOn()
        self.charged = Charged.nothing(resolution.given)
        self._is_untouched = True  # nothing is drawn yet: what fails may be asked again

    def answer(self) -> Release:
        """Charge, draw, hand on and store. Raises Rejected (DP409, DP905), BudgetExceeded, CannotOpen, EngineError."""
        account = self._account
        try:
            if self._running is not None and account is not None and account.drawing is not None:
                self._asking(self._charge)
                account.drawing()
            self._asking(self._draw)
        finally:
            self._kept.settle()
        if account is not None and self.charged.receipt is not None:
            account.ledger.finish()
        if account is not None and self._resolution.draws:
            self._kept.remarks += account.failures_told()
        names, types = tuple(c.name for c in self.plan.columns), tuple(c.type for c in self.plan.columns)
        noisy, rows = self._handed.noisy, self._handed.rows
        assert rows is not None
        return Release(names, types, self.charged.spent, self._notes(), self.plan, noisy, rows)

    def _asking(self, step: Callable[[], None]) -> None:
        """Do a step that asks the engine, if any of it does."""
        engine = self._service.engine
        if self._reads_tables and isinstance(engine, AsksAgain):
            engine.at_hand(_functions(self.plan.first.releases, self._resolution.given))
        with self._running or nullcontext():
            if self._reads_tables:
                engine.in_snapshot(step)
            else:
                step()

    def _charge(self) -> None:
        self._require_as_planned()
        self.charged = self._kept.charged(self._resolution)
        if self._account is not None:  # before anything is stored
            self._kept.remarks += self._account.older_answers_told()

    def _draw(self) -> None:
        """All stages, once they are charged; from a search on, those that it has led to."""
        if self._kept.is_charged:
            self._require_as_planned()
        else:
            self._charge()
        charged, waiting = self.charged, [*self.plan.stages]
        while waiting:
            stage = waiting.pop(0)
            for planned in stage.releases:
                before, given = self._handed.noisy, charged.given[len(self._handed.noisy)]
                drawn = self._noisy(self._resolution.drawn_for(planned, len(before)), charged)
                self._handed = replace(self._handed, noisy=(*before, combined(drawn, given)))
                if wanted(planned.measured, given):
                    self._is_untouched = False
                    self._kept.keep(self.plan.first if stage.finds else self.plan, charged, (*before, drawn))
            with self._service.post_processing:
                self._handed = stage.handed_on(self._handed, self._service.engine, self._service.scratch)
            if stage.finds:
                follow = with_keys if isinstance(stage, KeysFirst) else with_limits
                limited = follow(self._service, self.plan, self._handed.noisy, charged, self.charged.spent)
                assert self._account is not None
                charged = self._account.charge_reserved(limited, charged)
                self.plan, self._handed, waiting = limited, HandedOn(), [*limited.stages]

    def _require_as_planned(self) -> None:
        """The public facts are as they were planned. Raises Rejected DP409."""
        if self._reads_tables:
            self._service.facts.check_again(self.plan)

    def _noisy(self, planned: PlannedRelease, charged: Charged) -> NoisyRelease:
        """Ask for exact integers, and add noise; it may read the rows of the releases drawn so far."""
        before, receipt = self._handed.noisy, charged.receipt
        read = [n for n in before if any(s.reads(n.planned.label) for s in planned.statements)]
        earlier = {n.planned.label: as_query(n, self._service.engine.dialect) for n in read}
        salt = 0 if receipt is None or self._account is None else self._account.ledger.salt
        engine, noise = self._service.engine, self._noise
        try:
            given = charged.given[len(before)]
            return draw_release(planned, engine, receipt, salt, earlier, given, noise, self._is_untouched)
        except Exception:
            if not (self._service.is_closed or self._service.is_cut):  # which stop what runs
                self._kept.failed()
            raise

    def _notes(self) -> tuple[Note, ...]:
        """What the reader of an answer is told."""
        plan, noisy = self.plan, self._handed.noisy
        told = (
            *self._resolution.notes,
            *self._handed.notes,
            *self._kept.remarks,
            # Stored numbers were made by other mechanisms than planned: a threshold that is told is the one that was.
            *notes_of([n.planned.measured for n in noisy], plan.source),
            *(note for note in plan.notes if note.topic not in OF_RELEASES),
            *self._service.engine.notes,
            *((FORGETS,) if self._service.forgets and not plan.known else ()),
        )
        return in_order(told)


def _functions(releases: Sequence[PlannedRelease], given: Sequence[GivenAnswers]) -> list[tuple[str, str]]:
    """What a second asking calls: only before anything is drawn there may be one."""
    for planned, held in zip(releases, given, strict=True):
        if wanted(planned.measured, held):
            return [f for s in planned.statements if s.again is not None for f in s.again.functions]
    return []


class _Kept:
    """Stores what a run draws: at once; or, where others shall not see when that was, when it may leave.

    remarks: what the reader is told if an answer could not be stored. underway: until all of it is drawn; a run that
    failed, which a caller's stop is not, is noted where others may know of it.
    """

    def __init__(self, account: AnalystAccount | None) -> None:
        self.account, self.remarks = account, list[Note]()
        self.underway = None if account is None else account.underway()
        self._later: list[Callable[[AnalystAccount], list[Note]]] = []
        self.is_charged = False

    def charged(self, resolution: Resolution) -> Charged:
        """Charge all that is not given. Raises BudgetExceeded, CannotOpen."""
        if self.account is None or self.underway is None:
            return Charged.nothing(resolution.given)
        try:
            found = self.account.charge(resolution.to_draw, resolution.given, self.underway.begin)
        except BaseException:
            self.underway.end()
            raise
        self.is_charged = True
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
        if not self.is_charged:
            return
        try:
            if self.account is not None and self.account.leaving is not None:
                self.account.leaving()
                for later in self._later:
                    self.remarks += later(self.account)
        finally:
            if self.underway is not None:
                self.underway.end()
