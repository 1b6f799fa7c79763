"""The noise of all stages of a plan, chosen at one time: what the given ε pays for, or the least that meets errors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from dpsql.accuracy.accuracy import meet
from dpsql.core.analysis.releases_of_plan import Releases, releases_of
from dpsql.core.ir.nodes import Node
from dpsql.core.noise.calibration import LossRequest, measure
from dpsql.core.noise.measurement import MeasuredRelease
from dpsql.core.policy.period_ids import columns_of_ids, ids_of_periods
from dpsql.core.printing.shapes.choose import statements
from dpsql.core.printing.shapes.release_statement import placeholder
from dpsql.core.release.planned import PlannedRelease
from dpsql.planner.costs.named_outputs import outputs_named
from dpsql.planner.costs.privacy_cost import request_of
from dpsql.planner.stages.finished_tree import FinishedTree
from dpsql.planner.stages.query_to_plan import QueryToPlan
from dpsql.planner.stages.stage import Stage


@dataclass(frozen=True, slots=True)
class NoiseOfStages:
    """The releases of all stages, and the noise of each.

    tree: of the query. found: what all stages ask, in order. request: what they may lose, with the ε that was found
    where errors were asked for. errors: number of an output column → its largest half-width. releases: with the exact
    statements that ask the engine for each.
    """

    tree: FinishedTree
    found: Releases
    measured: tuple[MeasuredRelease, ...]
    request: LossRequest
    errors: Mapping[int, Fraction]
    releases: tuple[PlannedRelease, ...]


def calibrated(stages: Sequence[Stage], tree: FinishedTree, query: QueryToPlan) -> NoiseOfStages:
    """Divide what the query may lose among its stages, and choose the noise of each. Raises Rejected."""
    settings = query.settings
    weights: Mapping[int, Fraction] = {}
    for stage in stages:
        weights = stage.weighed(weights, query, tree)
    request = request_of(settings, query.policy, tree.asked.distinct, tree.needs_data, weights)
    errors = {uid: min(amounts) for uid, amounts in named("max_error", settings.max_error, query, tree).items()}
    trees = [t for stage in stages for t in stage.trees]
    found = tree.releases if trees == [tree.read] else releases_of(*trees)
    if settings.max_error and tree.needs_data:
        measured, request = meet(found.distinct, request, errors, settings.confidence)
    else:
        measured = measure(found.distinct, request)
    growing = {unit: tuple(t.name for t in tables) for unit, tables in query.policy.by_period.items()}
    in_periods = {u: (t.per or "", t.grows.every) for u, t in ids_of_periods(query.policy).items() if t.grows}
    if growing or in_periods:
        ids = columns_of_ids(query.policy)
        measured = tuple(replace(m, growing=growing, in_periods=in_periods, ids=ids) for m in measured)
    noisy: dict[Node, str] = {}
    for node in found.nodes(*trees):
        noisy[node] = found.standing_for(node, placeholder(f"r{found.index[node]}"))
    planned: list[PlannedRelease] = []
    for i, (m, t) in enumerate(zip(measured, found.distinct, strict=True)):
        asked = () if m.known else statements(t, query.dialect, query.tables, noisy)
        planned.append(PlannedRelease(m, asked, f"r{i}"))
    return NoiseOfStages(tree, found, measured, request, errors, tuple(planned))


def named(
    wish: str, amounts: Mapping[str, Fraction], query: QueryToPlan, tree: FinishedTree
) -> dict[int, list[Fraction]]:
    """Number of an output column → what the settings say of the columns of the answer that show it."""
    return outputs_named(wish, amounts, tree.read, query.bound.columns, tree.releases, whole=False)
