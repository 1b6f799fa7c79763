"""Intervals where searches tell what their limits cut: of sums of noisy numbers, and of averages.

A limit τ takes from a unit with the total t what is above it. In octave i that is at most 2^i - τ, and H_i units are in
it, noisily: so of all groups together B = Σ H_i·(2^i - τ) is missing at most, over all octaves with 2^i > τ up to the
one above the highest that was seen. A B below 0 counts as 0. It holds unless somebody is beyond the last octave that
counts: no private answer rules it out.

A sum: its end is the number + c·B + q, q the quantile of the noise of all of these, from its exact law. All groups
together lost B, so that c is the largest coefficient that a number under this limit has; under a limit on the root of
the sum of squares they lost a vector of that length, and c is the root of the coefficients' squares. Of values with
both signs what is lost may have either.

A quotient of sums of what is never negative: (a + Σ αᵢ·lᵢ)/(d + Σ βᵢ·lᵢ), with lᵢ ≥ 0 that add up to B at most, is
extreme where all is lost in one number: between r = a/d and (1 - p)·r + p·αᵢ/βᵢ, p = βᵢ·B/(d + βᵢ·B); a share is at
most r + p·(1 - r).

An average: rows count with weights w ≤ 1, and Σ(1 - w) ≤ B of them are missing. The average of all N rows is 1 - f
times the weighted one, and f times one of what is missing, f = Σ(1 - w)/N: within their bounds [L, U] it is from
m - f·(m - L) to m + f·(U - m). f is at most B/(W + B), W the weighted count at its lower end. A variance follows from
the same parts (`frontend/aggregates/variance.py`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction

import numpy as np

from dpsql.core.ir.components import OnGrid
from dpsql.core.noise.integer_columns import Floats
from dpsql.planner.postprocessing.intervals.column_enclosures import Bounds
from dpsql.planner.postprocessing.intervals.fieller import widths
from dpsql.planner.postprocessing.intervals.linear import (
    LinearColumn,
    Noises,
    Place,
    Sequence,
    Stretch,
    TooMany,
    written_out,
)

Coefficients = Mapping[Place, Floats]


def is_cut(noises: Noises, *numbers: LinearColumn) -> bool:
    """Whether a search tells that a limit takes anything from these sums. Raises TooMany."""
    return bool(noises.cut) and any(noises.cut[at].each for n in numbers for at in _coefficients(noises, n)[0])


def with_what_is_cut(noises: Noises, number: LinearColumn, found: Bounds, outside: Fraction) -> Bounds:
    """The interval of a sum with what is cut from it. found: without it. Raises TooMany."""
    if not noises.cut:
        return found
    gained, lost = _coefficients(noises, number)
    low = _moved(noises, number, found.low, lost, outside, -1)
    return replace(found, low=low, high=_moved(noises, number, found.high, gained, outside, 1))


def part_that_is_cut(noises: Noises, at: Place, counted: Floats, outside: Fraction) -> Floats:
    """f: of all rows at most this part is cut. at: the component that counts them; counted: of how many so many are
    there at least. outside: how often more may be cut. Raises TooMany.
    """
    weight = noises.releases[at[0]].planned.measured.node.components[at[1]].weight
    most = _most(noises, at, 1 / weight, outside)
    return most / np.maximum(np.maximum(counted, 0.0) + most, 1e-300)


def quotient_with_what_is_cut(
    noises: Noises, above: LinearColumn, below: LinearColumn, found: Bounds, least: Floats, outside: Fraction
) -> Bounds | None:
    """The interval of a quotient with what is cut above and below; None where limits are on values with both signs, or
    on roots. Raises TooMany.

    found: without it. least: the lower end of the divisor, above 0. outside: how often more may be cut.
    """
    rows, components, a, b = _pairs(noises, above, below)
    places = {c for c in components if c is not None and c in noises.cut}
    if any(noises.cut[at].octaves.roots or _signs(noises, at) != (0, 1) for at in places):
        return None
    low, high = found.low, found.high
    for at in places:
        of = np.array([c == at for c in components])
        row, alpha, beta = rows[of], a[of], b[of]
        if (beta < 0).any():
            return None
        most = _most(noises, at, 1.0, outside / len(places))
        sure = least[row]
        with np.errstate(all="ignore"):
            part = beta * most / (sure + beta * most)
            pulled = np.where(beta > 0, part * (alpha / np.where(beta > 0, beta, 1.0)), alpha * most / sure)
            ends = [end.copy() for end in (low, high)]
            np.minimum.at(ends[0], row, (1 - part) * low[row] + pulled)
            np.maximum.at(ends[1], row, (1 - part) * high[row] + pulled)
        low, high = ends
    return replace(found, low=low, high=high)


def _pairs(
    noises: Noises, above: LinearColumn, below: LinearColumn
) -> tuple[np.ndarray, list[Place | None], Floats, Floats]:
    """Row, component and both coefficients of each noise in either of two sums. Raises TooMany."""
    parts = [
        (*written_out(s, np.ones(len(number))), side)
        for side, number in enumerate((above, below))
        for s in number.stretches
    ]
    rows, ids, own = (np.concatenate([part[i] for part in parts]) for i in range(3))
    sides = np.concatenate([np.full(len(part[0]), part[3]) for part in parts])
    pairs, at = np.unique(np.stack([rows, ids]), axis=1, return_inverse=True)
    both = [np.zeros(pairs.shape[1]) + np.bincount(at.reshape(-1), own * (sides == side)) for side in (0, 1)]
    components = noises.component_of(pairs[1])
    if None in components:
        raise TooMany
    return pairs[0], components, both[0], both[1]


def _most(noises: Noises, at: Place, each: float, outside: Fraction) -> float:
    """How much a limit cuts at most, times a coefficient: B and the quantile of its noise. Raises TooMany."""
    nothing = LinearColumn.fixed(np.zeros(1), np.zeros(1, dtype=np.bool_))
    return float(_moved(noises, nothing, np.zeros(1), {at: np.full(1, each)}, outside, 1)[0])


def _coefficients(noises: Noises, number: LinearColumn) -> tuple[Coefficients, Coefficients]:
    """Component → by how much at most a number becomes larger, and smaller, for each unit that its limit cuts."""
    parts = [written_out(s, np.ones(len(number))) for s in number.stretches]
    if not parts:
        return {}, {}
    rows, ids, own = (np.concatenate(each) for each in zip(*parts, strict=True))
    pairs, at = np.unique(np.stack([rows, ids]), axis=1, return_inverse=True)
    total = np.bincount(at.reshape(-1), own, pairs.shape[1])  # a noise that is there twice
    components = noises.component_of(pairs[1])
    if None in components:
        raise TooMany
    gained, lost = dict[Place, Floats](), dict[Place, Floats]()
    for place in {c for c in components if c is not None and c in noises.cut}:
        of = np.array([c == place for c in components])
        above, below = (_together(noises, place, pairs[0][of], np.maximum(0.0, sign * total[of]), len(number))
                        for sign in (1, -1))  # fmt: skip
        least, most = _signs(noises, place)
        both = _together(noises, place, np.tile(np.arange(len(number)), 2), np.concatenate([above, below]), len(number))
        gained[place] = both if least < 0 < most else above if most > 0 else below
        lost[place] = both if least < 0 < most else below if most > 0 else above
    return gained, lost


def _together(noises: Noises, at: Place, rows: np.ndarray, each: Floats, height: int) -> Floats:
    """Of several coefficients in one row the largest; where a limit is on a root, the root of the sum of squares."""
    found = np.zeros(height)
    if noises.cut[at].octaves.roots:
        np.add.at(found, rows, each**2)
        return np.sqrt(found)
    np.maximum.at(found, rows, each)
    return found


def _signs(noises: Noises, at: Place) -> tuple[int, int]:
    """Which signs the values of a component have: (-1 or 0, 0 or 1)."""
    own = noises.releases[at[0]].planned.measured.node.components[at[1]]
    if not isinstance(own, OnGrid):
        return 0, 1
    low, high = (end + own.center for end in own.ends)
    return (-1 if low < 0 else 0), (1 if high > 0 else 0)


def _moved(noises: Noises, number: LinearColumn, end: Floats, by: Coefficients, outside: Fraction, sign: int) -> Floats:
    """An end of the interval with what is cut to that side of it. Raises TooMany."""
    stretches = list[Stretch]()
    for (place, component), coefficient in by.items():
        told = noises.cut[place, component]
        if not told.each or not coefficient.any():
            continue
        weight = noises.releases[place].planned.measured.node.components[component].weight
        keys = np.array(sorted(told.each), dtype=np.intp)
        ids = noises.octave(told.octaves.label) + keys
        sizes = np.array([float(told.each[k]) for k in keys.tolist()]) * (weight / told.octaves.weight)
        sequence = Sequence(noises, ids, sizes)
        start = np.zeros(len(number), dtype=np.intp)
        stretches.append(Stretch(sequence, start, start + len(keys), sign * coefficient))
    if not stretches:
        return end
    added = np.zeros(len(number))
    for s in stretches:
        total, _ = s.sequence.totals(s.start, s.stop)
        added += np.maximum(0.0, total) * np.abs(s.coefficient)
    nothing = np.zeros(len(number))
    cut_off = LinearColumn(nothing, tuple(stretches), number.missing, nothing)
    value, error = number.valued()
    reach = widths(noises, number.plus(cut_off), outside) + error
    moved = value + sign * (added + reach)
    return np.where(np.isnan(end), end, np.maximum(end, moved) if sign > 0 else np.minimum(end, moved))
