"""Plan: what `check`, `explain`, `cost` and `run` all look at. A value; it holds no data and needs no database."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction

from dpsql.analysis.facts import Facts
from dpsql.compiler.forms import Form, Sources
from dpsql.diagnostics.diagnostic import Diagnostic, Source
from dpsql.loss import PrivacyLoss, largest
from dpsql.measure.measured import MeasuredRelease
from dpsql.numbers.confidence import LEVEL
from dpsql.plan.expr import Column
from dpsql.plan.public import FrequencyOf, RowsOf
from dpsql.plan.walk import Tagged
from dpsql.sql.shapes.statement import Statement


@dataclass(frozen=True, slots=True)
class PlannedRelease:
    """A measured release and the statements that fetch its exact integers."""

    measured: MeasuredRelease
    statements: tuple[Statement, ...]
    label: str


@dataclass(frozen=True, slots=True)
class Input:
    """Rows that a step reads: a release's (its place), or those of an earlier step.

    row: the step's hidden column that has their numbers, from 0; None where a row of the step stands for several.
    outputs: column → which output of the release it is.
    """

    release: int | None
    step: int | None
    row: int | None
    outputs: Mapping[int, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Selection:
    """Noisy numbers chose rows. counted: a query for how many there are, and how many there were before."""

    sources: Sources
    counted: str


@dataclass(frozen=True, slots=True)
class Step:
    """One statement of the post-processing, and how its numbers are made of noisy ones (`steps.py`).

    table: the scratch table that its rows become; None for the last one, whose rows are the answer's.
    hidden: names of its last columns, which only say where its rows come from; None for one that its rows no longer
    have. forms: of its columns, by number.
    chosen: the noisy numbers that decided which rows there are.
    """

    table: str | None
    sql: str
    hidden: tuple[str | None, ...]
    inputs: tuple[Input, ...]
    forms: Mapping[int, Form]
    selections: tuple[Selection, ...]
    chosen: Sources


@dataclass(frozen=True, slots=True)
class PostProcessing:
    """How the answer is made from the noisy tables `r0`, `r1`, …: public arithmetic.

    renamed: the answer is the rows of one release (`shown`) with its columns chosen in this order (positions), no
        engine needed; else the steps run in the scratch database, which needs these columns of the public tables
        listed. sql: the last one. Without releases it reads those tables in the engine itself, and there is no step.
    branches: for each release whose rows the answer's rows follow (several below UNION ALL) and each output column the
        (release, output position) that it shows unchanged; else None.
    """

    renamed: tuple[int, ...] | None
    shown: int
    sql: str
    public_tables: tuple[tuple[str, tuple[Column, ...]], ...]
    branches: tuple[tuple[tuple[int, int] | None, ...], ...]
    steps: tuple[Step, ...] = field(default=(), compare=False)


@dataclass(frozen=True, slots=True)
class Coverage:
    """A release that no column of the answer shows: how many units are above limits of another one.

    tree: with its facts. place, of: where this release and the one that is limited stand among those of the plan.
    limits: each limit in words; the keys of the release say in the same order whether a unit is above it.
    """

    tree: Tagged[Facts]
    place: int
    of: int
    limits: tuple[str, ...]


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
