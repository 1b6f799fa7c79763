"""The numbers of a query: its releases, measured over the finished tree."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction

from dpsql.core.analysis.facts import Facts
from dpsql.core.ir.walk import Tagged
from dpsql.core.noise.calibration import measure
from dpsql.core.noise.measurement import MeasuredRelease
from dpsql.core.release.planned import PlannedRelease
from dpsql.diagnostics.diagnostic import Diagnostic
from dpsql.diagnostics.note import Note
from dpsql.planner.notes.notes import copies_read, joined_releases, notes_of, pairs_counted, periods_read
from dpsql.planner.rewrites.releases.same_rows import families, finest_of
from dpsql.planner.stages.finished_tree import FinishedTree
from dpsql.planner.stages.noise_of_stages import NoiseOfStages, named
from dpsql.planner.stages.query_to_plan import QueryToPlan
from dpsql.planner.stages.stage import Stage
from dpsql.planner.warnings.undeclared_values import undeclared_values
from dpsql.planner.warnings.warnings import warnings_of


@dataclass(frozen=True, slots=True)
class Releasing(Stage):
    """What the query asks.

    tree: what is read of it, with facts. unread: why the rest has no rows, whatever the data hold; it is not in the
    tree. warnings: what would make the answer useless.
    """

    tree: Tagged[Facts]
    unread: tuple[Note, ...]
    warnings: tuple[Diagnostic, ...] = ()

    @classmethod
    def of(cls, query: QueryToPlan, tree: FinishedTree) -> Releasing:
        """Every query has one, if only of public rows."""
        return cls(tree.read, tree.unread)

    def as_warnings(self) -> Releasing:
        """Where it is asked all the same, or nobody is about to pay: what would be refused is told."""
        return replace(
            self,
            warnings=tuple(
                replace(w, code="DP503", severity="warning") if w.severity == "error" else w for w in self.warnings
            ),
        )

    @property
    def trees(self) -> tuple[Tagged[Facts], ...]:
        """The tree that is read."""
        return (self.tree,)

    def weighed(self, weights: Mapping[int, Fraction], query: QueryToPlan, tree: FinishedTree) -> dict[int, Fraction]:
        """As the settings name columns, and as whoever planned it weighs them."""
        own = named("weights", query.settings.weights, query, tree)
        return {**weights, **{uid: max(amounts) for uid, amounts in own.items()}, **query.weights}

    def priced(self, own: tuple[PlannedRelease, ...], noise: NoiseOfStages, query: QueryToPlan) -> Releasing:
        """With what declared numbers alone say against it."""
        return replace(self, releases=own, warnings=_warnings(noise, query))

    def told(self, noise: NoiseOfStages, query: QueryToPlan) -> Iterator[Note]:
        """Of the noise and the limits of all releases."""
        yield from notes_of(noise.measured, query.source)
        yield from pairs_counted(noise.found.distinct)
        yield from joined_releases(noise.found.distinct)
        yield from copies_read(noise.found.distinct, query.policy)
        yield from periods_read(noise.found.distinct)


def _warnings(noise: NoiseOfStages, query: QueryToPlan) -> tuple[Diagnostic, ...]:
    """What would make the answer useless, as far as declared numbers tell: of the query's own numbers."""
    ctx, every, request, summed = query.ctx, noise.found.distinct, noise.request, _summed(noise, query)

    def at(place: int) -> Callable[[Fraction], MeasuredRelease]:
        return lambda epsilon: measure(every, replace(request, epsilon=epsilon, rho=None))[place]

    return (
        *undeclared_values(query.bound.root, ctx.policy, query.source),
        *(
            w
            for i, (m, t) in enumerate(zip(noise.measured, noise.tree.releases.distinct, strict=False))
            if not m.empty and i not in summed
            for w in warnings_of(m, t.inputs[0], query.source, ctx, query.limits, request.epsilon, at(i))
        ),
    )


def _summed(noise: NoiseOfStages, query: QueryToPlan) -> set[int]:
    """Releases whose numbers are made of those of finer sets of groups: their own noise is not their error."""
    index, found = noise.tree.releases.index, families(noise.tree.read.node) if query.settings.consistent_totals else ()
    return {index[each] for family in found for each in family if index[each] != index[finest_of(family)]}
