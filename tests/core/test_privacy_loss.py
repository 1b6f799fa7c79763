"""Exact numbers in, exact numbers out; conversions never below the truth."""

from __future__ import annotations

import math
import re
from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsql.core.privacy_loss import (
    GRID,
    NO_LOSS,
    PrivacyLoss,
    epsilon_to_rho,
    exact,
    exact_delta,
    exact_epsilon,
    left_text,
    pure_to_rho,
    rho_to_delta,
    rho_to_epsilon,
    show_left,
    show_spent,
)

rationals = st.fractions(min_value=0, max_value=10**6)
losses = st.builds(PrivacyLoss, rationals, rationals, rationals)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (0.1, Fraction(1, 10)),
        ("0.1", Fraction(1, 10)),
        (" 1e-6 ", Fraction(1, 10**6)),
        ("1/3", Fraction(1, 3)),
        (Decimal("0.25"), Fraction(1, 4)),
        (Fraction(2, 7), Fraction(2, 7)),
        (3, Fraction(3)),
        (".5", Fraction(1, 2)),
        ("-2.5E+1", Fraction(-25)),
        (5e-324, Fraction(5, 10**324)),
    ],
)
def test_numbers_are_read_as_written(value: object, expected: Fraction) -> None:
    assert exact(value) == expected


def test_a_numpy_float_is_read_like_a_python_float() -> None:
    numpy = pytest.importorskip("numpy")
    assert exact(numpy.float64(0.1)) == Fraction(1, 10)


@pytest.mark.parametrize(
    "value",
    [
        *(float("nan"), float("inf"), -float("inf"), Decimal("NaN"), Decimal("Infinity"), Decimal("1e999999")),
        *("", "nan", "inf", "1e999999", "1e99999999999", "9" * 500, "0x1", "1_000", "1/0", "1//2", "١", "a" * 99),
        *(True, None, [], b"1", 1j, object()),
    ],
)
def test_anything_else_is_refused_in_one_short_sentence(value: object) -> None:
    with pytest.raises(ValueError, match=r"epsilon must be a finite number such as 0\.1, got") as refusal:
        exact(value, "epsilon")
    assert len(str(refusal.value)) < 120


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_float_means_its_shortest_text(x: float) -> None:
    assert float(exact(x)) == x
    assert exact(x) == exact(repr(x))


@given(st.text(alphabet="0123456789+-./eE_ naif", max_size=12) | st.text(max_size=8))
def test_no_text_does_anything_but_give_a_number_or_a_value_error(text: str) -> None:
    try:
        number = exact(text)
    except ValueError:
        return
    assert number == Fraction(text.strip())


@pytest.mark.parametrize("value", [0, -1, "-0.1", 0.0, -0.0])
def test_epsilon_is_above_zero(value: object) -> None:
    with pytest.raises(ValueError, match="above 0"):
        exact_epsilon(value)
    assert exact_epsilon("1e-9") == Fraction(1, 10**9)


@pytest.mark.parametrize("value", ["1e101", "1e-101", "1e1000", 5e-324, 10**400])
def test_settings_beyond_floats_are_refused(value: object) -> None:
    with pytest.raises(ValueError, match="1e-100 to 1e100"):
        exact_epsilon(value)
    assert exact_epsilon("1e100") == 1 / exact_epsilon("1e-100") == 10**100


@pytest.mark.parametrize("value", [1, "1.5", -1e-9])
def test_delta_is_a_probability_below_one(value: object) -> None:
    with pytest.raises(ValueError, match="below 1"):
        exact_delta(value)
    assert exact_delta(0) == 0


@given(losses)
def test_the_grid_rounds_up_by_less_than_a_step(x: PrivacyLoss) -> None:
    stored = x.on_grid()
    assert x.within(stored)
    assert stored.epsilon - x.epsilon < Fraction(1, GRID)
    assert stored.on_grid() == stored


@given(rationals, st.integers(1, 9))
def test_what_is_shown_is_never_too_kind(x: Fraction, digits: int) -> None:
    assert exact(show_left(x, digits)) <= x <= exact(show_spent(x, digits))
    if x:
        assert exact(show_spent(x, digits)) - exact(show_left(x, digits)) <= x * Fraction(10, 10**digits)


@pytest.mark.parametrize(
    ("x", "spent", "left"),
    [
        (Fraction(1, 3), "0.333334", "0.333333"),
        (Fraction(0), "0", "0"),
        (Fraction(1, 10), "0.1", "0.1"),
        (Fraction(1, 10**9), "1e-9", "1e-9"),
        (Fraction(2, 3 * 10**8), "6.66667e-9", "6.66666e-9"),
        (Fraction(20), "20", "20"),
        (Fraction(10**20 + 1), "1.00001e20", "1e20"),
    ],
)
def test_numbers_are_shown_short(x: Fraction, spent: str, left: str) -> None:
    assert (show_spent(x), show_left(x)) == (spent, left)


def test_prices_have_no_exponent_and_a_delta_has() -> None:
    tiny = PrivacyLoss(epsilon=Fraction("2.66596e-11"), delta=Fraction("1e-8"))
    assert str(tiny) == left_text(tiny) == "ε 0.0000000000266596 δ 1e-8"
    assert str(PrivacyLoss(rho=Fraction("1e-9"))) == "ρ 0.000000001"


def test_a_loss_prints_its_parts() -> None:
    assert str(PrivacyLoss(Fraction(1, 2), Fraction(1, 10**9))) == "ε 0.5 δ 1e-9"
    assert str(PrivacyLoss(rho=Fraction(1, 8))) == "ρ 0.125"
    assert str(NO_LOSS) == "ε 0"


def test_pure_epsilon_in_zcdp() -> None:
    assert pure_to_rho(Fraction(1, 2)) == Fraction(1, 8)


@pytest.mark.parametrize(
    ("rho", "epsilon"),
    # Values at δ = 1e-6, where OpenDP and an independent implementation agreed to 1e-15.
    [("0.01", 0.6217), ("0.125", 2.4191), ("0.5", 5.2215), ("2", 11.6886)],
)
def test_conversion_matches_known_values_and_beats_the_loose_formula(rho: str, epsilon: float) -> None:
    r, delta = exact(rho), exact("1e-6")
    found = rho_to_epsilon(r, delta)
    assert abs(float(found) - epsilon) < 6e-5
    assert float(found) < float(r) + 2 * math.sqrt(float(r) * math.log(1e6))
    assert float(rho_to_delta(r, found)) == pytest.approx(1e-6, rel=1e-9)


def test_conversion_at_the_edges() -> None:
    assert rho_to_epsilon(Fraction(0), Fraction(1, 2)) == 0
    assert rho_to_delta(Fraction(0), Fraction(0)) == 0
    assert Fraction(9, 10) < rho_to_delta(Fraction(5), Fraction(1)) <= 1
    assert rho_to_delta(Fraction(10**10), Fraction(1)) == 1
    assert 0 < rho_to_delta(Fraction(1, 10**9), Fraction(10**12)) < Fraction(1, 10**1000)
    assert rho_to_epsilon(Fraction(1, 10), Fraction(1, 10**400)) > 19
    assert rho_to_epsilon(Fraction(10**9), Fraction(1, 10**9)) > 10**9
    for rho, delta in ((Fraction(-1), Fraction(1, 2)), (Fraction(1), Fraction(0)), (Fraction(1), Fraction(1))):
        with pytest.raises(ValueError, match="rho must be"):
            rho_to_epsilon(rho, delta)
    with pytest.raises(ValueError, match="at least 0"):
        rho_to_delta(Fraction(1), Fraction(-1))


def test_the_rho_of_an_epsilon_at_the_edges() -> None:
    for tiny in (Fraction(1, 10**9), Fraction(1, 10**15)):
        for delta in (Fraction(1, 2), Fraction(1, 10**70)):
            assert rho_to_epsilon(epsilon_to_rho(tiny, delta), delta) <= tiny
    with pytest.raises(ValueError, match="too small"):
        epsilon_to_rho(Fraction(1, 10**30), Fraction(1, 10**70))
    for epsilon, delta in ((0, Fraction(1, 2)), (1, Fraction(0)), (1, Fraction(1)), (2 * 10**9, Fraction(1, 2))):
        with pytest.raises(ValueError, match="epsilon must be"):
            epsilon_to_rho(Fraction(epsilon), delta)


@given(st.fractions(min_value=0), st.fractions(min_value=0, max_value=1))
def test_the_repr_is_exact(epsilon: Fraction, delta: Fraction) -> None:
    loss = PrivacyLoss(epsilon, delta)
    shown = re.findall(r"(\w+)=(Fraction\((-?\d+), (\d+)\)|[\d.e-]+)", repr(loss))
    parts = {name: Fraction(int(n), int(d)) if n else Fraction(text) for name, text, n, d in shown}
    assert PrivacyLoss(**parts) == loss


def test_the_repr_is_short() -> None:
    assert repr(PrivacyLoss(Fraction(1, 2), Fraction(1, 10**9))) == "PrivacyLoss(epsilon=0.5, delta=1e-09)"
    assert (
        repr(PrivacyLoss(rho=Fraction(1, 3))) == "PrivacyLoss(rho=Fraction(1, 3))"
        and repr(PrivacyLoss()) == "PrivacyLoss()"
    )
    assert "Fraction(" in repr(PrivacyLoss(Fraction(1, 10**400)))
