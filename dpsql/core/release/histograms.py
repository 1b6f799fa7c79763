"""How many rows of each group lie in each public cell of values, or have each public value. Private.

What quantiles, modes and the largest groups are chosen by: the scores of all cells, as `measures/quantile.py`,
`mode.py` and `largest.py` define them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpsql.core.ir.components import Component, KeySource, QuantileChoice
from dpsql.core.noise.integer_columns import LIMIT, Integers
from dpsql.core.numbers.cells import Cells
from dpsql.core.release.key_matching import places

Entries = tuple[tuple[int, int], ...]
"""Of one group: the first integer of each cell with rows in it, upwards, and what those weigh."""
Runs = tuple[Integers, Integers, Integers]
"""Runs of cells of equal score: the first cell, how many, the score."""


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class Histograms:
    """One histogram for each group.

    cells: public; or the listed values. ends: where the entries of each group end; at, weights: the number of a
    cell, upwards within a group and each once, and what its rows weigh. chosen: for each group the number of its
    histogram, -1 for an empty one.
    """

    cells: Cells | KeySource
    ends: NDArray[np.intp]
    at: NDArray[np.intp]
    weights: Integers
    chosen: NDArray[np.intp]

    def __repr__(self) -> str:
        return "<private>"

    @classmethod
    def of(
        cls,
        cells: Cells | KeySource,
        groups: NDArray[np.intp],
        height: int,
        told: Sequence[Any],
        weights: Sequence[int],
    ) -> Histograms:
        """From entries in any order. groups: of each entry its group, below `height`. told: the first integer of its
        cell, or its value; one that is not listed counts nowhere.
        """
        at, size = _numbers(cells, told), _size(cells)
        listed = at >= 0
        # Entries of one cell of one group are added up: a group may be told twice, as NULL and as a value of its own.
        flat, place = np.unique((groups * size + at)[listed], return_inverse=True)
        summed = Integers(Integers.of(weights).array[listed]).added_at(place, len(flat))
        ends = np.searchsorted(flat // size, np.arange(height), side="right")
        return cls(cells, ends.astype(np.intp), (flat % size).astype(np.intp), summed, np.arange(height))

    @classmethod
    def by_slice(
        cls,
        cells: Cells | KeySource,
        groups: NDArray[np.intp],
        height: int,
        told: Sequence[Any],
        weights: Sequence[int],
        slices: Sequence[int],
    ) -> Mapping[int, Histograms]:
        """Number of a slice → what `of` makes of its entries; slices: the number of each entry's."""
        numbers, held = Integers.of(slices).array, Integers.of(weights).array
        found = defaultdict[int, Histograms](lambda: cls.of(cells, groups[:0], height, [], []))
        for number in np.unique(numbers).tolist():
            own = np.flatnonzero(numbers == number)
            values = [told[i] for i in own.tolist()]
            found[number] = cls.of(cells, groups[own], height, values, Integers(held[own]))
        return found

    def __len__(self) -> int:
        return len(self.chosen)

    def taken(self, at: NDArray[np.intp] | NDArray[np.bool_]) -> Histograms:
        """Those at these positions, or those where this is true; -1 is an empty one."""
        if at.dtype == np.bool_:
            chosen = self.chosen[at]
        else:
            chosen = np.append(self.chosen, -1)[np.where(at < 0, len(self), at)]
        return Histograms(self.cells, self.ends, self.at, self.weights, chosen)

    def scored(self, group: int, c: Component, without: Sequence[int] = ()) -> Runs:
        """Runs of all cells with their scores in a group, as a component is chosen by; without some of the cells."""
        if isinstance(c, QuantileChoice):
            return self.runs(group, c.p.numerator, c.p.denominator)
        runs = self.runs_of_mode(group)
        return _left(runs, without) if without else runs

    def entries(self, group: int) -> Entries:
        """The cells of a quantile that rows of a group lie in."""
        assert isinstance(self.cells, Cells)
        starts, (at, weights) = self.cells.starts, self._entries(group)
        return tuple((starts[cell], weight) for cell, weight in zip(at.tolist(), weights.tolist(), strict=True))

    def runs(self, group: int, above: int, below: int) -> Runs:
        """Runs of all cells with the scores of the quantile above/below of a group, in the order of the cells."""
        at, weights = self._entries(group)
        if not len(at):
            return self._all_alike()
        total = sum(weights.tolist())
        kind = np.int64 if total * below <= LIMIT else object
        le = np.cumsum(weights.astype(kind))
        lt = le - weights
        # The cells of entries, and before each and after the last the empty ones between them.
        own = np.maximum(np.maximum(below * lt - above * total, above * total - below * le), 0)
        edges = np.concatenate([np.zeros(1, dtype=kind), le])
        return self._laid_out(at, own, np.abs(below * edges - above * total))

    def runs_of_mode(self, group: int) -> Runs:
        """Runs of all values with twice what the rows of each weigh less than those of the most frequent one."""
        at, weights = self._entries(group)
        if not len(at):
            return self._all_alike()
        most = max(weights.tolist())
        held = weights.astype(np.int64 if 2 * most <= LIMIT else object)
        return self._laid_out(at, 2 * (most - held), np.full(len(at) + 1, 2 * most, dtype=held.dtype))

    def _entries(self, group: int) -> tuple[NDArray[np.intp], NDArray[Any]]:
        """Cells with rows, and what these weigh."""
        number = int(self.chosen[group])
        if number < 0:
            return self.at[:0], self.weights.array[:0]
        there = slice(int(self.ends[number - 1]) if number else 0, int(self.ends[number]))
        return self.at[there], self.weights.array[there]

    def _laid_out(self, at: NDArray[np.intp], own: NDArray[Any], empty: NDArray[Any]) -> Runs:
        """All cells. own: scores of those with rows; empty: of those before each of them and after the last."""
        starts = np.concatenate([np.zeros(1, dtype=np.intp), at + 1])
        sizes = np.append(at, _size(self.cells)) - starts
        first = np.empty(2 * len(at) + 1, dtype=np.int64)
        count, score = np.empty_like(first), np.empty(2 * len(at) + 1, dtype=own.dtype)
        first[0::2], first[1::2] = starts, at
        count[0::2], count[1::2] = sizes, 1
        score[0::2], score[1::2] = empty, own
        real = count > 0
        return Integers(first[real]), Integers(count[real]), Integers(score[real])

    def _all_alike(self) -> Runs:
        """Of an empty group: all cells have one score."""
        return Integers.zeros(1), Integers.of([_size(self.cells)]), Integers.zeros(1)


def _left(runs: Runs, without: Sequence[int]) -> Runs:
    """The runs without these cells; each is in one of them."""
    first, count, score = (held.array for held in runs)
    for cell in without:
        at = int(np.searchsorted(first, cell, side="right")) - 1
        before = cell - int(first[at])
        parts = [(int(first[at]), before), (cell + 1, int(count[at]) - before - 1)]
        kept = [part for part in parts if part[1]]
        score = np.concatenate([score[:at], np.repeat(score[at : at + 1], len(kept)), score[at + 1 :]])
        first = np.concatenate([first[:at], np.array([f for f, _ in kept], dtype=np.int64), first[at + 1 :]])
        count = np.concatenate([count[:at], np.array([n for _, n in kept], dtype=np.int64), count[at + 1 :]])
    return Integers(first), Integers(count), Integers(score)


def _size(cells: Cells | KeySource) -> int:
    return len(cells.keys if isinstance(cells, KeySource) else cells)


def _numbers(cells: Cells | KeySource, told: Sequence[Any]) -> NDArray[np.intp]:
    """The number of each cell or value that is told; -1 for none."""
    if isinstance(cells, KeySource):
        return places(cells.keys, list(zip(told)))
    firsts = np.array(told, dtype=np.int64)
    if isinstance(cells.starts, range):
        return (firsts - cells.lo) // cells.width
    return np.searchsorted(np.array(cells.starts, dtype=np.int64), firsts, side="right") - 1
