"""The two-sided quantile is just above the true one."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import special

from dpsql.core.numbers.normal import erfc_root, two_sided


@settings(deadline=None, max_examples=40)
@given(st.fractions(min_value=Fraction(1, 10**12), max_value=Fraction(999, 1000), max_denominator=10**12))
def test_two_sided_is_just_above_the_quantile(outside: Fraction) -> None:
    found = two_sided(outside)
    here, below = erfc_root(found / 2, 200).hi, erfc_root(found * (1 - Fraction(1, 1 << 50)) / 2, 200).lo
    assert here is not None and below is not None
    assert here < outside < below or float(found) == pytest.approx(special.ndtri(1 - float(outside) / 2) ** 2, rel=1e-6)
    assert here < outside
