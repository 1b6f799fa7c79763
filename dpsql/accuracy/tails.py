"""Tails of weighted sums of independent noise, Laplace, Gaussian or some of each: P(|c₁Z₁ + c₂Z₂ + …| ≥ w).

Everything errs on the wide side: a tail that is too large makes an interval too wide, never too narrow.

- Discreteness, in one of two ways. First, Z is coupled with a continuous variable of its scale that is less than one
  unit u away: a discrete Laplace variable is the difference of the integer parts of two exponentials; for a discrete
  Gaussian one Q(m/σ)/(1+ε) ≤ P(Z ≥ m) ≤ Q((m-½)/σ) + ε/2 (`core/noise/mechanisms/gaussian.py`). So w may be made
  smaller by |c|·u of each. Second, the last one is left out of this, where the others are smooth against its unit. With
  A their sum, h(t) = P(|A + t| ≥ w) has h'' ≥ -k, k the largest slope of A's density: 1/(2b²) of a Laplace A, φ(1)/σ²
  of a Gaussian one. Then E h(cZ) ≤ E h(c(Z+T)) + k·c²·E T²/2 for any independent symmetric T. The fractions of the two
  exponentials are a T that makes the continuous Laplace variable of the discrete one, with E T² ≤ u²/6; a uniform T on
  one unit, E T² = u²/12, makes of a discrete Gaussian one a unimodal variable with P(|Z+T| > x) ≤ P(|X| > x) for X of
  variance σ² + u²/4. (A sum of symmetric unimodal variables grows stochastically if one of them does: Birnbaum 1948.)
- Laplace variables of different scales a_i: the characteristic function Π 1/(1 + a_i²t²) is Σ κ_i/(1 + a_i²t²) with
  κ_i = Π_{j≠i} a_i²/(a_i² - a_j²), so the tail is Σ κ_i·e^(-w/a_i). Where scales nearly agree this loses its digits;
  there the larger one is made larger still, by up to one part in 10⁴, which makes |Σ| stochastically larger.
- Gaussian variables add up to one. A Laplace variable of scale a plus a Gaussian one of σ, with x = w/σ and y = σ/a:
  P(|L + G| > w) = erfc(x/√2) + e^(-x²/2)·(erfcx((y-x)/√2) - erfcx((y+x)/√2))/2,
  and Σ κ_i of these with several Laplace variables.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from dpsql.core.noise.measurement import Measurement
from dpsql.core.noise.mechanisms.mechanism import MARGIN

Floats = NDArray[np.float64]

_TINY = 1e-300
_APART = 1e-4
"""Laplace scales are told apart by at least this part."""
_NEGLIGIBLE = 1e-5
_MOST_VALUES = 100_000
_BENT = 0.24197072451914337
"""φ(1), the largest slope of the normal density, rounded up."""
_ROUNDING = 1e-7
"""What three nearly equal scales, this far apart, can lose: terms of 1e7, added with 16 digits; with room."""


@dataclass(frozen=True, slots=True)
class TermNoise:
    """The noise of one component in a common unit: of the two scales one is 0, or both without noise.

    laplace: b. gaussian: σ. step: one integer unit; 0 without noise, where nothing is rounded.
    """

    laplace: float
    gaussian: float
    step: float

    @classmethod
    def of(cls, m: Measurement, unit: Fraction) -> TermNoise:
        """unit: of the measurement's integers, in the common unit."""
        laplace, gaussian = (float(x * unit) * (1 + MARGIN) for x in (m.noise.laplace, m.noise.gaussian))
        return cls(laplace, gaussian, float(unit) if laplace or gaussian else 0.0)


def tail(
    noises: Sequence[TermNoise],
    coefficients: Sequence[Floats | float],
    w: Floats,
    bend: Floats | float = math.inf,
    limit: Floats | float = math.inf,
) -> Floats:
    """P(|Σ coefficient · noise| ≥ w) for w ≥ 0, or above it; elementwise.

    bend: `curvature` of all noises but the last, to take the second way with the last one where its coefficient is at
    most `limit`; infinite for the first way.
    """
    parts = [(n, np.broadcast_to(np.abs(c), w.shape)) for n, c in zip(noises, coefficients, strict=True)]
    steps = [c * n.step for n, c in parts]
    scales = [c * n.laplace for n, c in parts if n.laplace]
    sigmas = [c * n.gaussian for n, c in parts[:-1] if n.gaussian]
    last, size = parts[-1]
    smooth = np.isfinite(bend) & (size <= limit)
    if last.gaussian:
        sigmas.append(np.sqrt((size * last.gaussian) ** 2 + np.where(smooth, (steps[-1] / 2) ** 2, 0.0)))
    slack = sum(steps[:-1], np.where(smooth, 0.0, steps[-1]))
    added = np.where(smooth, bend, 0.0) * steps[-1] ** 2 * _spread(last)
    rest = np.maximum(w - slack, 0)
    certain: Floats = np.where(rest > 0, np.minimum(_continuous(scales, sigmas, rest) + added, 1.0), 1.0)
    return certain


def curvature(noises: Sequence[TermNoise], coefficients: Sequence[Floats | float]) -> Floats:
    """k for the sum of independent noises: the largest slope of its density, or above it; infinite without noise.

    Of Laplace variables of scales a > b, r = b/a, the density's slope is (e^(-x/a) - e^(-x/b)) / (2(a² - b²)), at most
    r^(r/(1-r)) / (2a²(1+r)). More noise makes a density smoother.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        scales = [np.abs(c) * n.laplace for n, c in zip(noises, coefficients, strict=True) if n.laplace]
        squares = [(np.abs(c) * n.gaussian) ** 2 for n, c in zip(noises, coefficients, strict=True) if n.gaussian]
        found = _BENT / np.asarray(sum(squares)) if squares else np.asarray(np.inf)
        if scales:
            largest = np.maximum.reduce(np.broadcast_arrays(*scales))
            r = np.minimum(scales[0], scales[1]) / largest if len(scales) == 2 else np.zeros_like(largest)
            r = np.minimum(r, 1 - 1e-6)  # less than r is safe
            power = np.where(r > 0, r ** (r / (1 - r)), 1.0)
            found = np.minimum(found, power * (1 + 1e-6) / (2 * largest**2 * (1 + r)))
        certain: Floats = np.where(np.isnan(found), np.inf, found)
        return certain


def worthwhile(bend: Floats, last: TermNoise, least: float) -> Floats:
    """The largest coefficient of the last noise for which the second way adds at most a quarter of `least`.

    least: the probability that the tail will be compared with.
    """
    if not last.step:
        return np.full_like(bend, np.inf)
    found: Floats = np.sqrt(least / 4 / np.maximum(bend * (last.step**2 * _spread(last)), _TINY))
    return found


def _spread(noise: TermNoise) -> float:
    """E T²/2 for a unit of 1."""
    return 1 / 12 if noise.laplace else 1 / 24


def _continuous(scales: Sequence[Floats], sigmas: Sequence[Floats], w: Floats) -> Floats:
    """P(|Σ| > w) of continuous Laplace variables of these scales and Gaussian ones of these σ, for w ≥ 0."""
    sigma = np.sqrt(sum((s**2 for s in sigmas), np.zeros_like(w))) if sigmas else None
    if not scales:
        return np.zeros_like(w) if sigma is None else gaussian_tail(sigma, w)
    if sigma is None and len(scales) < 3:
        return two_laplace_tail(scales[0], scales[1] if len(scales) == 2 else np.zeros_like(w), w)
    return _mixed(_apart(scales, sigma), sigma, w)


def half_width(parts: Sequence[tuple[Measurement, Fraction]], level: Fraction) -> float:
    """w with P(|Σ coefficient · (released integer - its truth)| > w) ≤ 1 - level; coverage is close to the level.

    parts: measurements with independent noise, and the coefficients that their integers have in the released number,
    e.g. their units and the middle of the bounds times the unit of a count for a sum that was centred.
    """
    top = max((abs(c) * m.noise.half_width(1 - (1 - level) / len(parts)) for m, c in parts), default=Fraction(0))
    if not top:
        return 0.0
    least = float(1 - level) * (1 - MARGIN)
    noises = [TermNoise.of(m, abs(c) / top) for m, c in parts if c and m.noise.scale]
    noises.sort(key=lambda n: n.step)
    law = _law(noises[-1])
    low, high = 0.0, float(len(parts))  # where each stays within its own width, which the level was split over
    for _ in range(50):
        middle = (low + high) / 2
        if _beyond(noises, law, middle, least) <= least:
            high = middle
        else:
            low = middle
    return float(top) * high * (1 + MARGIN)


def _beyond(noises: Sequence[TermNoise], law: tuple[Floats, Floats] | None, w: float, least: float) -> float:
    """P(|Σ| ≥ w), or above it; value by value of the last noise, where its law is given."""
    ones = [1.0] * len(noises)
    if law is None or len(noises) < 2:
        bend = curvature(noises[:-1], ones[:-1])
        return float(tail(noises, ones, np.array([w]), bend, worthwhile(bend, noises[-1], least))[0])
    values, chances = law
    left = w - values
    # Below 0 the rest has to stay above a negative number: the other side's complement, its tail taken from below.
    slack = sum(n.step for n in noises[:-1])
    within = np.abs(left) + np.where(left > 0, 0.0, 2 * slack)
    beyond = tail(noises[:-1], ones[:-1], within) / 2
    one_sided = np.where(left > 0, beyond, 1 - beyond + _ROUNDING)
    return float(2 * (chances * one_sided).sum()) * (1 + MARGIN) + MARGIN


def _law(noise: TermNoise) -> tuple[Floats, Floats] | None:
    """Values of a discrete noise and their probabilities, but for 1e-13; None if there are too many."""
    scale = noise.laplace or noise.gaussian
    reach = math.ceil((30 if noise.laplace else 7.5) * scale / noise.step) + 1
    if reach > _MOST_VALUES:
        return None
    z = np.arange(-reach, reach + 1)
    size = np.abs(z) * noise.step
    weights: Floats = np.exp(-size / scale) if noise.laplace else np.exp(-((size / scale) ** 2) / 2)
    values: Floats = np.asarray(z * noise.step, dtype=np.float64)
    return values, weights / float(weights.sum())


def two_laplace_tail(a: Floats | float, b: Floats | float, w: Floats) -> Floats:
    """P(|X + Y| > w) for w ≥ 0 and independent Laplace X, Y of scales a, b ≥ 0 (0: no noise); within 1e-9, or above.

    (a²·e^(-w/a) - b²·e^(-w/b)) / (a² - b²), and for b = a its limit e^(-w/a)·(1 + w/(2a)).
    """
    larger = np.maximum(np.maximum(a, b), _TINY)
    r, t = np.minimum(a, b) / larger, w / larger
    first = np.exp(-t)
    # Where the scales nearly agree the difference would lose its digits; the limit at the larger one is above it.
    near = r > 1 - 1e-6
    rest = 1 - np.where(near, 0, r) ** 2
    with np.errstate(over="ignore"):
        second = r**2 * np.exp(-t / np.maximum(r, _TINY))
    found: Floats = np.where(near, first * (1 + t / 2), (first - second) / rest)
    return found


def gaussian_tail(sigma: Floats, w: Floats) -> Floats:
    """P(|X| > w) for w ≥ 0 and Gaussian X; above it by a part of 1e-9."""
    x = w / np.maximum(sigma, _TINY) / math.sqrt(2)
    found: Floats = _scaled_by(x, erfcx(x)) * (1 + MARGIN)
    return found


def erfcx(x: Floats) -> Floats:
    """e^(x²)·erfc(x) for x ≥ 0, to a relative error of 1e-13.

    The trapezoidal rule with step h = ½ for (2x/π)·∫ e^(-t²)/(t² + x²) dt over t ≥ 0, less what the poles at ±ix add
    (Goodwin 1949); it converges like e^(-(π/h)²). Below ½, where the two nearly cancel, the Taylor series of erf.
    """
    x = np.minimum(x, 1e100)
    near = x < 0.5
    y = np.where(near, x, 0.0) ** 2
    term, series = np.ones_like(y), np.ones_like(y)
    for k in range(1, 16):
        term = -term * y / k
        series = series + term / (2 * k + 1)
    taylor = np.exp(y) * (1 - 2 / math.sqrt(math.pi) * np.where(near, x, 0.0) * series)
    far = np.where(near, 1.0, x)
    total = 1 / far**2
    for k in range(1, 14):
        square = (k / 2) ** 2
        total = total + 2 * math.exp(-square) / (far**2 + square)
    total = total * far / (2 * math.pi)
    # Both exponents are small where the poles matter, and e^(x² - 4πx) is below 1e-17 from x = 4 on.
    close = np.minimum(far, 4.0)
    poles = 2 * np.exp(close**2) / np.expm1(4 * math.pi * close)
    found: Floats = np.where(near, taylor, total - np.where(far < 4, poles, 0.0))
    return found


def _scaled_by(x: Floats, value: Floats) -> Floats:
    """e^(-x²)·value."""
    found: Floats = np.exp(-(np.minimum(x, 40.0) ** 2)) * value
    return found


def _apart(scales: Sequence[Floats], sigma: Floats | None) -> Floats:
    """Laplace scales along the first axis, increasing, each larger than the one before by `_APART`; none is 0, and
    none so small beside σ that a quotient could overflow."""
    found = np.sort(np.stack(scales), axis=0)
    least = found[-1] * _APART if sigma is None else np.maximum(found[-1] * _APART, sigma * _NEGLIGIBLE)
    found[0] = np.maximum(found[0], np.maximum(least, _TINY))
    for i in range(1, len(found)):
        found[i] = np.maximum(found[i], found[i - 1] * (1 + _APART))
    return found


def _mixed(scales: Floats, sigma: Floats | None, w: Floats) -> Floats:
    """P(|Σ Laplace + Gaussian| > w); the scales are apart."""
    total: Floats = np.zeros_like(w)
    for i, a in enumerate(scales):
        kappa = np.ones_like(w)
        for j, b in enumerate(scales):
            if i != j:
                r = b / a
                kappa = kappa / ((1 - r) * (1 + r))
        total = total + kappa * (np.exp(-w / a) if sigma is None else _laplace_and_gaussian(a, sigma, w))
    found: Floats = np.clip(total + _ROUNDING, 0.0, 1.0)
    return found


def _laplace_and_gaussian(a: Floats, sigma: Floats, w: Floats) -> Floats:
    """P(|L + G| > w). Where x > y the first erfcx would have a negative argument: erfcx(-z) = 2e^(z²) - erfcx(z)."""
    s = np.maximum(sigma, a * 1e-9)
    x, y = w / s / math.sqrt(2), s / a / math.sqrt(2)
    z = np.abs(y - x)
    # e^(-x²)·erfcx(y - x): for y < x, 2e^((y-x)² - x²) = 2e^(y² - 2xy), whose exponent is below -xy < 0.
    first = _scaled_by(x, erfcx(z))
    first = np.where(y >= x, first, 2 * np.exp(np.minimum(y * (y - 2 * x), 0.0)) - first)
    found: Floats = _scaled_by(x, erfcx(x)) + (first - _scaled_by(x, erfcx(y + x))) / 2
    return found
