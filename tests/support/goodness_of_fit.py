"""Goodness-of-fit tests against the exact discrete Laplace and Gaussian distributions, as p-values never too small.

Each function returns a p-value; a test fails below ALPHA. Kolmogorov-Smirnov uses Massart's bound 2·exp(-2nD²), which
holds for every n and for discrete distributions, and the tail counts use the exact binomial distribution. Pearson's
statistic is used only with at least 1000 expected draws a bin, where its tail is within a factor of 10 of χ² at this
level. A verdict asks six such questions: it is a false alarm with probability below 6·10·ALPHA = 6e-11. The mutated
twins are chosen such that each lies at least six of its own standard deviations beyond what is rejected.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Protocol

import numpy as np
from scipy import stats

ALPHA = 1e-12

Sample = np.ndarray


class Law(Protocol):
    """A distribution on the integers, symmetric about 0."""

    def upper_tail(self, m: int) -> float:
        """P(Z ≥ m) for m ≥ 0."""
        ...

    def beyond(self, p: float) -> float:
        """About where P(Z ≥ x) = p, 0 < p < 1/2: a function of the distribution alone, never of the sample."""
        ...

    def odd(self) -> float:
        """P(Z is odd)"""
        ...


@dataclass(frozen=True)
class Laplace:
    """Discrete Laplace."""

    scale: Fraction

    def upper_tail(self, m: int) -> float:
        return math.exp(-m / self.scale) / (1 + math.exp(-1 / self.scale))

    def beyond(self, p: float) -> float:
        return max(0.0, float(self.scale) * -math.log(2 * p))

    def odd(self) -> float:
        q = math.exp(-1 / self.scale)
        return 2 * q / (1 + q) ** 2


@dataclass(frozen=True)
class Gaussian:
    """Discrete Gaussian. Up to σ = 64 from the sum of its terms; above, the integral over [z-½, z+½] stands for the
    term of z: relatively off by less than (z/σ)²/(24σ²), far below the resolution of any sample here.
    """

    variance: Fraction

    @property
    def sigma(self) -> float:
        return math.sqrt(self.variance)

    def upper_tail(self, m: int) -> float:
        if self.variance <= 1 << 12:
            weights = summed(self.variance)
            return float(weights[m:].sum() / (2 * weights.sum() - 1)) if m < len(weights) else 0.0
        if m == 0:
            return 0.5 + 0.5 / (self.sigma * math.sqrt(2 * math.pi))
        return float(stats.norm.sf((m - 0.5) / self.sigma))

    def beyond(self, p: float) -> float:
        return float(self.sigma * stats.norm.isf(p))

    def odd(self) -> float:
        if self.variance > 1 << 12:
            return 0.5  # off by e^(-π²σ²/2)
        weights = summed(self.variance)
        return float(2 * weights[1::2].sum() / (2 * weights.sum() - 1))


@lru_cache
def summed(variance: Fraction) -> np.ndarray:
    """e^(-z²/(2σ²)) for z = 0, 1, … while it is above 1e-300."""
    z = np.arange(math.ceil(37 * math.sqrt(variance)) + 2, dtype=float)
    return np.exp(-np.minimum(z * z / (2 * float(variance)), 700))


Check = Callable[[Sample, Law], float]


def cdf(z: int, law: Law) -> float:
    """P(Z ≤ z)"""
    return 1 - law.upper_tail(z + 1) if z >= 0 else law.upper_tail(-z)


def quantile(p: float, law: Law) -> int:
    """An integer near the p-quantile."""
    if p == 0.5:
        return 0
    size = round(law.beyond(min(p, 1 - p)))
    return size if p > 0.5 else -size


def chi_square(sample: Sample, law: Law) -> float:
    """Pearson's test in about 50 bins of at least 1000 expected draws."""
    n = len(sample)
    cuts = sorted({quantile(k / 50, law) for k in range(1, 50)} | {-1, 0})
    edges, last = [], 0.0
    for cut in cuts:  # bins (previous cut, cut], merged until each expects 1000
        p = cdf(cut, law)
        if (p - last) * n >= 1000 and (1 - p) * n >= 1000:
            edges.append(cut)
            last = p
    bounds = [0.0, *(cdf(e, law) for e in edges), 1.0]
    expected = np.diff(bounds) * n
    observed = np.bincount(np.searchsorted(edges, sample, side="left"), minlength=len(edges) + 1)
    statistic = float(((observed - expected) ** 2 / expected).sum())
    return float(stats.chi2.sf(statistic, len(edges)))


def kolmogorov_smirnov(sample: Sample, law: Law) -> float:
    """The largest distance of the two distribution functions, over 400 fixed points and the integers around zero."""
    n = len(sample)
    ordered = np.sort(sample)
    points = {quantile(k / 400, law) for k in range(1, 400)} | set(range(-20, 21))
    distance = max(abs(np.searchsorted(ordered, z, side="right") / n - cdf(z, law)) for z in points)
    return min(1.0, 2 * math.exp(-2 * n * distance**2))


def binomial(successes: int, n: int, p: float) -> float:
    """Exact two-sided (twice the smaller tail) p-value of a count."""
    law = stats.binom(n, p)
    return min(1.0, 2 * float(min(law.cdf(successes), law.sf(successes - 1))))


def tails(sample: Sample, law: Law) -> float:
    """|Z| beyond eight places from P = 0.1 to 3e-5, each an exact binomial test; the least p-value."""
    n, sizes = len(sample), np.abs(sample)
    least = 1.0
    for k in range(8):
        w = quantile(1 - 0.05 * 10 ** (-k / 2), law)
        least = min(least, binomial(int((sizes > w).sum()), n, 2 * law.upper_tail(w + 1)))
    return least


def zeros(sample: Sample, law: Law) -> float:
    """The share of exact zeros."""
    return binomial(int((sample == 0).sum()), len(sample), law.upper_tail(0) - law.upper_tail(1))


def parity(sample: Sample, law: Law) -> float:
    """The share of odd values: sees the lowest binary digit, which no coarse bin does."""
    return binomial(int((sample & 1).sum()), len(sample), law.odd())


def serial(sample: Sample, law: Law) -> float:
    """Independence of neighbouring draws: a 4 × 4 table of (draw 2i, draw 2i+1) by size and sign."""
    w = quantile(0.75, law)
    cell = np.where(np.abs(sample) > w, 2, 0) + (sample > 0)
    first, second = cell[0::2], cell[1::2]
    half = min(len(first), len(second))
    table = np.bincount(4 * first[:half] + second[:half], minlength=16).reshape(4, 4)
    table = table[table.sum(axis=1) > 0][:, table.sum(axis=0) > 0]
    return float(stats.chi2_contingency(table).pvalue)


CHECKS: dict[str, Check] = {
    "chi_square": chi_square,
    "kolmogorov_smirnov": kolmogorov_smirnov,
    "tails": tails,
    "zeros": zeros,
    "parity": parity,
    "serial": serial,
}


def verdict(sample: Sample, law: Law) -> dict[str, float]:
    """The checks that reject the sample, with their p-values; empty for a good sample."""
    found = {name: check(sample, law) for name, check in CHECKS.items()}
    return {name: p for name, p in found.items() if p < ALPHA}


def homogeneity(ours: Sample, theirs: Sample) -> float:
    """p-value that two samples come from one distribution: Pearson's test in about 30 bins of the pooled sample."""
    pooled = np.concatenate([ours, theirs])
    edges = np.unique(np.quantile(pooled, np.linspace(0, 1, 31)[1:-1], method="nearest"))
    bins = len(edges) + 1
    table = np.stack([np.bincount(np.searchsorted(edges, s, side="left"), minlength=bins) for s in (ours, theirs)])
    table = table[:, table.sum(axis=0) >= 1000]
    return float(stats.chi2_contingency(table).pvalue)
