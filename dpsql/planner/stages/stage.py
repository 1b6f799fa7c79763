"""A stage: one thing that a run does. A plan is a row of them, and a run folds it.

*Claim.* No exact integer is asked for beyond those that were charged, whichever stages a plan has; and what each may
lose is fixed before the first of them draws. *Why.* What a stage asks it declares as `releases`, and a run asks for
nothing else; shares are divided by `weighed` among all stages of a plan, before any noise is chosen, and one request
calibrates them together (`noise_of_stages.py`). Where a stage `finds` what those behind it are planned of, they stand
in the plan at their price, and that is charged with it; the core compares what follows with what was reserved
(`core/release/charge.py`). *When it would be false.* If a stage asked the engine for private rows while it hands on: it
is given noisy numbers and the place where the answer is made, which asks for public tables alone. *Tested by*
tests/service/test_stages.py, tests/core/release/test_reserved.py, tests/service/test_searches.py.

To add one: a file here with a subclass, and a line in `STAGES` (`plan_of_stages.py`). Its methods are asked in the
order in which they stand, and each has a default for stages that it does not concern.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar, Self

from dpsql.core.analysis.facts import Facts
from dpsql.core.ir.walk import Tagged
from dpsql.core.release.planned import PlannedRelease
from dpsql.diagnostics.note import Note
from dpsql.planner.stages.finished_tree import FinishedTree
from dpsql.planner.stages.query_to_plan import QueryToPlan

if TYPE_CHECKING:  # what loads numpy, as no check does
    from dpsql.core.engine import Engine
    from dpsql.core.release.noisy import NoisyRelease
    from dpsql.engines.scratch import Scratch
    from dpsql.planner.postprocessing.consistency.totals import Consistent
    from dpsql.planner.postprocessing.run import AnswerRows
    from dpsql.planner.postprocessing.searches.octaves import SearchResult
    from dpsql.planner.stages.noise_of_stages import NoiseOfStages


@dataclass(frozen=True, slots=True)
class HandedOn:
    """What the stages of a run have handed on so far.

    noisy: the releases that were drawn. consistent: totals that are the sums of their parts. notes: for the reader.
    rows: of the answer. cut: (release, component) → what its limit cuts, as far as a search tells it.
    """

    noisy: tuple[NoisyRelease, ...] = ()
    consistent: Consistent = field(default_factory=dict)
    notes: tuple[Note, ...] = ()
    rows: AnswerRows | None = None
    cut: Mapping[tuple[int, int], SearchResult] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Stage:
    """One thing that a run does. releases: the exact integers that it asks for, each with its noise; by default none.

    finds: whether what stands behind it is planned anew, of its noisy numbers.
    """

    finds: ClassVar[bool] = False
    releases: tuple[PlannedRelease, ...] = field(default=(), kw_only=True)

    @classmethod
    def of(cls, query: QueryToPlan, tree: FinishedTree) -> Self | None:
        """The stage of a query; None where it has none. Raises Rejected."""
        return None

    @property
    def trees(self) -> tuple[Tagged[Facts], ...]:
        """What it asks, beside what the stages before it ask."""
        return ()

    def weighed(self, weights: Mapping[int, Fraction], query: QueryToPlan, tree: FinishedTree) -> dict[int, Fraction]:
        """Number of an output column → its part of the whole, where others have 1; with this stage's share."""
        return dict(weights)

    def priced(self, own: tuple[PlannedRelease, ...], noise: NoiseOfStages, query: QueryToPlan) -> Self:
        """With the noise that was chosen. own: what it asks. Raises Rejected."""
        return replace(self, releases=own)

    @property
    def makes(self) -> object:
        """What of it decides the answer, beside the tree, the statements and the noise: part of the plan's identity."""
        return None

    def told(self, noise: NoiseOfStages, query: QueryToPlan) -> Iterator[Note]:
        """What the reader of the answer should know, before it is drawn."""
        return iter(())

    def handed_on(self, before: HandedOn, engine: Engine, scratch: Scratch) -> HandedOn:
        """What it makes of noisy numbers, once its own are drawn: public arithmetic.

        engine: for public tables. scratch: where the answer is made. Raises EngineError, CannotOpen.
        """
        return before
