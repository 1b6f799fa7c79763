"""Rounding of fractions to floats, to the safe side."""

from __future__ import annotations

import math
from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from dpsql.frontend.aggregates.intervals.outward_rounding import above, below


@given(st.fractions() | st.floats(allow_nan=False, allow_infinity=False).map(Fraction))
def test_the_nearest_floats_around(x: Fraction) -> None:
    low, high = below(x), above(x)
    assert low <= x <= high
    assert low == high if Fraction(float(x)) == x else math.nextafter(low, math.inf) == high
