"""What a release asks beside the days that it asks it of: so that one day has one address, whatever query it was of.

*Claim.* Where `without_days` gives two releases the same tree for the same days, their exact integers are the same.
*Why.* A scan of these days has no others, whatever the conditions of the query: one that holds for every row of them
leaves none out. A key that has one value in all rows of these days parts none of their groups. *When it would be
false.* If a condition were taken to hold that does not (`holds` of planner/rewrites/joins/read_periods.py). *Tested by*
tests/answers/stored/test_day_addresses.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from dpsql.core.analysis.period_parts import PeriodPart, of_scan, row_scan
from dpsql.core.ir.components import KeySource
from dpsql.core.ir.conditions import conjuncts
from dpsql.core.ir.expressions import Call, Column, Expr
from dpsql.core.ir.nodes import BoundContributions, Filter, GroupKeys, Join, Node, Release, Scan, inputs, keyed_by
from dpsql.core.ir.periods import Closed, ReadPeriods, Span, words
from dpsql.core.ir.types import BOOLEAN
from dpsql.core.ir.walk import with_inputs
from dpsql.core.value_classes import replace
from dpsql.planner.rewrites.joins.read_periods import holds

Held = tuple[bool, ...]
"""Of the conditions on the way to a scan, in order, which hold for every row of some days."""


def held_conditions(release: Release, days: Sequence[Span]) -> Held:
    """Those that say nothing of these days, of a release that is made of rows of one scan."""
    node, found = keyed_by(release).input, list[bool]()
    scan = row_scan(node)
    assert scan is not None
    day = _day(scan)
    while not isinstance(node, Scan):
        if isinstance(node, Filter):
            found += [holds(of_scan(term, node.input), day, days) for term in conjuncts(node.predicate)]
        node = _next(node)
    return tuple(found)


def without_days(release: Release, held: Held, key: int | None = None, *, dropped: bool = False) -> Release:
    """The release without conditions that hold, of no days in particular.

    key: its place of a key that tells days: whose values stand elsewhere; or that is dropped, where it has one.
    """
    grouped = keyed_by(release)
    waiting = list(held)
    below = replace(grouped, input=_without(grouped.input, waiting))
    if key is not None:
        below = _keyed(below, key, dropped)
    whole: Node = below
    if isinstance(release.input, BoundContributions):
        gone = grouped.items[key].column if dropped and key is not None else None
        whole = replace(release.input, input=below, keys=tuple(k for k in release.input.keys if k != gone))
    keys = tuple(k for at, k in enumerate(release.keys) if not (dropped and at == key))
    return replace(release, input=whole, keys=keys)


def said(days: Sequence[Span], closed: Closed | None, part: PeriodPart | None = None) -> str:
    """Days for an address, with how often any of them was opened again."""
    times = 0 if closed is None else closed.times(days)
    keys = "" if part is None or part.constant else f", {part.keys!r}"
    return f"{words(days)}, opened again {times} times{keys}"


def _without(node: Node, held: list[bool]) -> Node:
    """held: what is left of it is of nodes below."""
    match node:
        case Scan(periods=periods):
            assert periods is not None
            return replace(node, periods=ReadPeriods(periods.by, (), 0, periods.every))
        case Filter():
            terms = [t for t in conjuncts(node.predicate) if not held.pop(0)]
            below = _without(node.input, held)
            return replace(node, input=below, predicate=reduce(_both, terms)) if terms else below
        case Join(left=left, right=right):
            if row_scan(left) is None:
                return with_inputs(node, (left, _without(right, held)))
            return with_inputs(node, (_without(left, held), right))
    return with_inputs(node, (_without(_next(node), held),))


def _next(node: Node) -> Node:
    """The input that the rows are of."""
    if isinstance(node, Join):
        return node.right if row_scan(node.left) is None else node.left
    (below,) = inputs(node)
    return below


def _both(left: Expr, right: Expr) -> Expr:
    return Call("and", (left, right), BOOLEAN)


def _keyed(grouped: GroupKeys, key: int, dropped: bool) -> GroupKeys:
    assert grouped.sources is not None
    if not dropped:
        sources = (replace(s, keys=(), ends=None) if s.positions == (key,) else s for s in grouped.sources)
        return replace(grouped, sources=tuple(sources))
    return replace(
        grouped,
        items=tuple(item for at, item in enumerate(grouped.items) if at != key),
        sources=tuple(_moved(s, key) for s in grouped.sources if s.positions != (key,)),
    )


def _moved(source: KeySource, key: int) -> KeySource:
    return replace(source, positions=tuple(at - (at > key) for at in source.positions))


def _day(scan: Scan) -> Column:
    assert scan.periods is not None
    return next(c for c in scan.columns if c.name == scan.periods.by)
