"""Which released numbers a column above the releases shows unchanged: for wishes that name columns, and for notes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dpsql.core.ir.expressions import Cast, Column
from dpsql.core.ir.nodes import Filter, Join, Limit, Node, Project, Release, SetKind, SetOperation, Sort, Window
from dpsql.core.ir.step_count import take
from dpsql.frontend.aggregates.formula import formula


def shown_by(
    node: Node, columns: Sequence[Column], index: Mapping[Node, int], quantiles: bool = False
) -> tuple[tuple[tuple[int, int] | None, ...], ...]:
    """`PostProcessing.branches`: for each release whose rows the answer's rows follow, what each column shows of it.

    quantiles: also those, and modes, which have no interval.
    """
    releases = traced_releases(node)
    return tuple(tuple(_shown(node, c.uid, release, index, quantiles) for c in columns) for release in releases)


def _shown(
    node: Node, uid: int, release: Release, index: Mapping[Node, int], quantiles: bool
) -> tuple[int, int] | None:
    """The output of this release that column `uid` shows in the release's rows; None if it shows none."""
    origin = origin_of(node, uid, release)
    take(len(release.outputs) // 4)
    for position, output in enumerate(release.outputs):
        if output.column.uid != origin:
            continue
        made = formula(output)
        if made.no_interval is None or (quantiles and made.off):
            return index[release], position
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


def traced_releases(node: Node) -> tuple[Release, ...]:
    """The releases of which rows of a node show single rows; a row that shows none is of another side of UNION ALL."""
    take()
    match node:
        case Release():
            return (node,)
        case Project(input=child) | Filter(input=child) | Window(input=child) | Sort(input=child) | Limit(input=child):
            return traced_releases(child)
        case Join(scalar=True, left=left):  # one value beside each row
            return traced_releases(left)
        case SetOperation(kind=SetKind.UNION, all=True, left=left, right=right):
            return traced_releases(left) + traced_releases(right)
        case _:
            return ()
