"""Certified bounds: exact, never on the wrong side more often than their level says, and able to refute."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from dpsql.core.noise.mechanisms import DiscreteLaplace
from dpsql.faces.audit.curves import own_delta
from dpsql.faces.audit.statistics import (
    AuditedEvent,
    Claim,
    certify,
    certify_impossible,
    certify_noise,
    choose,
    choose_for_noise,
    lower_bound,
    upper_bound,
)


@pytest.mark.parametrize("level", [0.05, 1e-3, 5e-8])
@pytest.mark.parametrize(
    ("hits", "n"), [(1, 1), (1, 10), (10, 10), (3, 7), (500, 10_000), (9_999, 10_000), (7, 10_000)]
)
def test_bounds_are_those_of_clopper_and_pearson(hits: int, n: int, level: float) -> None:
    assert lower_bound(hits, n, level) == pytest.approx(stats.beta.ppf(level, hits, n - hits + 1), rel=1e-6)
    assert lower_bound(hits, n, level) <= stats.beta.ppf(level, hits, n - hits + 1)
    missed = stats.beta.ppf(1 - level, n - hits + 1, hits)
    assert upper_bound(n - hits, n, level) == pytest.approx(missed, rel=1e-6, abs=1e-8)


def test_bounds_of_nothing_and_of_all() -> None:
    assert lower_bound(0, 100, 1e-6) == 0
    assert upper_bound(100, 100, 1e-6) == 1
    assert upper_bound(0, 100, 1e-6) == pytest.approx(1 - 1e-6 ** (1 / 100), rel=1e-6)


@pytest.mark.parametrize("p", [0.01, 0.2, 0.5, 0.93])
def test_a_lower_bound_is_too_high_as_rarely_as_its_level_says(p: float) -> None:
    n, level = 40, 0.02
    wrong = sum(stats.binom.pmf(k, n, p) for k in range(n + 1) if lower_bound(k, n, level) > p)
    assert wrong <= level


def two_answers(scale: Fraction, apart: int, n: int) -> tuple[np.ndarray, np.ndarray]:
    """The statistic of an answer that is `apart` or 0, with noise of this scale, as stated at scale 1."""
    drawn = np.array(DiscreteLaplace(scale).add_noise([apart] * n)), np.array(DiscreteLaplace(scale).add_noise([0] * n))
    first, second = (np.abs(y) - np.abs(y - apart) for y in drawn)
    return first.astype(float), second.astype(float)


CLAIM = Claim(1.0, moved=((DiscreteLaplace(Fraction(1)), 1),))


def test_what_is_claimed_is_not_refuted_and_nearly_reached() -> None:
    chosen, fresh = two_answers(Fraction(1), 1, 20_000), two_answers(Fraction(1), 1, 20_000)
    found = certify(choose(*chosen, CLAIM, 1e-7), *fresh, CLAIM, 1e-7)
    assert not found.refuted and found.bound is not None and 0.85 < found.bound <= 1
    noise = certify_noise(choose_for_noise(*chosen, CLAIM, 1e-7), *fresh, CLAIM, 1e-7)
    assert not noise.refuted and noise.bound is not None and 0.85 < noise.bound <= 1


def test_too_little_noise_is_refuted() -> None:
    """Twin: four fifths of the noise."""
    chosen, fresh = two_answers(Fraction(4, 5), 1, 20_000), two_answers(Fraction(4, 5), 1, 20_000)
    assert certify(choose(*chosen, CLAIM, 1e-7), *fresh, CLAIM, 1e-7).refuted
    assert certify_noise(choose_for_noise(*chosen, CLAIM, 1e-7), *fresh, CLAIM, 1e-7).refuted


def test_events_count_both_ways() -> None:
    samples = np.array([0.0, 1.0, 1.0, 2.0])
    assert AuditedEvent(1.0, True, 0.0).count(samples) == 3
    assert AuditedEvent(1.0, False, 0.0).count(samples) == 3


def test_gaussian_noise_is_held_against_its_curve() -> None:
    claim = Claim(0.0, rho=0.125)
    assert claim.charged(0.5) == pytest.approx(0.0871, abs=0.02)  # ½-GDP: δ(½) = 0.05; ρ says a little more
    n = 50_000
    ends = np.sort(stats.norm.ppf((np.arange(n) + 0.5) / n))  # an exact grid instead of draws
    for mu, refuted in ((0.5, False), (1.0, True)):
        a, b = mu * ends + mu**2 / 2, mu * ends - mu**2 / 2
        found = certify(choose(a, b, claim, 1e-7), a, b, claim, 1e-7)
        assert found.refuted is refuted
        assert found.bound is not None and found.bound <= mu**2 / 2 < 1.6 * found.bound


def test_an_impossible_event_may_happen_as_often_as_delta() -> None:
    assert not certify_impossible(500, 10_000, 0.05, 1e-6).refuted
    assert certify_impossible(640, 10_000, 0.05, 1e-6).refuted
    assert not certify_impossible(0, 10_000, 0.0, 1e-6).refuted
    assert certify_impossible(5, 10_000, 1e-9, 1e-6).refuted


def test_stated_noise_knows_its_own_loss() -> None:
    assert CLAIM.stated(0.0) == pytest.approx(math.tanh(0.5), abs=1e-6)  # total variation of one step
    assert CLAIM.stated(1.0) == pytest.approx(0, abs=1e-6)
    assert own_delta(CLAIM.moved, 0.0, 2.0) == pytest.approx(math.tanh(1.0), abs=1e-6)
