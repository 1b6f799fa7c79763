"""How an answer is made from noisy tables: statements over public rows, as values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from dpsql.core.analysis.facts import Facts
from dpsql.core.ir.expressions import Column
from dpsql.core.ir.walk import Tagged
from dpsql.core.printing.expressions import Aliases
from dpsql.core.printing.relational_nodes import Emitter
from dpsql.engines.scratch import Scratch
from dpsql.planner.postprocessing.planning.forms import Form, Sources


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
    """Noisy numbers chose rows: those of one tree among those of another."""

    sources: Sources
    left: Tagged[Facts]
    there: Tagged[Facts]

    @property
    def counted(self) -> str:
        """A query of the scratch database for how many there are, and how many there were before."""
        # No columns: those of public tables that nobody reads are not loaded.
        left, there = (f"(SELECT COUNT(*) FROM ({printer().query(t, [])}) AS t)" for t in (self.left, self.there))
        return f"SELECT {left} AS c1, {there} AS c2"


def printer() -> Emitter:
    """Of one statement of the scratch database."""
    return Emitter(Scratch.dialect, Scratch.table_sql, {}, Aliases())


@dataclass(frozen=True, slots=True)
class Step:
    """One statement of the post-processing, and how its numbers are made of noisy ones
    (`planner/postprocessing/planning/cut_statements.py`).

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
class CutEnd:
    """An end of an interval in SQL, of a number that a limit cuts. is_lost: NULL; else it is the only one, of what is
    never below 0. told: unless octaves tell how much is cut, once they are drawn.
    """

    is_lost: bool
    told: bool


@dataclass(frozen=True, slots=True)
class PostProcessing:
    """How the answer is made from the noisy tables `r0`, `r1`, …: public arithmetic.

    renamed: the answer is the rows of one release (`shown`) with its columns chosen in this order (positions), no
        engine needed; else the steps run in the scratch database, which needs these columns of the public tables
        listed. sql: the last one. Without releases it reads those tables in the engine itself, and there is no step.
    branches: for each release whose rows the answer's rows follow (several below UNION ALL) and each output column the
        (release, output position) that it shows unchanged; else None.
    columns: of the answer. empty: it has no row, whatever the data hold.
    cut_ends: (release, output) of ends of intervals (DP_INTERVAL_HIGH) of numbers that a limit cuts.
    """

    renamed: tuple[int, ...] | None
    shown: int
    sql: str
    public_tables: tuple[tuple[str, tuple[Column, ...]], ...]
    branches: tuple[tuple[tuple[int, int] | None, ...], ...]
    columns: tuple[Column, ...] = field(default=(), compare=False)
    empty: bool = field(default=False, compare=False)
    steps: tuple[Step, ...] = field(default=(), compare=False)
    cut_ends: Mapping[tuple[int, int], CutEnd] = field(default_factory=dict, compare=False)


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
