"""Public cells of integers: each value lies in one, whatever the data hold.

The range is cut at equal steps and, beside those, at steps that grow with |value|, where asked, until they are no
finer: so a quantile of values with a heavy tail is as exact, for its size, as one of values that lie close together.

Cells of growing width have the first b binary digits of v ≥ 0 in common, and as many zeros after them: v and
⌊v / 2^s⌋·2^s lie in one, s = max(0, digits of v - b). Negative values mirror them: v is there what -v - 1 is here.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

FINEST = 10
"""Binary digits of growing cells, at most: each is 1/512 of its values wide, or less. Finer ones would take cells from
the equal ones, which large values need where they lie close together."""


@dataclass(frozen=True, slots=True)
class Cells:
    """Of the integers lo … hi. width: of equal cells. digits: b of growing ones; 0: there are none."""

    lo: int
    hi: int
    width: int
    digits: int

    @classmethod
    def of(cls, lo: int, hi: int, most: int, logarithmic: bool) -> Cells:
        """At most so many cells, as fine as that allows."""
        if hi - lo < most:
            return cls(lo, hi, 1, 0)
        digits = growing = 0
        while logarithmic and digits < FINEST and (more := _growing(lo, hi, digits + 1)) <= most // 2:
            digits, growing = digits + 1, more
        return cls(lo, hi, -(-(hi - lo + 1) // (most - growing)), digits)

    @property
    def starts(self) -> Sequence[int]:
        """The first integer of each cell, upwards; that of the first cell is lo."""
        return _starts(self) if self.digits else self.equal

    def __len__(self) -> int:
        return len(self.equal) + len(_between(self))

    @property
    def top(self) -> int:
        """Where growing cells end: of |v| below they are narrower than equal ones."""
        return 1 << (self.digits + (self.width - 1).bit_length() - 1)

    @property
    def equal(self) -> range:
        """The first integers of the equal cells."""
        return range(self.lo, self.hi + 1, self.width)

    def middle(self, cell: int) -> int:
        """The middle integer of a cell, rounded down."""
        first, last = self.ends(cell)
        return (first + last) // 2

    def ends(self, cell: int) -> tuple[int, int]:
        """The first and the last integer of a cell."""
        starts = self.starts
        return starts[cell], (starts[cell + 1] if cell + 1 < len(starts) else self.hi + 1) - 1

    def cell_of(self, value: int) -> int:
        """The number of the cell that an integer of lo … hi lies in."""
        return bisect_right(self.starts, value) - 1


def shift(v: int, digits: int) -> int:
    """s of the growing cell of v ≥ 0."""
    return max(0, v.bit_length() - digits)


def _index(v: int, digits: int) -> int:
    """The number of the growing cell of v ≥ 0."""
    s = shift(v, digits)
    return (s << (digits - 1)) + (v >> s)


def _growing(lo: int, hi: int, digits: int) -> int:
    """How many growing cells there are in lo … hi, or one or two more."""
    up = _index(hi, digits) - _index(max(0, lo), digits) + 1 if hi >= 0 else 0
    down = _index(-lo - 1, digits) - _index(max(0, -hi - 1), digits) + 1 if lo < 0 else 0
    return up + down


@lru_cache(maxsize=16)
def _starts(cells: Cells) -> tuple[int, ...]:
    return tuple(sorted([*cells.equal, *_between(cells)]))


@lru_cache(maxsize=64)
def _between(cells: Cells) -> tuple[int, ...]:
    """The first integers of growing cells, upwards, that are not those of equal ones."""
    if not cells.digits:
        return ()
    ups = _firsts(max(0, cells.lo), min(cells.hi, cells.top), cells.digits)
    downs = _firsts(max(0, -cells.hi - 1), min(-cells.lo - 1, cells.top), cells.digits)
    # -v - 1 of the last of a cell is the first of the mirrored one: the next first less one, so minus the next.
    found = [-v for v in reversed(downs) if -v <= cells.hi] + [v for v in ups if v > 0 or not downs]
    return tuple(v for v in found if cells.lo <= v <= cells.hi and (v - cells.lo) % cells.width)


def _firsts(low: int, top: int, digits: int) -> list[int]:
    """The first integers of all growing cells that low … top touch."""
    s = shift(low, digits)
    found, v = [], low >> s << s
    while v <= top:
        found.append(v)
        v += 1 << shift(v, digits)
    return found
