"""How accurately which marginals are measured, so that the answers of a batch vary least in all.

*Source.* Marginals and least squares as in McKenna, Miklau, Hay and Machanavajjhala, HDMM (2018). With θ_A = 1/variance
of a cell of the marginal on columns A, a number with weights w on columns Q has the variance Σ_{B ⊆ Q} ‖P_B w‖²/λ_B,
λ_B = Σ_{A ⊇ B} θ_A · Π_{i ∉ A} n_i: P_B projects onto what is constant over all columns but B and sums to zero over
each of B. What θ costs is Σ θ_A (zCDP), or Σ √θ_A (pure ε): the sensitivity of all marginals is the same.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING

from dpsql.planner.batch.workload import Marginal, Number, subsets

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_STEPS = 400
_LEAST = 1e-3
"""A marginal with a smaller share is not measured, unless a number needs it."""
_ROUNDING = 1e-24
"""A part of the sum of squared weights that is none."""
_GRAIN = 2**20


def residual(weights: NDArray[np.float64], columns: Marginal, onto: Marginal) -> NDArray[np.float64]:
    """Summed over the columns that are not in `onto`, and centered over each that is."""
    gone = tuple(i for i, uid in enumerate(columns) if uid not in onto)
    found = weights.sum(axis=gone) if gone else weights
    for axis in range(len(onto)):
        found = found - found.mean(axis=axis, keepdims=True)
    return found


def volume(columns: Marginal, sizes: Mapping[int, int]) -> int:
    """How many cells a marginal has."""
    return math.prod(sizes[uid] for uid in columns)


def spread(numbers: Sequence[Number], sizes: Mapping[int, int]) -> dict[Marginal, float]:
    """For each B the sum over numbers of ‖P_B w‖²/N, N the cells of all columns together."""
    found: dict[Marginal, float] = {}
    for number in numbers:
        for onto in subsets(number.columns):
            part = residual(number.weights, number.columns, onto)
            rest = tuple(uid for uid in number.columns if uid not in onto)
            scale = volume(rest, sizes) ** 2 * volume(onto, sizes)
            squares = float((part**2).sum())
            if squares > _ROUNDING * float((number.weights**2).sum()) * volume(rest, sizes):
                found[onto] = found.get(onto, 0.0) + squares / scale
    return found


def precision(onto: Marginal, theta: Mapping[Marginal, float], sizes: Mapping[int, int]) -> float:
    """λ_B/N: how accurately the measured marginals say what varies over the columns B alone."""
    return sum(t / volume(m, sizes) for m, t in theta.items() if set(onto) <= set(m))


def total_variance(
    spreads: Mapping[Marginal, float], theta: Mapping[Marginal, float], sizes: Mapping[int, int]
) -> float:
    """The variances of all numbers together."""
    return sum(s / precision(onto, theta, sizes) for onto, s in spreads.items() if s)


def best_shares(
    spreads: Mapping[Marginal, float], wanted: Sequence[Marginal], sizes: Mapping[int, int], gaussian: bool
) -> dict[Marginal, Fraction]:
    """The part of the whole price of each marginal: of ρ for Gaussian noise, else of ε. They add up to 1.

    wanted: those that members read. Their subsets may be measured, too. Descends from several starts; the best counts.
    """
    if not any(spreads.values()):  # every number is 0, whatever the data hold
        return {(): Fraction(1)}
    candidates = sorted({s for m in wanted for s in subsets(m)}, key=lambda m: (len(m), m))
    starts = [dict.fromkeys(candidates, 1.0), dict.fromkeys(sorted(set(wanted)), 1.0)]
    found = [_descended(start, spreads, sizes, gaussian) for start in starts]
    best = min(found, key=lambda shares: total_variance(spreads, _theta(shares, gaussian), sizes))
    kept = {m: s for m, s in best.items() if s >= _LEAST}
    for onto, amount in spreads.items():
        if amount and not any(set(onto) <= set(m) for m in kept):
            needed = max((m for m in best if set(onto) <= set(m)), key=lambda m: best[m])
            kept[needed] = max(best[needed], _LEAST)
    whole = sum(kept.values())
    parts = {m: Fraction(int(s / whole * _GRAIN), _GRAIN) for m, s in kept.items()}
    parts[max(kept, key=lambda m: kept[m])] += 1 - sum(parts.values())
    return parts


def together(spreads: Sequence[Mapping[Marginal, float]]) -> dict[Marginal, float]:
    """The spread of several workloads as one."""
    found: dict[Marginal, float] = {}
    for each in spreads:
        for onto, amount in each.items():
            found[onto] = found.get(onto, 0.0) + amount
    return found


def least_variance(
    spreads: Mapping[Marginal, float], shares: Mapping[Marginal, Fraction], sizes: Mapping[int, int], gaussian: bool
) -> float:
    """The variances of all numbers together, where these shares are of a price of 1, in units of its noise."""
    return total_variance(spreads, _theta({m: float(s) for m, s in shares.items()}, gaussian), sizes)


def divided(variances: Sequence[float], gaussian: bool) -> list[Fraction]:
    """The part of the whole price of each of several tables, so that their variances add up to the least.

    variances: of the numbers of each, at a price of 1. At a part p they are V/p (zCDP) or V/p² (pure ε), so the best
    parts go with √V or ∛V. They add up to 1; a table of no variance has none.
    """
    wishes = [v ** (1 / 2 if gaussian else 1 / 3) for v in variances]
    whole = sum(wishes)
    parts = [Fraction(max(1, int(w / whole * _GRAIN)) if w else 0, _GRAIN) for w in wishes]
    parts[wishes.index(max(wishes))] += 1 - sum(parts)
    return parts


def whole_variance(variances: Sequence[float], gaussian: bool) -> float:
    """The variances of all numbers at a price of 1 that is `divided` between the tables."""
    power = 2 if gaussian else 3
    return float(sum(v ** (1 / power) for v in variances) ** power)


def _theta(shares: Mapping[Marginal, float], gaussian: bool) -> dict[Marginal, float]:
    """In proportion to 1/variance: a ρ is, and the square of an ε."""
    return {m: s if gaussian else s**2 for m, s in shares.items()}


def _descended(
    start: Mapping[Marginal, float], spreads: Mapping[Marginal, float], sizes: Mapping[int, int], gaussian: bool
) -> dict[Marginal, float]:
    """Multiplies each share by a root of what a little more of it would save, until all would save the same."""
    shares = {m: s / sum(start.values()) for m, s in start.items()}
    volumes = {m: volume(m, sizes) for m in shares}
    above = {b: [m for m in shares if set(b) <= set(m)] for b, s in spreads.items() if s}
    below = {m: [b for b in above if set(b) <= set(m)] for m in shares}
    for _ in range(_STEPS):
        precisions = {m: t / volumes[m] for m, t in _theta(shares, gaussian).items()}
        slopes = {b: spreads[b] / sum([precisions.get(m, 0.0) for m in over]) ** 2 for b, over in above.items()}
        saved = {m: sum([slopes[b] for b in below[m]]) / volumes[m] for m in shares}
        if gaussian:
            shares = {m: s * math.sqrt(saved[m]) for m, s in shares.items()}
        else:
            shares = {m: s * (saved[m] * s) ** (1 / 3) for m, s in shares.items()}
        whole = sum(shares.values())
        shares = {m: s / whole for m, s in shares.items() if s / whole > 1e-12}
    return shares
