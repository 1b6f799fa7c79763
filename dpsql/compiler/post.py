"""How the answer is made from the noisy tables: everything above the releases, printed as SQL over public rows.

*Claim.* SQL of a plan without releases, which runs on the data itself, names no private table. *Why.* Each table's name
is printed for a scan whose facts are public, or not at all. *When it would be false.* If a scan of a private table had
public facts (analysis/rules/scan.py). *Tested by* tests/e2e/test_public.py, tests/unit/compiler/test_post.py.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dpsql.analysis.context import Context
from dpsql.analysis.facts import Facts
from dpsql.compiler.plan import PlannedRelease, PostProcessing
from dpsql.compiler.sharing import Releases
from dpsql.diagnostics.errors import reject
from dpsql.diagnostics.words import with_article
from dpsql.plan.components import End
from dpsql.plan.expr import Cast, Column, columns_of
from dpsql.plan.nodes import (
    Filter,
    Join,
    Limit,
    Node,
    Project,
    Release,
    Scan,
    SetOperation,
    Sort,
    Window,
    inputs,
)
from dpsql.plan.walk import Tagged, expressions
from dpsql.sql.emit import Aliases, TableNames
from dpsql.sql.relations import Emitter, traced_releases
from dpsql.steps import take
from dpsql.types import Kind

SCRATCH = '"memory"."main"'


def post_processing(
    tree: Tagged[Facts],
    columns: Sequence[Column],
    releases: Sequence[PlannedRelease],
    found: Releases,
    tables: TableNames,
) -> PostProcessing:
    """The post-processing of a plan whose root is public. tables: policy table → the engine's name."""
    index = found.index
    labels = {
        id(n): found.standing_for(n, f'{SCRATCH}."{releases[index[id(n)]].label}"', traced=True)
        for n in found.nodes(tree)
    }
    traced = traced_releases(tree.node)
    names: TableNames = _loaded if releases else _own_names(tree, tables)
    emitter = Emitter(names, labels, Aliases(), traced)
    renamed = _renamed(tree.node, columns)
    return PostProcessing(
        None if renamed is None else renamed[1],
        0 if renamed is None else index[id(renamed[0])],
        emitter.query(tree, columns),
        _public_columns(tree.node, columns),
        shown_by(tree.node, columns, index),
    )


def _loaded(name: str) -> str:
    return f'{SCRATCH}."{public_table(name)}"'


def _own_names(tree: Tagged[Facts], tables: TableNames) -> TableNames:
    """The engine's names of the tables of a tree without releases, all of which must be public."""
    scans = [(t.node.table, t.fact.public) for t in tree.walk() if isinstance(t.node, Scan)]
    private = {table for table, public in scans if not public}
    if private:
        raise reject("DP904", f"{', '.join(sorted(private))} would be read without noise; nothing was run")
    return tables


def public_table(name: str) -> str:
    """The scratch name of a public table: never that of a release."""
    return f"public {name}"


def _public_columns(root: Node, columns: Sequence[Column]) -> tuple[tuple[str, tuple[Column, ...]], ...]:
    """Public tables above the releases, each with the columns that are read: no others need leave the engine."""
    part = _public_part(root)
    used = {c.uid for c in columns}.union(*(columns_of(e) for n in part for e in expressions(n)))
    found: dict[str, dict[str, Column]] = {}
    for node in part:
        if isinstance(node, Scan):
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


def shown_by(
    node: Node, columns: Sequence[Column], index: Mapping[int, int]
) -> tuple[tuple[tuple[int, int] | None, ...], ...]:
    """`PostProcessing.branches`: for each release whose rows the answer's rows follow, what each column shows of it."""
    return tuple(tuple(_shown(node, c.uid, release, index) for c in columns) for release in traced_releases(node))


def _shown(node: Node, uid: int, release: Release, index: Mapping[int, int]) -> tuple[int, int] | None:
    """The output of this release that column `uid` shows in the release's rows; None if it shows none."""
    origin = origin_of(node, uid, release)
    take(len(release.outputs) // 4)
    for position, output in enumerate(release.outputs):
        if output.column.uid == origin and not isinstance(output.recipe, End):
            return index[id(release)], position
    return None


def is_key(node: Node, uid: int) -> bool:
    """Whether column `uid` shows group keys: of one release at least, and no released number of another."""
    shown = [(release, origin_of(node, uid, release)) for release in traced_releases(node)]
    outputs = any(uid == o.column.uid for release, uid in shown for o in release.outputs)
    return not outputs and any(uid == key.uid for release, uid in shown for key in release.keys)


def origin_of(node: Node, uid: int, release: Release) -> int | None:
    """The column that `uid` shows unchanged in rows of this release, seen through all that follows single rows."""
    take()
    match node:
        case Release():
            return uid if node is release else None
        case Filter(input=child) | Sort(input=child) | Limit(input=child) | Window(input=child):
            return origin_of(child, uid, release)
        case Join(scalar=True, left=left):
            return origin_of(left, uid, release)
        case Project(input=child, items=items):
            take(len(items) // 4)
            expr = next((i.expr for i in items if i.column.uid == uid), None)
            return origin_of(child, expr.uid, release) if isinstance(expr, Column) else None
        case SetOperation(left=left, right=right, columns=pairs):
            at_left = any(r is release for r in traced_releases(left))
            expr = next((c.left if at_left else c.right for c in pairs if c.column.uid == uid), None)
            if isinstance(expr, Cast) and expr.type.numeric and expr.arg.type.numeric:
                expr = expr.arg  # into a type that holds both sides' numbers
            return origin_of(left if at_left else right, expr.uid, release) if isinstance(expr, Column) else None
        case _:
            return None


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
