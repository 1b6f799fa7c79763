"""The tree of a query once all rewrites are done, and what the analysis has derived of it afresh."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from dpsql.core.analysis.context import Context
from dpsql.core.analysis.derive import derive
from dpsql.core.analysis.facts import Facts
from dpsql.core.analysis.releases_of_plan import Releases, releases_of
from dpsql.core.analysis.whole_plan import (
    require_one_relation,
    require_public,
    require_public_correlation,
    require_releases,
)
from dpsql.core.ir.expressions import columns_of
from dpsql.core.ir.nodes import Node, Scan
from dpsql.core.ir.public_facts import FrequencyOf
from dpsql.core.ir.walk import Tagged, expressions, unused_numbers
from dpsql.diagnostics.note import Note
from dpsql.planner.costs.named_outputs import outputs_named
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


def rely_on_declared(tree: Tagged[Facts], ctx: Context) -> None:
    """Note the declared keys of public tables that expressions can rely on: the run checks them against the tables."""
    nodes = [t.node for t in tree.walk()]
    public = [(n, t) for n in nodes if isinstance(n, Scan) and (t := ctx.table(n.table)).public]
    if not public:
        return
    read = {uid for n in nodes for e in expressions(n) for uid in columns_of(e)}
    for scan, table in public:
        names = {c.name.lower() for c in scan.columns if c.uid in read}
        declared = [(k.columns, 1) for k in table.keys] + [(f.columns, f.rows) for f in table.max_frequency]
        for columns, rows in declared:
            if {c.lower() for c in columns} <= names:
                spelled = sorted(c.name for c in scan.columns if c.name.lower() in {n.lower() for n in columns})
                request = FrequencyOf(table.name, tuple(spelled))
                ctx.public.used[request] = min(rows, ctx.public.used.get(request, rows))
