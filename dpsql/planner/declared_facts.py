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
