"""A counter's weights: what each period's exact integers count for in a tick, and what the ticks' numbers say.

Tick t releases y_t = Σ_{s≤t} r_{t-s}·x_s + Z_t. Here are r, the sum S² of its squares, and the arithmetic that makes
estimates of the x_s from what was released: r(z)·x̂ = y, by forward substitution in fixed point.

*Why these.* c₀ = 1, c_k = c_{k-1}·(k - 5/8)/k are the coefficients of (1 - z)^(-3/8). Their squares have a finite sum,
so that no horizon is needed, and the error of a total grows as the 1/8th power of time. *False if* S² is of the
unrounded c: with r₀ = 3 a row would lose 1.13 times the price. *Tested by* tests/core/numbers/test_counter_weights.py.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Final

LONGEST: Final = 15_000
"""Periods after which a period counts no more where nothing older is kept."""
FIRST: Final = 1024
"""r₀."""
POINT: Final = 20
"""Binary places of an estimate."""
_BITS: Final = 256


@lru_cache(maxsize=16)
def weights(length: int) -> tuple[int, ...]:
    """r₀, r₁, … of so many periods: round(1024·c_k), and 0 from then on. They never rise."""
    if not 0 < length <= LONGEST:
        raise ValueError(f"a counter weighs 1 to {LONGEST} periods")
    one = 1 << _BITS
    c, found = one, [FIRST]
    for k in range(1, length):
        c = c * (8 * k - 5) // (8 * k)  # below the truth by less than 2^-240: no c_k is so near a half
        found.append((2 * FIRST * c + one) // (2 * one))
    return tuple(found)


@lru_cache(maxsize=16)
def squares(length: int) -> int:
    """S²: the sum of their squares."""
    return sum(r * r for r in weights(length))


def next_estimates(length: int, earlier: Sequence[Sequence[int]], released: Sequence[int]) -> list[int]:
    """x̂_t of each group, in 2^-POINT. earlier: those of the ticks before, oldest first. released: y_t of each group."""
    r, found = weights(length), [y << POINT for y in released]
    for k, before in enumerate(reversed(earlier), 1):
        if k >= len(r):
            break
        found = [f - r[k] * x for f, x in zip(found, before, strict=True)]
    return [(2 * f + FIRST) // (2 * FIRST) for f in found]


def totals(estimates: Sequence[Sequence[int]]) -> list[list[int]]:
    """N_t = round(Σ_{s≤t} x̂_s) of each group, after each tick."""
    half, found = 1 << (POINT - 1), list[list[int]]()
    sums = [0] * (len(estimates[0]) if estimates else 0)
    for each in estimates:
        sums = [s + x for s, x in zip(sums, each, strict=True)]
        found.append([(s + half) >> POINT for s in sums])
    return found


@lru_cache(maxsize=16)
def _running(length: int, ticks: int) -> tuple[float, ...]:
    """How much of Z_t is in N_{t+k}, for k below `ticks`: running sums of the coefficients of 1/r(z)."""
    r, inverse = weights(length), list[float]()
    for k in range(ticks):
        inverse.append(((k == 0) - sum(r[j] * inverse[k - j] for j in range(1, min(k, len(r) - 1) + 1))) / FIRST)
    found, whole = list[float](), 0.0
    for each in inverse:
        whole += each
        found.append(whole)
    return tuple(found)


def error_of_window(length: int, before: int, last: int) -> float:
    """√(variance of N_last - N_before) in σ of one tick; before = -1 for all from the first period on."""
    g = _running(length, last + 1)
    return math.sqrt(math.fsum((g[last - j] - (g[before - j] if j <= before else 0.0)) ** 2 for j in range(last + 1)))
