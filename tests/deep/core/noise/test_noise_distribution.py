"""Draws of both families against their exact distributions; every mutated twin must be rejected."""

from __future__ import annotations

import math
from decimal import Context, Decimal
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import pytest
from scipy import stats

from dpsql.core.noise.mechanisms import DiscreteGaussian, DiscreteLaplace
from dpsql.core.noise.sampler import discrete_gaussian, discrete_laplace
from dpsql.core.noise.sampler.blocks import Blocks
from dpsql.core.noise.sampler.entropy import Kernel, Words
from tests.support import goodness_of_fit as goodness
from tests.support.goodness_of_fit import ALPHA, Sample, verdict

N = 500_000
SIZES = [Fraction(1, 3), Fraction(1), Fraction(7, 2), Fraction(1000), Fraction(10**6), Fraction(1 << 40)]
KERNEL = Kernel()


class Noise(NamedTuple):
    """A family and a scale: Laplace's own or the Gaussian's σ."""

    family: str
    scale: Fraction

    @property
    def law(self) -> goodness.Law:
        return goodness.Laplace(self.scale) if self.family == "laplace" else goodness.Gaussian(self.scale**2)

    @property
    def mechanism(self) -> DiscreteLaplace | DiscreteGaussian:
        return DiscreteLaplace(self.scale) if self.family == "laplace" else DiscreteGaussian(self.scale**2)

    def draw(self, n: int = N) -> Sample:
        if self.family == "laplace":
            return np.array(discrete_laplace(self.scale, n), np.int64)
        return np.array(discrete_gaussian(self.scale**2, n), np.int64)

    def blocks(self, kind: type[Blocks] = Blocks, **settings: Any) -> Blocks:
        if self.family == "laplace":
            return kind(1 / self.scale, 1, **settings)
        return kind(1 / (2 * self.scale**2), 2, **settings)

    def times(self, factor: Fraction) -> Noise:
        return Noise(self.family, self.scale * factor)

    def __str__(self) -> str:
        return f"{self.family}-{self.scale}"


ALL = [Noise(family, scale) for family in ("laplace", "gaussian") for scale in SIZES]
SMALL = [noise for noise in ALL if noise.scale < 10]
WIDE = [noise for noise in ALL if noise.scale > 10]
every = pytest.mark.parametrize("noise", ALL, ids=str)
small = pytest.mark.parametrize("noise", SMALL, ids=str)
wide = pytest.mark.parametrize("noise", WIDE, ids=str)


@lru_cache
def fresh(noise: Noise) -> Sample:
    """One sample per noise and run, shared by the tests that only need correct draws."""
    return noise.draw()


def drawn(blocks: Blocks, n: int = N) -> Sample:
    return np.array(blocks.draw(n, KERNEL), np.int64)


@every
def test_draws_follow_the_distribution(noise: Noise) -> None:
    assert verdict(fresh(noise), noise.law) == {}


@every
@pytest.mark.parametrize("factor", [Fraction(19, 20), Fraction(21, 20)], ids=["0.95", "1.05"])
def test_a_wrong_scale_is_rejected(noise: Noise, factor: Fraction) -> None:
    # σ = 1/3 gives ±1 once in 46 draws: 5 % of σ change that share by a third.
    assert verdict(noise.times(factor).draw(), noise.law)


@pytest.mark.parametrize("scale", SIZES, ids=str)
def test_the_families_are_told_apart(scale: Fraction) -> None:
    """Twins: Gaussian noise with the variance of Laplace noise, and the other way round."""
    laplace, gaussian = Noise("laplace", scale), Noise("gaussian", scale)
    spread = Fraction(math.sqrt(laplace.mechanism.variance())).limit_denominator(1000)
    assert verdict(Noise("gaussian", spread).draw(), laplace.law)
    assert verdict(Noise("laplace", scale * Fraction(7, 10)).draw(), gaussian.law)


@wide
def test_the_mean_square_is_the_variance(noise: Noise) -> None:
    """Within 7 standard errors (kurtosis 6 and 3); 3 % more noise (the twin, 19 off) is not. False alarms: 5e-12."""
    error = math.sqrt((5 if noise.family == "laplace" else 2) / N)

    def off(sample: Sample) -> float:
        return abs(float(np.mean(sample.astype(float) ** 2)) / noise.mechanism.variance() - 1) / error

    assert off(fresh(noise)) < 7
    assert off(noise.times(Fraction(103, 100)).draw()) > 7


@pytest.mark.parametrize("noise", ALL[1:6] + ALL[8:], ids=str)
def test_a_finite_support_is_rejected(noise: Noise) -> None:
    """Twin: blocks end where the table of their first eight digits ends. (Smaller scales: see the enumeration.)"""

    class NoTail(Blocks):
        def _settle_block(self, word: int, source: object) -> int:
            return min(super()._settle_block(word, KERNEL), int(self.table[self.table < 255].max()))

    assert "tails" in verdict(drawn(noise.blocks(NoTail, block_bits=8)), noise.law)


@every
def test_a_clamped_tail_is_rejected(noise: Noise) -> None:
    """Twin: noise clamped to a width that holds 99.9 % of it."""
    w = noise.mechanism.half_width(Fraction(999, 1000))
    found = verdict(np.clip(fresh(noise), 1 - w, w - 1), noise.law)
    assert ("tails" if w > 1 else "zeros") in found


@pytest.mark.parametrize("noise", [n for n in ALL if n.scale <= 1000], ids=str)
def test_zero_counted_twice_is_rejected(noise: Noise) -> None:
    """Twin: a random sign on a size, the classic error."""

    class ZeroTwice(Blocks):
        def propose(self, count: int, source: Any) -> Any:
            value, accepted = super().propose(count, source)
            return value, accepted | (value == 0)

    assert "zeros" in verdict(drawn(noise.blocks(ZeroTwice), 2 * N), noise.law)


@wide
def test_blocks_without_their_shape_are_rejected(noise: Noise) -> None:
    """Twin: uniform within each block, a staircase under the right envelope. Eight blocks to the scale make it fine."""

    class Stairs(Blocks):
        def accept(self, block: np.ndarray, place: Words, source: Any) -> np.ndarray:
            return np.ones(block.size, np.bool_)

    assert verdict(drawn(noise.blocks(Stairs), 3 * N), noise.law)


@small
@pytest.mark.parametrize("shift", ["all", "positive", "outwards"])
def test_an_off_by_one_is_rejected(noise: Noise, shift: str) -> None:
    z = fresh(noise)
    by = {"all": 1, "positive": (z > 0).astype(np.int64), "outwards": np.sign(z)}[shift]
    assert verdict(z + by, noise.law)


@every
def test_one_sign_is_rejected(noise: Noise) -> None:
    assert verdict(np.abs(fresh(noise)), noise.law)


@every
def test_a_sign_that_is_slightly_unfair_is_rejected(noise: Noise) -> None:
    """Twin: one positive draw in five turned negative. (At σ = 1/3 signs are rare, 1 draw in 45.)"""
    z = fresh(noise).copy()
    z[::5] = -np.abs(z[::5])
    assert {"chi_square", "kolmogorov_smirnov"} & set(verdict(z, noise.law))


@pytest.mark.parametrize("noise", [n for n in ALL if n.scale > 3], ids=str)
def test_a_stuck_low_digit_is_rejected(noise: Noise) -> None:
    """Twin: multiples of two only, a flaw far too fine for any bin at scale 2^40."""
    assert "parity" in verdict(fresh(noise) // 2 * 2, noise.law)


@every
def test_repeated_draws_are_rejected(noise: Noise) -> None:
    """Twin: every draw handed out twice, which leaves the histogram alone."""
    assert "serial" in verdict(np.repeat(fresh(noise)[: N // 2], 2), noise.law)


@pytest.mark.parametrize("noise", [n for n in ALL if n.scale != 1], ids=str)
def test_half_width_covers_what_it_says(noise: Noise) -> None:
    """At least 95 % lie within ± w; within ± 0.9 w (the twin) clearly fewer do."""
    w = noise.mechanism.half_width(Fraction(19, 20))
    sizes = np.abs(fresh(noise))
    outside, outside_twin = int((sizes > w).sum()), int((sizes > w * 9 // 10).sum())
    assert stats.binom.sf(outside - 1, N, 0.05) > ALPHA
    if w:
        assert stats.binom.sf(outside_twin - 1, N, 0.05) < ALPHA


# --- far out -------------------------------------------------------------------------------------------------------


class FarOut:
    """The kernel's bits, but for a block the first `bits` are ones: draws from the upper 2^-bits of the blocks' law."""

    def __init__(self, bits: int) -> None:
        self.bits, self.seen = bits, 0

    def words(self, count: int, bits: int) -> Words:
        words = KERNEL.words(count, bits).copy()
        if self.seen < self.bits:
            words[:] = (1 << bits) - 1
            self.seen += bits
        return words


def far_blocks(blocks: Blocks, bits: int, n: int) -> list[int]:
    return blocks.blocks(n, FarOut(bits)).tolist()


def far_share(noise: Noise, bits: int) -> list[float]:
    """P(k | U ≥ 1 - 2^-bits) for k = 0, 1, …, from sums in 60 digits."""
    context, step = Context(prec=60), noise.blocks().step
    a = context.divide(Decimal(step.numerator), Decimal(step.denominator))
    power = 1 if noise.family == "laplace" else 2
    terms = [Fraction(context.exp(-a * k**power)) for k in range(1200 if power == 1 else 240)]
    after = [Fraction(0)]
    for term in reversed(terms):
        after.append(after[-1] + term)
    after.reverse()
    top = [min(Fraction(1), tail / after[0] * (1 << bits)) for tail in after]  # P(K ≥ k | …)
    return [float(a - b) for a, b in pairwise(top)]


def far_p_value(seen: list[int], share: list[float]) -> float:
    """Pearson's test over the blocks, neighbours merged until each bin expects 200 draws."""
    n = len(seen)
    observed, expected, bins = 0, 0.0, []
    counts = np.bincount(seen, minlength=len(share)).tolist()
    for k, p in enumerate(share):
        observed, expected = observed + counts[k], expected + p * n
        if expected >= 200:
            bins.append((observed, expected))
            observed, expected = 0, 0.0
    last = bins.pop()
    bins.append((last[0] + observed, last[1] + expected))
    return float(stats.chi2.sf(sum((o - e) ** 2 / e for o, e in bins), len(bins) - 1))


FAR = [noise for noise in ALL if noise.scale in (Fraction(7, 2), Fraction(1 << 40))]


@pytest.mark.parametrize("noise", FAR, ids=str)
def test_the_tail_beyond_2_to_the_minus_64_has_its_shape(noise: Noise) -> None:
    """Beyond 44 scales or 9 σ, where no sample of draws ever comes, by conditioning on the first 64 digits."""
    seen, share = far_blocks(noise.blocks(), 64, 4000), far_share(noise, 64)
    assert min(seen) * 2 ** noise.blocks().low_digits > (40 if noise.family == "laplace" else 8.5) * noise.scale
    assert far_p_value(seen, share) > ALPHA


@pytest.mark.parametrize("noise", FAR, ids=str)
def test_another_shape_far_out_is_rejected(noise: Noise) -> None:
    """Twins: 10 % more scale; and a last block, as any table of finite size has."""
    share = far_share(noise, 64)
    wider = noise.blocks(low_digits=noise.blocks().low_digits)
    wider = Blocks(wider.rate / (Fraction(11, 10) ** wider.power), wider.power, wider.low_digits)
    assert far_p_value(far_blocks(wider, 64, 4000), share) < ALPHA
    seen = far_blocks(noise.blocks(), 64, 4000)
    assert far_p_value([min(seen)] * len(seen), share) < ALPHA


@pytest.mark.sampled(2)
@pytest.mark.one_in(2)
@pytest.mark.parametrize(
    "noise", [*ALL, Noise("laplace", Fraction(1 << 55)), Noise("gaussian", Fraction(1 << 55))], ids=str
)
def test_ten_million_draws(noise: Noise) -> None:
    assert verdict(noise.draw(10_000_000), noise.law) == {}


@pytest.mark.sampled(2)
@pytest.mark.one_in(2)
@every
def test_ten_million_draws_reject_one_percent(noise: Noise) -> None:
    assert verdict(noise.times(Fraction(101, 100)).draw(10_000_000), noise.law)
