"""Databases in which one unit turns a quantile around: where the values of the others lie decides how much it tells.

Of p = a/b let k·a units hold a low value, b - a a middle one, and (k - 1)·(b - a) a high one. Cells between the low and
the middle value score 0, those between the middle and the high one b·(b - a). One unit more at the high value, and
the former score a, the latter a less: their odds change by 2η·a, which is all that is stated if a ≥ b - a. If not, the
mirror image does. The fewer cells the former are, the closer one of them comes to this loss, and the rarer it is.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction

from dpsql.core.ir.components import QuantileChoice
from dpsql.core.measures.quantile import cells_of
from dpsql.faces.audit.curves import own_delta
from dpsql.faces.audit.exact import NeighbourPair
from dpsql.faces.audit.neighbouring_databases import CandidatePair, ColumnChoice, Profile
from dpsql.faces.audit.pair_search import PairSearch, Target
from dpsql.faces.audit.trials import claim

_MOST_ROWS = 3000
_MOST_VALUES = 24
_MIDDLES = 3
_FEW = 0.1
"""The part of all cells that one of them should come from: an event of theirs is certified best."""


def ranked(search: PairSearch, target: Target, pair: NeighbourPair, units: int) -> NeighbourPair:
    """The pair, or one whose quantiles tell more. units: so many others have to be there."""
    best, most = pair, _told(search, target, pair)
    for c, at, i in _quantiles(search, target):
        for candidate in _arranged(search, pair.candidate, c, (at, i), units):
            found = search.look(candidate)
            told = 0.0 if found is None else _told(search, target, found)
            if found is not None and told > most:
                best, most = found, told
    return best


def _quantiles(search: PairSearch, target: Target) -> list[tuple[QuantileChoice, int, int]]:
    """The different quantiles of a target, each with its release and place."""
    wanted = search.targets() if target is None else [target]
    parts = ((search.plan.releases[at].measured.measurements[i].component, at, i) for at, i in wanted)
    return [(c, at, i) for c, at, i in parts if isinstance(c, QuantileChoice)]


def _told(search: PairSearch, target: Target, pair: NeighbourPair) -> float:
    """The δ of the stated choices and noise at half of the ε that is claimed."""
    claimed = claim(search.plan, pair, target)
    return own_delta(claimed.moved, (claimed.epsilon or math.sqrt(2 * claimed.rho)) / 2)


def _arranged(
    search: PairSearch, now: CandidatePair, c: QuantileChoice, place: tuple[int, int], units: int
) -> Iterator[CandidatePair]:
    """The candidate with others' values around those of the units that differ."""
    p, cells = c.p, _cells_of_values(search, now, c, place)
    if len(set(cells.values())) < 3:
        return
    up = 2 * p >= 1
    end, far = (min, max) if up else (max, min)
    low, high = end(cells, key=cells.__getitem__), far(cells, key=cells.__getitem__)
    goal = cells[low] + _FEW * (cells[high] - cells[low])
    between = [v for v in cells if cells[v] not in (cells[low], cells[high])]
    rows = max(1, sum(groups * rows for groups, rows in now.mine.sizes.values()))
    a, b = _near(p if up else 1 - p, max(4, _MOST_ROWS // rows))
    k = max(1, -(-units // b))
    for middle in sorted(between, key=lambda v: abs(cells[v] - goal))[:_MIDDLES]:
        one_less = now.instead is not None  # its place is that of the unit that is replaced
        counts = {low: k * a - one_less, middle: b - a, high: (k - 1) * (b - a)}
        yield replace(
            now,
            mine=_holding(search, now.mine, high),
            instead=None if now.instead is None else _holding(search, now.mine, low),
            others=0,
            crowd=0,
            around=tuple((_holding(search, now.mine, value), n) for value, n in counts.items() if n),
        )


def _near(p: Fraction, most: int) -> tuple[int, int]:
    """a and b of p, of a fraction near it where b is larger."""
    found = min(max(p.limit_denominator(most), Fraction(1, most)), 1 - Fraction(1, most))
    return (p if p.denominator <= most else found).as_integer_ratio()


def _holding(search: PairSearch, profile: Profile, value: int) -> Profile:
    """The profile with this value of their pools in all columns that are ordered."""
    ordered = {place: ColumnChoice(value) for place in search.maker.reads.ordered}
    return replace(profile, choices={**profile.choices, **ordered})


def _cells_of_values(
    search: PairSearch, now: CandidatePair, c: QuantileChoice, place: tuple[int, int]
) -> dict[int, int]:
    """Number of a value in its pool → the cell it falls into, as the engine says of a unit that holds it."""
    at, i = place
    sizes = [len(search.maker.pools[p]) for p in search.maker.reads.ordered]
    found = {}
    for value in range(min(_MOST_VALUES, min(sizes, default=0))):
        alone = replace(now, mine=_holding(search, now.mine, value), instead=None, others=0, crowd=0)
        pair = search.look(alone) if now.instead is None else None
        a = search.vectors(search.maker.make(alone).a)[at] if pair is None else pair.a[at]
        starts = {start for row in a.values() if isinstance(held := row[i], tuple) for start, _ in held}
        if len(starts) == 1:
            found[value] = cells_of(c).cell_of(starts.pop())
    return found
