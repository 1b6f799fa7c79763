"""Running a plan: look stored answers up, reserve what the rest costs, measure it, store it, and only then show it.

*Claim.* Whatever is killed and whenever: no noisy number is shown that is not charged, and the same question asked
twice at one time is charged once. *Why.* Reserve, draw, store, show, in this order; the ledger's entry names the
answers before their noise is drawn, and a stored answer that no entry names is never served. Whoever has something to
pay holds the names of the releases until it is stored, and looks again after he got them. *When it would be false.* If
the store were asked for an answer under a name that stands for another question (answers/address.py). *Tested by*
tests/answers/test_reuse.py, tests/deep/answers/test_processes.py.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from datetime import UTC, datetime

from dpsql.answers.account import Account, Ids, in_account
from dpsql.answers.address import Grounds
from dpsql.answers.choosing import released_rows
from dpsql.answers.notes import given_notes
from dpsql.answers.reuse import Reuse
from dpsql.answers.store.store import AnswerStore
from dpsql.answers.storing import names_of, to_store
from dpsql.core.engine import Engine
from dpsql.core.noise.backends import EXACT, Backend, BackendName, backend
from dpsql.core.privacy_loss import NO_LOSS
from dpsql.core.release.noisy import Given, NoisyRelease, measure_release, wanted
from dpsql.diagnostics.errors import BudgetExceeded
from dpsql.engines.duckdb.scratch import Scratch
from dpsql.planner.notes import notes_of
from dpsql.planner.plan import Plan
from dpsql.postprocessing.coverage import coverage_notes, covered
from dpsql.postprocessing.noisy_rows import as_query
from dpsql.postprocessing.run import post_process
from dpsql.results.answer import Release
from dpsql.service.public_facts import FactStore


@dataclass(frozen=True, slots=True)
class Runner:
    """Where plans are run. noise: who draws it."""

    engine: Engine
    facts: FactStore
    scratch: Scratch
    noise: BackendName

    def free(self, plan: Plan) -> Release:
        """Run a plan that needs no noise."""
        return self._execute(plan, Reuse.nothing(plan))

    def run(self, plan: Plan, account: Account, fresh: bool) -> Release:
        """Run a plan on an account. fresh: pay for new noise, whatever is stored.

        Raises Rejected (DP409, DP905), BudgetExceeded, CannotOpen (nothing ran), EngineError.
        """
        grounds = account.grounds(plan)
        if fresh:
            return self._execute(plan, Reuse.nothing(plan), account, grounds)
        reuse = account.look_up(plan, grounds)
        if reuse.complete(plan) and not reuse.new:
            return self._execute(plan, reuse, account, grounds)
        private = [at for at, r in enumerate(plan.releases) if wanted(r.measured, Given())]
        names = {grounds.ground(at).name for at in private}
        return account.store.alone(names, lambda: self._reuse(plan, account, grounds))

    def _reuse(self, plan: Plan, account: Account, grounds: Grounds) -> Release:
        # Whoever held the names before may have stored what we need.
        reuse = account.look_up(plan, grounds)
        told = account.look_up(plan, grounds, preview=True) if reuse.new else reuse
        if told != reuse and not account.may_use(plan, reuse, told):
            reuse = told
        try:
            return self._execute(plan, reuse, account, grounds)
        except BudgetExceeded as refusal:
            # The choice saw what was left to the account, which another process may have spent meanwhile.
            now = account.look_up(plan, grounds, preview=True)
            if now in (reuse, told):
                account.name_dearer(refusal, plan, grounds)
                raise
            return self._execute(plan, now, account, grounds)

    def _execute(
        self, plan: Plan, reuse: Reuse, account: Account | None = None, grounds: Grounds | None = None
    ) -> Release:
        ids = {
            (at, i): name
            for at, (release, given) in enumerate(zip(plan.releases, reuse.given, strict=True))
            for i, name in names_of(release.measured, given, uuid.uuid4().hex).items()
        }
        # Asked for before anything is charged, and only where noise is to be drawn: stored answers need nobody.
        drawing = EXACT if reuse.complete(plan) else backend(self.noise)
        if plan.reads_nothing:
            return self._release(plan, reuse, ids, drawing, account, grounds)

        def run() -> Release:
            self.facts.check_again(plan)
            return self._release(plan, reuse, ids, drawing, account, grounds)

        return self.engine.in_snapshot(run)

    def _release(
        self, plan: Plan, reuse: Reuse, ids: Ids, drawing: Backend, account: Account | None, grounds: Grounds | None
    ) -> Release:
        noisy: list[NoisyRelease] = []
        notes: list[str] = []
        receipt = None if account is None else account.reserve(plan, reuse, ids)
        salt = 0 if receipt is None or account is None else account.ledger.salt
        for planned, given in zip(plan.releases, reuse.given, strict=True):
            read = [n for n in noisy if any(s.reads(n.planned.label) for s in planned.statements)]
            earlier = {n.planned.label: as_query(n) for n in read}
            noisy.append(measure_release(planned, self.engine, receipt, salt, earlier, given, drawing))
            if account is not None and grounds is not None and wanted(planned.measured, given):
                notes += _stored(noisy, given, ids, account.store, grounds)
        rows = post_process(plan.post, noisy, self.engine, self.scratch)
        spent = NO_LOSS if receipt is None else in_account(receipt.entry)
        served = () if account is None else given_notes(plan, reuse, reuse.received(plan, account.policy))
        expected = notes_of([r.measured for r in plan.releases])
        made = notes_of([n.planned.measured for n in noisy])
        told = coverage_notes(covered(plan.coverage, noisy))
        return Release(
            tuple(c.name for c in plan.columns),
            tuple(c.type for c in plan.columns),
            spent,
            # Stored numbers were made by other mechanisms than planned: a threshold that is told is the one that was.
            (
                *served,
                *told,
                *dict.fromkeys(notes),
                *made,
                *(n for n in plan.notes if n not in expected),
                *self.engine.notes,
            ),
            plan,
            tuple(noisy),
            rows,
        )


def _stored(noisy: list[NoisyRelease], given: Given, ids: Ids, store: AnswerStore, grounds: Grounds) -> list[str]:
    """Store what was measured last; a note if that fails: the answer is paid for, so it is shown all the same."""
    place = len(noisy) - 1
    ground = grounds.ground(place, {at: released_rows(noisy[at]) for at in grounds.reads(place)})
    own = {i: name for (at, i), name in ids.items() if at == place}
    answers = to_store(noisy[place], given, ground, own, datetime.now(UTC))
    try:
        store.add(answers)
    except Exception:  # whatever it is, keeping back what was paid for helps nobody
        return ["the answer could not be stored: asking again costs again"]
    return []
