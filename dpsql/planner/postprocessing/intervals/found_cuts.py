"""Ends of intervals where searches tell what their limits cut: of sums of noisy numbers.

A limit τ takes from a unit with the total t what is above it. In octave i that is at most 2^i - τ, and H_i units are in
it, noisily: so of all groups together B = Σ H_i·(2^i - τ) is missing at most, over all octaves with 2^i > τ up to the
one above the highest that was seen. The end is the number + c·B + q: q is the quantile of the noise of all of these,
from its exact law, and c the largest coefficient that a number under this limit has, since all of them together lost B.
A B below 0 counts as 0. It holds unless somebody is beyond the last octave that counts: no private answer rules it out.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from fractions import Fraction
from types import MappingProxyType
from typing import Final

import numpy as np

from dpsql.core.noise.integer_columns import Floats
from dpsql.planner.postprocessing.intervals.column_enclosures import Bounds
from dpsql.planner.postprocessing.intervals.fieller import widths
from dpsql.planner.postprocessing.intervals.linear import (
    LinearColumn,
    Noises,
    Sequence,
    Stretch,
    TooMany,
    written_out,
)
from dpsql.planner.postprocessing.planning.forms import Lost
from dpsql.planner.postprocessing.searches.octaves import SearchResult, WhatIsCut, what_is_cut

Cut = Mapping[tuple[int, int], SearchResult]
"""(release, component) → the search that found its limit."""
NO_CUT: Final[Cut] = MappingProxyType({})


def told_by(cut: Cut) -> Iterable[WhatIsCut]:
    """What all these limits cut, as far as their octaves tell."""
    return [told for found in cut.values() if (told := what_is_cut(found)) is not None]


def with_what_is_cut(
    noises: Noises, number: LinearColumn, found: Bounds, cut: Cut, outside: Fraction
) -> tuple[Bounds, Lost]:
    """The interval of a sum with what is cut from it, and the ends that are lost all the same. found: without it."""
    try:
        largest = _coefficients(noises, number)
        low, missing_low = _moved(noises, number, found.low, {at: c[1] for at, c in largest.items()}, cut, outside, -1)
        high, missing_high = _moved(
            noises, number, found.high, {at: c[0] for at, c in largest.items()}, cut, outside, 1
        )
    except TooMany:
        return found, Lost(low=True, high=True)
    return replace(found, low=low, high=high), Lost(missing_low, missing_high)


def _coefficients(noises: Noises, number: LinearColumn) -> dict[tuple[int, int], tuple[Floats, Floats]]:
    """(release, component) → the largest coefficient above 0 of a number of it in each row, and below 0, as a size."""
    parts = [written_out(s, np.ones(len(number))) for s in number.stretches]
    if not parts:
        return {}
    rows, ids, own = (np.concatenate(each) for each in zip(*parts, strict=True))
    pairs, at = np.unique(np.stack([rows, ids]), axis=1, return_inverse=True)
    total = np.bincount(at.reshape(-1), own, pairs.shape[1])  # a noise that is there twice
    found: dict[tuple[int, int], tuple[Floats, Floats]] = {}
    components = noises.component_of(pairs[1])
    for place in {c for c in components if c is not None}:
        of = np.array([c == place for c in components])
        above, below = np.zeros(len(number)), np.zeros(len(number))
        np.maximum.at(above, pairs[0][of], total[of])
        np.maximum.at(below, pairs[0][of], -total[of])
        found[place] = above, below
    if None in components:
        raise TooMany
    return found


def _moved(
    noises: Noises, number: LinearColumn, end: Floats, by: Mapping[tuple[int, int], Floats], cut: Cut,
    outside: Fraction, sign: int,
) -> tuple[Floats, bool]:  # fmt: skip
    """An end of the interval with what is cut to that side of it; whether the octaves do not tell."""
    stretches = list[Stretch]()
    for (place, component), coefficient in by.items():
        if not coefficient.any() or (place, component) not in cut:
            continue
        told = what_is_cut(cut[place, component])
        if told is None:
            return end, True
        if not told.each:
            continue
        weight = noises.releases[place].planned.measured.node.components[component].weight
        keys = np.array(sorted(told.each), dtype=np.intp)
        ids = noises.octave(told.octaves.label) + keys
        sizes = np.array([float(told.each[k]) for k in keys.tolist()]) * (weight / told.octaves.weight)
        sequence = Sequence(noises, ids, sizes)
        start = np.zeros(len(number), dtype=np.intp)
        stretches.append(Stretch(sequence, start, start + len(keys), sign * coefficient))
    if not stretches:
        return end, False
    added = np.zeros(len(number))
    for s in stretches:
        total, _ = s.sequence.totals(s.start, s.stop)
        added += np.maximum(0.0, total) * np.abs(s.coefficient)
    nothing = np.zeros(len(number))
    cut_off = LinearColumn(nothing, tuple(stretches), number.missing, nothing)
    value, error = number.valued()
    reach = widths(noises, number.plus(cut_off), outside) + error
    moved = value + sign * (added + reach)
    return np.where(np.isnan(end), end, np.maximum(end, moved) if sign > 0 else np.minimum(end, moved)), False
