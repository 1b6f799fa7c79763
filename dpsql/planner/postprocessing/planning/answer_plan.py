"""How the answer is made from the noisy tables: everything above the releases, printed as SQL over public rows.

*Claim.* SQL of a plan without releases, which runs on the data itself, names no private table. *Why.* Each table's name
is printed for a scan whose facts are public, or not at all. *When it would be false.* If a scan of a private table had
public facts (core/analysis/rules/scan.py). *Tested by* tests/planner/test_public_questions.py,
tests/planner/postprocessing/test_planning.py.
"""

from __future__ import annotations

from collections.abc import Sequence

from dpsql.core.analysis.context import Context
from dpsql.core.analysis.facts import Facts
from dpsql.core.analysis.releases_of_plan import Releases
from dpsql.core.ir.expressions import Column, columns_of
from dpsql.core.ir.nodes import Node, Project, Release, Scan, inputs
from dpsql.core.ir.types import Kind
from dpsql.core.ir.walk import Tagged, expressions
from dpsql.core.printing.dialect import Dialect
from dpsql.core.printing.expressions import Aliases, TableNames
from dpsql.core.printing.relational_nodes import Emitter
from dpsql.core.release.planned import PlannedRelease
from dpsql.diagnostics.errors import reject
from dpsql.diagnostics.words import with_article
from dpsql.planner.postprocessing.planning.cut_numbers import NO_CUTS, Cuts, ends_of_cut
from dpsql.planner.postprocessing.planning.cut_statements import Steps
from dpsql.planner.postprocessing.planning.steps import PostProcessing
from dpsql.planner.postprocessing.planning.unchanged_columns import origin_of, shown_by


def post_processing(
    tree: Tagged[Facts],
    columns: tuple[Column, ...],
    releases: Sequence[PlannedRelease],
    found: Releases,
    dialect: Dialect,
    tables: TableNames,
    cuts: Cuts = NO_CUTS,
) -> PostProcessing:
    """The post-processing of a plan whose root is public. dialect, tables: the engine's. cuts: what limits take."""
    public = _public_columns(tree.node, columns)
    if not releases:
        sql = Emitter(dialect, _own_names(tree, tables), {}, Aliases()).query(tree, columns)
        return PostProcessing(None, 0, sql, public, (), columns, tree.fact.empty)
    index = found.index
    steps = Steps(tree.node, releases, found, cuts).of(tree, columns)
    renamed = _renamed(tree.node, columns)
    return PostProcessing(
        None if renamed is None else renamed[1],
        0 if renamed is None else index[renamed[0]],
        steps[-1].sql,
        public,
        shown_by(tree.node, columns, index),
        columns,
        tree.fact.empty,
        steps,
        ends_of_cut(releases, cuts),
    )


def _own_names(tree: Tagged[Facts], tables: TableNames) -> TableNames:
    """The engine's names of the tables of a tree without releases, all of which must be public."""
    scans = [(t.node.table, t.fact.public) for t in tree.walk() if isinstance(t.node, Scan)]
    private = {table for table, public in scans if not public}
    if private:
        raise reject("DP904", f"{', '.join(sorted(private))} would be read without noise; nothing was run")
    return tables


def _public_columns(root: Node, columns: Sequence[Column]) -> tuple[tuple[str, tuple[Column, ...]], ...]:
    """Public tables above the releases, each with the columns that are read: no others need leave the engine."""
    part = _public_part(root)
    scans = [node for node in part if isinstance(node, Scan)]
    if not scans:
        return ()
    used = {c.uid for c in columns}.union(*(columns_of(e) for n in part for e in expressions(n)))
    found: dict[str, dict[str, Column]] = {}
    for node in scans:
        read = [c for c in node.columns if c.uid in used] or list(node.columns[:1])
        found.setdefault(node.table, {}).update({c.name: c for c in read})
    return tuple((table, tuple(cols.values())) for table, cols in sorted(found.items()))


def require_shown(root: Node, columns: Sequence[Column], ctx: Context) -> None:
    """An answer can show the columns of public tables that it is made of. Raises Rejected DP101."""
    for table, read_columns in _public_columns(root, columns):
        for column in read_columns if ctx.table(table).public else ():
            if column.type.kind in (Kind.LIST, Kind.BLOB, Kind.INTERVAL, Kind.TIMESTAMPTZ):
                raise reject(
                    "DP101", f"{table}.{column.name} is {with_article(column.type)}, which an answer cannot show",
                    help=["leave the column out, or store it as text or TIMESTAMP"],
                )  # fmt: skip


def _public_part(node: Node) -> list[Node]:
    """The nodes above the releases."""
    if isinstance(node, Release):
        return []
    return [node, *(n for child in inputs(node) for n in _public_part(child))]


def _renamed(node: Node, columns: Sequence[Column]) -> tuple[Release, tuple[int, ...]] | None:
    """The release whose columns the answer only chooses and renames, and their positions (keys, then outputs)."""
    at: Node = node
    while isinstance(at, Project) and all(isinstance(i.expr, Column) for i in at.items):
        at = at.input
    if not isinstance(at, Release):
        return None
    own = [*(k.uid for k in at.keys), *(o.column.uid for o in at.outputs)]
    found = [origin_of(node, c.uid, at) for c in columns]
    return at, tuple(own.index(uid) for uid in found if uid is not None)
