"""A batch: counts and sums over one relation, measured together and paid for once.

Its marginals are one ordinary query of this session, which is planned, priced, charged, drawn and stored as any other.
How ε is divided between them follows from the texts alone, before anything is drawn; all the rest is arithmetic.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING

from dpsql.answers.results.answer import Release
from dpsql.core.noise.mechanisms.laplace import DiscreteLaplace
from dpsql.core.numbers.confidence import LEVEL
from dpsql.core.privacy_loss import PrivacyLoss
from dpsql.core.release.planned import PlannedRelease
from dpsql.diagnostics.errors import Rejected, reject
from dpsql.diagnostics.note import Note, Rank, Topic, in_order
from dpsql.planner.batch.estimate import CellNoise, Measured
from dpsql.planner.batch.member_answers import ToldNumber
from dpsql.planner.batch.quantities import Mean, Quantity
from dpsql.planner.batch.workload import Marginal
from dpsql.planner.plan import Plan
from dpsql.service.batches.batch_design import (
    Design,
    WrittenMember,
    designed,
    marginal_settings,
    read_members,
    require_additive,
)
from dpsql.service.batches.batch_release import BatchAnswer, BatchRelease, answer_of
from dpsql.service.checks.check import to_look
from dpsql.service.given_arguments import Parameters
from dpsql.service.planning.planning import WrittenQuery
from dpsql.service.privacy_settings import Amount, settled

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from dpsql.planner.settings.query_settings import QuerySettings
    from dpsql.service.session import Session

Statement = str | tuple[str, Parameters]
_OF_MARGINALS = frozenset({Topic.CLIP, Topic.TOTAL, Topic.OTHER_KEYS, Topic.WIDTH})
"""What notes say of columns and clips of a text that nobody has written."""


class Batch:
    """Counts and sums over one relation, to look at and to run together. Everything but `run` spends nothing.

    >>> con = dpsql.connect("clinic.yaml")
    >>> batch = con.batch([
    ...     "SELECT region, COUNT(*) AS n FROM patients GROUP BY region",
    ...     "SELECT COUNT(*) AS n FROM patients WHERE age >= 65",
    ... ])
    >>> batch.cost(epsilon=0.5)
    PrivacyLoss(epsilon=0.5)
    """

    def __init__(
        self,
        session: Session,
        statements: Sequence[Statement | WrittenMember],
        skip_refused: bool,
        heard: Callable[[QuerySettings], QuerySettings] = lambda settings: settings,
    ) -> None:
        """heard: settings as the batch itself says them, in a comment before it."""
        self._session, self._skip, self._heard = session, skip_refused, heard
        self._statements = [_written(statement) for statement in statements]
        self._found: Design | None = None

    # --- planning ----------------------------------------------------------------------------------------------------

    @property
    def design(self) -> Design:
        """What is asked and measured. Raises Rejected."""
        if self._found is None:
            facts, policy = self._session.service.facts, self._session.policy
            read = read_members(self._statements, policy, self._skip)
            with facts.lock:
                self._found = facts.compile(lambda public: designed(self._statements, read, policy, public, self._skip))
        return self._found

    def plan(self, epsilon: Amount | None = None, *, rho: Amount | None = None) -> Plan:
        """The query that measures all marginals, each at its share. Raises Rejected."""
        return self.planned_with(settled({"epsilon": epsilon, "rho": rho}, self._session.settings))

    def previewed(self, settings: QuerySettings) -> Plan:
        """As `planned_with`, at a nominal ε where no one is known, so that it can always be shown. Raises Rejected."""
        return self.planned_with(to_look(self._heard(settings), self._session.policy))

    def planned_with(self, settings: QuerySettings) -> Plan:
        """As `plan`, with settings that are complete. Raises Rejected."""
        design, policy, settings = self.design, self._session.policy, self._heard(settings)
        if settings.epsilon is None and settings.rho is None and policy.defaults.epsilon is None:
            raise reject("DP401", "no epsilon was given, and the policy has no default", help=["run(epsilon=0.5)"])
        if settings.max_error or settings.weights:
            raise reject(
                "DP411", "a batch divides its price itself: it takes no largest error and no weights of columns",
                help=["give epsilon or rho: EXPLAIN tells the ± of each number", "ask for it in a query by itself"],
            )  # fmt: skip
        asked = marginal_settings(settings, design)
        try:
            plan = self._session.planned_with(WrittenQuery(design.sql), asked)
        except Rejected as refusal:  # its places are in a text that nobody has written
            source = next(iter(design.members.values())).source
            refusal.diagnostics = tuple(replace(d, source=source, span=None) for d in refusal.diagnostics)
            raise
        require_additive(plan)
        return plan

    # --- looking and running -----------------------------------------------------------------------------------------

    def cost(self, epsilon: Amount | None = None, *, rho: Amount | None = None) -> PrivacyLoss:
        """What a run charges now: stored marginals are free. Raises Rejected, CannotOpen."""
        return self._session.price(self.plan(epsilon, rho=rho))

    def explain(self, epsilon: Amount | None = None, *, rho: Amount | None = None) -> str:
        """What is measured, at which share, and the ± of each member's numbers. Raises Rejected."""
        return self.explained(self.previewed(settled({"epsilon": epsilon, "rho": rho}, self._session.settings)))

    def explained(self, plan: Plan) -> str:
        """`explain`, of a plan of this batch."""
        design = self.design
        measured = self._measured(plan.releases)
        count = sum(len(column) for t in design.tables.values() for column in t.numbers)
        lines = [f"batch of {len(design.members)} queries, {count} numbers", ""]
        lines.append("share   cells  σ of a cell  measured")
        for q, m, s in design.measured:
            of = measured[q]
            cells, spread_of = math.prod(of.sizes[u] for u in m), math.sqrt(of.noise[m].variance)
            lines.append(f"{float(s):.3f} {cells:>7,} {spread_of:>12.1f}  {q.sql} by {design.name(m)}")
        lines.append("")
        for place, member in design.members.items():
            told = [self._worst(place, i, measured) for i in range(len(member.calls))]
            lines.append(f"query {place + 1}: {'; '.join(told)}")
        lines += [f"query {place + 1}: refused: {r.diagnostics[0].message}" for place, r in design.refused.items()]
        lines.append(f"cost: {self._session.charge_to_show(plan).loss}")
        return "\n".join(lines)

    def _worst(self, place: int, at: int, measured: Mapping[Quantity, Measured]) -> str:
        """The largest ± of a column of numbers, and what it would be alone."""
        design = self.design
        member, form = design.members[place], design.forms[place][at]
        call = member.calls[at]
        name = next(
            (c.name for c, p in zip(member.columns, member.shown, strict=True) if p == len(member.keys) + at), ""
        )
        widths = [
            ToldNumber(form, n, call.column.type, measured).width(float(LEVEL))
            for n in design.tables[place].numbers[at]
        ]
        worst = max(widths, default=0.0)
        if isinstance(form, Mean):
            return f"{name} at most ± {worst:,.1f}/rows"
        half = 0.5 if call.column.type.kind.name == "INTEGER" else 0.0
        return (
            f"{name} at most ± {worst + half:,.1f}; alone, at an equal part, ± {self._alone(form.unit, measured):,.1f}"
        )

    def _alone(self, unit: Fraction, measured: Mapping[Quantity, Measured]) -> float:
        """The ± of a number that is asked by itself with its equal part of the same price. unit: its largest row."""
        design = self.design
        quantity, marginal, share = design.measured[0]
        part, noise = share * len(design.tables), measured[quantity].noise[marginal]
        deviation = math.sqrt(noise.variance) * float(unit / quantity.most)
        if design.gaussian:
            return deviation * math.sqrt(part) * 1.96
        return deviation / math.sqrt(2) * float(part) * math.log(20)

    def run(
        self,
        epsilon: Amount | None = None,
        *,
        rho: Amount | None = None,
    ) -> BatchRelease:
        """Measure every marginal, and answer every member from all of them.

        Raises Rejected, BudgetExceeded (nothing ran), EngineError (what was charged stays charged; what was drawn is
        stored, and the same batch goes on from there).
        """
        return self.answered(self._session.run(self.plan(epsilon, rho=rho)))

    def answered(self, release: Release) -> BatchRelease:
        """The answers of all members from the marginals. release: of a run of this batch's plan."""
        import numpy as np

        design = self.design
        cells: dict[Quantity, dict[Marginal, NDArray[np.float64]]] = {q: {} for q in design.shares}
        for (q, marginal, _), noisy in zip(design.measured, release._noisy, strict=True):
            grain = _grain(noisy.planned)
            of = cells[q][marginal] = np.zeros(tuple(design.classes[uid].size for uid in marginal))
            for key, (integer,) in zip(noisy.keys, noisy.values, strict=True):
                of[key] = float(integer * grain)  # type: ignore[index]  # the numbers of classes
        measured = self._measured(release._made)
        is_cut = any(form.lost for step in release.plan.post.steps for form in step.forms.values())
        answers: list[BatchAnswer | None] = [None] * len(self._statements)
        for p, table in design.tables.items():
            answers[p] = answer_of(design.members[p], table, design.forms[p], measured, cells, is_cut)
        notes = [Note(clip, Rank.BIAS) for q in design.shares for clip in q.clips]
        notes += [note for note in release.notes if note.topic not in _OF_MARGINALS]
        others = [c.name for c in design.classes.values() if not c.complete]
        if others:
            listed = f"members that read {', '.join(others)} count rows whose value is listed"
            notes.append(Note(listed, Rank.DANGER))
        return BatchRelease(tuple(answers), release.spent, in_order(notes), design.refused)

    def _measured(self, made: Sequence[PlannedRelease]) -> dict[Quantity, Measured]:
        """The noise of every marginal. made: their releases, in order."""
        design = self.design
        noise: dict[Quantity, dict[Marginal, CellNoise]] = {q: {} for q in design.shares}
        for (q, marginal, _), release in zip(design.measured, made, strict=True):
            noise[q][marginal] = _noise(release)
        return {q: Measured(each, design.sizes) for q, each in noise.items()}

    def __repr__(self) -> str:
        return f"<dpsql batch of {len(self._statements)} queries>"


def _written(statement: Statement | WrittenMember) -> WrittenMember:
    match statement:
        case str():
            return WrittenMember(statement)
        case WrittenMember():
            return statement
    return WrittenMember(*statement)


def _noise(release: PlannedRelease) -> CellNoise:
    """Of each cell of a marginal, in the unit of the number that is shown for it."""
    (measurement,) = release.measured.measurements
    grain, mechanism = float(_grain(release)), measurement.mechanism
    scale = float(mechanism.scale) * grain if isinstance(mechanism, DiscreteLaplace) else None
    return CellNoise(mechanism.variance() * grain**2, scale, grain)


def _grain(release: PlannedRelease) -> Fraction:
    """What one of its noisy integers is worth."""
    (measurement,) = release.measured.measurements
    (output,) = release.measured.node.outputs
    (term,) = output.recipe.terms([measurement.component]) or ()
    return term[1]
