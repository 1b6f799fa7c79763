"""Limits from noisy octaves: against a plain reference, with every shortcut that would be wrong beside it."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction
from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsql.core.noise.mechanisms import DiscreteGaussian, DiscreteLaplace
from dpsql.core.noise.mechanisms.mechanism import AdditiveNoise
from dpsql.core.numbers.enclosures import exp_minus
from dpsql.planner.postprocessing.searches.octaves import (
    Octaves,
    cut_part,
    groups_of_private_keys,
    largest_octave,
    limit_of_sum,
    noise_per_unit,
    range_of_quantiles,
    range_of_values,
)
from dpsql.planner.rewrites.bounds.choose_grids import weighed

QUIET = DiscreteLaplace(Fraction(1, 100))
"""So little noise that every unit is seen: the threshold is 1."""
FIVE = DiscreteLaplace(Fraction(5))


def octaves(counts: Any, noise: AdditiveNoise = QUIET, cells: int = 63, **others: Any) -> Octaves:
    return Octaves("s", "SUM(amount)", "customer", tuple(counts), noise, cells, **others)


# --- the reference: the text, with numbers in place of cleverness ----------------------------------------------------


def limits(n: int, at_most: int | None) -> list[int]:
    return [2**b if at_most is None else min(2**b, at_most) for b in range(n)]


def scale_of(t: int) -> Fraction:
    """That of noise whose threshold is t, of 63 cells."""
    return Fraction(t - Fraction(1, 2)) / Fraction(math.log(500 * 63))


def real(counts: tuple[int, ...], t: int, at_most: int | None = None, step: float = 10) -> list[int]:
    """Up to the highest octave that is seen, and those above it one at a time, what is positive."""
    scale = float(scale_of(t))
    seen = [b for b, c in enumerate(counts) if c >= t]
    if not seen and at_most is not None:
        seen = [b for b, c in enumerate(counts) if c >= math.ceil(scale * math.log(10 * 63))]
    if not seen:
        return [0] * len(counts)
    top = seen[-1]
    while top + 1 < len(counts) and counts[top + 1] >= math.ceil(scale * math.log(step)) + 1:
        top += 1
    return [max(0, c) if b <= top else 0 for b, c in enumerate(counts)]


def middle(seen: list[int]) -> int:
    return next(b for b in range(len(seen)) if 2 * sum(seen[b + 1 :]) <= sum(seen))


def reference(counts: tuple[int, ...], t: int, noise: Fraction, top: int, at_most: int | None) -> int | None:
    """Totals of an octave lie in its middle; what a limit cuts of them, and the noise, is its cost."""
    return chosen(counts, real(counts, t, at_most), noise, top, at_most)


def chosen(counts: tuple[int, ...], seen: list[int], noise: Fraction, top: int, at_most: int | None) -> int | None:
    """seen: what is taken for real."""
    ends = limits(len(counts), at_most)
    tops = ends if len(counts) < 63 else limits(63, None)
    if not any(seen):
        return at_most if at_most is None else min(at_most, 2**top)
    cost = {}
    for b in range(min(middle(seen), top), min(top, len(counts) - 1) + 1):
        cut = sum(
            seen[i] * max(Fraction(0), Fraction(2 ** (i - 1) + tops[i], 2) - ends[b]) for i in range(b, len(seen)) if i
        )
        cost[b] = cut + ends[b] * noise
    return ends[min(cost, key=lambda b: (cost[b], b))]


def cases() -> Iterator[tuple[tuple[int, ...], int, Fraction, int, int | None]]:
    """counts, threshold, noise, largest octave, cap."""
    random.seed(20)
    for _ in range(800):
        at_most = random.choice([None, None, random.randint(1, 300)])
        n = 63 if random.random() < 0.02 else random.randint(1, 9)
        if at_most is not None:
            n = random.choice([63, (at_most - 1).bit_length() + 1])
        t = random.choice([1, 4, 20, 200])
        most = random.choice([t, 500])
        counts = tuple(random.choice([0, 0, random.randint(-9, 9), random.randint(0, most)]) for _ in range(n))
        noise = Fraction(random.choice([1, 5, 40, 300, 3000]), random.choice([1, 3, 7]))
        yield counts, t, noise, random.choice([62, 62, random.randint(0, 8)]), at_most


def ours(counts: tuple[int, ...], t: int, noise: Fraction, top: int, at_most: int | None) -> int | None:
    return limit_of_sum(at_threshold(counts, t, at_most), noise, top)


def at_threshold(counts: tuple[int, ...], t: int, at_most: int | None = None) -> Octaves:
    """With noise whose threshold is t."""
    found = octaves(counts, DiscreteLaplace(scale_of(t)), at_most=at_most)
    assert found.threshold == t
    return found


def test_the_limit_of_a_sum_is_the_reference_s() -> None:
    answers = [(ours(*case), reference(*case)) for case in cases()]
    assert all(a == b for a, b in answers)
    assert len({b for _, b in answers}) > 20  # not always the same


WRONG: dict[str, Callable[[tuple[int, ...], int, Fraction, int, int | None], int | None]] = {
    "counts below the threshold count": lambda c, t, n, top, cap: reference(c, 1, n, top, cap),
    "nothing below the threshold does": lambda c, t, n, top, cap: chosen(
        c, [x if x >= t else 0 for x in c], n, top, cap
    ),
    "the next octave is taken on no evidence": lambda c, t, n, top, cap: chosen(c, real(c, t, cap, 2), n, top, cap),
    "a cap does not help to see": lambda c, t, n, top, cap: chosen(c, real(c, t), n, top, cap),
    "above the threshold, not from it on": lambda c, t, n, top, cap: reference(c, t + 1, n, top, cap),
    "noise of one group": lambda c, t, n, top, cap: reference(c, t, n / 3, top, cap),
    "no largest octave": lambda c, t, n, top, cap: reference(c, t, n, 62, cap),
    "no cap": lambda c, t, n, top, cap: reference(c, t, n, top, None),
}


@pytest.mark.parametrize("wrong", WRONG.values(), ids=list(WRONG))
def test_wrong_rules_are_told_from_ours(wrong: Callable[..., int | None]) -> None:
    """Twins: the comparison above fails for each of them."""
    assert any(ours(*case) != wrong(*case) for case in cases())


def test_of_two_limits_that_cost_the_same_it_is_the_smaller() -> None:
    # At 2: 60 · (3 - 2) + 2·30; at 4: 4·30. Both 120.
    assert limit_of_sum(octaves((0, 100, 60)), Fraction(30)) == 2
    assert limit_of_sum(octaves((0, 100, 60)), Fraction(29)) == 4


def test_noise_that_drowns_everything_does_not_choose_a_limit_below_the_median_unit() -> None:
    counts = (10, 10, 10, 40, 10)
    assert limit_of_sum(octaves(counts), Fraction(10**9)) == 8
    # By its cost alone it would be 1.
    cost = {b: 2**b * 10**9 + sum(counts[i] * (3 * 2**i / 4 - 2**b) for i in range(b + 1, 5)) for b in range(5)}
    assert min(cost, key=cost.__getitem__) == 0


def test_a_cap_is_no_power_of_two_and_stands_where_nothing_is_found() -> None:
    nothing, high = octaves([0] * 11, at_most=1000), octaves([0] * 10 + [50], at_most=1000)
    assert limit_of_sum(nothing, Fraction(1)) == limit_of_sum(high, Fraction(1)) == 1000
    assert high.ends(10) == (512, 1000)
    assert limit_of_sum(octaves([0] * 63), Fraction(1)) is None
    # With a largest octave below the cap the query can still be answered.
    assert limit_of_sum(nothing, Fraction(1), largest_k=6) == 64


def test_an_octave_above_the_largest_counts_as_it_and_stays_in_the_sums() -> None:
    far = octaves([0] * 40 + [100])
    assert limit_of_sum(far, Fraction(1), largest_k=30) == 2**30
    # 100 units far above make the limit as large as it may be, though noise is worth more than those below.
    assert limit_of_sum(octaves([300, 0, 0, 0, 0, 0, 0, 0, 0, 100]), Fraction(60), largest_k=4) == 16
    assert limit_of_sum(octaves([300, 0, 0, 0, 0]), Fraction(60), largest_k=4) == 1


def test_octaves_beyond_a_cap_are_counted_and_the_limit_stays_below() -> None:
    """They say how much the cap cuts; the limit is never above it, whatever they hold."""
    search = octaves([0, 0, 0, 50, 0, 80, 300, 7] + [0] * 55, at_most=40)
    assert search.ends(5) == (16, 32) and search.ends(6) == (32, 64) and search.ends(7) == (64, 128)
    assert search.evidence.highest == 7
    assert limit_of_sum(search, Fraction(1)) == 40
    assert limit_of_sum(search, Fraction(10**6)) == 40, "not below the median unit, which is above the cap"
    low, high = cut_part(search, 40)
    assert (low, high) == (7 * 24, 300 * 24 + 7 * 88)


def test_what_is_seen_of_totals() -> None:
    def seen(counts: list[int], **others: Any) -> tuple[dict[int, int], int | None, bool]:
        found = octaves(counts + [0] * (63 - len(counts)), FIVE, **others).evidence
        return found.counts, found.highest, found.is_weak

    # threshold 52, with a cap 33; one octave further 13
    assert octaves([0], FIVE).next_threshold == 13
    assert seen([-9, 51, 33, 4]) == ({}, None, True)
    assert seen([-9, 5, 52, 12, 99]) == ({1: 5, 2: 52, 3: 12, 4: 99}, 4, False)
    assert seen([-9, 5, 52, 12, 13]) == ({1: 5, 2: 52}, 2, False), "one at a time"
    assert seen([-9, 5, 52, 13, 13, 12]) == ({1: 5, 2: 52, 3: 13, 4: 13}, 4, False)
    assert seen([-9, 51, 32, 4], at_most=1000) == ({1: 51, 2: 32}, 2, True)
    assert seen([-9, 32, 32, 4], at_most=1000) == ({}, None, True)
    assert seen([0] * 62 + [60])[1] == 62


def falsely_next(noise: AdditiveNoise, t: int) -> Fraction:
    """P(an empty octave is taken for the next one)."""
    return noise.upper_tail(t, 128)


@pytest.mark.parametrize(
    "noise",
    [
        *(DiscreteLaplace(Fraction(n, d)) for n, d in ((1, 5), (1, 2), (1, 1), (5, 1), (40, 3), (10**6, 7))),
        *(DiscreteGaussian(Fraction(n, d)) for n, d in ((1, 8), (1, 2), (1, 1), (25, 1), (10**6, 3))),
    ],
    ids=repr,
)
def test_an_empty_octave_is_taken_for_the_next_once_in_20_at_most(noise: AdditiveNoise) -> None:
    search = octaves([0], noise)
    assert falsely_next(noise, search.next_threshold) <= Fraction(1, 20)
    # Twin: evidence of ln 2, for which the same noise is enough far more often.
    weak = math.ceil(float(noise.laplace) * math.log(2) or float(noise.gaussian) * math.sqrt(2 * math.log(2)))
    assert falsely_next(noise, weak) > Fraction(1, 20) or noise.scale < 1


@given(st.data())
def test_only_what_is_taken_for_real_chooses(data: st.DataObject) -> None:
    """Above the highest octave seen nothing is read, and of what is below it whatever is negative."""
    counts = data.draw(st.lists(st.integers(-60, 200), min_size=1, max_size=63))
    search = octaves(counts, FIVE)
    highest, most = search.evidence.highest, min(search.threshold, search.next_threshold) - 1
    top = -1 if highest is None else highest
    unseen = [c if b <= top + 1 else data.draw(st.integers(-(10**6), most)) for b, c in enumerate(counts)]
    other = [c if c > 0 or b > top else data.draw(st.integers(-(10**6), 0)) for b, c in enumerate(unseen)]
    noise = data.draw(st.fractions(Fraction(1, 1000), 1000))
    changed = replace(octaves(other, FIVE), label="t", what="COUNT(*)", unit="order", grid=Fraction(1, 100))
    assert limit_of_sum(search, noise) == limit_of_sum(changed, noise)
    limit = limit_of_sum(search, noise)
    if limit is not None:
        assert cut_part(search, limit) == cut_part(changed, limit)


# --- the threshold ---------------------------------------------------------------------------------------------------

LAPLACE = [
    (Fraction(n, d) * l1, cells)
    for n, d in ((10, 1), (5, 1), (40, 1), (10**6, 1), (1, 3), (1, 30), (22, 7))
    for l1 in (1, 2, 3)
    for cells in (1, 11, 63, 126, 127, 630)
]


def some_empty_reaches(scale: Fraction, t: int, cells: int) -> tuple[Fraction, Fraction]:
    """P(some of so many noises is ≥ t), from below and above: 1 - (1 - q^t/(1+q))^cells, q = e^(-1/scale)."""
    one, tail = exp_minus(1 / scale, 200), exp_minus(t / scale, 200)
    assert one.lo is not None and one.hi is not None and tail.lo is not None and tail.hi is not None
    return 1 - (1 - tail.lo / (1 + one.hi)) ** cells, 1 - (1 - tail.hi / (1 + one.lo)) ** cells


def test_an_empty_octave_is_taken_for_real_once_in_500_queries_at_most() -> None:
    for scale, cells in LAPLACE:
        t = octaves([0] * 63, DiscreteLaplace(scale), cells).threshold
        below, above = some_empty_reaches(scale, t, cells)
        assert above <= Fraction(1, 500)
        assert below >= Fraction(1, 1500) or scale < 5  # and it is not far too careful
        # Twin: the evidence of 5 % for one octave.
        low = math.ceil(scale * Fraction(math.log(20)))
        assert some_empty_reaches(scale, low, cells)[0] > Fraction(1, 500) or scale < 1


def test_evidence_for_one_octave_is_wrong_most_of_the_time() -> None:
    below, _ = some_empty_reaches(Fraction(5), math.ceil(5 * math.log(20)), 63)
    assert below > Fraction(3, 4)
    _, above = some_empty_reaches(Fraction(5), octaves([0] * 63, FIVE).threshold, 63)
    assert above < Fraction(1, 900)


@pytest.mark.parametrize("variance", [Fraction(1, 4), Fraction(25), Fraction(250), Fraction(10**9)])
@pytest.mark.parametrize("cells", [1, 63, 126])
def test_the_threshold_of_gaussian_noise(variance: Fraction, cells: int) -> None:
    noise = DiscreteGaussian(variance)
    search = octaves([0] * 63, noise, cells)
    assert search.threshold == math.ceil(math.sqrt(2 * float(variance) * math.log(500 * cells)))
    assert noise.upper_tail(search.threshold, 128) * cells <= Fraction(1, 500)
    wide = octaves([0] * 63, DiscreteLaplace(noise.gaussian), cells)
    assert search.threshold <= wide.threshold


def test_documented_thresholds() -> None:
    """52 units at ε₁ = .2, 415 at .025 and 5 at 2.5; twice as many where a unit moves two counts."""
    assert [octaves([], DiscreteLaplace(1 / e)).threshold for e in map(Fraction, ("0.2", "0.025", "2.5"))] == [
        52,
        415,
        5,
    ]
    assert octaves([], DiscreteLaplace(Fraction(10))).threshold == 104
    weighted = octaves([], DiscreteLaplace(Fraction(5 * 2**20)), weight=2**20)
    assert 51 * 2**20 < weighted.threshold < 52 * 2**20


# --- values ----------------------------------------------------------------------------------------------------------


def values(*numbers: int, weight: int = 1, times: int = 1) -> Octaves:
    counts = [0] * 127
    for x in numbers:
        counts[63 + (x > 0) * key(x) - (x < 0) * key(-x)] += weight * times
    return octaves(counts, first=-63, cells=127, weight=weight)


def key(x: int) -> int:
    return (x - 1).bit_length() + 1 if x else 0


def test_a_range_holds_every_value_that_was_counted() -> None:
    edges = [s * (2**i + d) for i in (0, 1, 2, 3, 7, 30, 61) for d in (-1, 0, 1) for s in (-1, 1)]
    for a in edges:
        for b in edges:
            low, high = range_of_values(values(a, b)) or (1, 0)
            assert low <= min(a, b) and max(a, b) <= high and low < high
            # Tight up to the octave, and never of one point.
            assert high <= max(2 * max(a, b), max(a, b) // 2 + 1, 1) and low >= min(2 * min(a, b), min(a, b) // 2, 0)


@pytest.mark.parametrize(
    ("numbers", "expected"),
    [
        ((0,), (0, 1)),
        ((1,), (0, 1)),
        ((-1,), (-1, 0)),
        ((2,), (0, 2)),
        ((3,), (2, 4)),
        ((-3,), (-4, -2)),
        ((-5, 0), (-8, 0)),
        ((-1, 1), (-1, 1)),
        ((20_000,), (16_384, 32_768)),
        ((2**62,), (2**61, 2**62)),
        ((-(2**62), 2**62), (-(2**62), 2**62)),
    ],
)
def test_ends_of_a_range(numbers: tuple[int, ...], expected: tuple[int, int]) -> None:
    assert range_of_values(values(*numbers)) == expected
    assert range_of_values(values(*numbers, weight=1 << 20)) == expected  # each unit counts so much


def test_a_range_does_not_leave_declared_ends() -> None:
    assert range_of_values(values(3, 700), low=0, high=1000) == (2, 1000)
    assert range_of_values(values(3, 700), high=600) == (2, 600)
    assert range_of_values(values(3, 700), low=0) == (2, 1024)
    assert range_of_values(values(-70, 3), low=0) == (2, 4)  # what noise shows beyond them is not there
    assert range_of_values(values(), low=0, high=9) == (0, 9)
    assert range_of_values(values()) is range_of_values(values(), low=0) is range_of_values(values(), high=0) is None
    assert range_of_values(values(0), low=-5, high=0) == (-1, 0)


@pytest.mark.parametrize(
    ("numbers", "low", "high", "expected"),
    [
        ((300, 20_000), None, None, (32, 2**18)),
        ((-300, 20_000), None, None, (-(2**12), 2**18)),
        ((-5, -300), None, None, (-(2**12), 0)),
        ((3,), None, None, (0, 32)),  # no negative value was seen
        ((0,), None, None, (0, 1)),
        ((0, 1), None, None, (0, 8)),
        ((2**61, -(2**62)), None, None, (-(2**62), 2**62)),
        ((300,), 100, 1000, (100, 1000)),
        ((300,), None, 10**6, (32, 2**12)),
        ((-9, 300), 0, None, (32, 2**12)),
        ((), 0, 9, (0, 9)),
    ],
)
def test_bounds_of_quantiles_go_three_octaves_further(
    numbers: tuple[int, ...], low: int | None, high: int | None, expected: tuple[int, int]
) -> None:
    assert range_of_quantiles(values(*numbers), low, high) == expected


def test_bounds_of_quantiles_of_nothing() -> None:
    assert range_of_quantiles(values()) is range_of_quantiles(values(), low=0) is None


def test_weighted_counts_are_compared_with_a_weighted_threshold_once() -> None:
    """The noise of weighted counts is weighted, and so is its threshold: it is not multiplied again."""
    weight = 1 << 20
    counts = [0] * 127
    counts[63 + 4] = 60 * weight
    search = octaves(counts, DiscreteLaplace(Fraction(5 * weight)), 127, first=-63, weight=weight)
    assert range_of_values(search) == (4, 8)


# --- what stands beside ----------------------------------------------------------------------------------------------


def test_the_cut_part_holds_what_was_cut() -> None:
    random.seed(22)
    for _ in range(300):
        totals = [random.choice([random.randint(1, 9), random.randint(1, 3000)]) for _ in range(random.randint(1, 60))]
        at_most = random.choice([None, 700])
        capped = totals if at_most is None else [min(total, at_most) for total in totals]
        counts = [0] * (63 if at_most is None else 11)
        for total in capped:
            counts[(total - 1).bit_length()] += 1
        search = octaves(counts, at_most=at_most)
        limit = random.choice([1, 2, 16, 700, 2048])
        low, high = cut_part(search, limit)
        assert low <= sum(max(0, total - limit) for total in capped) <= high
        assert cut_part(octaves([c << 8 for c in counts], at_most=at_most, weight=1 << 8), limit) == (low, high)


def test_noise_for_each_unit_of_the_limit() -> None:
    assert noise_per_unit(DiscreteLaplace(Fraction(5, 3)), 1, groups=7) == Fraction(35, 3)
    assert noise_per_unit(DiscreteLaplace(Fraction(5 << 20, 3)), 1 << 20) == Fraction(5, 3)
    sigma = DiscreteGaussian(Fraction(100))
    assert noise_per_unit(sigma, 2, groups=80) == Fraction(8, 10) * 10 * 40


def test_the_largest_octave_has_noise_that_is_accepted() -> None:
    for noise, most in (
        (DiscreteLaplace(Fraction(5, 3)), 1),
        (DiscreteLaplace(Fraction(1 << 40, 3)), 1),
        (DiscreteLaplace(Fraction(1 << 55)), 1),
        (DiscreteLaplace(Fraction(10 << 20)), 1 << 20),
        (DiscreteLaplace(Fraction(1 << 48)), 1 << 20),
        (DiscreteLaplace(Fraction(1 << 40)), 1 << 20),
        (DiscreteGaussian(Fraction(10**7, 3)), 1),
    ):
        spread = noise.scale / most
        k = largest_octave(noise, most, partial(weighed, weight=most))
        accepted = [spread * weighed(2**i, most) <= 2**55 for i in range(63)]
        assert accepted == [i <= k for i in range(63)], "no octave below has more noise, though it is weighed finer"
    assert largest_octave(DiscreteLaplace(Fraction(1, 1000)), 1, lambda limit: limit) == 62
    # σ is rounded up, here above what is accepted; the noise of a limit of 1 has been.
    assert largest_octave(DiscreteGaussian(Fraction(1 << 110)), 1, lambda limit: limit) == 0


def test_groups_of_private_keys_follow_noisy_numbers_alone() -> None:
    search = octaves([0, 500, 300, 2], FIVE)
    assert groups_of_private_keys(search, most=3, threshold=40) == 3 * 800 // 40
    assert groups_of_private_keys(octaves([0, 3, 2, 1], FIVE), most=3, threshold=40) == 1


def test_no_float_takes_part() -> None:
    """Counts beyond what floats hold are told apart."""
    n = 2**80
    assert limit_of_sum(octaves((0, 2 * n, n)), Fraction(n, 2)) == 2
    assert limit_of_sum(octaves((0, 2 * n, n + 1)), Fraction(n, 2)) == 4
