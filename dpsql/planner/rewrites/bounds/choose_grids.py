"""Give every component its integer grid: what one integer is worth, where it is clipped, how fine the weights are.

Public facts alone decide, and the noise is computed from the grid, never the grid from the noise. A COUNT(DISTINCT …)
counts as many values as it seems to have, where these are fewer than the rows of an id.

With B the clip bound in integers, F the weight grid and r the rows of one unit: B ≤ 2³⁰ and F·r·B ≤ 2⁴⁰. So every
integer that the engine computes fits its type. Where totals per group are clipped, the largest contribution under that
clip stands in place of r·B.

Example:
    >>> before_after(choose_grids, "SELECT SUM(cost) FROM visits")
    release SUM(CLIP(cost, 0.0, 1000.0))
    → release SUM(CLIP(cost, 0.0, 1000.0)) of integers 0 … 1048576000, each worth 1/1048576
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from math import prod
from types import MappingProxyType
from typing import TypeVar

from dpsql.core.analysis.derive import derive_once
from dpsql.core.analysis.facts import Contribution, Facts
from dpsql.core.analysis.rules.private_aggregate import VARIANCES
from dpsql.core.analysis.rules.release import contribution
from dpsql.core.ir.components import (
    Comoment,
    Component,
    DistinctCount,
    DistinctSum,
    Factor,
    OnGrid,
    ProductSum,
    QuantileChoice,
    ValueSum,
)
from dpsql.core.ir.contributions import SATURATED, UnitTotal, Weighing
from dpsql.core.ir.expressions import Call, Expr, Literal, columns_of
from dpsql.core.ir.nodes import Aggregate, AggregateCall, BoundContributions, Node, Release, key_sources
from dpsql.core.ir.types import Kind
from dpsql.core.ir.walk import Tagged, transform
from dpsql.core.measures.all_measures import largest_contribution, rule
from dpsql.core.numbers.interval import Exact
from dpsql.core.policy.tables import DEFAULT_RESOLUTION, Table
from dpsql.core.printing.grid_integers import MOST_PLACES
from dpsql.core.value_classes import replace
from dpsql.core.values.value import Value
from dpsql.diagnostics.errors import reject
from dpsql.planner.distinct_values import most_values
from dpsql.planner.rewrites.rewrite_context import RewriteContext

MOST_UNITS = 2**30
"""B: a clipped value fits a 32-bit integer, which DuckDB adds fastest."""
BUDGET = 2**40
"""F·r·B: what one unit can add, in sub-units."""
CELL_UNITS = 2**60
"""The same of what lies in cells, and is not added up: two of them still differ by less than 2⁶³."""
LEAST_WEIGHT, MOST_WEIGHT = 2**8, 2**20
"""F: coarser would bias scaled contributions by more than 1/256 of a row, finer buys nothing."""
MOST_CELLS, MOST_VALUES, PRIVATE_CELLS = 2**18, 2**16, 2**12
"""Cells of a quantile; values of a mode; of either by private keys, whose number must decide on nothing."""
SECOND = 10**6
ROUND_STEPS = (
    *(10**i for i in range(6)),
    *(s * SECOND for s in (1, 2, 5, 10, 15, 30)),
    *(m * 60 * SECOND for m in (1, 2, 5, 10, 15, 30)),
    *(h * 3600 * SECOND for h in (1, 2, 3, 6, 12)),
    *(d * 86400 * SECOND for d in (1, 2, 5, 10, 20, 50, 100, 200, 500)),
)
"""Microseconds between the timestamps that a quantile of them is chosen from."""
MANY_ENTRIES, MOST_ENTRIES = 2**20, 2**24
"""Cells times public keys: of finer cells than there may be values, and of any. A million take half a second."""
TEN_MINUTES = 600 * SECOND
"""Where steps are as long, there may be as many cells of timestamps as there may be of any: a year has few of them."""


G = TypeVar("G", bound=OnGrid)


def sum_integers(root: Node, ctx: RewriteContext) -> Node:
    """Set the grid of every sum that stays private: before searches are made, which read its rows, too."""

    def change(node: Aggregate) -> Node:
        return _summed(node, derive_once(node.input, ctx.analysis).fact) if node.inner else node

    return transform(root, Aggregate, change)


def choose_grids(root: Node, ctx: RewriteContext) -> Node:
    """Set grid, center, clip bounds and weight of every component."""

    searching = ctx.searching
    clips = {} if searching is None else searching.clips
    found: dict[Expr, Fraction] = {clip: searching.wanted[label].grid for label, clip in clips.items() if searching}

    def change(node: Release) -> Node:
        return gridded(node, derive_once(node.input, ctx.analysis), found)

    return transform(root, Release, change)


def gridded(node: Release, rows: Tagged[Facts], found: Mapping[Expr, Fraction] = MappingProxyType({})) -> Release:
    """The release with grids. rows: its input. found: what is clipped to bounds that a search finds → its grid."""
    facts = rows.fact
    limits = contribution(node, facts)
    bounding = node.input if isinstance(node.input, BoundContributions) else None
    return replace(
        node,
        components=tuple(
            _counted(_gridded(c, facts, limits, bounding, node, found), node, facts)
            for c in (_counting(c, node, rows, limits) for c in node.components)
        ),
    )


def _counting(c: Component, node: Release, rows: Tagged[Facts], limits: Contribution) -> Component:
    """With V, the most values that a COUNT(DISTINCT …) is to count.

    Not where it may share its price with components that count other rows (`core/noise/parallel_composition.py`).
    """
    if not isinstance(c, DistinctCount | DistinctSum):
        return c
    if not limits.scaled and _conditional(c) and sum(map(_conditional, node.components)) > 1:
        return c
    most = most_values(c.arg, rows, c.filter)
    counted = limits.rows if c.of_unit is None else c.of_unit.most
    return c if most is None or most >= counted else replace(c, values=max(1, most))


def _counted(c: Component, node: Release, facts: Facts) -> Component:
    """With every row counted, where the number of rows is public and each seems to have a value anyway."""
    if facts.size is None or not facts.replaced_rows or node.keys or c.filter is not None or rule(c).counts != "rows":
        return c
    values = map(facts.value, c.arguments)
    return c if rule(c).chosen or any(v.nullable or not v.finite for v in values) else replace(c, every_row=True)


def _conditional(c: Component) -> bool:
    return c.filter is not None or (isinstance(c.arg, Call) and c.arg.function in ("case", "if"))


def _summed(node: Aggregate, facts: Facts) -> Aggregate:
    """A sum of DOUBLEs that stays private is made of integers too, so that it is the same on any number of threads.

    So is every variance, whose integers lie around the middle.
    """

    def change(call: AggregateCall) -> AggregateCall:
        spread = call.function in VARIANCES
        if not (spread or call.function in ("sum", "avg")) or call.arg is None or call.summed is not None:
            return call
        value = facts.value(call.arg)
        if not (spread or value.type.kind is Kind.DOUBLE) or not value.interval.bounded:
            return call
        total = ValueSum(call.arg, contribution=Weighing.PAIRED if spread else Weighing.ALONE)
        return replace(call, summed=on_least_grid(total, value, MOST_UNITS))

    return replace(node, calls=tuple(change(c) for c in node.calls))


def _gridded(
    c: Component,
    facts: Facts,
    limits: Contribution,
    bounding: BoundContributions | None,
    node: Release,
    found: Mapping[Expr, Fraction],
) -> Component:
    value = None if c.arg is None else facts.value(c.arg)
    if c.of_unit is not None:
        return replace(c, weight=_weight_of_total(c, c.of_unit, bounding))  # its grid came with its limit
    weighted = bounding is not None and _is_weighted(c, bounding)
    least = LEAST_WEIGHT if weighted else 1
    if isinstance(c, QuantileChoice):
        assert value is not None
        cells, own = max(2, most_choices(node, MOST_CELLS)), found.get(c.arg)
        # The type has a grid of its own, or the search: it is kept, so that wide bounds leave small values apart.
        units = CELL_UNITS if own is not None or value.type.kind is not Kind.DOUBLE else MOST_UNITS
        c = replace(c, cells=cells)
        rounded = None if own is not None else _in_round_steps(c, value, cells, most_choices(node, MOST_ENTRIES))
        c = rounded or on_least_grid(c, value, units, own or Fraction(0))
    if isinstance(c, OnGrid) and rule(c).adds_values:
        assert value is not None
        if c.per_group is not None:
            c = on_least_grid(c, value, MOST_UNITS)
            while largest_contribution(c, limits).in_all * least > BUDGET:
                if c.most_per_group <= 1:
                    raise _too_many_rows(limits, node)
                c = on_least_grid(c, value, MOST_UNITS, c.grid * 2)
        else:
            most = min(MOST_UNITS, BUDGET // (least * limits.rows))
            if most < 2:
                raise _too_many_rows(limits, node)
            c = on_least_grid(c, value, most)
            if isinstance(c, ProductSum):
                c = _stepped(c if c.times is None else replace(c, times=_factor(c.times.arg, facts, most)), most)
    elif BUDGET // least < largest_contribution(c, limits).in_all:
        raise _too_many_rows(limits, node)
    if not weighted:
        return c
    room = BUDGET // max(1, largest_contribution(c, limits).in_all)
    weight = max(LEAST_WEIGHT, min(MOST_WEIGHT, 1 << (room.bit_length() - 1)))
    return replace(c, weight=weight)


def most_choices(node: Release, most: int) -> int:
    """How many cells, or values, anything is chosen from in each group of a release: at most so many.

    most: MOST_ENTRIES means that nothing but the entries of all groups together sets a limit.
    """
    sources = key_sources(node)
    if sources is None:
        return PRIVATE_CELLS
    groups = max(1, prod(len(source.keys) for source in sources))
    return min(most, max(MOST_VALUES, most if most == MOST_ENTRIES else MANY_ENTRIES // groups), MOST_ENTRIES // groups)


def resolution_of(arg: Expr, facts: Facts, table: Callable[[str], Table]) -> Fraction:
    """What one integer of a DOUBLE without bounds is worth: the finest of its columns' resolutions, by default 2^-20.

    table: of the policy, by its name.
    """
    hints = (facts.columns[uid].hint for uid in columns_of(arg))
    columns = (table(h.table).column(h.column) for h in hints if h is not None and h.table)
    steps = [c.grid for c in columns if c is not None and c.grid is not None and c.resolution is not None]
    return min(steps, default=DEFAULT_RESOLUTION)


def in_units(c: ValueSum, value: Value, resolution: Fraction) -> ValueSum:
    """A sum with a limit of its own on what an id adds: its grid does not depend on the limit.

    Without bounds the grid is that of the type (of a DOUBLE, the resolution), and what does not fit is clipped.
    """
    if value.interval.bounded:
        return on_least_grid(c, value, MOST_UNITS)
    positive, negative = (any(end is not None and end >= 0 for end in ends) for ends in _ends(value))
    lo, hi = 0 if positive else -SATURATED, 0 if negative else SATURATED
    match value.type.kind:
        case Kind.INTEGER:
            grid = Fraction(1)
        case Kind.DECIMAL:
            grid = Fraction(1, 10 ** min(value.type.scale, MOST_PLACES))
        case _:
            grid = resolution
    return replace(c, grid=grid, lo=lo, hi=hi)


def _ends(value: Value) -> tuple[tuple[Exact | None, ...], tuple[Exact | None, ...]]:
    """The known lower ends, and the known upper ones with the other sign."""
    spans = value.interval, value.range
    return tuple(s.lo for s in spans), tuple(None if s.hi is None else -s.hi for s in spans)


def _weight_of_total(c: Component, total: UnitTotal, bounding: BoundContributions | None) -> int:
    """The largest F ≤ 2²⁰ with F·τ ≤ 2³⁰, else 1: an id above τ loses less than 1/F of a unit in each group."""
    if rule(c).counts == "values" or bounding is None or bounding.one_group:
        return 1
    return _weight_of(total.most)


def weighed(limit: int, weight: int) -> int:
    """F·τ of a limit τ on totals of ids. weight: that of a limit of 1, which is 1 where all are whole."""
    return limit if weight == 1 else limit * _weight_of(limit)


def _weight_of(limit: int) -> int:
    room = MOST_UNITS // limit
    return min(MOST_WEIGHT, 1 << (room.bit_length() - 1)) if room else 1


def _is_weighted(c: Component, bounding: BoundContributions) -> bool:
    """Whether the bounding form scales this component by fractions (else it clips, truncates or counts presence)."""
    own, over_groups = rule(c), not (bounding.few_groups or bounding.truncate_groups)
    match own.counts:
        case "values":
            return False
        case "ids":
            return over_groups
        case "rows":
            return over_groups or bounding.rows is not None or not own.alone(c)


def on_least_grid(c: G, value: Value, most: int, least: Fraction = Fraction(0)) -> G:
    """The least grid of the argument's kind, from `least` on, on which the (centred) bounds fit `most` units."""
    lo, hi = value.interval.lo, value.interval.hi
    assert lo is not None and hi is not None
    match value.type.kind:
        case Kind.INTEGER if c.paired and (hi - lo) % 2 == 1 and 2 * max(hi, -lo) <= most:
            grid = Fraction(1, 2)  # the midpoint of an odd range lies between two integers
        case Kind.INTEGER:
            grid = Fraction(1)
        case Kind.DECIMAL:
            grid = Fraction(1, 10**value.type.scale)
        case _:
            grid = Fraction(1)
            top = Fraction(max(hi, -lo, hi - lo)) / most
            if top > 0:  # start near the answer
                exponent = top.numerator.bit_length() - top.denominator.bit_length()
                grid = Fraction(2) ** max(-1074, exponent - 2)
    while True:
        low, high = lo // grid, -(-hi // grid)
        center = (low + high) // 2 if c.paired else 0
        low, high = int(low - center), int(high - center)
        # The uncentred ends must fit as well: the engine computes the value before it subtracts the centre.
        if grid >= least and max(abs(low), abs(high), abs(low + center), abs(high + center)) <= most:
            return replace(c, grid=grid, center=int(center), lo=low, hi=high)
        grid *= 2


def _in_round_steps(c: QuantileChoice, value: Value, most: int, any_most: int) -> QuantileChoice | None:
    """Timestamps: the least step that divides a day, or a whole number of days, at which there are at most so many.

    any_most: how many there may be of steps of ten minutes and more.

    A quantile of them is a round time, and mostly exact where the times of the rows are round. None of anything else.
    """
    match c.arg:
        case Call(function="clip", args=(Call(function="date_diff", args=(Literal(value="microsecond"), *_)), *_)):
            pass
        case Call(function="date_diff", args=(Literal(value="microsecond"), *_)):
            pass
        case _:
            return None
    lo, hi = value.interval.lo, value.interval.hi
    if c.logarithmic or lo is None or hi is None:
        return None
    for step in ROUND_STEPS:
        # Within the bounds: no answer lies beyond what a timestamp can be.
        low, high = -(-lo // step), hi // step
        if low <= high < low + (any_most if step >= TEN_MINUTES else most):
            cells = max(most, int(high - low) + 1)
            return replace(c, grid=Fraction(step), center=0, lo=int(low), hi=int(high), cells=cells)
    return None


def _factor(arg: Expr, facts: Facts, most: int) -> Factor:
    """On the grid, and about the center, of its own sum, which is added up beside the products."""
    c = on_least_grid(ValueSum(arg, contribution=Weighing.PAIRED), facts.value(arg), most)
    return Factor(arg, c.grid, c.center, c.lo, c.hi)


def _stepped(c: ProductSum, most: int) -> ProductSum:
    """Squares and products on the same grids as the sums, so that these are shared; in steps, so that they fit `most`
    units, too.

    They lie in [least, largest] and are shifted by the middle: the sensitivity is half of that of the squares
    themselves, and the count that a variance is divided by puts the shift back.
    """
    if isinstance(c, Comoment):
        widest = c.rows * (c.hi - c.lo) * (c.times.hi - c.times.lo)
        return replace(c, step=1 << max(0, (widest // most).bit_length()))
    c = replace(c, step=1, shift=0)
    while c.ends[1] - c.ends[0] > most:
        c = replace(c, step=c.step * 2)
    return replace(c, shift=(c.ends[0] + c.ends[1]) // 2)


def _too_many_rows(limits: Contribution, node: Release) -> Exception:
    return reject(
        "DP410", f"one privacy unit may contribute {limits.rows:,} rows: the noise would drown every answer",
        span=node.span, help=["tighten max_rows_per_unit, or max_groups_per_unit and max_rows_per_group"],
    )  # fmt: skip
