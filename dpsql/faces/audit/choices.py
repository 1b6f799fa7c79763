"""Quantiles and modes: how far the scores of cells are apart on two databases, and what a chosen cell tells of them.

All of it follows from the histograms and from the definition of the mechanism, P(cell) ∝ e^(-η·score): what the
mechanism states of itself is not asked.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from dpsql.core.ir.components import Component, ListChoice, QuantileChoice
from dpsql.core.measures.all_measures import rule
from dpsql.core.measures.quantile import cells_of
from dpsql.core.release.histograms import Entries, Histograms

Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Chosen:
    """A cell chosen on two databases. cells: how many have this score on one and this one on the other."""

    eta: Fraction
    cells: tuple[tuple[int, int, int], ...]

    @property
    def swapped(self) -> Chosen:
        """Of the other database and the one."""
        return Chosen(self.eta, tuple((n, t, s) for n, s, t in self.cells))

    def logs(self, narrower: float = 1.0) -> tuple[Array, Array]:
        """(ln P(a kind of cell), how much likelier it is on the one database) of each kind, at η times `narrower`."""
        count, one, other = np.array(self.cells, dtype=np.float64).T
        of_one, of_other = (_log_shares(count, s, float(self.eta) * narrower) for s in (one, other))
        return of_one + np.log(count), of_one - of_other


def chosen(c: Component, eta: Fraction, one: Entries, other: Entries) -> Chosen:
    """What two histograms say of all cells."""
    return Chosen(eta, tuple(zip(*(found.tolist() for found in _cuts(c, one, other)), strict=True)))


def likelier(c: Component, eta: Fraction, one: Entries, other: Entries) -> Array:
    """ln P(cell | one) - ln P(cell | other) of each cell."""
    found = chosen(c, eta, one, other)
    return np.repeat(found.logs()[1], [count for count, _, _ in found.cells])


def furthest(c: Component, one: Entries, other: Entries) -> int:
    """By how much the score of some cell differs; of a mode half of how much further one moved than another."""
    _, s, t = _cuts(c, one, other)
    return int(np.abs(s - t).max()) if isinstance(c, QuantileChoice) else int(np.ptp(t - s)) // 2


def best(c: Component, entries: Entries) -> int:
    """The first cell of the least score."""
    first, _, found = _runs(c, entries)
    return int(first[np.argmin(found)])


def together(c: Component, groups: list[Entries]) -> Histograms:
    """One histogram for each group."""
    number = np.repeat(np.arange(len(groups)), [len(entries) for entries in groups])
    starts, weights = ([entry[i] for entries in groups for entry in entries] for i in (0, 1))
    if isinstance(c, ListChoice) and c.choices is not None:
        values = [c.choices.keys[at][0] for at in starts]
        return Histograms.of(c.choices, number, len(groups), values, weights)
    assert isinstance(c, QuantileChoice)
    return Histograms.of(cells_of(c), number, len(groups), starts, weights)


Columns = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]


@lru_cache(maxsize=256)
def _runs(c: Component, entries: Entries) -> Columns:
    """Runs of cells of equal score: the first cell, how many, the score."""
    first, count, found = together(c, [entries]).scored(0, c)
    return np.array(first, dtype=np.int64), np.array(count, dtype=np.int64), np.array(found, dtype=np.int64)


def _cuts(c: Component, one: Entries, other: Entries) -> Columns:
    """How many cells, and both scores, for the common runs of two histograms, in the order of the cells."""
    (a, _, s), (b, _, t) = _runs(c, one), _runs(c, other)
    edges = np.union1d(a, b)
    count = np.diff(np.append(edges, rule(c).options(c)))
    return count, s[np.searchsorted(a, edges, "right") - 1], t[np.searchsorted(b, edges, "right") - 1]


def _log_shares(count: Array, score: Array, eta: float) -> Array:
    """ln P(a cell) for each kind of cell."""
    x = -eta * (score - score.min())
    return np.asarray(x - np.log((count * np.exp(x)).sum()))
