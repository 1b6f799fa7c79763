"""How many rows of each group lie in each public cell of values: what quantiles are chosen by. Private."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpsql.core.noise.integer_columns import LIMIT, Integers
from dpsql.core.numbers.cells import Cells

Entries = tuple[tuple[int, int], ...]
"""Of one group: the first integer of each cell with rows in it, upwards, and what those weigh."""
Runs = tuple[list[int], list[int], list[int]]
"""Runs of cells of equal score: the first cell, how many, the score."""


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class Histograms:
    """One histogram for each group.

    cells: public. ends: where the entries of each group end; at, weights: the number of a cell, upwards within a group
    and each once, and what its rows weigh. chosen: for each group the number of its histogram, -1 for an empty one.
    """

    cells: Cells
    ends: NDArray[np.intp]
    at: NDArray[np.intp]
    weights: Integers
    chosen: NDArray[np.intp]

    def __repr__(self) -> str:
        return "<private>"

    @classmethod
    def of(
        cls, cells: Cells, groups: NDArray[np.intp], height: int, starts: Sequence[int], weights: Sequence[int]
    ) -> Histograms:
        """From entries in any order. groups: of each entry its group, below `height`. starts: the first integer of its
        cell.
        """
        at = np.searchsorted(np.array(cells.starts, dtype=np.int64), np.array(starts, dtype=np.int64), side="right") - 1
        # Entries of one cell of one group are added up: a group may be told twice, as NULL and as a value of its own.
        flat, place = np.unique(groups * len(cells) + at, return_inverse=True)
        summed = Integers.of(weights).added_at(place, len(flat))
        ends = np.searchsorted(flat // len(cells), np.arange(height), side="right")
        return cls(cells, ends.astype(np.intp), (flat % len(cells)).astype(np.intp), summed, np.arange(height))

    def __len__(self) -> int:
        return len(self.chosen)

    def taken(self, at: NDArray[np.intp] | NDArray[np.bool_]) -> Histograms:
        """Those at these positions, or those where this is true; -1 is an empty one."""
        if at.dtype == np.bool_:
            chosen = self.chosen[at]
        else:
            chosen = np.append(self.chosen, -1)[np.where(at < 0, len(self), at)]
        return Histograms(self.cells, self.ends, self.at, self.weights, chosen)

    def entries(self, group: int) -> Entries:
        """The cells of a group that rows lie in."""
        there, starts = self._there(group), self.cells.starts
        at, weights = self.at[there].tolist(), self.weights.array[there].tolist()
        return tuple((starts[cell], weight) for cell, weight in zip(at, weights, strict=True))

    def _there(self, group: int) -> slice:
        """Which entries are those of a group."""
        number = int(self.chosen[group])
        if number < 0:
            return slice(0)
        return slice(int(self.ends[number - 1]) if number else 0, int(self.ends[number]))

    def runs(self, group: int, above: int, below: int) -> Runs:
        """Runs of all cells with the scores of the quantile above/below of a group, in the order of the cells."""
        there = self._there(group)
        at, weights = self.at[there], self.weights.array[there]
        if not len(at):
            return [0], [len(self.cells)], [0]
        total = sum(weights.tolist())
        kind = np.int64 if total * below <= LIMIT else object
        le = np.cumsum(weights.astype(kind))
        lt = le - weights
        # The cells of entries, and before each and after the last the empty ones between them.
        own = np.maximum(np.maximum(below * lt - above * total, above * total - below * le), 0)
        edges = np.concatenate([np.zeros(1, dtype=kind), le])
        empty = np.abs(below * edges - above * total)
        starts = np.concatenate([np.zeros(1, dtype=np.intp), at + 1])
        sizes = np.append(at, len(self.cells)) - starts
        first = np.empty(2 * len(at) + 1, dtype=np.intp)
        count, score = np.empty_like(first), np.empty(2 * len(at) + 1, dtype=kind)
        first[0::2], first[1::2] = starts, at
        count[0::2], count[1::2] = sizes, 1
        score[0::2], score[1::2] = empty, own
        real = count > 0
        return first[real].tolist(), count[real].tolist(), score[real].tolist()
