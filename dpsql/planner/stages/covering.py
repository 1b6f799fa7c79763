"""Coverage: the releases that tell how many units are above the limits of a query, and their share of its ε.

They are planned, priced, charged and stored like every other release; no column of the answer shows them. They are
never used to correct the answer: the interval of a number that was corrected by another noisy one would not hold it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Final

from dpsql.core.analysis.derive import derive
from dpsql.core.analysis.facts import Facts
from dpsql.core.analysis.releases_of_plan import releases_of
from dpsql.core.engine import Engine
from dpsql.core.ir.nodes import Release
from dpsql.core.ir.walk import Tagged
from dpsql.core.noise.calibration import component_weights
from dpsql.diagnostics.errors import reject
from dpsql.diagnostics.note import Note
from dpsql.engines.scratch import Scratch
from dpsql.planner.postprocessing.planning.steps import Coverage
from dpsql.planner.rewrites.releases.count_coverage import count_coverage, count_cut
from dpsql.planner.stages.finished_tree import FinishedTree
from dpsql.planner.stages.noise_of_stages import NoiseOfStages
from dpsql.planner.stages.query_to_plan import QueryToPlan
from dpsql.planner.stages.stage import HandedOn, Stage

SHARE: Final = Fraction(1, 10)
"""What all coverage of a query may lose of what the query may lose."""


@dataclass(frozen=True, slots=True)
class Covering(Stage):
    """coverage: what tells how many units are above the limits; () where no limit takes anything away."""

    coverage: tuple[Coverage, ...]

    @classmethod
    def of(cls, query: QueryToPlan, tree: FinishedTree) -> Covering | None:
        """Where it was asked for. Raises Rejected DP406 beside a largest error, and where rows are the unit."""
        return cls(_coverage(query, tree)) if query.settings.coverage else None

    @property
    def trees(self) -> tuple[Tagged[Facts], ...]:
        """A histogram for each set of limits."""
        return tuple(c.tree for c in self.coverage)

    def weighed(self, weights: Mapping[int, Fraction], query: QueryToPlan, tree: FinishedTree) -> dict[int, Fraction]:
        """With those of the coverage, which together are `SHARE` of the whole.

        Where some numbers that are shown need no noise, coverage gets more than that of what they leave.
        """
        return _with_small_share(weights, tree.releases.distinct, self.coverage)

    def told(self, noise: NoiseOfStages, query: QueryToPlan) -> Iterator[Note]:
        """What it costs."""
        if self.coverage:
            yield Note("coverage: about a tenth of the price tells how many units are above the limits")
        else:
            yield Note("coverage: no limit takes anything away from these numbers")

    def handed_on(self, before: HandedOn, engine: Engine, scratch: Scratch) -> HandedOn:
        """What it has counted, in words."""
        from dpsql.planner.postprocessing.coverage import coverage_notes, covered  # which loads numpy, as no check does

        return replace(before, notes=(*before.notes, *coverage_notes(covered(self.coverage, before.noisy))))


def _coverage(query: QueryToPlan, finished: FinishedTree) -> tuple[Coverage, ...]:
    """The coverage of every release of a query."""
    found, numbers, ctx = finished.releases, finished.numbers, query.ctx
    if query.settings.max_error:
        raise reject(
            "DP406", "coverage was asked for beside max_error, which says how ε is split",
            help=["give an epsilon in its place, or leave coverage off"],
        )  # fmt: skip
    made: list[Coverage] = []
    trees: list[Tagged[Facts]] = []
    told = set[str]()
    for place, tagged in enumerate(found.distinct):
        release, below = tagged.node, tagged.inputs[0].fact
        assert isinstance(release, Release)
        if below.empty:
            continue  # no unit has a row
        if not below.ids:
            raise reject(
                "DP406", "coverage counts the units above a limit, and rows are the privacy unit here",
                span=release.span, source=query.source, help=["leave coverage off: limits per unit are not used here"],
            )  # fmt: skip
        cut = dict(count_cut(release, place, ctx.policy.tables, told, numbers))
        told |= cut.keys()
        for covering in (*count_coverage(release, place, numbers), *cut.values()):
            trees.append(derive(covering.node, ctx))
            made.append(Coverage(trees[-1], 0, place, covering.limits))
    index = releases_of(*found.distinct, *trees).index
    return tuple(Coverage(c.tree, index[c.tree.node], c.of, c.limits) for c in made)


def _with_small_share(
    weights: Mapping[int, Fraction], shown: Sequence[Tagged[Facts]], coverage: Sequence[Coverage]
) -> dict[int, Fraction]:
    nodes = [t.node for t in shown if isinstance(t.node, Release)]
    whole = sum((w for node in nodes for w in component_weights(node, weights)), Fraction(0))
    each = whole * SHARE / (1 - SHARE) / max(1, len(coverage))
    outputs = [o for c in coverage if isinstance(c.tree.node, Release) for o in c.tree.node.outputs]
    return {**weights, **{o.column.uid: each for o in outputs}}
