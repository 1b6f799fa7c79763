"""The rows of the answer: statements over noisy tables and public rows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction

from dpsql.core.engine import Engine
from dpsql.core.ir.nodes import Release
from dpsql.core.release.planned import PlannedRelease
from dpsql.diagnostics.note import Note
from dpsql.engines.scratch import Scratch
from dpsql.planner.postprocessing.planning.answer_plan import post_processing
from dpsql.planner.postprocessing.planning.cut_numbers import missing_of
from dpsql.planner.postprocessing.planning.interval_notes import interval_notes
from dpsql.planner.postprocessing.planning.steps import PostProcessing
from dpsql.planner.stages.finished_tree import FinishedTree
from dpsql.planner.stages.noise_of_stages import NoiseOfStages
from dpsql.planner.stages.query_to_plan import QueryToPlan
from dpsql.planner.stages.stage import HandedOn, Stage


@dataclass(frozen=True, slots=True)
class AnsweringRows(Stage):
    """How the answer is made of noisy numbers; it stands last."""

    post: PostProcessing | None = None

    @classmethod
    def of(cls, query: QueryToPlan, tree: FinishedTree) -> AnsweringRows:
        """Every query has one; how, is known with its statements."""
        return cls()

    def priced(self, own: tuple[PlannedRelease, ...], noise: NoiseOfStages, query: QueryToPlan) -> AnsweringRows:
        """The statements that make the answer. Raises Rejected."""
        columns = query.bound.columns
        alone = len(noise.measured) == 1
        cuts = {
            place: missing_of(tree, m.contribution, query.ctx.table, query.clips, query.counted, alone)
            for place, (tree, m) in enumerate(zip(noise.found.distinct, noise.measured, strict=True))
            if not m.known
        }
        made = post_processing(noise.tree.read, columns, noise.releases, noise.found, query.dialect, query.tables, cuts)
        return replace(self, post=made)

    @property
    def makes(self) -> object:
        """How the answer is made."""
        return self.post

    def told(self, noise: NoiseOfStages, query: QueryToPlan) -> Iterator[Note]:
        """Where numbers have no interval, and why."""
        assert self.post is not None
        yield from interval_notes(query.bound.columns, self.post, noise.releases, _search(noise, query))

    def handed_on(self, before: HandedOn, engine: Engine, scratch: Scratch) -> HandedOn:
        """The answer's rows."""
        from dpsql.planner.postprocessing.run import post_process  # which loads numpy, as no check does

        assert self.post is not None
        return replace(
            before, rows=post_process(self.post, before.noisy, engine, scratch, before.consistent, before.cut)
        )


def _search(noise: NoiseOfStages, query: QueryToPlan) -> str:
    """What would tell how much limits cut, with its price: that of the question now. Empty where there is none."""
    settings = query.settings
    if query.policy.search == "refuse" or settings.search or settings.found or settings.max_error:
        return ""
    several = noise.found.distinct if len(noise.releases) > 1 else ()
    if any(isinstance(t.node, Release) for release in several for t in release.inputs[0].walk()):
        return ""  # rows that depend on another number are searched with a draw of its own
    price = replace(noise.request.budget, delta=Fraction(0))
    return "limits=search" if settings.nominal else f"limits=search ({price})"
