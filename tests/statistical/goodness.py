"""Goodness-of-fit tests against the exact discrete Laplace distribution, as p-values that are never too small.

Each function returns a p-value; a test fails below ALPHA. Kolmogorov-Smirnov uses Massart's bound 2·exp(-2nD²), which
holds for every n and for discrete distributions, and the tail counts use the exact binomial distribution. Pearson's
statistic is used only with at least 1000 expected draws a bin, where its tail is within a factor of 10 of χ² at this
level. The layer asks well under 1000 such questions a run, so it raises a false alarm with probability below
1000·10·ALPHA = 1e-6.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
from scipy import stats

ALPHA = 1e-10

Sample = np.ndarray
Check = Callable[[Sample, Fraction], float]


def upper_tail(m: int, scale: Fraction) -> float:
    """P(Z ≥ m) for m ≥ 0."""
    q = math.exp(-1 / scale)
    return math.exp(-m / scale) / (1 + q)


def cdf(z: int, scale: Fraction) -> float:
    """P(Z ≤ z)"""
    return 1 - upper_tail(z + 1, scale) if z >= 0 else upper_tail(-z, scale)


def quantile(p: float, scale: Fraction) -> int:
    """An integer near the p-quantile: a function of the distribution alone, never of the sample."""
    x = min(p, 1 - p)
    size = round(max(0.0, float(scale) * -math.log(2 * x)))
    return size if p > 0.5 else -size


def chi_square(sample: Sample, scale: Fraction) -> float:
    """Pearson's test in about 50 bins of at least 1000 expected draws."""
    n = len(sample)
    cuts = sorted({quantile(k / 50, scale) for k in range(1, 50)} | {-1, 0})
    edges, last = [], 0.0
    for cut in cuts:  # bins (previous cut, cut], merged until each expects 1000
        p = cdf(cut, scale)
        if (p - last) * n >= 1000 and (1 - p) * n >= 1000:
            edges.append(cut)
            last = p
    bounds = [0.0, *(cdf(e, scale) for e in edges), 1.0]
    expected = np.diff(bounds) * n
    observed = np.bincount(np.searchsorted(edges, sample, side="left"), minlength=len(edges) + 1)
    statistic = float(((observed - expected) ** 2 / expected).sum())
    return float(stats.chi2.sf(statistic, len(edges)))


def kolmogorov_smirnov(sample: Sample, scale: Fraction) -> float:
    """The largest distance of the two distribution functions, over 400 fixed points and the integers around zero."""
    n = len(sample)
    ordered = np.sort(sample)
    points = {quantile(k / 400, scale) for k in range(1, 400)} | set(range(-20, 21))
    distance = max(abs(np.searchsorted(ordered, z, side="right") / n - cdf(z, scale)) for z in points)
    return min(1.0, 2 * math.exp(-2 * n * distance**2))


def binomial(successes: int, n: int, p: float) -> float:
    """Exact two-sided (twice the smaller tail) p-value of a count."""
    law = stats.binom(n, p)
    return min(1.0, 2 * float(min(law.cdf(successes), law.sf(successes - 1))))


def tails(sample: Sample, scale: Fraction) -> float:
    """|Z| beyond eight places from P = 0.1 to 3e-5, each an exact binomial test; the least p-value."""
    n, sizes = len(sample), np.abs(sample)
    least = 1.0
    for k in range(8):
        w = quantile(1 - 0.05 * 10 ** (-k / 2), scale)
        least = min(least, binomial(int((sizes > w).sum()), n, 2 * upper_tail(w + 1, scale)))
    return least


def zeros(sample: Sample, scale: Fraction) -> float:
    """The share of exact zeros, (1-q)/(1+q)."""
    return binomial(int((sample == 0).sum()), len(sample), math.tanh(1 / (2 * float(scale))))


def parity(sample: Sample, scale: Fraction) -> float:
    """The share of odd values, 2q/(1+q)²: sees the lowest binary digit, which no coarse bin does."""
    q = math.exp(-1 / scale)
    return binomial(int((sample & 1).sum()), len(sample), 2 * q / (1 + q) ** 2)


def serial(sample: Sample, scale: Fraction) -> float:
    """Independence of neighbouring draws: a 4 × 4 table of (draw 2i, draw 2i+1) by size and sign."""
    w = quantile(0.75, scale)
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


def verdict(sample: Sample, scale: Fraction) -> dict[str, float]:
    """The checks that reject the sample, with their p-values; empty for a good sample."""
    found = {name: check(sample, scale) for name, check in CHECKS.items()}
    return {name: p for name, p in found.items() if p < ALPHA}


def homogeneity(ours: Sample, theirs: Sample) -> float:
    """p-value that two samples come from one distribution: Pearson's test in about 30 bins of the pooled sample."""
    pooled = np.concatenate([ours, theirs])
    edges = np.unique(np.quantile(pooled, np.linspace(0, 1, 31)[1:-1], method="nearest"))
    bins = len(edges) + 1
    table = np.stack([np.bincount(np.searchsorted(edges, s, side="left"), minlength=bins) for s in (ours, theirs)])
    table = table[:, table.sum(axis=0) >= 1000]
    return float(stats.chi2_contingency(table).pvalue)
