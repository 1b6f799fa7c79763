"""The only place that draws randomness: exact discrete Laplace noise from operating-system entropy.

*Exact*: a draw compares uniformly random bits with the binary digits of a probability and reads more digits for as
long as they tie. The digits come from rational enclosures, so no floating-point number takes part in a decision and
nothing is truncated: the support is all integers.

*No seed, no buffer*: every call asks the kernel, so a forked child or another thread can never see the same bytes,
and no setting of Python's or numpy's generators has an influence.

Construction. With q = e^(-1/scale), P(Z = z) = (1-q)/(1+q)·q^|z|. Then P(Z ≠ 0) = 2q/(1+q), the sign is fair, and
|Z| - 1 given Z ≠ 0 is geometric, P(k) = (1-q)·q^k. A geometric variable has independent binary digits, digit i being
1 with probability q^(2^i) / (1 + q^(2^i)); what remains above digit N-1 is geometric again with q^(2^N) and is drawn
by counting successes (without it the support would be finite and the privacy claim false).
"""

from __future__ import annotations

import os
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from dpsql.measure.scale import check_scale
from dpsql.numbers.exact import exp_minus, floor
from dpsql.numbers.interval import Interval

_BLOCK = 1 << 12  # draws at a time, so that the digit matrix stays in the cache

Words = NDArray[Any]


class BitSource(Protocol):
    """Independent fair bits. Private: only tests give another source than the kernel, to enumerate every bit string."""

    def words(self, count: int, bits: int) -> Words:
        """`count` independent uniform unsigned integers of `bits` bits."""
        ...


class _Kernel:
    """os.urandom: getrandom(2) on Linux. Nothing is kept between calls, which makes it safe under fork and threads."""

    def words(self, count: int, bits: int) -> Words:
        match bits:
            case 1:
                packed = np.frombuffer(os.urandom((count + 7) // 8), np.uint8)
                return np.unpackbits(packed, count=count)
            case 8:
                return np.frombuffer(os.urandom(count), np.uint8)
            case 64:
                return np.frombuffer(os.urandom(8 * count), np.uint64)
            case _:
                raise ValueError(f"no words of {bits} bits")


_KERNEL = _Kernel()


class Chance:
    """An irrational probability in (0, 1), known by enclosures and read in binary digits."""

    def __init__(self, enclosure: Callable[[int], Interval]) -> None:
        self._enclosure = enclosure

    def digits(self, start: int, count: int) -> int:
        """Digits start … start+count-1 after the binary point, as one integer of `count` bits."""
        place = start + count

        def shifted(bits: int) -> Interval:
            p = self._enclosure(bits)
            assert p.lo is not None and p.hi is not None
            return Interval(p.lo * (1 << place), p.hi * (1 << place))

        # p is irrational (e^r is transcendental for rational r ≠ 0), so p·2^place is never an integer.
        return floor(shifted, place + 16) & ((1 << count) - 1)


class Chances:
    """Several probabilities with their first and second group of digits tabulated for comparison in bulk."""

    def __init__(self, chances: list[Chance], first_bits: int, second_bits: int) -> None:
        self.chances = chances
        self.first_bits, self.second_bits = first_bits, second_bits
        leading = [chance.digits(0, first_bits + second_bits) for chance in chances]
        self.first = np.array([d >> second_bits for d in leading], np.uint8).reshape(-1, 1)
        self.second = np.array([d & ((1 << second_bits) - 1) for d in leading], np.uint64)

    def draw(self, count: int, source: BitSource) -> NDArray[np.bool_]:
        """Entry [i, j] is True with probability chances[i]; all entries are independent.

        A uniform number in [0, 1) is below p iff it is smaller at the first digit where they differ.
        """
        rows = len(self.chances)
        words = source.words(rows * count, self.first_bits).reshape(rows, count)
        below: NDArray[np.bool_] = words < self.first
        tied = np.flatnonzero(words == self.first)
        if tied.size:
            row = tied // count
            more = source.words(tied.size, self.second_bits)
            threshold = self.second[row]
            answer = more < threshold
            for k in np.flatnonzero(more == threshold):
                answer[k] = self._settle(self.chances[int(row[k])], source)
            below.reshape(-1)[tied] = answer
        return below

    def _settle(self, chance: Chance, source: BitSource) -> bool:
        start = self.first_bits + self.second_bits
        while True:
            word, digits = int(source.words(1, self.second_bits)[0]), chance.digits(start, self.second_bits)
            if word != digits:
                return word < digits
            start += self.second_bits


class Laplace:
    """Discrete Laplace noise of one scale: the tabulated digits and the way to draw from them.

    low_digits: N, how many binary digits are drawn apart from the tail. Any N ≤ 58 gives the same distribution; by
    default 2^N ≥ 8·scale, so that the tail is entered with probability e^-8 or less.
    """

    def __init__(
        self, scale: Fraction, low_digits: int | None = None, first_bits: int = 8, second_bits: int = 64
    ) -> None:
        enough = (-(-8 * scale.numerator // scale.denominator) - 1).bit_length()
        self.low_digits = enough if low_digits is None else low_digits
        body = [Chance(_digit(Fraction(1 << i) / scale)) for i in range(self.low_digits)]
        body.append(Chance(_nonzero(1 / scale)))
        tail = Chance(_power(Fraction(1 << self.low_digits) / scale))
        self.body = Chances(body, first_bits, second_bits)
        self.tail = Chances([tail], first_bits, second_bits)

    def draw(self, count: int, source: BitSource) -> list[int]:
        """`count` independent draws; Python integers, so that no sum can overflow."""
        n = self.low_digits
        bits = self.body.draw(count, source)
        nonzero = bits[n]
        packed = np.packbits(bits[:n], axis=0, bitorder="little")
        octets = np.zeros((count, 8), np.uint8)
        octets[:, : packed.shape[0]] = packed.T
        low = octets.view("<i8").reshape(count)  # n ≤ 58 digits, never negative
        high = self._high(count, source)
        negative = source.words(count, 1) != 0
        if int(high.max()) < 1 << (62 - n):
            size = low + (high << n) + 1
            z: list[int] = np.where(nonzero, np.where(negative, -size, size), 0).tolist()
            return z
        sizes = [a + (b << n) + 1 for a, b in zip(low.tolist(), high.tolist(), strict=True)]
        return [
            (-s if minus else s) if some else 0
            for s, minus, some in zip(sizes, negative.tolist(), nonzero.tolist(), strict=True)
        ]

    def _high(self, count: int, source: BitSource) -> NDArray[np.int64]:
        """Geometric with q^(2^N): successes before the first failure, without a limit."""
        high = np.zeros(count, np.int64)
        alive = np.arange(count)
        while alive.size:
            alive = alive[self.tail.draw(alive.size, source)[0]]
            high[alive] += 1
        return high


def _power(x: Fraction) -> Callable[[int], Interval]:
    return lambda bits: exp_minus(x, bits)


def _digit(x: Fraction) -> Callable[[int], Interval]:
    """e^-x / (1 + e^-x); y/(1+y) grows with y and is flatter than y."""

    def enclosure(bits: int) -> Interval:
        y = exp_minus(x, bits)
        assert y.lo is not None and y.hi is not None
        return Interval(y.lo / (1 + y.lo), y.hi / (1 + y.hi))

    return enclosure


def _nonzero(x: Fraction) -> Callable[[int], Interval]:
    """2e^-x / (1 + e^-x)"""

    def enclosure(bits: int) -> Interval:
        half = _digit(x)(bits + 1)
        assert half.lo is not None and half.hi is not None
        return Interval(2 * half.lo, 2 * half.hi)

    return enclosure


@lru_cache(maxsize=256)
def _laplace(scale: Fraction) -> Laplace:
    return Laplace(scale)


def discrete_laplace(scale: Fraction, n: int) -> list[int]:
    """n independent draws of Z with P(Z = z) = (1-q)/(1+q)·q^|z| for every integer z, q = e^(-1/scale).

    scale: a rational, 0 < scale ≤ 2^55. Raises ValueError for other scales, floats, or a negative n. Never seeded:
    each draw is fresh operating-system entropy. How long a draw takes depends a little on its value.
    """
    check_scale(scale)
    if n < 0:
        raise ValueError("n must be ≥ 0")
    law = _laplace(scale)
    drawn: list[int] = []
    for start in range(0, n, _BLOCK):
        drawn += law.draw(min(_BLOCK, n - start), _KERNEL)
    return drawn
