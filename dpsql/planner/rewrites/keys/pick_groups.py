"""The j groups of the most units, without these numbers, are picked one after another instead of counted and sorted.

Counting costs as much as one unit can change: a number for each group that it is in, up to its limit. A pick costs as
much as a single number, however many groups a unit is in (`core/measures/largest.py`), so that nothing needs a limit.
So j picks are cheaper than counts where a unit may be in more than j groups.

Picked are keys of one column with a public list. What follows the count in ORDER BY decides among equal
counts, of which noise leaves none, and is not looked at.

Example:
    >>> query = "SELECT cost > 500 AS k FROM visits GROUP BY k ORDER BY COUNT(DISTINCT patient) DESC LIMIT 1"
    >>> before_after(pick_groups, query)
    order by count desc               →  project k
    └─ release number of units           └─ release cost > 500 of the most ids, pick 1 of 1
       └─ group by k ∈ (FALSE, TRUE)        └─ scan visits
          └─ scan visits
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace

from dpsql.core.analysis.derive import derive_once
from dpsql.core.analysis.rules.release import contribution
from dpsql.core.ir.components import LargestChoice, Pick, UnitCount
from dpsql.core.ir.expressions import Call, Column, Expr, Literal, columns_of
from dpsql.core.ir.nodes import (
    GroupKeys,
    Item,
    Join,
    JoinKind,
    Limit,
    Node,
    Project,
    Release,
    Sort,
    SortKey,
    Values,
    key_sources,
    keyed_by,
    output_columns,
)
from dpsql.core.ir.recipes import Output
from dpsql.core.ir.types import BIGINT, BOOLEAN
from dpsql.core.ir.walk import expressions, transform, unused_numbers, walk
from dpsql.core.noise.sensitivity import sensitivity
from dpsql.diagnostics.errors import Rejected
from dpsql.frontend.aggregates.count import Count
from dpsql.frontend.aggregates.largest import Largest
from dpsql.planner.rewrites.bounds.bound_contributions import bounded
from dpsql.planner.rewrites.bounds.choose_grids import MOST_VALUES
from dpsql.planner.rewrites.rewrite_context import ContributionLimits, RewriteContext

MOST_PICKS = 32
"""Each is drawn by itself; so many share a price that is mostly too small for any of them."""


def pick_groups(root: Node, ctx: RewriteContext) -> Node:
    """Replace the counts of groups that are only sorted by them, where picks cost less."""
    if ctx.shown is not None:
        return root  # how many picks there are would depend on the number of keys, and what they cost on that
    numbers = unused_numbers(root)
    reading: Counter[int] = Counter()

    def change(node: Limit) -> Node:
        match node:
            case Limit(input=Sort(input=Release() as counts) as order):
                if not reading:
                    reading.update(uid for n in walk(root) for uid in _read(n))
                    reading.update(c.uid for c in output_columns(root))
                if _is_asked(order, counts, reading) and (picks := _picks(node, counts, ctx)):
                    return replace(node, input=_picked(counts, picks, numbers))
        return node

    return transform(root, Limit, change)


def _read(node: Node) -> frozenset[int]:
    """Numbers of the columns that a node reads."""
    return frozenset(uid for expr in expressions(node) for uid in columns_of(expr))


def _is_asked(order: Sort, counts: Release, reading: Mapping[int, int]) -> bool:
    """Whether nothing but an order, the largest first, is made of counts of units.

    reading: number of a column → how many nodes of the plan read it.
    """
    match counts:
        case Release(keys=(_,), components=(UnitCount(),), outputs=(output,), threshold=None):
            first, *others = order.keys
            return (
                isinstance(output.recipe, Count)
                and first.expr == output.column
                and first.descending
                and reading[output.column.uid] == 1
                and all(output.column.uid not in columns_of(key.expr) for key in others)
            )
    return False


def _picks(limit: Limit, counts: Release, ctx: RewriteContext) -> int:
    """How many groups are picked; 0 where they are not, or where counting is as cheap."""
    sources = key_sources(counts)
    if not sources or limit.count is None or replace(ctx.limits, min_units=1) != ContributionLimits():
        return 0
    keys = sources[0].keys
    picks = min(limit.count + limit.offset, len(keys))
    if not limit.count or picks > MOST_PICKS or len(keys) > MOST_VALUES:
        return 0
    facts = derive_once(counts.input, ctx.analysis).fact
    each = 2 if facts.replaced else 1
    try:
        limited = bounded(counts, replace(ctx, searching=None))
        below = derive_once(limited.input, ctx.analysis).fact
    except Rejected:
        return picks  # nothing limits how many groups a unit is in
    most = sensitivity(limited.components[0], contribution(limited, below), grouped=True)
    return picks if picks * each < most.l1 else 0


def _picked(counts: Release, picks: int, numbers: Iterator[int]) -> Node:
    """The picks as rows, in their order. Of more than one: each row of a list of places shows that pick."""
    (key,), (item,), (count,) = counts.keys, keyed_by(counts).items, counts.components
    sources = key_sources(counts)
    assert sources is not None
    outputs = tuple(
        Output(
            Column(next(numbers), key.name, key.type),
            Largest(place),
            key.name if picks == 1 else f"{key.name}, pick {place + 1} of {picks}",
            key.span,
        )
        for place in range(picks)
    )
    components = tuple(
        LargestChoice(item.expr, count.filter, choices=sources[0], pick=Pick(place, picks)) for place in range(picks)
    )
    release = Release(GroupKeys(keyed_by(counts).input, (), ()), (), components, outputs, span=counts.span)
    if picks == 1:
        return Project(release, (Item(key, outputs[0].column),))
    place, shown = (Column(next(numbers), "place", BIGINT) for _ in range(2))
    cases: list[Expr] = []
    for at, output in enumerate(outputs[:-1]):
        cases += [Call("eq", (place, Literal(at, BIGINT)), BOOLEAN), output.column]
    rows = Join(JoinKind.CROSS, Values((place,), tuple((at,) for at in range(picks))), release)
    one_each = Call("case", (*cases, outputs[-1].column), key.type)
    return Sort(Project(rows, (Item(key, one_each), Item(shown, place))), (SortKey(shown),))
