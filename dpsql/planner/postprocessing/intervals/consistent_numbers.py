"""What noise is in numbers that least squares made consistent.

Each is a weighted sum of the noise of all numbers that it was reconciled with. Of very many numbers that is not written
out: each is taken to have the noise that it had before. No weighted sum of them is taken to vary less than it does, for
no other estimate that is linear and without bias varies less than least squares (Gauss-Markov).
"""

from __future__ import annotations

import numpy as np

from dpsql.core.noise.integer_columns import Floats
from dpsql.planner.postprocessing.consistency.totals import Reconciled
from dpsql.planner.postprocessing.intervals.linear import LinearColumn, Noises, Places, Sequence, Stretch


def estimated(noises: Noises, found: Reconciled, at: tuple[int, int], rows: Places) -> LinearColumn:
    """The numbers of a component, at = (release, component), in these rows, in its integer units."""
    place = found.at.index(at)
    own = found.estimates[place][rows]
    slack = np.abs(found.numbers[place].floats()[rows] - own)
    missing = np.zeros(len(rows), dtype=np.bool_)
    if not found.is_written_out:
        first = noises.first(*at)
        if first is None:
            return LinearColumn(own, (), missing, slack)
        stretch = Stretch(noises.every, first + rows, first + rows + 1, np.ones(len(rows)))
        return LinearColumn(own - found.drawn[place].floats()[rows], (stretch,), missing, slack)
    constants, sequence, width = noises.kept(found, lambda: _written_out(noises, found))
    start = (found.first_row(place) + rows) * width
    stretch = Stretch(sequence, start, start + width, np.ones(len(rows)))
    return LinearColumn(constants[found.first_row(place) + rows], (stretch,), missing, slack)


def _written_out(noises: Noises, found: Reconciled) -> tuple[Floats, Sequence, int]:
    """What each number has without noise, the noises of all numbers one after the other, and how many each has."""
    ids, without = [], []
    for at, drawn in zip(found.at, found.drawn, strict=True):
        first = noises.first(*at)
        ids.append(np.full(len(drawn), -1) if first is None else first + np.arange(len(drawn)))
        without.append(drawn.floats() if first is None else np.zeros(len(drawn)))
    of, coefficients = np.concatenate(ids), found.coefficients
    noisy = of >= 0
    sequence = Sequence(noises, np.tile(of[noisy], len(coefficients)), coefficients[:, noisy].reshape(-1))
    return coefficients @ np.concatenate(without), sequence, int(noisy.sum())
