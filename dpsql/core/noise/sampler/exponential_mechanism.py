"""Exact draws of the exponential mechanism: one of many cells, each with probability ∝ e^(-eta·score).

Construction. Cells of equal score come as runs: c cells of score s. For each run let x = eta·(s - the least score) and
U an integer ≥ 2^B·e^-x, from tables (`Powers`); B is a number of digits, W the sum of c·U over all runs. One proposal
is an integer below W, uniform. It lies in the part of one run, which is c·U wide, and there at place·U + rest with
rest < U. It proposes the cell of the run at that place, which is accepted if rest + V < 2^B·e^-x, V uniform on [0, 1).

*Claim.* A cell is drawn with probability e^(-eta·score) over the sum of this over all cells, exactly.
*Why.* For one cell there are U of the W integers, and rest + V is uniform on [0, U), which holds [0, 2^B·e^-x]. So one
proposal is this cell and is accepted with probability (U/W)·(2^B·e^-x/U) = 2^B·e^-x/W: proportional to e^(-eta·score),
as the least score is one for all cells. The first accepted of independent proposals has the distribution of an
accepted one; words of fair bits that are not below W are refused as well, whatever the cells are. Any U that is large
enough is right, and any B: they decide the speed alone.
*When it would be false.* A cell whose U lay below 2^B·e^-x would come too rarely. If all proposals were accepted, or
if V or 2^B·e^-x were rounded, then probabilities would follow U or the rounded numbers.
*Not proved:* it needs real analysis.
*Tested by* tests/core/noise/test_exponential_mechanism.py: every bit string of a draw, U against decimals, samples.

Decisions. rest is compared with the first B binary digits of 2^B·e^-x. While all are equal, more digits of V are drawn
and more of e^-x computed; some differ in the end, as e^-x is irrational for rational x > 0. For x = 0, U is 2^B and
all is accepted. No floating-point number occurs.

Speed. U exceeds 2^B·e^-x by less than 2^20 (see `Powers`), and a cell of the least score has 2^B of W. So of n cells a
proposal is refused with probability below n·2^(20-B): 2^-78 for 2^62 cells. Far runs, of U = 1, lie together at the end
of W and are looked up by their numbers of cells: only those near the least score cost arithmetic on long integers.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from fractions import Fraction
from itertools import accumulate
from operator import mul

import numpy as np

from dpsql.core.noise.integer_columns import LIMIT, Integers, arrays
from dpsql.core.noise.sampler.entropy import BitSource
from dpsql.core.noise.sampler.exponential_function import exp_bounds, exp_digits
from dpsql.core.noise.scale import check_rate

_DIGITS = 160
_GROUP = 11  # digits of a score that one table knows
_MORE = 64


class Powers:
    """Upper bounds U of 2^digits·e^(-eta·s) for integers s ≥ 0, by tables that all draws of one eta share.

    eta: a rational > 0. digits: B. group: how many binary digits of s one table knows; more: how many digits of V are
    drawn where those so far do not decide. These three have no influence on the distribution. Threads may share it.

    Table i has an entry for each group d of digits, at least 2^B·e^(-eta·d·2^(group·i)). The first is 2^B; each further
    one is that before it times the ratio, rounded up. The ratio, from `exp_bounds`, is at most 3 too large and rounding
    adds at most 1, so an entry is at most 4·2^group too large. U is a product of entries, one for each group of s, each
    product rounded up: too large by less than 4·2^group + 3 for each group, which is less than 2^20 for 127 groups.
    """

    def __init__(self, eta: Fraction, digits: int = _DIGITS, group: int = _GROUP, more: int = _MORE) -> None:
        """Raises ValueError for an eta that is no Fraction above 0."""
        check_rate(eta)
        self.eta, self.digits, self.group, self.more = eta, digits, group, more
        self.far = -(-7 * digits // (10 * eta))
        """From here on U = 1: eta·s ≥ 0.7·digits, and e^-0.7 < 1/2."""
        self._tables: list[list[int]] = []

    def bounds(self, scores: Sequence[int], least: int) -> list[int]:
        """U for each score less the least."""
        far, group, digits, mask, tables = self.far, self.group, self.digits, (1 << self.group) - 1, self._tables
        first, found = self._table(0), []
        for score in scores:
            s = score - least
            if s >= far:
                found.append(1)
                continue
            bound = first[s & mask]
            s >>= group
            i = 1
            while s:
                table = tables[i] if i < len(tables) else self._table(i)
                bound = (bound * table[s & mask] >> digits) + 1
                s >>= group
                i += 1
            found.append(bound)
        return found

    def _table(self, i: int) -> list[int]:
        """Table i, made when it is first asked for; a second thread that makes it puts an equal one in its place."""
        while len(self._tables) <= i:
            at = len(self._tables)
            _, ratio = exp_bounds(self.eta * (1 << self.group * at), self.digits)
            entries = [1 << self.digits]
            while len(entries) < 1 << self.group:
                entries.append((entries[-1] * ratio >> self.digits) + 1)
            self._tables[at : at + 1] = [entries]
        return self._tables[i]


class CellChoice:
    """Draws of one cell out of runs. Immutable.

    counts: cells of each run, ≥ 1; scores: theirs, integers. Raises ValueError for no runs, or one without either.
    """

    def __init__(self, counts: Sequence[int], scores: Sequence[int], powers: Powers) -> None:
        held, self.scores, self.powers = Integers.of(counts), Integers.of(scores), powers
        if not held or len(held) != len(self.scores) or held.array.min() < 1:
            raise ValueError("at least one run, and for each at least one cell and one score")
        self.counts, self.least = held, int(self.scores.array.min())
        (above,) = arrays(2 * self.scores.largest, self.scores)
        above = above - self.least
        far = max(1, powers.far)
        # Of 64 bits, none is far where the limit is longer.
        near = above < far if above.dtype == object or far <= LIMIT else np.ones(len(above), dtype=np.bool_)
        self.near, self.far = np.flatnonzero(near), np.flatnonzero(np.logical_not(near))
        """Numbers of the runs with a U of their own, and of the others, whose U is 1."""
        self.bounds = powers.bounds(above[self.near].tolist(), 0)
        self.ends: list[int] = list(accumulate(map(mul, held.array[self.near].tolist(), self.bounds)))
        """Where the part of each near run ends in W."""
        (cells,) = arrays(held.largest * len(held), held)
        self.far_ends = np.cumsum(cells[self.far])

    @property
    def whole(self) -> int:
        """W"""
        return self.ends[-1] + (int(self.far_ends[-1]) if len(self.far) else 0)

    @property
    def width(self) -> int:
        """Binary digits of a word."""
        return (self.whole - 1).bit_length()

    def draw(self, source: BitSource) -> tuple[int, int]:
        """(number of a run, place of a cell in it from 0)."""
        while True:
            cell = self.propose(source)
            if cell is not None:
                return cell

    def propose(self, source: BitSource) -> tuple[int, int] | None:
        """A proposal, if it is accepted. None as well for a word of `width` bits that is not below W."""
        at = _bits(self.width, source)
        if at >= self.whole:
            return None
        if at < self.ends[-1]:
            i = bisect_right(self.ends, at)
            run, bound = int(self.near[i]), self.bounds[i]
            place, rest = divmod(at - self.ends[i] + self.counts[run] * bound, bound)
        else:
            at -= self.ends[-1]
            i, bound, rest = int(np.searchsorted(self.far_ends, at, side="right")), 1, 0
            run = int(self.far[i])
            place = at - int(self.far_ends[i]) + self.counts[run]
        return (run, place) if self.accept(run, rest, source) else None

    def accept(self, run: int, rest: int, source: BitSource) -> bool:
        """Whether rest + V < 2^B·e^-x, V uniform on [0, 1) and drawn as far as it decides."""
        x, digits, more = self.powers.eta * (self.scores[run] - self.least), self.powers.digits, self.powers.more
        if x == 0:
            return True
        while rest == (true := exp_digits(x, digits)):
            rest = rest << more | _bits(more, source)
            digits += more
        return rest < true


def _bits(count: int, source: BitSource) -> int:
    """A uniform integer of `count` fair bits."""
    found = 0
    while count > 0:
        bits = min(count, 64)
        found = found << bits | int(source.words(1, bits)[0])
        count -= bits
    return found
