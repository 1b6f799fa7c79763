"""Streams of noise against the distributions that are paid for, computed here from their definitions.

Of each mechanism so many draws that a scale wrong by a twentieth shows; a sound one is accused once in 10^9 runs.
Run: `python streams.py`; 1 if one is another.
"""

from __future__ import annotations

import math
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction

from dpsql.core.noise.backends import EXACT

DRAWS = 400_000
FURTHEST = 7.0
"""Standard deviations. Every cell that is compared is expected to hold 500 draws."""


def laplace(scale: float) -> Callable[[int], float]:
    """The probability of an integer."""
    q = math.exp(-1 / scale)
    return lambda x: (1 - q) / (1 + q) * q ** abs(x)


def gaussian(variance: float) -> Callable[[int], float]:
    """The probability of an integer."""
    reach = int(40 * math.sqrt(variance)) + 2
    total = sum(math.exp(-x * x / (2 * variance)) for x in range(-reach, reach + 1))
    return lambda x: math.exp(-x * x / (2 * variance)) / total


def differences(name: str, drawn: Sequence[int], p: Callable[[int], float]) -> Iterator[str]:
    """Cells that hold too many or too few, and streams that repeat themselves."""
    n, seen = len(drawn), Counter(int(x) for x in drawn)
    for x in range(-50, 51):
        expected = n * p(x)
        if expected >= 500 and abs(seen[x] - expected) > FURTHEST * math.sqrt(expected):
            yield f"{name}: {x} came {seen[x]} times, and {expected:.0f} are expected"
    apart = n * sum(p(x) ** 2 for x in range(-400, 401))
    for lag in (1, 2, 1000):
        same = sum(a == b for a, b in zip(drawn, drawn[lag:], strict=False))
        if abs(same - apart) > 2 * FURTHEST * math.sqrt(apart):
            yield f"{name}: draws {lag} apart agree {same} times, and {apart:.0f} are expected"


def main() -> int:
    """Prints what was found."""
    for scale in (Fraction(1, 2), Fraction(3, 2), Fraction(20)):
        drawn = [int(x) for x in EXACT.laplace(scale, DRAWS)]
        for line in differences(f"Laplace noise of scale {scale}", drawn, laplace(float(scale))):
            print(f"found: {line}")
            return 1
    for variance in (Fraction(1, 2), Fraction(3), Fraction(400)):
        drawn = [int(x) for x in EXACT.gaussian(variance, DRAWS)]
        for line in differences(f"Gaussian noise of variance {variance}", drawn, gaussian(float(variance))):
            print(f"found: {line}")
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
