"""Draws of the exponential mechanism, counted"""

from __future__ import annotations

from fractions import Fraction

from scipy import stats

from dpsql.core.noise.sampler import choose
from tests.core.noise.test_exponential_mechanism import _digits_kept, exp_of  # noqa: F401

COUNTS, SCORES = [round(60 * 1.25**i) for i in range(20)], list(range(3, 203, 10))


ETA = Fraction(1, 45)


def p_value(eta: Fraction) -> float:
    """Pearson's test of 40,000 draws at this eta against the distribution at ETA.

    Each of the 20 runs expects more than 1,000, where the tail is within a factor of 10 of χ². As e^(-10/45) is about
    1/1.25 all runs are about as likely; at 0.9·eta the statistic is 676 ± 52 where more than 99 is rejected.
    """
    masses = [c * float(exp_of(ETA * s)) for c, s in zip(COUNTS, SCORES, strict=True)]
    expected = [40_000 * mass / sum(masses) for mass in masses]
    assert min(expected) > 1000
    seen = [0] * 20
    for _ in range(40_000):
        run, place = choose(COUNTS, SCORES, eta)
        assert 0 <= place < COUNTS[run]
        seen[run] += 1
    return float(stats.chi2.sf(sum((o - e) ** 2 / e for o, e in zip(seen, expected, strict=True)), 19))


def test_a_sample() -> None:
    """A false alarm has a probability below 1e-11."""
    assert p_value(ETA) > 1e-12


def test_a_sample_of_a_tenth_less_is_found() -> None:
    assert p_value(ETA * Fraction(9, 10)) < 1e-12
