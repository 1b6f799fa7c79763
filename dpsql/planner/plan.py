"""Plan: what `check`, `explain`, `cost` and `run` all look at. A value; it holds no data and needs no database."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction

from dpsql.core.analysis.facts import Facts
from dpsql.core.ir.expressions import Column
from dpsql.core.ir.public_facts import FrequencyOf, RowsOf
from dpsql.core.ir.walk import Tagged
from dpsql.core.numbers.confidence import LEVEL
from dpsql.core.privacy_loss import PrivacyLoss, largest
from dpsql.core.release.planned import PlannedRelease
from dpsql.diagnostics.diagnostic import Diagnostic, Source
from dpsql.postprocessing.planning.steps import Coverage, PostProcessing


@dataclass(frozen=True, slots=True)
class Plan:
    """A query that may be run: its tree with facts, its releases with mechanisms, and its exact cost.

    cost: privacy unit → loss, recomputed from the mechanisms, in the policy's accountant.
    public: facts about public tables the plan relies on; checked again before the run.
    complete: every public fact was known; a static plan may lack key lists and cannot be run.
    notes: what was clipped or bounded, for the reader of the result. warnings: utility warnings (DP5xx).
    max_error: output column → the largest half-width at `confidence` that ε was found for; empty where ε was given.
    allow_dearer: stored answers may cost the account more than `cost`.
    unread: why parts of the query have no rows whatever the data hold, for the reader; they are not in the plan.
    coverage: what tells how many units are above the limits, where that was asked for.
    """

    source: Source
    columns: tuple[Column, ...]
    tree: Tagged[Facts]
    releases: tuple[PlannedRelease, ...]
    post: PostProcessing
    epsilon: Fraction
    delta: Fraction
    cost: Mapping[str, PrivacyLoss]
    policy_hash: str
    hash: str
    public: Mapping[FrequencyOf | RowsOf, int] = field(default_factory=dict)
    complete: bool = True
    notes: tuple[str, ...] = ()
    warnings: tuple[Diagnostic, ...] = ()
    max_error: Mapping[str, Fraction] = field(default_factory=dict)
    confidence: Fraction = LEVEL
    allow_dearer: bool = False
    unread: tuple[str, ...] = ()
    coverage: tuple[Coverage, ...] = ()

    @property
    def reads_nothing(self) -> bool:
        """True if neither data nor stored answers are needed: no release has rows, and no public table is read."""
        return bool(self.unread) and all(r.measured.empty for r in self.releases) and not self.post.public_tables

    @property
    def known(self) -> bool:
        """True if no noise is needed: nothing is charged, and no ledger is looked at."""
        return all(r.measured.known for r in self.releases)

    @property
    def loss(self) -> PrivacyLoss:
        """The largest cost over all privacy units: what the analyst reads as the price of the query."""
        return largest(self.cost.values())


@dataclass(frozen=True, slots=True)
class Charge:
    """What a run of a plan would charge an account now.

    by_unit: privacy unit → loss, where there is one. notes: which numbers are given from stored answers.
    """

    by_unit: Mapping[str, PrivacyLoss]
    notes: tuple[str, ...] = ()

    @classmethod
    def of_new(cls, plan: Plan) -> Charge:
        """For new noise throughout."""
        return cls({unit: loss for unit, loss in plan.cost.items() if loss != PrivacyLoss()})

    @property
    def loss(self) -> PrivacyLoss:
        """The largest over all privacy units."""
        return largest(self.by_unit.values())
