"""The tree of a query once all rewrites are done, and what the analysis has derived of it afresh."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from dpsql.core.analysis.derive import derive
from dpsql.core.analysis.facts import Facts
from dpsql.core.analysis.releases_of_plan import Releases, releases_of
from dpsql.core.analysis.whole_plan import (
    require_one_relation,
    require_public,
    require_public_correlation,
    require_releases,
)
from dpsql.core.ir.nodes import Node
from dpsql.core.ir.renumber import unused_numbers
from dpsql.core.ir.walk import Tagged
from dpsql.diagnostics.note import Note
from dpsql.planner.costs.named_outputs import outputs_named
from dpsql.planner.declared_facts import rely_on_declared
from dpsql.planner.notes.unread import Unread
from dpsql.planner.postprocessing.planning.answer_plan import require_shown
from dpsql.planner.settings.privacy_clause import require_clause
from dpsql.planner.stages.query_to_plan import QueryToPlan


@dataclass(frozen=True, slots=True)
class FinishedTree:
    """A rewritten query of which the analysis has derived that it may be answered.

    read: what is read of it, with facts. unread: why the rest is not read. releases: those of what is read. asked:
    those of the whole query. numbers: of new columns, which it does not use.
    """

    read: Tagged[Facts]
    unread: tuple[Note, ...]
    releases: Releases
    asked: Releases
    numbers: Iterator[int]

    @property
    def needs_data(self) -> bool:
        """Whether any release may have rows; else nobody need say what the query may cost."""
        return any(not t.inputs[0].fact.empty for t in self.releases.distinct)


def finished_tree(rewritten: Node, query: QueryToPlan) -> FinishedTree:
    """Derive all facts afresh, take out what is not read, and refuse what must not be answered. Raises Rejected."""
    ctx, columns = query.ctx, query.bound.columns
    whole, unread = derive(rewritten, ctx), Unread()
    read = unread.without(whole)
    tree = whole if read is whole.node else derive(read, ctx)
    require_public(tree)
    # What is not read is refused all the same where it would be refused with rows.
    require_releases(whole)
    require_public_correlation(whole)
    require_shown(whole.node, columns, ctx)
    rely_on_declared(tree, ctx)
    asked = releases_of(whole)
    require_one_relation(asked.distinct)
    if query.parsed.clause is not None:
        require_clause(query.parsed.clause, asked.distinct)
    outputs_named("weights", query.settings.weights, whole, columns, asked)
    outputs_named("max_error", query.settings.max_error if asked.distinct else {}, whole, columns, asked)
    releases = asked if tree is whole else releases_of(tree)
    return FinishedTree(tree, tuple(unread.why), releases, asked, unused_numbers(rewritten))
