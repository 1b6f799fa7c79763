"""Enclosures of π, roots, erfc and quantiles hold the true values and are as narrow as promised."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import special

from dpsql.core.numbers.normal import erfc_root, pi, root

PI = Fraction("3.14159265358979323846264338327950288419716939937510582097494459230781640628620899")


@pytest.mark.parametrize("bits", [8, 64, 200, 1000])
def test_pi(bits: int) -> None:
    found = pi(bits)
    assert found.lo is not None and found.hi is not None
    assert found.lo - Fraction(1, 10**79) < PI < found.hi + Fraction(1, 10**79)
    assert found.hi - found.lo <= Fraction(1, 1 << bits)


@given(st.fractions(min_value=0, max_value=10**40), st.integers(8, 300))
def test_root(x: Fraction, bits: int) -> None:
    found = root(x, bits)
    assert found.lo is not None and found.hi is not None
    assert found.lo**2 <= x <= found.hi**2
    assert (found.hi - found.lo) * (1 << bits) <= found.hi
    square = root(x * x)
    assert square.lo == square.hi == x


@settings(deadline=None, max_examples=80)
@given(st.fractions(min_value=0, max_value=300, max_denominator=1000), st.integers(8, 500))
def test_erfc_against_scipy(y: Fraction, bits: int) -> None:
    found = erfc_root(y, bits)
    assert found.lo is not None and found.hi is not None
    assert 0 <= found.lo <= found.hi <= 1
    assert found.hi - found.lo <= Fraction(1, 1 << bits)
    expected = special.erfc(math.sqrt(y))
    assert float(found.lo) * (1 - 1e-12) <= expected <= float(found.hi) * (1 + 1e-12)


def test_erfc_by_the_alternating_series() -> None:
    """erf x = 2/√π·Σ (-1)^n·x^(2n+1)/(n!(2n+1)), summed exactly: another series than the one in use."""
    two_over_root_pi = Fraction(math.isqrt(4 * 10**140 * PI.denominator // PI.numerator), 10**70)
    for x in (Fraction(1, 3), Fraction(1), Fraction(4)):
        series = sum((-1) ** n * x ** (2 * n + 1) / (math.factorial(n) * (2 * n + 1)) for n in range(150))
        known, found = 1 - two_over_root_pi * series, erfc_root(x * x, 192)
        assert found.lo is not None and found.hi is not None
        assert found.lo - Fraction(1, 10**49) < known < found.hi + Fraction(1, 10**49)
    assert erfc_root(Fraction(10**9), 64).hi == Fraction(1, 1 << 64)
    for refused in (erfc_root, root):
        with pytest.raises(ValueError, match="≥ 0"):
            refused(Fraction(-1), 64)
