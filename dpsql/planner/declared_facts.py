"""Which declarations of the policy a plan relies on that the run can check: keys and frequencies of public tables."""

from __future__ import annotations

from dpsql.core.analysis.context import Context
from dpsql.core.analysis.facts import Facts
from dpsql.core.ir.expressions import columns_of
from dpsql.core.ir.nodes import Scan
from dpsql.core.ir.public_facts import FrequencyOf
from dpsql.core.ir.walk import Tagged, expressions


def rely_on_declared(tree: Tagged[Facts], ctx: Context) -> None:
    """Note the declared keys of public tables that expressions can rely on: the run checks them against the tables."""
    read = frozenset[int]().union(*(columns_of(e) for t in tree.walk() for e in expressions(t.node)))
    for tagged in tree.walk():
        table = ctx.table(tagged.node.table) if isinstance(tagged.node, Scan) else None
        if table is None or not table.public:
            continue
        assert isinstance(tagged.node, Scan)
        names = {c.name.lower() for c in tagged.node.columns if c.uid in read}
        declared = [(k.columns, 1) for k in table.keys] + [(f.columns, f.rows) for f in table.max_frequency]
        for columns, rows in declared:
            if {c.lower() for c in columns} <= names:
                spelled = sorted(c.name for c in tagged.node.columns if c.name.lower() in {n.lower() for n in columns})
                request = FrequencyOf(table.name, tuple(spelled))
                ctx.public.used[request] = min(rows, ctx.public.used.get(request, rows))
