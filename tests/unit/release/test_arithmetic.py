"""Released numbers from noisy integers, against the same sums in fractions."""

from __future__ import annotations

from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from dpsql.release.arithmetic import linear, rounded

COEFFICIENTS = st.fractions(-(10**6), 10**6, max_denominator=10**6)


@given(
    st.lists(st.tuples(st.integers(0, 2), COEFFICIENTS), min_size=1, max_size=3),
    st.lists(st.tuples(*[st.integers()] * 3)),
)
def test_sums_of_components_are_exact(parts: list[tuple[int, Fraction]], rows: list[tuple[int, ...]]) -> None:
    values, whole = linear(parts, rows)
    assert [Fraction(v, whole) for v in values] == [sum(c * row[i] for i, c in parts) for row in rows]


@given(st.integers(), COEFFICIENTS.filter(lambda x: x > 0))
def test_halves_are_rounded_away_from_zero(value: int, unit: Fraction) -> None:
    found, exact = rounded(value, unit), value * unit
    assert abs(found - exact) <= Fraction(1, 2) and (abs(found - exact) < Fraction(1, 2) or abs(found) >= abs(exact))
    assert rounded(-value, unit) == -found
