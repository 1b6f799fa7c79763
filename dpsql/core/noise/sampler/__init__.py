"""Exact draws from operating-system entropy: discrete Laplace and Gaussian noise, and the exponential mechanism.

*Exact*: the distributions are those of the formulas; nothing is truncated and no floating-point number takes part.
`blocks` has the construction of noise and its proof, `exponential_mechanism` those of choices, `exponential_function`
the arithmetic, `entropy` the source of bits.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache

from dpsql.core.noise.integer_columns import Integers
from dpsql.core.noise.sampler.blocks import Blocks
from dpsql.core.noise.sampler.entropy import Kernel
from dpsql.core.noise.sampler.exponential_mechanism import CellChoice, Powers
from dpsql.core.noise.scale import check_scale, check_variance

__all__ = ["choose", "discrete_gaussian", "discrete_laplace"]

_KERNEL = Kernel()

blocks_of = lru_cache(maxsize=512)(Blocks)
"""The tables of noise; those of the last few rates and powers are kept."""


@lru_cache(maxsize=16, typed=True)
def powers(eta: Fraction) -> Powers:
    """The tables of choices; those of the last few eta are kept."""
    return Powers(eta)


def discrete_laplace(scale: Fraction, n: int) -> Integers:
    """n independent draws of Z with P(Z = z) = (1-q)/(1+q)·q^|z| for every integer z, q = e^(-1/scale).

    scale: a rational, 0 < scale ≤ 2^55. Raises ValueError for other scales, floats, or a negative n. Never seeded:
    each draw is fresh operating-system entropy.
    """
    check_scale(scale)
    return blocks_of(1 / scale, 1).draw(n, _KERNEL)


def discrete_gaussian(variance: Fraction, n: int) -> Integers:
    """n independent draws of Z with P(Z = z) ∝ e^(-z²/(2·variance)) for every integer z.

    variance: σ², a rational, 0 < σ² ≤ 2^110; the variance of Z is at most that (Canonne, Kamath & Steinke 2020) and
    within 1e-6 of it from σ = 1 on. Raises ValueError for other variances, floats, or a negative n. Never seeded.
    """
    check_variance(variance)
    return blocks_of(1 / (2 * variance), 2).draw(n, _KERNEL)


def choose(counts: Sequence[int], scores: Sequence[int], eta: Fraction) -> tuple[int, int]:
    """(number of a run, place of a cell in it from 0): each cell with probability ∝ e^(-eta·score).

    Run i has counts[i] ≥ 1 cells of the integer score scores[i], of any size and sign; eta: a rational > 0. Raises
    ValueError for another eta, for no runs, for a run without cells or without a score. Never seeded. The time grows
    with the number of runs; draws with one eta share their tables.
    """
    return CellChoice(counts, scores, powers(eta)).draw(_KERNEL)
