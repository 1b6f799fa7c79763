"""What every source of noise promises, whichever it is (core/noise/backends.py), alone and below the mechanisms."""

from __future__ import annotations

import importlib.util
import math
import statistics
from collections.abc import Callable
from fractions import Fraction

import pytest

from dpsql.core.noise.backends import EXACT, Backend, OpenDPBackend
from dpsql.core.noise.mechanisms import DiscreteGaussian, DiscreteLaplace, Mechanism, NoNoise

opendp = pytest.mark.skipif(importlib.util.find_spec("opendp") is None, reason="opendp is not installed")
BACKENDS = [EXACT, pytest.param(OpenDPBackend(), marks=opendp)]
SCALES = [Fraction(1, 3), Fraction(1), Fraction(7, 2), Fraction(1000), Fraction(10**6, 7), Fraction(1 << 55)]
N = 20_000

backends = pytest.mark.parametrize("backend", BACKENDS, ids=lambda b: b.name)
scales = pytest.mark.parametrize("scale", SCALES, ids=str)
Draw = Callable[[Backend, Fraction, int], list[int]]


def laplace(backend: Backend, scale: Fraction, n: int) -> list[int]:
    return backend.laplace(scale, n)


def gaussian(backend: Backend, scale: Fraction, n: int) -> list[int]:
    return backend.gaussian(scale**2, n)


families = pytest.mark.parametrize("draw", [laplace, gaussian])


@backends
@families
@scales
def test_as_many_python_integers_as_asked(backend: Backend, draw: Draw, scale: Fraction) -> None:
    for n in (0, 1, 2, 1000):
        drawn = draw(backend, scale, n)
        assert len(drawn) == n
        assert {type(z) for z in drawn} <= {int}


@backends
@families
def test_what_cannot_be_drawn_is_refused(backend: Backend, draw: Draw) -> None:
    for scale in (Fraction(0), Fraction((1 << 55) + 1), 0.5, 3):
        with pytest.raises((ValueError, TypeError)):
            draw(backend, scale, 1)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="n must"):
        draw(backend, Fraction(1), -1)


@backends
def test_a_negative_variance_is_refused(backend: Backend) -> None:
    with pytest.raises(ValueError, match=r"2\^110"):
        backend.gaussian(Fraction(-1), 1)
    with pytest.raises(ValueError, match=r"2\^55"):
        backend.laplace(Fraction(-1), 1)


@backends
@families
@scales
def test_draws_are_fresh(backend: Backend, draw: Draw, scale: Fraction) -> None:
    """Two lists of 4,000 draws are equal with probability below (1/2)^400 at the smallest scale here."""
    assert draw(backend, scale, 4000) != draw(backend, scale, 4000)


def off(mechanism: Mechanism, drawn: list[int]) -> float:
    """How many standard errors the mean square is away from the variance; the fourth moment bounds the error.

    The kurtosis of both laws is at most 6 + 1/variance (that of a rare ±1 is 1/variance).
    """
    variance = mechanism.variance()
    spread = statistics.fmean([float(z * z) for z in drawn])
    return abs(spread / variance - 1) / math.sqrt((6 + 1 / variance) / len(drawn))


@backends
@scales
def test_the_spread_is_the_one_priced(backend: Backend, scale: Fraction) -> None:
    """Both mechanisms over both backends: within 8 standard errors, and no further from zero on average."""
    for mechanism in (DiscreteLaplace(scale), DiscreteGaussian(scale**2)):
        drawn = mechanism.add_noise([0] * N, backend)
        assert off(mechanism, drawn) < 8
        assert abs(statistics.fmean(drawn)) < 8 * math.sqrt(mechanism.variance() / N)


@backends
@pytest.mark.parametrize("scale", SCALES[1:], ids=str)
def test_a_wrong_spread_is_seen(backend: Backend, scale: Fraction) -> None:
    """Twin: noise a third wider; the scale in the place of the variance, and the other way round."""
    for mechanism, twin in [
        (DiscreteLaplace(scale), DiscreteLaplace(scale * Fraction(3, 4))),
        (DiscreteGaussian(scale**2), DiscreteGaussian(scale**2 * Fraction(9, 16))),
    ]:
        assert off(mechanism, twin.add_noise([0] * N, backend)) > 8
    if scale != 1 and scale**2 < 1 << 55:
        assert off(DiscreteGaussian(scale**2), gaussian(backend, scale**2, N)) > 8


@backends
def test_values_are_moved_and_never_clipped(backend: Backend) -> None:
    values = [0, 1, -1, (1 << 62) + 1, -(1 << 100), (1 << 63) - 1]
    for mechanism in (DiscreteLaplace(Fraction(5)), DiscreteGaussian(Fraction(25))):
        out = mechanism.add_noise(values * 50, backend)
        assert {type(v) for v in out} == {int}
        moved = [a - b for a, b in zip(out, values * 50, strict=True)]
        assert all(abs(z) < 500 for z in moved)
        assert max(moved[5::6]) > 0, "a value at the end of 64 bits is moved beyond"
    assert NoNoise().add_noise(values, backend) == values
