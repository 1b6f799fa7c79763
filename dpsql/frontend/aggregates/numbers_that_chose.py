"""The lower end of a number that decided itself whether its private group is shown.

A group is shown iff its noisy number y = n + Z reaches T. Where n is small it is shown only if Z is large: of those
that are shown, y ± w holds n less often than it says; if n is far below T, never.

*Claim.* Whatever n is, the interval holds it with at least the level, given that the group is shown. *Why.* It keeps
the n ≥ 0 for which P(Z ≥ y - n | Z ≥ T - n) is above half of what may miss. That rises with n, since the logarithm of
P(Z ≥ t) is concave for Laplace and Gaussian noise, so that they begin at one. The upper end may stay y + w: y is
larger if the group is shown. *When it would be false.* If other noise chose: stored numbers of another mechanism are
left as they are. *Tested by* tests/frontend/aggregates/test_numbers_that_chose.py

Where y is near T, Laplace noise says nothing of how small n is: 17 −17 / +3.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from dpsql.core.ir.recipes import Terms
from dpsql.core.noise.integer_columns import Floats
from dpsql.core.noise.mechanisms.mechanism import Additive
from dpsql.frontend.aggregates.weighted_sum import chose_itself

if TYPE_CHECKING:
    from dpsql.core.release.noisy import NoisyRelease

_BITS = 256
_STEPS = 16
"""Ends are computed for so many numbers to a scale of the noise; between them that of the lower one holds."""
_FAR = 10
"""So many scales and w above the threshold an end is y - w, but for one part in 20,000 of what may miss."""


def lower_ends(noisy: NoisyRelease, terms: Terms, low: Floats, level: Fraction) -> Floats:
    """The lower ends of such numbers in all rows, at most those that they would have: `low`."""
    measured = noisy.planned.measured
    threshold, place = measured.threshold, measured.node.threshold
    if threshold is None or place is None or not chose_itself(terms, place):
        return low
    if measured.measurements[place].noise != threshold.mechanism:
        return low
    own = noisy.columns[place].floats()
    m = threshold.mechanism
    if not len(own) or own.min() > threshold.threshold + m.half_width(level) + _FAR * m.scale:
        return low
    begin, ends, beyond = _ends(m, threshold.threshold, (1 - level) / 2)
    at = np.clip(np.searchsorted(begin, own, side="right") - 1, 0, len(begin) - 1)
    near = (own >= threshold.threshold) & (own < beyond)
    return np.where(near, np.minimum(low, ends[at] * float(terms[0][1])), low)


@lru_cache(maxsize=64)
def _ends(mechanism: Additive, threshold: int, outside: Fraction) -> tuple[Floats, Floats, int]:
    """Noisy numbers from the threshold on, the least n of each, and the number from which on it is y - w again."""
    tails = dict[int, Fraction]()

    def tail(t: int) -> Fraction:
        if t not in tails:
            tails[t] = mechanism.upper_tail(t, _BITS) if t > 0 else 1 - mechanism.upper_tail(1 - t, _BITS)
        return tails[t]

    def kept(y: int, n: int) -> bool:
        return tail(y - n) > outside * tail(threshold - n)

    width = mechanism.half_width(1 - 2 * outside)
    step = max(1, int(mechanism.scale) // _STEPS)
    begin, ends, y, least = list[int](), list[int](), threshold, 0
    while kept(y, y - width - 1):
        if not kept(y, least):
            low, high = least, max(least, y - width - 1)
            while high - low > 1:
                middle = (low + high) // 2
                low, high = (low, middle) if kept(y, middle) else (middle, high)
            least = high
        begin.append(y)
        ends.append(least)
        y += step
    return _floats(begin or [threshold]), _floats(ends or [threshold]), y if begin else threshold


def _floats(numbers: Sequence[int]) -> Floats:
    return np.array(numbers, dtype=np.float64)
