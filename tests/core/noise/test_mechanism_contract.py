"""What every mechanism promises, whichever it is (dpsql/core/noise/mechanisms/mechanism.py)."""

from __future__ import annotations

import dataclasses
from fractions import Fraction

import pytest

from dpsql.core.noise.mechanisms import DiscreteGaussian, DiscreteLaplace, Mechanism, NoNoise

SCALES = [Fraction(1, 3), Fraction(7, 2), Fraction(10**6), Fraction(1 << 55)]
NOISY: list[Mechanism] = [*map(DiscreteLaplace, SCALES), *(DiscreteGaussian(s * s) for s in SCALES)]
ALL: list[Mechanism] = [*NOISY, NoNoise()]

every = pytest.mark.parametrize("mechanism", ALL, ids=repr)
noisy = pytest.mark.parametrize("mechanism", NOISY, ids=repr)
CONFIDENCES = [Fraction(0), Fraction(1, 2), Fraction(19, 20), Fraction(999999, 10**6)]


@every
def test_integers_in_integers_out(mechanism: Mechanism) -> None:
    values = [0, 1, -1, 1 << 62, -(1 << 100)]
    out = mechanism.add_noise(values)
    assert [type(v) for v in out] == [int] * 5
    reach = 100 * (1 + int(mechanism.scale))
    assert all(abs(a - b) <= reach for a, b in zip(values, out, strict=True))
    assert mechanism.add_noise([]) == []


@every
def test_the_input_is_left_alone(mechanism: Mechanism) -> None:
    values = [5, 6]
    mechanism.add_noise(values)
    assert values == [5, 6]


@every
def test_half_width_grows_with_confidence(mechanism: Mechanism) -> None:
    widths = [mechanism.half_width(c) for c in CONFIDENCES]
    assert widths == sorted(widths)
    assert all(type(w) is int and w >= 0 for w in widths)


@every
def test_immutable_and_comparable(mechanism: Mechanism) -> None:
    assert dataclasses.is_dataclass(mechanism)
    assert mechanism == dataclasses.replace(mechanism)
    assert hash(mechanism) == hash(dataclasses.replace(mechanism))
    assert not hasattr(mechanism, "__dict__")
    for field in dataclasses.fields(mechanism):
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(mechanism, field.name, Fraction(1))


@every
def test_nothing_that_moves_costs_nothing(mechanism: Mechanism) -> None:
    still = mechanism.loss(Fraction(0), Fraction(0))
    assert (still.epsilon, still.delta, still.rho) == (0, 0, 0)


@noisy
def test_loss_is_exact_and_grows(mechanism: Mechanism) -> None:
    losses = [mechanism.loss(Fraction(d), Fraction(d * d)) for d in range(1, 5)]
    parts = [loss.epsilon + loss.rho for loss in losses]
    assert all(type(p) is Fraction and p > 0 for p in parts)
    assert parts == sorted(set(parts))


@noisy
def test_noise_is_fresh_and_independent(mechanism: Mechanism) -> None:
    """Two vectors of 400 draws are equal with probability below (1/2)^400 at the smallest scale here."""
    first, second = mechanism.add_noise([0] * 4000), mechanism.add_noise([0] * 4000)
    assert first != second
    assert len(set(first)) > 1


@noisy
def test_spread_agrees_with_what_is_printed(mechanism: Mechanism) -> None:
    """The mean square of 80,000 draws is within 25 % of `variance()`: twelve standard errors or more at every scale."""
    draws = mechanism.add_noise([0] * 80_000)
    spread = sum(z * z for z in draws) / len(draws)
    assert 0.75 * mechanism.variance() < spread < 1.25 * mechanism.variance()
    width = mechanism.half_width(Fraction(1, 2))
    inside = sum(abs(z) <= width for z in draws) / len(draws)
    assert inside > 0.47


@every
@pytest.mark.parametrize("confidence", [Fraction(1, 2), Fraction(19, 20), Fraction(999_999, 10**6)])
def test_tails_and_widths_tell_the_same_story(mechanism: Mechanism, confidence: Fraction) -> None:
    """P(|Z| > w) = 2·P(Z ≥ w+1): at most 1 - c at the width, and more than that two below it."""
    width, rounding = mechanism.half_width(confidence), Fraction(1, 1 << 126)
    assert 2 * mechanism.upper_tail(width + 1, 128) <= 1 - confidence + 2 * rounding
    assert width < 2 or 2 * mechanism.upper_tail(width - 1, 128) > 1 - confidence


@every
def test_upper_tails_fall(mechanism: Mechanism) -> None:
    points = [0, 1, 2, int(mechanism.scale) + 2, 3 * int(mechanism.scale) + 3, 1 << 70]
    tails = [mechanism.upper_tail(m, 200) for m in points]
    assert tails == sorted(tails, reverse=True)
    assert all(0 <= tail <= 1 for tail in tails)
    with pytest.raises(ValueError, match="m ≥ 0"):
        mechanism.upper_tail(-1, 200)


def test_names_differ() -> None:
    assert {m.name for m in ALL} == {"laplace", "gaussian", "exact"}
