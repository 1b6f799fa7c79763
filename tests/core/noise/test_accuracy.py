"""The least rate that keeps a width: it holds, and a slightly smaller one does not, for both families."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import partial

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from dpsql.core.noise.least_rate import DIGITS, rate_for
from dpsql.core.noise.mechanisms import DiscreteGaussian, DiscreteLaplace, Mechanism

LESS = 1 - Fraction(1, 1 << (DIGITS - 1))
"""By this factor at least the number before lies below."""
WIDTHS = st.one_of(st.integers(0, 40), st.integers(0, 10**6), st.integers(0, 2**50))
LEVELS = st.fractions(Fraction(1, 100), Fraction(999_999, 1_000_000), max_denominator=10**9)


def laplace(rate: Fraction) -> Mechanism:
    return DiscreteLaplace(1 / rate)


def gaussian(rate: Fraction) -> Mechanism:
    return DiscreteGaussian(1 / (2 * rate))


laplace_rate, gaussian_rate = partial(rate_for, DiscreteLaplace), partial(rate_for, DiscreteGaussian)
FAMILIES = pytest.mark.parametrize(
    ("least", "mechanism"), [(laplace_rate, laplace), (gaussian_rate, gaussian)], ids=["laplace", "gaussian"]
)
Least = Callable[[int, Fraction], Fraction | None]
Made = Callable[[Fraction], Mechanism]


@FAMILIES
@settings(max_examples=150, deadline=None)
@given(width=WIDTHS, level=LEVELS)
@example(width=0, level=Fraction(95, 100))
@example(width=2**52, level=Fraction(95, 100))
@example(width=31, level=Fraction(1, 2))  # where Gaussian tails change from sums to integrals
def test_the_least_rate_holds_and_the_one_before_does_not(
    least: Least, mechanism: Made, width: int, level: Fraction
) -> None:
    rate = least(width, level)
    assert rate is not None
    assert mechanism(rate).half_width(level) <= width < mechanism(rate * LESS).half_width(level)


@FAMILIES
@settings(max_examples=60, deadline=None)
@given(scale=st.fractions(Fraction(1, 3), 10**6, max_denominator=10**6), level=LEVELS)
def test_what_noise_achieves_needs_no_more_of_it(
    least: Least, mechanism: Made, scale: Fraction, level: Fraction
) -> None:
    """Accuracy of a rate, then the least rate for that accuracy: not above it, up to the grid."""
    rate = 1 / scale
    found = least(mechanism(rate).half_width(level), level)
    assert found is not None and found * LESS <= rate


@FAMILIES
@settings(max_examples=60, deadline=None)
@given(width=WIDTHS, more=st.integers(1, 1000), level=LEVELS)
def test_a_wider_interval_never_costs_more(
    least: Least, mechanism: Made, width: int, more: int, level: Fraction
) -> None:
    narrow, wide = least(width, level), least(width + more, level)
    assert narrow is not None and wide is not None and wide <= narrow


def test_closed_forms() -> None:
    """Far from the grid of whole numbers: ε of a count is ln(1/0.05)/(w+1), and σ is (w+½)/1.96."""
    level = Fraction(95, 100)
    wide = 10**9
    assert float(laplace_rate(wide, level) or 0) * (wide + 1) == pytest.approx(2.995732273553991, rel=1e-8)
    assert (wide + 0.5) * float(2 * (gaussian_rate(wide, level) or 0)) ** 0.5 == pytest.approx(1.959963984540054)
    # P(|Z| ≤ 0) = (1-q)/(1+q) ≥ 0.95 iff q ≤ 1/39.
    assert float(laplace_rate(0, level) or 0) == pytest.approx(3.6635616461296463)


@FAMILIES
def test_a_width_beyond_all_noise(least: Least, mechanism: Made) -> None:
    assert least(2**60, Fraction(1, 2)) is None
    assert least(10**300, Fraction(95, 100)) is None


@FAMILIES
@pytest.mark.parametrize(("width", "level"), [(-1, "0.95"), (3, "0"), (3, "1"), (3, "-1"), (3, "2")])
def test_what_means_nothing_is_refused(least: Least, mechanism: Made, width: int, level: str) -> None:
    with pytest.raises(ValueError, match="at least 0"):
        least(width, Fraction(level))


def test_extreme_levels_end() -> None:
    assert (laplace_rate(5, 1 - Fraction(1, 10**900)) or 0) > 300
    assert laplace_rate(0, Fraction(1, 10**9)) is not None
