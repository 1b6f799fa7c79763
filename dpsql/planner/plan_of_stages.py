"""From a finished tree to its plan: each stage says what it asks, all are priced together, and each says the rest."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dpsql.core.ir.fingerprint import Fingerprint
from dpsql.core.ir.nodes import Node
from dpsql.diagnostics.note import in_order
from dpsql.frontend import dialects
from dpsql.planner.costs.privacy_cost import cost_within
from dpsql.planner.notes.notes import drawn_by
from dpsql.planner.plan import Basis, Bid, Plan, Written
from dpsql.planner.stages.answering_rows import AnsweringRows
from dpsql.planner.stages.covering import Covering
from dpsql.planner.stages.finished_tree import finished_tree
from dpsql.planner.stages.noise_of_stages import NoiseOfStages, calibrated
from dpsql.planner.stages.part_of_batch import PartOfBatch
from dpsql.planner.stages.query_to_plan import QueryToPlan
from dpsql.planner.stages.releasing import Releasing
from dpsql.planner.stages.stage import Stage
from dpsql.planner.stages.totalling import Totalling

STAGES: tuple[type[Stage], ...] = (
    Releasing,
    Totalling,
    Covering,
    PartOfBatch,
    AnsweringRows,
)
"""Those of an ordinary plan, in the order of a run. What searches limits comes before all (`searching.py`)."""


def plan_of_stages(rewritten: Node, query: QueryToPlan) -> Plan:
    """The plan of a query whose aggregates are releases. Raises Rejected."""
    tree = finished_tree(rewritten, query)
    begun = [stage for kind in STAGES if (stage := kind.of(query, tree)) is not None]
    noise = calibrated(begun, tree, query)
    cost = cost_within(noise.request, noise.measured, query.policy)
    stages = tuple(_priced(begun, noise, query))
    public = query.ctx.public
    told = (*(note for stage in stages for note in stage.told(noise, query)), *drawn_by(query.policy.noise))
    return Plan(
        query.source,
        query.bound.columns,
        stages,
        cost,
        in_order((*query.bound.notes, *tree.unread, *told, *dialects.notes(query.parsed.dialect))),
        _bid(noise, query),
        Basis(query.policy.hash, dict(public.used), not public.missing, dict(public.read)),
        _identity(stages, noise, query),
        Written(query.parameters, query.settings),
    )


def _priced(begun: Sequence[Stage], noise: NoiseOfStages, query: QueryToPlan) -> Iterator[Stage]:
    """Each stage with its own releases: those that no stage before it asks."""
    start, asking = 0, [stage for stage in begun if stage.trees]
    for stage in begun:
        if stage is asking[-1]:
            stop = len(noise.releases)
        else:
            stop = max([start, *(noise.found.index[node] + 1 for node in noise.found.nodes(*stage.trees))])
        yield stage.priced(noise.releases[start:stop], noise, query)
        start = stop


def _bid(noise: NoiseOfStages, query: QueryToPlan) -> Bid:
    settings, dearer = query.settings, query.settings.allow_dearer
    return Bid(
        noise.request.epsilon,
        noise.request.delta,
        settings.max_error if noise.tree.needs_data else {},
        settings.confidence,
        query.policy.defaults.allow_dearer if dearer is None else dearer,
    )


def _identity(stages: Sequence[Stage], noise: NoiseOfStages, query: QueryToPlan) -> Fingerprint:
    """What is asked, of what policy, how it is drawn and how the answer is made of it."""
    request = noise.request
    asked = (request.budget, request.accountant, sorted(request.weights.items()), sorted(noise.errors.items()))
    # Measured public facts decide noise that neither the tree nor the statements tell.
    drawn = [
        (r.conversion_delta, r.threshold, [(m.mechanism, m.known) for m in r.measurements]) for r in noise.measured
    ]
    names, texts = [c.name for c in query.bound.columns], [r.statements for r in noise.releases]
    made = [stage.makes for stage in stages]
    return Fingerprint(noise.tree.read.node, texts, made, names, asked, query.policy.hash, drawn)
