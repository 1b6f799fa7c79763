"""Plan: what `check`, `explain`, `cost` and `run` all look at. A value; it holds no data and needs no database."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, TypeVar

from dpsql.core.analysis.facts import Facts
from dpsql.core.ir.expressions import Column
from dpsql.core.ir.fingerprint import Fingerprint
from dpsql.core.ir.periods import Closed, Span
from dpsql.core.ir.public_facts import FrequencyOf, RowsOf
from dpsql.core.ir.walk import Tagged
from dpsql.core.numbers.confidence import LEVEL
from dpsql.core.privacy_loss import PrivacyLoss, largest
from dpsql.core.release.planned import PlannedRelease
from dpsql.diagnostics.diagnostic import Diagnostic, Source
from dpsql.diagnostics.note import Note
from dpsql.planner.postprocessing.planning.steps import Coverage, PostProcessing
from dpsql.planner.postprocessing.searches.octaves import SearchResult
from dpsql.planner.settings.query_settings import QuerySettings
from dpsql.planner.stages.answering_rows import AnsweringRows
from dpsql.planner.stages.covering import Covering
from dpsql.planner.stages.keys_first import KeysFirst
from dpsql.planner.stages.part_of_batch import PartOfBatch
from dpsql.planner.stages.releasing import Releasing
from dpsql.planner.stages.searching import LimitsFound, Searches
from dpsql.planner.stages.stage import Stage
from dpsql.planner.stages.stage_that_finds import StageThatFinds
from dpsql.planner.stages.totalling import Totalling

if TYPE_CHECKING:
    from dpsql.planner.postprocessing.consistency.totals import Totals  # which loads numpy

S = TypeVar("S", bound=Stage)


@dataclass(frozen=True, slots=True)
class Bid:
    """What the analyst asked the plan to be made for.

    max_error: output column → the largest half-width, or number of rows, at `confidence` that ε was found for; empty
    where ε was given. allow_dearer: stored answers may cost the account more than the plan's cost. unpriced: nobody
    said what it may cost: it is answered from what is held, or not at all.
    """

    epsilon: Fraction
    delta: Fraction
    max_error: Mapping[str, Fraction] = field(default_factory=dict)
    confidence: Fraction = LEVEL
    allow_dearer: bool = False
    unpriced: bool = False


@dataclass(frozen=True, slots=True)
class Basis:
    """What a plan relies on.

    public: facts about public tables; checked again before the run. complete: every one was known; a static plan may
    lack key lists and cannot be run. periods: growing table → what was closed of it.
    """

    policy_hash: str
    public: Mapping[FrequencyOf | RowsOf, int] = field(default_factory=dict)
    complete: bool = True
    periods: Mapping[str, Closed] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Written:
    """The parameters of a query's text, and its settings: with these it is planned again. finds: it has no text, and
    finds limits of one that has.
    """

    parameters: Sequence[Any] | Mapping[str, Any] = ()
    settings: QuerySettings = field(default_factory=QuerySettings)
    finds: bool = False


@dataclass(frozen=True, slots=True)
class Plan:
    """A query that may be run: what a run does, stage by stage, and its exact cost.

    written: of what else than the text it was made.
    stages: in the order of a run. Those behind one that `finds` stand at their price. cost: privacy unit → loss of all
    stages, recomputed from the mechanisms, in the policy's accountant. notes: what was clipped or bounded, for the
    reader of the result, dangers first.
    """

    source: Source
    columns: tuple[Column, ...]
    stages: tuple[Stage, ...]
    cost: Mapping[str, PrivacyLoss]
    notes: tuple[Note, ...]
    bid: Bid
    basis: Basis
    identity: Fingerprint = field(compare=False)
    written: Written = field(default=Written(), compare=False)

    # --- its stages --------------------------------------------------------------------------------------------------

    def stage(self, kind: type[S]) -> S | None:
        """The stage of a kind, if it has one."""
        return next((stage for stage in self.stages if isinstance(stage, kind)), None)

    @property
    def releasing(self) -> Releasing:
        """What every plan has: the query's own numbers."""
        found = self.stage(Releasing)
        assert found is not None
        return found

    @property
    def tree(self) -> Tagged[Facts]:
        """What is read of the query, with facts."""
        return self.releasing.tree

    @property
    def unread(self) -> tuple[Note, ...]:
        """Why parts of the query have no rows whatever the data hold; they are not in the tree."""
        return self.releasing.unread

    @property
    def warnings(self) -> tuple[Diagnostic, ...]:
        """What would make the answer useless (DP5xx)."""
        return self.releasing.warnings

    @property
    def releases(self) -> tuple[PlannedRelease, ...]:
        """Of all stages but those that find something, with their mechanisms; of limits that are not found, with 1."""
        asking = [stage.releases for stage in self.stages if stage.releases and not stage.finds]
        return asking[0] if len(asking) == 1 else tuple(release for own in asking for release in own)

    @property
    def post(self) -> PostProcessing:
        """How the answer is made."""
        found = self.stage(AnsweringRows)
        assert found is not None and found.post is not None
        return found.post

    @property
    def coverage(self) -> tuple[Coverage, ...]:
        """What tells how many units are above the limits, where that was asked for."""
        found = self.stage(Covering)
        return () if found is None else found.coverage

    @property
    def totals(self) -> tuple[Totals, ...]:
        """Numbers that are made the sums of their parts."""
        found = self.stage(Totalling)
        return () if found is None else found.totals

    @property
    def searches(self) -> Searches | None:
        """What finds limits before the releases can be drawn; None: all limits are known."""
        return self.stage(Searches)

    @property
    def keys_first(self) -> KeysFirst | None:
        """What shows the keys of the groups before anything else; None: they are public, or released with all."""
        return self.stage(KeysFirst)

    @property
    def finding(self) -> StageThatFinds | None:
        """What is drawn first, where what follows is planned of its answers; None: all is known."""
        return next((stage for stage in self.stages if isinstance(stage, StageThatFinds)), None)

    @property
    def found(self) -> tuple[SearchResult, ...]:
        """What the limits of this plan were read from."""
        found = self.stage(LimitsFound)
        return () if found is None else found.results

    @property
    def found_of_own_rows(self) -> tuple[SearchResult, ...]:
        """Those of them that tell what is above the limits of this very answer."""
        found = self.stage(LimitsFound)
        return () if found is None else found.of_own_rows

    @property
    def is_part(self) -> bool:
        """Whether it measures a part of a batch or summary. Answers of other plans do not answer it."""
        return self.stage(PartOfBatch) is not None

    def with_releases(self, releases: Sequence[PlannedRelease]) -> Plan:
        """The plan with other releases in the place of those that it has."""
        waiting, stages = iter(releases), []
        for stage in self.stages:
            own = stage.releases if stage.finds else tuple(next(waiting) for _ in stage.releases)
            stages.append(replace(stage, releases=own))
        return replace(self, stages=tuple(stages))

    # --- what a run draws, and when -----------------------------------------------------------------------------------

    @property
    def first(self) -> Plan:
        """What a run draws before anything else: keys or searches, if there are any, else all."""
        return self if self.finding is None else self.finding.plan

    @property
    def later(self) -> tuple[PlannedRelease, ...]:
        """What is drawn after keys or searches: charged with them, and planned of what they find."""
        first = self.finding
        if first is None:
            return ()
        asked = () if self.searches is None else self.searches.asked[len(first.releases) * (first is self.searches) :]
        return (*asked, *self.releases)

    @property
    def reads_nothing(self) -> bool:
        """True if neither data nor stored answers are needed: no release has rows, and no public table is read."""
        return bool(self.unread) and all(r.measured.empty for r in self.releases) and not self.post.public_tables

    @property
    def known(self) -> bool:
        """True if no noise is needed: nothing is charged, and no ledger is looked at."""
        return all(r.measured.known for r in self.releases)

    @property
    def hash(self) -> str:
        """What is asked, of what policy, how it is drawn and how the answer is made of it: equal for equal plans."""
        return str(self.identity)

    @property
    def loss(self) -> PrivacyLoss:
        """The largest cost over all privacy units: what the analyst reads as the price of the query."""
        return largest(self.cost.values())


@dataclass(frozen=True, slots=True)
class Charge:
    """What a run of a plan would charge an account now.

    by_unit: privacy unit → loss, where there is one. notes: which numbers are given from stored answers. new: the part
    for new noise, which counts in the total, too. days: of units with accounts by period, those that are charged.
    """

    by_unit: Mapping[str, PrivacyLoss]
    notes: tuple[Note, ...] = ()
    new: Mapping[str, PrivacyLoss] = field(default_factory=dict)
    days: Mapping[str, tuple[Span, ...]] = field(default_factory=dict)

    @classmethod
    def of_new(cls, plan: Plan) -> Charge:
        """For new noise throughout."""
        found = {unit: loss for unit, loss in plan.cost.items() if loss != PrivacyLoss()}
        return cls(found, new=found)

    @property
    def loss(self) -> PrivacyLoss:
        """The largest over all privacy units."""
        return largest(self.by_unit.values())
