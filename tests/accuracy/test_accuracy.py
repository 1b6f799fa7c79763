"""The least rate that keeps a width: it holds, and a slightly smaller one does not, for both families."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import partial

import pytest

from dpsql.accuracy.least_rate import rate_for
from dpsql.core.noise.mechanisms import DiscreteGaussian, DiscreteLaplace, Mechanism


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
