"""Sums of different values: all small sets of values of others and of one unit, added, removed or replaced.

The truth is written here once more: a group adds each of its values once. What one unit has is every set of at most D
pairs (group, value). No norm of the change goes beyond what is claimed, and where values have one size it is reached.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import chain, combinations, product

import pytest

from dpsql.core.analysis.facts import Contribution
from dpsql.core.ir.components import Component, DistinctSum
from dpsql.core.ir.expressions import Literal
from dpsql.core.ir.types import BIGINT
from dpsql.core.measures.all_measures import largest_contribution, rule
from dpsql.core.measures.measure_rule import Norms
from dpsql.core.noise.sensitivity import Sensitivity, sensitivity

GROUPS = (0, 1)
Pairs = frozenset[tuple[int, int]]


def component(values: tuple[int, ...]) -> Component:
    return DistinctSum(Literal(1, BIGINT), lo=min(values), hi=max(values))


def sets(pairs: list[tuple[int, int]], most: int) -> Iterator[Pairs]:
    return (frozenset(s) for s in chain.from_iterable(combinations(pairs, n) for n in range(most + 1)))


def sums(held: Pairs, groups: int) -> tuple[int, ...]:
    return tuple(sum(v for g, v in held if g == at) for at in range(groups))


def norms(a: tuple[int, ...], b: tuple[int, ...]) -> tuple[int, int, int]:
    moved = [abs(x - y) for x, y in zip(a, b, strict=True)]
    return sum(moved), sum(d * d for d in moved), max(moved)


def furthest(values: tuple[int, ...], most: int, groups: int, *, replaced: bool) -> tuple[int, int, int]:
    """The largest norms over all that others have, and all that one unit has; or that two have, one of which goes."""
    pairs = list(product(range(groups), values))
    units = list(sets(pairs, most))
    best = [0, 0, 0]
    for others in sets(pairs, len(pairs)):
        seen = {sums(others | own, groups) for own in units}
        start = seen if replaced else {sums(others, groups)}
        for a, b in product(start, seen):
            best = [max(x, y) for x, y in zip(best, norms(a, b), strict=True)]
    return best[0], best[1], best[2]


def claimed(s: Sensitivity) -> tuple[int, int, int]:
    return s.l1, int(s.l2_squared), s.linf


WORLDS = [
    pytest.param((-2, 1), 1, 2, id="one value of both signs"),
    pytest.param((-2, 2), 1, 2, id="one value, as far both ways"),
    pytest.param((-2, 1), 2, 2, id="both signs"),
    pytest.param((-2, 2), 2, 2, id="as far both ways"),
    pytest.param((1, 2), 2, 2, id="one sign"),
    pytest.param((-3, -1), 2, 2, id="the other sign"),
    pytest.param((3,), 2, 2, id="one value"),
    pytest.param((0, 2), 1, 2, id="zero"),
    pytest.param((-1, 0, 2), 2, 1, id="one group"),
]


@pytest.mark.parametrize("known", [False, True])
@pytest.mark.parametrize("ids", [1, 2])
@pytest.mark.parametrize(("values", "most", "groups"), WORLDS)
def test_no_set_of_values_goes_beyond_the_norms(
    values: tuple[int, ...], most: int, groups: int, ids: int, known: bool
) -> None:
    c = component(values)
    c = replace(c, values=len(values)) if known else c
    limits = Contribution(most, scaled=True, ids=ids, released_groups=groups)
    claim = claimed(sensitivity(c, limits, groups > 1))
    seen = furthest(values, most, groups, replaced=ids == 2)
    assert all(a <= b for a, b in zip(seen, claim, strict=True)), (seen, claim)
    if values == (3,) and known:  # nothing that could move more
        assert (seen[0], seen[2]) == (claim[0], claim[2]), (seen, claim)
    smaller = claimed(sensitivity(component((0,)), limits, groups > 1))
    assert smaller == (0, 0, 0) and max(seen) > 0  # a rule without values would be seen


@pytest.mark.parametrize("values", [(-2, 1), (3, 5), (-2, 2), (-3, -1)])
@pytest.mark.parametrize("groups", [1, 2])
def test_a_replaced_row_takes_one_value_or_none_and_brings_one(values: tuple[int, ...], groups: int) -> None:
    """Every database of three rows, and every one of its rows replaced by another, with a public number of rows.

    The other two have values, or NULL.
    """
    kinds = list(product(range(groups), values))
    others = [frozenset[tuple[int, int]](), *(frozenset({kind}) for kind in kinds)]
    limits = Contribution(1, replaces_rows=True, size=3, released_groups=groups)
    claim = claimed(sensitivity(replace(component(values), every_row=True), limits, groups > 1))
    best = [0, 0, 0]
    for a, b, gone, come in product(others, others, kinds, kinds):
        before, after = (sums(a | b | {row}, groups) for row in (gone, come))
        best = [max(x, y) for x, y in zip(best, norms(before, after), strict=True)]
    assert all(a <= b for a, b in zip(best, claim, strict=True)), (best, claim)
    assert best[2] == claim[2] and (groups == 1 or best[0] == claim[0])


def test_as_many_values_count_as_are_priced() -> None:
    """What the statement keeps of an id is what the price multiplies by the largest value."""
    c = DistinctSum(Literal(1, BIGINT), lo=-3, hi=7)
    for limits in (Contribution(5), Contribution(None, 2, 3, scaled=True)):
        for own in (c, replace(c, values=2)) if limits.scaled else (c,):
            assert largest_contribution(own, limits).in_all == rule(own).kept(own, limits) * 7


def test_sums_that_are_cut_move_by_the_width_of_what_is_left() -> None:
    """Without limits a group's sum of two values lies in [-6, 14], between which one id's five rows may move it."""
    c = DistinctSum(Literal(1, BIGINT), lo=-3, hi=7, values=2)
    assert largest_contribution(c, Contribution(5)) == Norms(35, 20**2 + 15**2, 20)
    assert largest_contribution(c, Contribution(5, groups=2)) == Norms(35, 20**2 + 15**2, 20)
    assert largest_contribution(replace(c, lo=0), Contribution(5, groups=2)) == Norms(28, 2 * 14**2, 14)
