"""Plan: what `check`, `explain`, `cost` and `run` all look at. A value; it holds no data and needs no database."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from dpsql.core.analysis.facts import Facts
from dpsql.core.ir.expressions import Column
from dpsql.core.ir.fingerprint import Fingerprint
from dpsql.core.ir.public_facts import FrequencyOf, RowsOf
from dpsql.core.ir.walk import Tagged
from dpsql.core.numbers.confidence import LEVEL
from dpsql.core.privacy_loss import PrivacyLoss, largest
from dpsql.core.release.planned import PlannedRelease
from dpsql.diagnostics.diagnostic import Diagnostic, Source
from dpsql.planner.postprocessing.planning.steps import Coverage, PostProcessing
from dpsql.planner.postprocessing.searches.octaves import SearchResult
from dpsql.planner.searches.limits_to_search import LimitToSearch
from dpsql.planner.settings.query_settings import QuerySettings


@dataclass(frozen=True, slots=True)
class Plan:
    """A query that may be run: its tree with facts, its releases with mechanisms, and its exact cost.

    cost: privacy unit → loss, recomputed from the mechanisms, in the policy's accountant.
    public: facts about public tables the plan relies on; checked again before the run.
    complete: every public fact was known; a static plan may lack key lists and cannot be run.
    notes: what was clipped or bounded, for the reader of the result. warnings: utility warnings (DP5xx).
    max_error: output column → the largest half-width, or number of rows, at `confidence` that ε was found for; empty
    where ε was given.
    allow_dearer: stored answers may cost the account more than `cost`.
    unread: why parts of the query have no rows whatever the data hold, for the reader; they are not in the plan.
    coverage: what tells how many units are above the limits, where that was asked for.
    searches: what finds limits before the releases can be drawn, which stand here with limits of 1; `cost` is that of
    both. None: all limits are known. found: what the limits of this plan were read from.
    unlisted: it measures a part of a batch or summary, and is answered by no other one. unpriced: nobody said what it
    may cost: it is answered from what is held, or not at all.
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
    identity: Fingerprint = field(compare=False)
    public: Mapping[FrequencyOf | RowsOf, int] = field(default_factory=dict)
    complete: bool = True
    notes: tuple[str, ...] = ()
    warnings: tuple[Diagnostic, ...] = ()
    max_error: Mapping[str, Fraction] = field(default_factory=dict)
    confidence: Fraction = LEVEL
    allow_dearer: bool = False
    unread: tuple[str, ...] = ()
    coverage: tuple[Coverage, ...] = ()
    searches: Searches | None = None
    unlisted: bool = False
    unpriced: bool = False
    found: tuple[SearchResult, ...] = field(default=(), compare=False)

    @property
    def hash(self) -> str:
        """What is asked, of what policy, how it is drawn and how the answer is made of it: equal for equal plans."""
        return str(self.identity)

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

    @property
    def first(self) -> Plan:
        """What a run draws before anything else: the searches, if there are any, else all."""
        return self if self.searches is None else self.searches.plan

    @property
    def later(self) -> tuple[PlannedRelease, ...]:
        """What is drawn after searches: charged with them, and scaled by the limits that they find."""
        return () if self.searches is None else self.releases


@dataclass(frozen=True, slots=True)
class SearchedLimit:
    """A limit, and what its rule reads beside the noisy numbers: all public, and fixed before any is drawn.

    release: the place of its octaves among the releases of the search. noise: of the query's numbers, in all groups
    together, for each unit of the limit. largest: the highest octave whose limit can be measured. follow: the (release,
    component) of the query whose noise is a multiple of the limit. threshold: of private keys that one group of a unit
    would have, where their number has to be guessed from the octaves; 0 for public ones.
    """

    limit: LimitToSearch
    release: int
    noise: Fraction
    largest: int
    follow: tuple[tuple[int, int], ...] = ()
    threshold: int = 0


@dataclass(frozen=True, slots=True)
class Searches:
    """What finds the limits of a query, and what the query is compiled of once they are found.

    plan: the octaves, an ordinary plan with a price of its own. cells: how many there are of all searches together.
    settings, parameters: of the query, whose noise stays of the family that it is of now.
    """

    plan: Plan
    limits: tuple[SearchedLimit, ...]
    cells: int
    settings: QuerySettings
    parameters: Sequence[Any] | Mapping[str, Any]

    def limit_of(self, release: int, component: int) -> SearchedLimit | None:
        """What the noise of a component of the query is a multiple of."""
        return next((limit for limit in self.limits if (release, component) in limit.follow), None)


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
