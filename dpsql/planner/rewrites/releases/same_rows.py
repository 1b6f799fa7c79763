"""Totals that shall be the sums of their parts count the same rows: those that are in a group of the finest set.

A row whose key is not listed is in no group, but in the total that does not group by this key. Where consistent totals
are asked for, such rows are left out everywhere.

Example:
    >>> before_after(same_rows, "SELECT region, COUNT(*) FROM patients GROUP BY ROLLUP (region)", consistent=True)
    union all                                   →  union all
    ├─ release COUNT(*)                            ├─ release COUNT(*)
    │  └─ group by region ∈ ('north', 'south')     │  └─ group by region ∈ ('north', 'south')
    │     └─ scan patients                         │     └─ filter region IN ('north', 'south')
    └─ release COUNT(*)                            │        └─ scan patients
       └─ scan patients                            └─ release COUNT(*)
                                                      └─ filter region IN ('north', 'south')
                                                         └─ scan patients
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dpsql.core.ir.components import KeySource
from dpsql.core.ir.conditions import conjunction
from dpsql.core.ir.expressions import Call, Column, Expr, Literal
from dpsql.core.ir.expressions import transform as transform_expr
from dpsql.core.ir.fingerprint import fingerprint
from dpsql.core.ir.nodes import (
    Filter,
    GroupKeys,
    Item,
    Node,
    Project,
    Release,
    SetKind,
    SetOperation,
    output_columns,
)
from dpsql.core.ir.types import BOOLEAN
from dpsql.core.ir.walk import transform, walk
from dpsql.core.value_classes import replace
from dpsql.core.values.key_lists import LazyKeys
from dpsql.diagnostics.diagnostic import Span
from dpsql.diagnostics.errors import Rejected, reject
from dpsql.planner.rewrites.rewrite_context import RewriteContext


def same_rows(root: Node, ctx: RewriteContext) -> Node:
    """Leave out of every set of groups what is in no group of the finest. Raises Rejected DP120."""
    if not ctx.consistent:
        return root
    filtered: dict[Release, Release] = {}
    for family in families(root):
        finest = finest_of(family)
        terms = list(_listed(keyed_by_lists(finest)))
        for release in family:
            own = translated(terms, keyed_by_lists(finest), keyed_by_lists(release))
            condition = conjunction(own)
            keyed = keyed_by_lists(release)
            if condition is not None:
                keyed = replace(keyed, input=Filter(keyed.input, condition))
            filtered[release] = replace(release, input=keyed)
    return transform(root, Release, lambda node: filtered.get(node, node))


def families(root: Node) -> list[list[Release]]:
    """The releases below each UNION ALL of several that group the same rows.

    Raises Rejected DP120 for a UNION ALL of releases that do not.
    """
    found = []
    for node in walk(root):
        if isinstance(node, SetOperation) and node.kind is SetKind.UNION and node.all and not _continues(node, root):
            releases = _branches(node)
            rows = {fingerprint(_rows(release), numbered=True) for release in releases}
            if len(releases) < 2:
                continue
            if len(rows) > 1:
                raise does_not_add_up(
                    "the groups of these totals are not made of the same rows",
                    node.span,
                    "ask for ROLLUP, CUBE or GROUPING SETS of one query, or leave consistent_totals off",
                )
            found.append(releases)
    return found


def _continues(node: SetOperation, root: Node) -> bool:
    """Whether it is a part of a longer UNION ALL."""
    return any(
        isinstance(n, SetOperation) and n.kind is SetKind.UNION and n.all and (n.left is node or n.right is node)
        for n in walk(root)
    )


def _branches(node: Node) -> list[Release]:
    """The releases whose rows those of a UNION ALL are."""
    if isinstance(node, SetOperation) and node.kind is SetKind.UNION and node.all:
        return [*_branches(node.left), *_branches(node.right)]
    if isinstance(node, Project):
        return _branches(node.input)
    return [node] if isinstance(node, Release) else []


def _rows(release: Release) -> Node:
    """What is grouped."""
    return keyed_by_lists(release).input


def keyed_by_lists(release: Release) -> GroupKeys:
    """The keys of a release. Raises Rejected DP120 where they are private."""
    node: Node = release.input
    while not isinstance(node, GroupKeys):
        assert not isinstance(node, Release)
        node = node.input  # type: ignore[union-attr]
    if node.sources is None:
        raise does_not_add_up(
            "which groups are shown is decided by noise, so that the parts of a total are not all there",
            node.items[0].expr.span or release.span,
            "custodian: declare a domain for the group columns",
        )
    return node


def finest_of(family: Sequence[Release]) -> Release:
    """The release that has the keys of all. Raises Rejected DP120."""
    finest = max(family, key=lambda r: len(r.keys))
    for release in family:
        if positions(release, finest) is None:
            names = dict.fromkeys(k.name for r in family for k in r.keys)
            raise does_not_add_up(
                "no set of groups has all keys, so that nothing says how the totals are made",
                release.span,
                f"add the set of all keys:  ({', '.join(names)})",
            )
    return finest


def positions(release: Release, finest: Release) -> tuple[int, ...] | None:
    """Which keys of the finest set those of a release are; None if one is none of them."""
    own, all_keys = keyed_by_lists(release), keyed_by_lists(finest)
    items = [i.expr for i in all_keys.items]
    found = [items.index(e) if e in items else -1 for e in translated([i.expr for i in own.items], own, all_keys)]
    return None if -1 in found else tuple(found)


def translated(exprs: Sequence[Expr], read: GroupKeys, other: GroupKeys) -> list[Expr]:
    """Expressions over the rows of one release as the same over those of another, which are read anew."""
    columns = {a.uid: b for a, b in zip(output_columns(read.input), output_columns(other.input), strict=True)}

    def moved(e: Expr) -> Expr:
        return replace(columns[e.uid], span=e.span) if isinstance(e, Column) and e.uid in columns else e

    return [transform_expr(e, moved) for e in exprs]


def _listed(keyed: GroupKeys) -> Iterator[Expr]:
    """That the keys of a row are listed, where that does not go without saying. Raises Rejected DP120."""
    for source in keyed.sources or ():
        if source.covers:
            continue
        items = [keyed.items[at] for at in source.positions]
        if len(items) > 1:
            names = ", ".join(i.column.name for i in items)
            raise does_not_add_up(
                f"only combinations of {names} are listed, and rows may have others",
                items[0].expr.span,
                "join the public table that lists them",
            )
        yield _among(items[0], source)


def _among(item: Item, source: KeySource) -> Expr:
    """expr IN (…), or between two ends, or NULL where that is listed."""
    type_ = item.column.type
    run = source.keys.run if isinstance(source.keys, LazyKeys) else None
    null = any(key == (None,) for key in source.keys)

    def literal(value: object) -> Literal:
        return Literal(value, type_)  # type: ignore[arg-type]

    if run is not None:
        ends = (Call("ge", (item.expr, literal(run[0])), BOOLEAN), Call("le", (item.expr, literal(run[1])), BOOLEAN))
        listed: Expr = Call("and", ends, BOOLEAN)
    else:
        listed = Call("in", (item.expr, *(literal(v) for (v,) in source.keys if v is not None)), BOOLEAN)
    return Call("or", (listed, Call("is_null", (item.expr,), BOOLEAN)), BOOLEAN) if null else listed


def does_not_add_up(why: str, span: Span | None, repair: str) -> Rejected:
    """DP120."""
    return reject("DP120", why, span=span, help=[repair])
