"""e^-x in whole numbers: the bounds on which bulk decisions rest, against exact rational arithmetic."""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Context, Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsql.core.noise.sampler.blocks import _SLACK, Blocks
from dpsql.core.noise.sampler.entropy import Kernel, Words
from dpsql.core.noise.sampler.exponential_function import LIMIT, ONE, POINT, SHORT, exp_below, exp_bounds, exp_digits

CONTEXT = Context(prec=60)
TOP = LIMIT << POINT
KERNEL = Kernel()


def exp_of(x: Fraction) -> Fraction:
    return Fraction(CONTEXT.exp(CONTEXT.divide(Decimal(-x.numerator), Decimal(x.denominator))))


def shortfalls(below: Callable[[np.ndarray], np.ndarray], points: list[int]) -> tuple[Fraction, Fraction]:
    """Least and largest 2^ONE·e^-x - bound over fixed-point x."""
    bounds = below(np.array(points, np.uint64)).tolist()
    gaps = [exp_of(Fraction(x, 1 << POINT)) * (1 << ONE) - p for x, p in zip(points, bounds, strict=True)]
    return min(gaps), max(gaps)


ENDS = [x for i in (0, 9, 18) for d in (0, 1, 2, 255, 510, 511) for x in (d << i, (d << i) - 1, (d << i) + 1)]
POINTS = [x for x in ENDS if 0 <= x < TOP] + [TOP - 1, TOP - 2] + (KERNEL.words(4000, 27).astype(int).tolist())


def test_the_bulk_bound_is_one_and_close() -> None:
    least, most = shortfalls(exp_below, POINTS)
    assert least >= 0
    assert most < SHORT


def test_the_stated_distance_is_needed() -> None:
    """Twins: one higher is no lower bound, and four fifths of the stated distance are used."""
    assert shortfalls(lambda x: exp_below(x) + np.uint64(1), POINTS)[0] < 0
    assert shortfalls(exp_below, POINTS)[1] > 2


@given(st.fractions(min_value=Fraction(1, 10**6), max_value=60, max_denominator=10**9), st.integers(1, 100))
def test_digits_and_bounds(x: Fraction, count: int) -> None:
    scaled = exp_of(x) * (1 << count)
    lo, hi = exp_bounds(x, count)
    hair = Fraction(1, 10**20)  # 60 digits of the reference
    assert lo - hair <= scaled <= hi + hair and hi - lo <= 3
    if abs(scaled - round(scaled)) > hair:
        assert exp_digits(x, count) == math.floor(scaled)


def law(power: int, low: int, step: Fraction) -> Blocks:
    """Blocks of 2^low whose weights fall by `step`."""
    return Blocks(step / (1 << low * power), 1 if power == 1 else 2, low)


def exact_exponent(blocks: Blocks, k: int, j: int) -> Fraction:
    first = k << blocks.low_digits
    return blocks.rate * ((first + j) ** blocks.power - first**blocks.power)


def test_most_of_the_slack_is_used() -> None:
    """Twin: half of it would be too little for a Gaussian block at the end of the reach."""
    blocks = law(2, 30, Fraction(2047, 1) ** -1 * 8 / 2)
    k, worst = blocks._reach, Fraction(0)
    for j in KERNEL.words(300, 30).tolist():
        found = int(blocks._exponent(np.array([k]), np.array([j], np.uint64))[0])
        worst = max(worst, exact_exponent(blocks, k, j) * (1 << POINT) - found)
    assert worst > _SLACK // 2


class Fixed:
    """Acceptances begin with given words; more digits are zeros, which are below whatever is compared with them."""

    def __init__(self, first: np.ndarray) -> None:
        self.first = first

    def words(self, count: int, bits: int) -> Words:
        return self.first if bits == 32 else np.zeros(count, np.uint64)


def wrong_decisions(blocks: Blocks, spread: int) -> int:
    """Of 1,500 acceptances whose word lies within `spread` of the true digits, how many are not as the digits say."""
    k = np.array(KERNEL.words(1500, 10).astype(np.int64) % (min(blocks._reach, 90) + 12))
    j = KERNEL.words(1500, blocks.low_digits).astype(np.uint64)
    j[:5] = 0
    digits = []
    for block, place in zip(k.tolist(), j.tolist(), strict=True):
        x = exact_exponent(blocks, block, place)
        digits.append(exp_digits(x, 32) if x else 1 << 32)
    true = np.array(digits)
    offset = KERNEL.words(1500, 32).astype(np.int64) % (2 * spread + 1) - spread
    word = np.clip(true + offset, 0, (1 << 32) - 1)
    decided = blocks.accept(k, j, Fixed(word.astype(np.uint32)))
    return int((decided != (word <= true)).sum())


WIDE = [law(1, 1, Fraction(1, 4)), law(1, 53, Fraction(1, 7)), law(1, 20, Fraction(8)), law(1, 4, Fraction(9))]
WIDE += [law(2, 1, Fraction(1, 32)), law(2, 53, Fraction(1, 50)), law(2, 24, Fraction(2)), law(2, 25, Fraction(3))]


@pytest.mark.parametrize("name", ["_SLACK", "SHORT"])
def test_a_bound_taken_for_the_number_is_found(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Twins: deciding as if the fixed-point exponent, or the table's product, were exact."""
    monkeypatch.setattr(f"dpsql.core.noise.sampler.blocks.{name}", 0)
    spread = 2 if name == "SHORT" else 1000
    assert sum(wrong_decisions(blocks, spread) for blocks in WIDE[4:7]) > 0


def test_few_are_left_open() -> None:
    """About one acceptance in a million is settled one by one."""
    blocks, settled = law(2, 40, Fraction(1, 32)), 0

    def count(block: int, place: int, word: int, source: object) -> bool:
        nonlocal settled
        settled += 1
        return True

    blocks._settle_accept = count  # type: ignore[method-assign]
    n = 1 << 18
    blocks.accept(np.full(n, 3), KERNEL.words(n, 40), KERNEL)
    assert settled <= 12, "12 or more where 0.25 are expected: probability below 1e-15"


@pytest.mark.parametrize(("power", "scale"), [(1, 1), (1, Fraction(1, 3)), (2, 1), (2, 40), (1, 1000)])
def test_sums_enclose_the_distribution_of_the_blocks(power: int, scale: Fraction) -> None:
    rate = 1 / Fraction(scale) if power == 1 else 1 / (2 * Fraction(scale) ** 2)
    blocks = Blocks(rate, 1 if power == 1 else 2)
    terms = [exp_of(blocks.step * k**power) for k in range(1200 if power == 1 else 200)]
    whole = sum(terms, Fraction(0))
    if power == 1:
        whole = 1 / (1 - exp_of(blocks.step))
    for bits in (8, 16, 64):
        below, above = blocks.sums(bits)
        running = Fraction(0)
        for term, lo, hi in zip(terms, below, above, strict=False):
            running += term
            assert lo <= running / whole * (1 << bits) + Fraction(1, 10**12)
            assert hi >= running / whole * (1 << bits) - Fraction(1, 10**12)
            assert hi - lo <= 2
        assert below[-1] >= (1 << bits) - 2


@pytest.mark.parametrize(("power", "scale"), [(1, 1), (1, 8), (1, 60), (2, 1), (2, 8)])
def test_sums_enclose_without_a_margin(power: int, scale: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """With no digits to spare every rounding shows: the terms', the sums', and what follows the last term."""
    monkeypatch.setattr("dpsql.core.noise.sampler.blocks._GUARD_BITS", 0)
    blocks = Blocks(Fraction(1, scale) if power == 1 else Fraction(1, 2 * scale**2), 1 if power == 1 else 2, 0)
    terms = [exp_of(blocks.step * k**power) for k in range(3000 if power == 1 else 140)]
    whole = 1 / (1 - exp_of(blocks.step)) if power == 1 else sum(terms, Fraction(0))
    for bits in range(8, 40):
        below, above = blocks.sums(bits)
        running = Fraction(0)
        for term, lo, hi in zip(terms, below, above, strict=False):
            running += term
            assert lo <= running / whole * (1 << bits) <= hi


def test_the_tables_reach_no_further_than_their_proof() -> None:
    assert law(1, 3, Fraction(8))._reach > 1 << 50 and law(2, 3, Fraction(2))._reach == 1
    assert law(1, 3, Fraction(81, 10))._reach == law(2, 3, Fraction(21, 10))._reach == -1


@pytest.mark.parametrize("bits", [0, -1, 65])
def test_the_kernel_has_no_such_words(bits: int) -> None:
    with pytest.raises(ValueError, match="no words"):
        KERNEL.words(3, bits)


@pytest.mark.parametrize("bits", [1, 2, 7, 8, 9, 16, 17, 32, 33, 54, 64])
def test_the_kernel_gives_words_of_every_size(bits: int) -> None:
    words = KERNEL.words(3000, bits)
    assert len(words) == 3000
    assert all(0 <= w < 1 << bits for w in words.tolist())
    ones = [sum(w >> i & 1 for w in words.tolist()) for i in range(bits)]
    assert all(1100 < n < 1900 for n in ones), "each digit is fair: 14 standard errors"
