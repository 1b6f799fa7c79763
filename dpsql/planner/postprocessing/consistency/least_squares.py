"""Least squares over noisy numbers of several sets of groups, after which every total is the sum of its parts.

Of x, what the groups of the finest set hold, each set A has measured y_A = Σ x over its groups, with noise of variance
v_A. The estimate minimises Σ_A |y_A - Σ x|² / v_A; it is the best that is linear and without bias (Gauss-Markov), and
arithmetic over noisy numbers: no privacy rests on it.

Where each set refines the one before, two passes find it (Hay, Rastogi, Miklau, Suciu 2010): upwards each total becomes
the mean of its own number and the sum of its parts', weighted by precision; downwards what then is missing is divided
among the parts in proportion to their variances. Else, where the groups are all combinations of some lists, the
estimate falls apart into what varies over each subset B of the lists alone, of which each A ⊇ B says something
(McKenna, Miklau, Hay, Machanavajjhala 2018).

Numbers are columns of arrays, of Fractions or of floats: one column for a result, the identity for what each noise
counts for in each number.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import chain, combinations, pairwise
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpsql.planner.postprocessing.consistency.groupings import Groupings, Places

Numbers = NDArray[Any]
"""Rows are groups."""


def estimates(groupings: Groupings, variances: Sequence[Fraction], noisy: Sequence[Numbers]) -> list[Numbers]:
    """The least-squares estimates of all sets. variances: of the noise of each; only their ratios matter.

    Raises NoTotals where the sets neither refine each other nor are combinations of lists.
    """
    of_type: Sequence[Any] = variances if noisy[0].dtype == object else list(map(float, variances))
    if groupings.is_chain:
        return _in_two_passes(groupings, of_type, noisy)
    return _by_what_varies(groupings, of_type, noisy)


def _in_two_passes(groupings: Groupings, variances: Sequence[Any], noisy: Sequence[Numbers]) -> list[Numbers]:
    order = groupings.by_size
    means, spreads = {}, {}
    for n, at in reversed(list(enumerate(order))):
        own, v = noisy[at], variances[at]
        if n == len(order) - 1:
            means[at], spreads[at] = own, np.full((len(own), 1), v, dtype=own.dtype)
            continue
        below, up = order[n + 1], groupings.within(order[n + 1], at)
        total, spread = _added(means[below], up, len(own)), _added(spreads[below], up, len(own))
        weight = v / (v + spread)  # of the parts, which without spread is 1
        means[at], spreads[at] = own + weight * (total - own), weight * spread
    found = {order[0]: means[order[0]]}
    for above, at in pairwise(order):
        up = groupings.within(at, above)
        missing = found[above] - _added(means[at], up, len(found[above]))
        spread = _added(spreads[at], up, len(found[above]))
        share = spreads[at] / np.where(spread == 0, 1, spread)[up]
        found[at] = np.where((up >= 0)[:, None], means[at] + share * missing[up], means[at] * 0)
    return [found[at] for at in range(len(noisy))]


def _added(values: Numbers, into: Places, height: int) -> Numbers:
    """Sums of the groups that belong together; what belongs nowhere holds nothing."""
    found = np.zeros((height, values.shape[1]), dtype=values.dtype)
    there = into >= 0
    np.add.at(found, into[there], values[there])
    return found


def _by_what_varies(groupings: Groupings, variances: Sequence[Any], noisy: Sequence[Numbers]) -> list[Numbers]:
    sizes = [int(numbers.max(initial=-1)) + 1 for numbers in groupings.product]
    parts = range(len(sizes))
    shaped = [_as_tensor(groupings, at, sizes, noisy[at]) for at in range(len(noisy))]
    columns = noisy[0].shape[1]

    def volume(chosen: Sequence[int]) -> int:
        return prod(sizes[p] for p in chosen)

    varying: dict[tuple[int, ...], Numbers] = {}
    for onto in chain.from_iterable(combinations(parts, n) for n in range(len(sizes) + 1)):
        reading = [at for at in range(len(noisy)) if all(groupings.has_part(at, p) for p in onto)]
        if not reading:
            continue
        precision = sum(volume([p for p in parts if not groupings.has_part(at, p)]) / variances[at] for at in reading)
        total = sum(_centered(shaped[at], onto, sizes) / variances[at] for at in reading)
        varying[onto] = total / precision
    found = []
    for at in range(len(noisy)):
        own = [p for p in parts if groupings.has_part(at, p)]
        rest = volume([p for p in parts if p not in own])
        subsets = chain.from_iterable(combinations(own, n) for n in range(len(own) + 1))
        total = sum(varying[onto] for onto in subsets) * rest
        shape = tuple(sizes[p] if p in own else 1 for p in parts)
        found.append(_as_rows(groupings, at, np.broadcast_to(total, (*shape, columns)), noisy[at]))
    return found


def _as_tensor(groupings: Groupings, at: int, sizes: Sequence[int], values: Numbers) -> Numbers:
    """With an axis for each part, of length 1 where the set does not have it."""
    places = _cells(groupings, at)
    shape = tuple(size if groupings.has_part(at, p) else 1 for p, size in enumerate(sizes))
    found = np.zeros((*shape, values.shape[1]), dtype=values.dtype)
    found[places] = values[groupings.group_of[at]]
    return found


def _as_rows(groupings: Groupings, at: int, tensor: Numbers, like: Numbers) -> Numbers:
    found = np.zeros_like(like)
    found[groupings.group_of[at]] = tensor[_cells(groupings, at)]
    return found


def _cells(groupings: Groupings, at: int) -> tuple[Places, ...]:
    """Where each group of the finest set stands in the tensor of a set."""
    own = groupings.product
    return tuple(numbers if groupings.has_part(at, p) else np.zeros_like(numbers) for p, numbers in enumerate(own))


def _centered(values: Numbers, onto: Sequence[int], sizes: Sequence[int]) -> Numbers:
    """The mean over the other parts, less the means over each of these."""
    for axis in range(len(sizes)):
        one = Fraction(1) if values.dtype == object else 1.0
        mean = values.sum(axis=axis, keepdims=True) * (one / values.shape[axis])
        values = values - mean if axis in onto else mean
    return values
