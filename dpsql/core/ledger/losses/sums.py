"""What one account has spent: exact sums between cut points, made when they are asked for.

*Claim.* `spent` is, for each part, the largest sum of what entries lose on any of the days. *Why.* Losses are integers:
multiples of 1/GRID, rounded up where they are none. What counts in every period is one sum; what counts in some is two
updates of differences, of which running sums are the sums between two cut points; once made, these are kept up. *When
it would be false.* If a loss were negative: then days outside all spans would not be the cheapest; given back
is what was added. *Tested by*
tests/core/ledger/test_ledger_contract.py, tests/core/ledger/test_regions.py (against dictionaries by day).
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from fractions import Fraction
from itertools import accumulate

from dpsql.core.ledger.losses.regions import BEGIN, END, Region, between, dearest
from dpsql.core.privacy_loss import GRID, NO_LOSS, PrivacyLoss

Parts = tuple[int, int, int]
"""ε, δ and ρ, in 1/GRID."""
Stretch = tuple[int, int, Parts]


class LossSums:
    """Of one account of one unit."""

    __slots__ = ("_charged", "_cuts", "_everywhere", "_runs", "_steps")

    def __init__(self) -> None:
        self._everywhere: Parts = (0, 0, 0)
        self._charged: Parts = (0, 0, 0)
        self._steps: dict[int, list[int]] = {}  # the first days on which a sum changes, and by how much: ε, δ and ρ
        self._cuts: list[int] = []  # these days in order, and the running sums from each on: once somebody has asked
        self._runs: tuple[list[int], list[int], list[int]] | None = None

    def add_everywhere(self, parts: Parts) -> None:
        """Count an entry that loses the same in every period."""
        self._everywhere, self._charged = _plus(self._everywhere, parts), _plus(self._charged, parts)

    def add_anywhere(self, region: Region) -> None:
        """Count an entry that loses this by period, or in every one."""
        parts = parts_of(dearest(region))
        if len(region) == 1 and region[0].first is region[0].last is None:
            self.add_everywhere(parts)
        else:
            self.add(region, parts)

    def add(self, region: Region, most: Parts) -> None:
        """Count an entry that loses this by period. most: in its dearest one."""
        self.add_stretches(stretches_of(region, most), most)

    def add_stretches(self, stretches: Sequence[Stretch], most: Parts) -> None:
        """The same, for several accounts that count it."""
        self._charged = _plus(self._charged, most)
        steps = self._steps
        for start, stop, (epsilon, delta, rho) in stretches:
            step = steps.get(start) or self._cut(start)
            step[0] += epsilon
            step[1] += delta
            step[2] += rho
            if stop < END:
                step = steps.get(stop) or self._cut(stop)
                step[0] -= epsilon
                step[1] -= delta
                step[2] -= rho
            if self._runs is not None:
                first, behind = bisect_left(self._cuts, start), bisect_left(self._cuts, stop)
                for run, part in zip(self._runs, (epsilon, delta, rho), strict=True):
                    if part:
                        for at in range(first, behind):
                            run[at] += part

    def _cut(self, day: int) -> list[int]:
        """A sum changes on one more day: by nothing yet."""
        step = self._steps[day] = [0, 0, 0]
        if self._runs is not None:
            at = bisect_left(self._cuts, day)
            self._cuts.insert(at, day)
            for run in self._runs:
                run.insert(at, run[at - 1] if at else 0)
        return step

    def _summed(self) -> tuple[list[int], list[int], list[int]]:
        if self._runs is None:
            self._cuts = sorted(self._steps)
            steps = [self._steps[day] for day in self._cuts]
            epsilon, delta, rho = (list(accumulate(step[part] for step in steps)) for part in range(3))
            self._runs = epsilon, delta, rho
        return self._runs

    def give_back(self, region: Region) -> None:
        """Take away a part of what an entry has lost by period: that nobody will measure it is known now."""
        for span in region:
            start, stop = span.bounds
            for day, sign in ((start, -1), (stop, 1)):
                if day < END:
                    step = self._steps.setdefault(day, [0, 0, 0])
                    for place, part in enumerate(parts_of(span.loss)):
                        step[place] += sign * part
        self._runs = None

    def spent(self, start: int, stop: int) -> PrivacyLoss:
        """The most that any day from `start` to before `stop` has lost, part by part."""
        if not self._steps:
            return _loss(self._everywhere)
        runs = self._summed()
        # The sum of a day is that of the last cut before it, or nothing.
        first, behind = max(bisect_right(self._cuts, start) - 1, 0), bisect_left(self._cuts, stop)
        epsilon, delta, rho = (max(run[first:behind], default=0) for run in runs)
        return _loss(_plus(self._everywhere, (epsilon, delta, rho)))

    def by_day(self) -> Region:
        """What each day has lost."""
        runs = self._summed()
        starts = [BEGIN, *self._cuts]
        losses = [self._everywhere, *(_plus(self._everywhere, (e, d, r)) for e, d, r in zip(*runs, strict=True))]
        found: list[tuple[int, int, Parts]] = []
        for start, stop, parts in zip(starts, [*starts[1:], END], losses, strict=True):
            if found and found[-1][1:] == (start, parts):
                found[-1] = (found[-1][0], stop, parts)
            elif any(parts) and start < stop:
                found.append((start, stop, parts))
        return tuple(between(start, stop, _loss(parts)) for start, stop, parts in found)

    @property
    def charged(self) -> PrivacyLoss:
        """The sum over entries of what each loses in its dearest period."""
        return _loss(self._charged)


def stretches_of(region: Region, most: Parts) -> list[Stretch]:
    """First day and the one behind the last of each of its spans, and what they lose. most: in the dearest one."""
    if len(region) == 1:
        return [(*region[0].bounds, most)]
    return [(*span.bounds, parts_of(span.loss)) for span in region]


def parts_of(loss: PrivacyLoss) -> Parts:
    """A loss in 1/GRID."""
    return _units(loss.epsilon), _units(loss.delta), _units(loss.rho)


def _units(part: Fraction) -> int:
    above, below = part.numerator, part.denominator
    return -(-above * GRID // below) if above else 0


def _plus(some: Parts, others: Parts) -> Parts:
    return some[0] + others[0], some[1] + others[1], some[2] + others[2]


def _loss(parts: Parts) -> PrivacyLoss:
    epsilon, delta, rho = (Fraction(part, GRID) if part else NO_LOSS.epsilon for part in parts)
    return PrivacyLoss(epsilon, delta, rho)
