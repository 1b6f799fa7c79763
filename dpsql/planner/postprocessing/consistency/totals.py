"""Releases whose totals are made the sums of their parts, and what each noise counts for in them then."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from math import floor
from typing import Any

import numpy as np

from dpsql.core.noise.integer_columns import Floats, Integers
from dpsql.core.noise.mechanisms import Additive
from dpsql.core.release.noisy import NoisyRelease
from dpsql.planner.postprocessing.consistency.groupings import Groupings, Positions
from dpsql.planner.postprocessing.consistency.least_squares import Numbers, estimates

MOST_NUMBERS = 500
"""Numbers of one component, of all sets together, of which is written out what each noise counts for in each."""
_KNOWN = Fraction(1, 1 << 60)
"""Variance of what has no noise, as a part of the least that has."""
_GRAIN = 1 << 20


@dataclass(frozen=True, slots=True)
class Totals:
    """Releases that count the same rows in different groups.

    places: of them among the releases of the plan. positions: of each, which columns of the finest one's keys its keys
    are. finest: which of them has all columns. components: of each number that adds up, its place in each release.
    """

    places: tuple[int, ...]
    positions: tuple[Positions, ...]
    finest: int
    components: tuple[tuple[int, ...], ...]


@dataclass(frozen=True)
class Reconciled:
    """One component of all its releases, of which every total is the sum of its parts.

    at: (release, component) of each set. numbers: integers of each set, multiples of the component's weight; estimates:
    what they were before they were made whole. drawn: before anything.
    """

    at: tuple[tuple[int, int], ...]
    groupings: Groupings
    variances: tuple[Fraction, ...]
    numbers: tuple[Integers, ...] = field(repr=False)
    estimates: tuple[Floats, ...] = field(repr=False)
    drawn: tuple[Integers, ...] = field(repr=False)

    @property
    def heights(self) -> list[int]:
        """How many groups each set has."""
        return [len(keys) for keys in self.groupings.keys]

    @cached_property
    def coefficients(self) -> Floats:
        """What each noise (columns) counts for in each number (rows), set by set, before these are made whole."""
        ends = np.cumsum(self.heights)
        identity = np.split(np.eye(int(ends[-1])), ends[:-1])
        found: Floats = np.concatenate(estimates(self.groupings, self.variances, identity))
        return found

    @property
    def is_written_out(self) -> bool:
        """Whether there are few enough numbers for `coefficients`."""
        return sum(self.heights) <= MOST_NUMBERS

    def first_row(self, place: int) -> int:
        """Of the numbers of a set among those of all."""
        return sum(self.heights[:place])


Consistent = Mapping[tuple[int, int], Reconciled]
"""(release, component) → the numbers it is reconciled with."""


def reconciled(totals: Sequence[Totals], noisy: Sequence[NoisyRelease]) -> Consistent:
    """Each component that adds up, with the numbers that it has then. Public arithmetic over noisy numbers."""
    found: dict[tuple[int, int], Reconciled] = {}
    for each in totals:
        groupings = Groupings(each.positions, tuple(noisy[place].keys for place in each.places), each.finest)
        for component in each.components:
            at = tuple(zip(each.places, component, strict=True))
            found |= dict.fromkeys(at, _component(groupings, at, noisy))
    return found


def _component(groupings: Groupings, at: tuple[tuple[int, int], ...], noisy: Sequence[NoisyRelease]) -> Reconciled:
    measured = [noisy[release].planned.measured.measurements[place] for release, place in at]
    spreads = [
        Fraction(m.noise.variance()) if m.known is None and isinstance(m.mechanism, Additive) else Fraction(0)
        for m in measured
    ]
    least = min((v for v in spreads if v), default=Fraction(1))
    variances = tuple(Fraction(round(v / least * _GRAIN), _GRAIN) if v else _KNOWN for v in spreads)
    weight = measured[0].component.weight
    columns = [_fractions(noisy[release].columns[place], weight) for release, place in at]
    found = estimates(groupings, variances, columns)
    numbers = tuple(Integers.of(x * weight for x in own) for own in whole_numbers(groupings, found))
    drawn = tuple(noisy[release].columns[place] for release, place in at)
    floats = tuple((x[:, 0] * weight).astype(np.float64) for x in found)
    return Reconciled(at, groupings, variances, numbers, floats, drawn)


def _fractions(column: Integers, weight: int) -> Numbers:
    found = np.empty((len(column), 1), dtype=object)
    found[:, 0] = [Fraction(x, weight) for x in column]
    return found


def with_totals(place: int, noisy: NoisyRelease, consistent: Consistent) -> NoisyRelease:
    """A release with the numbers that it has once its totals are reconciled."""
    columns = list(noisy.columns)
    for i in range(len(columns)):
        own = consistent.get((place, i))
        if own is not None:
            columns[i] = own.numbers[own.at.index((place, i))]
    return replace(noisy, columns=tuple(columns))


def whole_numbers(groupings: Groupings, estimates: Sequence[Numbers]) -> list[list[int]]:
    """An integer for each estimate, of which every total is the sum of its parts.

    Along a chain of sets that ends with the finest, the parts of a total are rounded down, and what is missing goes to
    those that lost most; a number moves by less than 2 there. Numbers of other sets are sums of the finest set's.
    """
    order = groupings.chain()
    found: dict[int, list[int]] = {order[0]: [floor(x + Fraction(1, 2)) for x in _column(estimates[order[0]])]}
    for above, at in pairwise(order):
        found[at] = _divided(found[above], groupings.within(at, above).tolist(), _column(estimates[at]))
    finest = np.array(found[groupings.finest], dtype=object)
    for at in range(len(estimates)):
        if at not in found:
            sums: Any = np.zeros(len(estimates[at]), dtype=object)
            np.add.at(sums, groupings.group_of[at], finest)
            found[at] = sums.tolist()
    return [found[at] for at in range(len(estimates))]


def _column(estimates: Numbers) -> list[Fraction]:
    return [Fraction(x) for x in estimates[:, 0].tolist()]


def _divided(totals: Sequence[int], of: Sequence[int], parts: Sequence[Fraction]) -> list[int]:
    """The parts as integers whose sums are the totals. of: the total of each part; -1: of none, and it is 0."""
    found = [floor(part) if total >= 0 else 0 for part, total in zip(parts, of, strict=True)]
    members: list[list[int]] = [[] for _ in totals]
    for place, total in enumerate(of):
        if total >= 0:
            members[total].append(place)
    for total, own in zip(totals, members, strict=True):
        if not own:
            continue
        each, more = divmod(total - sum(found[place] for place in own), len(own))
        ahead = sorted(own, key=lambda place: found[place] - parts[place])  # of equal ones in the order of keys
        for n, place in enumerate(ahead):
            found[place] += each + (n < more)
    return found
