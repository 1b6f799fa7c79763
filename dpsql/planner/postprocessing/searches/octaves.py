"""Octaves: how many units have totals of which size, and the limit or bounds that this speaks for.

A search is a release like any other. Its noisy numbers are public, and so is whatever is computed from them: no privacy
rests on this file, the rules decide how useful an answer is. They are exact nevertheless, so that equal numbers give
equal limits on every machine. The next release is clipped at the limit, whatever it is, and its noise follows it.

The count of key b is that of units with 2^(b-1) < total ≤ 2^b; key 0 is a total of 1, and a total of 0 is in no octave.
Values have cells on both sides: key 0 is the value 0, and ±(b+1) are values whose size is in octave b.

>>> from dpsql.core.noise.mechanisms import DiscreteLaplace
>>> counts = [0] * 63
>>> counts[3:6] = 9_000, 11_000, 700  # totals of 5…8, of 9…16 and of 17…32
>>> search = Octaves("s", "COUNT(*)", "customer", tuple(counts), DiscreteLaplace(Fraction(5)), 63)
>>> search.threshold
52
>>> limit_of_sum(search, Fraction(5, 3)), limit_of_sum(search, Fraction(50_000))
(32, 16)
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

from dpsql.core.noise.mechanisms import Additive
from dpsql.core.noise.scale import LARGEST_SCALE
from dpsql.core.numbers.enclosures import log
from dpsql.core.numbers.interval import Exact
from dpsql.core.numbers.normal import root
from dpsql.core.privacy_loss import NO_LOSS, PrivacyLoss

MOST = 62
"""The highest octave: totals are saturated at ±2^62 before they are counted."""
_RARE = 500
"""In all empty octaves of a query together, noise reaches the threshold once in so many queries at most."""
_SOMETIMES = 10
"""The same where nothing is seen and a declared cap stands: being wrong costs no more noise than the cap does."""
_NEXT = 10
"""Of the octave above the highest that is seen: twice the noise is the most that its noise can cost."""
_SLOWLY = 3
"""Tails that fall by less than this from one octave to the next hold about as much beyond as in sight."""
_FURTHER = 3
"""Octaves of values beyond those seen, for quantiles: see `range_of_quantiles`."""
_MEAN_GAUSSIAN = Fraction(8, 10)
"""E|Z|/σ of Gaussian noise; that of Laplace noise is its scale."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """What of noisy octaves is taken for real.

    counts: key → count; of totals all that are positive up to the highest octave seen. highest: that octave; None:
    nothing is seen. is_weak: nothing reached the threshold, so that what is seen may be noise once in ten queries.
    """

    counts: dict[int, int]
    highest: int | None
    is_weak: bool


@dataclass(frozen=True, slots=True)
class Octaves:
    """The noisy numbers of one search.

    label: of the search, by which its limit stands in the next plan. what: the SQL whose totals are counted, or the
        expression whose values are. unit: the privacy unit.
    counts: noisy, of the keys first, first + 1, …; each unit counts as `weight`. first: 0 for totals, -63 for values.
    noise: of each count. cells: the counts of all searches of the query together.
    at_most: the declared cap, in integer units, which the limit does not exceed; where larger totals are counted with
        it, the last octave ends there. grid: what an integer unit is in SQL.
    roots: a total is the root of the sum of the squares of a unit's totals by group.
    ordered: the values are ordered, and not added up.
    """

    label: str
    what: str
    unit: str
    counts: tuple[int, ...]
    noise: Additive
    cells: int
    first: int = 0
    weight: int = 1
    at_most: int | None = None
    grid: Fraction = Fraction(1)
    roots: bool = False
    ordered: bool = False

    @property
    def signed(self) -> bool:
        """Whether values are counted, by sign, and not totals."""
        return self.first < 0

    @property
    def keys(self) -> range:
        """One for each count."""
        return range(self.first, self.first + len(self.counts))

    @property
    def threshold(self) -> int:
        """A count from here on is taken for real. P(some empty octave of the query reaches it) ≤ 1/500."""
        return seen_from(self.noise, self.cells)

    def _reached(self, odds: int) -> int:
        return reached(self.noise, odds)

    @property
    def next_threshold(self) -> int:
        """What an empty octave reaches with P ≤ 1/20: by one count more, half of what it reaches with 1/10.

        Laplace: 1 + q ≥ 2√q, so that P(Z ≥ t) ≤ q^(t-1/2)/2. Gaussian: P(Z ≥ t) ≤ P(N ≥ t - 1) ≤ e^(-(t-1)²/2σ²)/2.
        """
        return self._reached(_NEXT) + 1

    @property
    def evidence(self) -> Evidence:
        """What is taken for real: counts from the threshold on; of totals the octaves above those too, one at a time,
        whose noise would seldom be as large, and all positive counts below.
        """
        found = self._from(self.threshold)
        is_weak = not found
        if is_weak and self.at_most is not None and not self.signed:
            found = self._from(self._reached(_SOMETIMES * self.cells))
        if not found or self.signed:
            return Evidence(found, max(found, default=None), is_weak)
        highest = max(found)
        while highest < self.keys[-1] and self.counts[highest + 1] >= self.next_threshold:
            highest += 1
        return Evidence({key: n for key, n in self._from(1).items() if key <= highest}, highest, is_weak)

    def _from(self, least: int) -> dict[int, int]:
        return {key: count for key, count in zip(self.keys, self.counts, strict=True) if count >= least}

    @property
    def seen(self) -> dict[int, int]:
        """Key → count, of the counts that are taken for real."""
        return self.evidence.counts

    @property
    def goes_on(self) -> bool:
        """Whether totals thin out so slowly that the next octave, falling as the last two do, might well not be seen.

        Above that one there may then be as much as below it. Where many units are in the highest octave that is seen,
        the one above, which is not, shows that they end. Values do not add up.
        """
        highest = self.evidence.highest
        if not highest or self.signed:
            return False
        last, before = self.counts[highest], max(1, self.counts[highest - 1])
        falls_slowly = before <= _SLOWLY * last
        return falls_slowly and last * min(last, before) < 2 * self.next_threshold * before

    def ends(self, key: int) -> tuple[int, int]:
        """(low, high) of an octave in integer units: what is in it is above low and at most high, for negative values
        the other way round. The cells of a value's smallest sizes begin at 0.
        """
        if not self.signed:
            return (1 << key - 1 if key else 0), self._capped(key) if len(self.counts) <= MOST else 1 << key
        b = abs(key) - 1
        low, high = (1 << b - 1 if b >= 2 else 0), (1 << b if key else 0)
        return (low, high) if key >= 0 else (-high, -low)

    def _capped(self, b: int) -> int:
        return 1 << b if self.at_most is None else min(1 << b, self.at_most)


@dataclass(frozen=True, slots=True)
class SearchResult:
    """What came of a search. limit: in integer units, (low, high) of values; None: nothing was found. loss: what the
    octaves cost when they were drawn. drawn: the id of their noise, in the ledger and among stored answers. by: the
    search of what is at least as large for every unit, where the limit is its: it is smaller, or alone is found.
    """

    octaves: Octaves
    limit: int | tuple[int, int] | None
    loss: PrivacyLoss = NO_LOSS
    drawn: str = ""
    by: SearchResult | None = None


@dataclass(frozen=True, slots=True)
class WhatIsCut:
    """What a limit cuts of a total, for a count or sum of what is never negative: at most, for each octave, so many of
    its units times so much; and nobody is beyond `reach`, in integer units, unless no noisy count could tell.

    octaves: that it is read from. each: key → integer units for each unit of that octave, the worst of those in it.
    """

    octaves: Octaves
    each: dict[int, int]
    reach: int


def what_is_cut(found: SearchResult) -> WhatIsCut | None:
    """Of a limit on totals that was found; None where the octaves do not tell: nothing or too little was seen, what
    they show may go on beyond them, or larger totals are counted in the last of them.

    All octaves count up to the one above the highest that was seen, each unit at its octave's upper end.
    """
    own = found.octaves
    if own.evidence.highest is None and found.by is not None:
        own = found.by.octaves
    seen = own.evidence
    if not isinstance(found.limit, int) or own.signed or seen.highest is None or seen.is_weak or own.goes_on:
        return None
    top = seen.highest + 1
    if top >= own.keys[-1]:
        return None
    return WhatIsCut(own, {k: (1 << k) - found.limit for k in range(top + 1) if 1 << k > found.limit}, 1 << top)


def limit_of_sum(octaves: Octaves, noise_per_unit: Fraction, largest_k: int = MOST) -> int | None:
    """The limit with the least error of a sum or count: what is cut, and the noise, which grows with the limit.

    What is divided by a count takes that count's: what it cuts changes the weights of an average.

    Cutting at 2^b takes from each unit in octave i > b about ¾·2^i - 2^b. Of two that cost the same it is the smaller
    one, and it is never below the octave of the median unit: where noise drowns everything the least cost is at 1.
    noise_per_unit: of the sum, over all groups, for each integer unit of the limit. largest_k: the highest octave whose
    limit can be measured. None: nothing found.
    """
    seen = octaves.seen
    middle = _median(seen)
    if middle is None:  # nothing found: the declared cap, if there is one
        return None if octaves.at_most is None else min(octaves.at_most, 1 << largest_k)

    def cost(b: int) -> Fraction:
        most = octaves._capped(b)
        cut = sum(n * max(0, 2 * sum(octaves.ends(i)) - 4 * most) for i, n in seen.items())
        return cut + 4 * most * noise_per_unit * octaves.weight

    candidates = range(min(middle, largest_k), min(octaves.keys[-1], largest_k) + 1)
    return octaves._capped(min(candidates, key=cost))


def range_of_values(octaves: Octaves, low: int | None = None, high: int | None = None) -> tuple[int, int] | None:
    """From the lowest to the highest cell that is taken for real; (low, high) in integer units, low < high.

    low, high: declared ends, which the range does not leave. None: nothing found, and not both ends are declared.
    """
    return _range(octaves, low, high, 0)


def range_of_quantiles(octaves: Octaves, low: int | None = None, high: int | None = None) -> tuple[int, int] | None:
    """The same for what is ordered: three octaves more on both sides, not across 0 where no value was seen.

    What lies outside counts as the nearest end, which must not move a quantile; wide bounds cost little, as cells grow
    with values. In an octave that is not seen there may be as many units as the threshold. Of tails that halve from
    octave to octave less than an eighth of that is left beyond three: fewer than the quantile may be off by its choice.
    """
    return _range(octaves, low, high, _FURTHER)


def _range(octaves: Octaves, low: int | None, high: int | None, further: int) -> tuple[int, int] | None:
    """further: octaves beyond those seen."""
    inside = []
    for key in octaves.seen:
        lower, upper = octaves.ends(key)
        if (low is None or upper >= low) and (high is None or lower <= high):
            inside.append(key)
    if inside:
        first, last = min(inside), max(inside)
        first = max(first - further, octaves.keys[0]) if first < 0 else max(0, first - further)
        last = min(last + further, octaves.keys[-1]) if last > 0 else min(0, last + further)
        lower, upper = octaves.ends(first)[0], octaves.ends(last)[1]
        ends = lower if low is None else max(low, lower), upper if high is None else min(high, upper)
    elif low is None or high is None:
        return None
    else:
        ends = low, high
    if ends[0] < ends[1]:
        return ends
    return (ends[0] - 1, ends[1]) if ends[1] == high else (ends[0], ends[1] + 1)


def cut_part(octaves: Octaves, limit: int) -> tuple[int, int]:
    """About how much the limit takes away, from low to high, in integer units: shown beside, never added to an answer.

    Units in octaves that are not taken for real are not in it.
    """
    parts = [(n, *octaves.ends(key)) for key, n in octaves.seen.items()]
    least = sum(n * max(0, low - limit) for n, low, _ in parts)
    return least // octaves.weight, sum(n * max(0, high - limit) for n, _, high in parts) // octaves.weight


def noise_per_unit(noise: Additive, most: int, groups: int = 1) -> Fraction:
    """The mean size of the noise in all groups together, for each unit of the limit.

    noise: as it is drawn for the limit `most`, both in the same units. groups: how many numbers are released: public
    keys, or `groups_of_private_keys`; never a number of rows that were fetched.
    """
    return groups * (noise.laplace or _MEAN_GAUSSIAN * noise.gaussian) / most


def largest_octave(noise: Additive, most: int, weighed: Callable[[int], int]) -> int:
    """The highest octave whose limit has noise of a size that is accepted, and so has that of each below.

    noise, most: as in `noise_per_unit`, of a limit of 1, whose noise is. weighed: a limit in those units, where it is
    not less than a smaller one.
    """
    room = LARGEST_SCALE * most / noise.scale
    return next((k for k in range(MOST, 0, -1) if weighed(1 << k) <= room), 0)


def groups_of_private_keys(octaves: Octaves, most: int, threshold: int) -> int:
    """About the largest number of private keys that can be released: ⌊most·units/threshold⌋, and at least 1.

    octaves: of the search whose limit is to be found. most: groups that a unit counts in.
    """
    return max(1, most * sum(octaves.seen.values()) // (threshold * octaves.weight))


def _median(seen: dict[int, int]) -> int | None:
    """The lowest octave above which is at most half of the units."""
    above, half = sum(seen.values()), Fraction(sum(seen.values()), 2)
    for key in sorted(seen):
        above -= seen[key]
        if above <= half:
            return key
    return None


def seen_from(noise: Additive, cells: int) -> int:
    """The count from which on an octave is taken for real, whatever the others hold."""
    return reached(noise, _RARE * cells)


def reached(noise: Additive, odds: int) -> int:
    """What noise reaches once in so many counts at most.

    Laplace: P(Z ≥ t) = q^t/(1+q) with q^t = e^(-t/scale) ≤ 1/odds for t ≥ scale·ln(odds). Gaussian:
    P(Z ≥ t) ≤ e^(-t²/2σ²) ≤ 1/odds for t ≥ σ·√(2·ln(odds)). Both rounded up.
    """
    logarithm = _up(log(Fraction(odds), 64).hi)
    if noise.laplace:
        return math.ceil(noise.laplace * logarithm)
    return math.ceil(noise.gaussian * _up(root(2 * logarithm).hi))


def _up(end: Exact | None) -> Fraction:
    assert end is not None
    return Fraction(end)
