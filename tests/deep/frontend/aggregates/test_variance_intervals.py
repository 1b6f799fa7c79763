"""Intervals of variances against a dense search."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from dpsql.accuracy.tails import TermNoise, tail
from dpsql.core.noise.mechanisms import DiscreteGaussian, DiscreteLaplace, NoNoise
from dpsql.frontend.aggregates.intervals.mean_intervals import MeanHull
from tests.frontend.aggregates.test_variance_intervals import HALF, LAPLACE, RECIPE, SUM, Mechanism, intervals, measured

GAUSSIAN = DiscreteGaussian(Fraction(40_000)), DiscreteGaussian(Fraction(10**6)), DiscreteGaussian(Fraction(25))
MIXED = LAPLACE[0], GAUSSIAN[1], DiscreteLaplace(Fraction(3))
KNOWN = LAPLACE[0], GAUSSIAN[1], NoNoise()


@pytest.mark.parametrize("mechanisms", [LAPLACE, GAUSSIAN, MIXED, KNOWN], ids=["laplace", "gaussian", "mixed", "known"])
@pytest.mark.parametrize("sample", [False, True])
def test_no_pair_that_is_accepted_lies_outside(
    mechanisms: tuple[Mechanism, Mechanism, Mechanism], sample: bool
) -> None:
    """A dense search over means and variances finds nothing outside, and nearly everything inside at the ends."""
    recipe = replace(RECIPE, sample=sample)
    found = intervals(mechanisms, recipe)
    chance = np.random.default_rng(3)
    noises = [TermNoise.of(measured(SUM, m), Fraction(1)) for m in mechanisms]
    means = MeanHull((noises[0], noises[2]), (-HALF, HALF), 0.05 / 20)
    inner = 0
    for _ in range(12):
        n = int(chance.integers(0, 2000))
        s, q = n * int(chance.integers(-15, 16)), n * int(chance.integers(-200, 201))
        ((low, high),) = found([s], [q], [n])
        (first,), (last,) = means(np.array([float(s)]), np.array([float(n)]))
        mu = np.linspace(first, last, 81)[:, None]
        v = np.linspace(0, float(recipe.top), 801)[None, :]
        distance = np.abs(q + 200 * n - 2 * mu * s + mu**2 * n - v * (n - 1 if sample else n))
        share = 200 + mu**2 - v
        # Accepted whatever is allowed for discreteness: no allowance at all.
        smooth = [replace(x, step=0.0) for x in (noises[1], noises[0], noises[2])]
        p = tail(smooth, (1.0, 2 * mu, share), np.maximum(distance, 1e-9))
        allowed = (HALF - mu) * (mu + HALF) * (2 if sample else 1)
        accepted = (p >= 0.05 * 19 / 20) & (v <= allowed)
        if not accepted.any():
            continue
        held = v[0][accepted.any(axis=0)]
        assert low <= held[0] + 1e-6 and high >= held[-1] - 1e-6
        step = v[0, 1]
        inner += held[0] - low < 0.15 * (high - low) + 3 * step and high - held[-1] < 0.15 * (high - low) + 3 * step
    assert inner >= 6
