"""Rows whose noise has the same law: their quantiles are computed once.

The noise of a row's number is given by how many noises of which law have which coefficient. Of two numbers (a quotient)
the coefficients are pairs. Coefficients are given as parts of the row's largest, so that rows in other units are alike.
"""

from __future__ import annotations

from collections.abc import Sequence as Listed
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from dpsql.core.noise.integer_columns import Floats
from dpsql.planner.postprocessing.intervals.linear import (
    MOST_TERMS,
    LinearColumn,
    Noises,
    Places,
    Sequence,
    Stretch,
    TooMany,
    written_out,
)

_MOST_KINDS = 12
_EXACTLY = 64
"""Numbers of equal noises up to this are kept as they are; larger ones are rounded up, by at most one part in 32."""
_DIGITS = 1e-10


@dataclass(frozen=True, slots=True)
class NoiseClasses:
    """of: each row's class. law, count: of each class (rows) the terms (columns); a count of 0 is no term.

    coefficients: of each term in each of the numbers. scales: what those of a row have to be multiplied by.
    """

    of: Places
    law: Places
    count: NDArray[np.int64]
    coefficients: tuple[Floats, ...]
    scales: tuple[Floats, ...]


@dataclass(frozen=True, slots=True, eq=False)
class _Terms:
    """One term of every row: `count` noises of a law with these coefficients."""

    law: Places
    count: NDArray[np.int64]
    coefficients: tuple[Floats, ...]


def classes(noises: Noises, numbers: Listed[LinearColumn]) -> NoiseClasses:
    """The classes of the noise of one number, or of several together, in each row. Raises TooMany."""
    height = len(numbers[0])
    scales = tuple(_scale(n) for n in numbers)
    stretches = [
        (place, stretch.scaled(1 / scale))
        for place, (n, scale) in enumerate(zip(numbers, scales, strict=True))
        for stretch in n.stretches
        if stretch.used.any()
    ]
    long = [(place, s) for place, s in stretches if ((s.stop - s.start > 1) & s.used).any()]
    alone = [(place, s) for place, s in stretches if not any(s is other for _, other in long)]
    sequences = list(dict.fromkeys(s.sequence for _, s in long))
    several = len(numbers)
    if not _apart(sequences):
        return _by_writing_out(noises, stretches, several, height, scales)
    terms = _single(noises, alone, several, height)
    for sequence in sequences:
        terms = _stretched(terms, [(p, s) for p, s in long if s.sequence is sequence], sequence, several)
    return _grouped(noises, [t for t in terms if t[1].count.any()], several, height, scales)


def _apart(sequences: Listed[Sequence]) -> bool:
    """Whether each has few kinds of noises, and none is there twice."""
    if any(not s.unique or len(s.kinds[0]) > _MOST_KINDS for s in sequences):
        return False
    every = np.concatenate([np.zeros(0, dtype=np.intp), *(s.ids for s in sequences)])
    return len(sequences) < 2 or len(np.unique(every)) == len(every)


def _scale(number: LinearColumn) -> Floats:
    found = np.zeros(len(number))
    for s in number.stretches:
        found = np.maximum(found, np.where(s.used, np.abs(s.coefficient) * s.sequence.largest, 0.0))
    return np.where(found > 0, found, 1.0)


_Identified = tuple[Places, _Terms]


def _single(noises: Noises, stretches: Listed[tuple[int, Stretch]], several: int, height: int) -> list[_Identified]:
    """Terms of single noises, each with its number (-1: none); equal noises are put together."""
    found: list[tuple[Places, list[Floats]]] = []
    for place, s in stretches:
        ids = np.where(s.used, s.sequence.ids[np.minimum(s.start, len(s.sequence.ids) - 1)], -1)
        own = np.where(
            s.used, s.sequence.coefficients[np.minimum(s.start, len(s.sequence.ids) - 1)] * s.coefficient, 0.0
        )
        for known, coefficients in found:
            same = (known == ids) & (ids >= 0)
            coefficients[place] = coefficients[place] + np.where(same, own, 0.0)
            ids, own = np.where(same, -1, ids), np.where(same, 0.0, own)
        coefficients = [np.zeros(height) for _ in range(several)]
        coefficients[place] = own
        found.append((ids, coefficients))
    return [(ids, _Terms(_law(noises, ids), (ids >= 0).astype(np.int64), tuple(c))) for ids, c in found]


def _law(noises: Noises, ids: Places) -> Places:
    return np.where(ids >= 0, noises.law[np.maximum(ids, 0)] if len(noises.law) else 0, 0)


def _stretched(
    single: list[_Identified], long: Listed[tuple[int, Stretch]], sequence: Sequence, several: int
) -> list[_Identified]:
    """Single terms beside stretches of one sequence: it is cut where a stretch begins or ends, and a single noise that
    stands in it is taken out and has both coefficients."""
    edges = np.sort(np.stack([e for _, s in long for e in (s.start, s.stop)]), axis=0)
    laws, own, kind_of = sequence.kinds
    found = []
    places = [np.where(ids >= 0, sequence.places(ids), -1) for ids, _ in single]
    added = [[c.copy() for c in terms.coefficients] for _, terms in single]
    for low, high in pairwise(edges):
        inside = [(p, np.where((s.start <= low) & (high <= s.stop), s.coefficient, 0.0)) for p, s in long]
        by = [sum((c for p, c in inside if p == place), np.zeros(len(low))) for place in range(several)]
        empty = low >= high
        counts = sequence.counted[:, high] - sequence.counted[:, low]
        for at, place_of in enumerate(places):
            here = (place_of >= low) & (place_of < high) & ~empty
            kind = kind_of[np.maximum(place_of, 0)]
            for number in range(several):
                added[at][number] = added[at][number] + np.where(here, by[number] * own[kind], 0.0)
            counts[kind, np.arange(len(kind))] -= here
        for i, law in enumerate(laws.tolist()):
            count = np.where(empty, 0, counts[i])
            used = np.any([b != 0 for b in by], axis=0)
            law_of = np.full(len(low), law, dtype=np.intp)
            terms = _Terms(law_of, np.where(used, count, 0), tuple(b * own[i] for b in by))
            found.append((np.full(len(low), -1), terms))
    merged = [(ids, _Terms(terms.law, terms.count, tuple(c))) for (ids, terms), c in zip(single, added, strict=True)]
    return merged + found


def _by_writing_out(
    noises: Noises, stretches: Listed[tuple[int, Stretch]], several: int, height: int, scales: tuple[Floats, ...]
) -> NoiseClasses:
    """All terms of all rows that differ. Raises TooMany."""
    columns = [x for _, s in stretches for x in (s.start, s.stop, s.coefficient)]
    _, first, of = np.unique(
        np.stack(columns, axis=1).astype(np.float64), axis=0, return_index=True, return_inverse=True
    )
    lengths = sum(int((s.stop - s.start)[first].sum()) for _, s in stretches)
    if lengths > MOST_TERMS:
        raise TooMany
    rows, ids, parts = [], [], []
    for place, s in stretches:
        r, i, c = written_out(s.taken(first), np.ones(len(first)))
        both = np.zeros((len(r), several))
        both[:, place] = c
        rows.append(r)
        ids.append(i)
        parts.append(both)
    row, noise, part = np.concatenate(rows), np.concatenate(ids), np.concatenate(parts)
    every = max(1, len(noises.law))
    pairs, at = np.unique(row.astype(np.int64) * every + noise, return_inverse=True)
    total: Floats = np.stack([np.bincount(at.reshape(-1), part[:, n], len(pairs)) for n in range(several)], axis=1)
    keyed = np.column_stack([pairs // every, noises.law[pairs % every], _rounded(total)])
    keyed = keyed[(total != 0).any(axis=1)]
    terms, count = np.unique(keyed, axis=0, return_counts=True)
    sizes = np.bincount(terms[:, 0].astype(np.intp), minlength=len(first))
    width = int(sizes.max(initial=0))
    if width * len(first) > MOST_TERMS:
        raise TooMany
    column = np.arange(len(terms)) - (np.cumsum(sizes) - sizes)[terms[:, 0].astype(np.intp)]
    law = np.zeros((len(first), max(1, width)), dtype=np.intp)
    counts = np.zeros((len(first), max(1, width)), dtype=np.int64)
    coefficients = [np.zeros(law.shape) for _ in range(several)]
    own = terms[:, 0].astype(np.intp), column
    law[own] = terms[:, 1].astype(np.intp)
    counts[own] = _up(count * np.array(noises.copies, dtype=np.int64)[law[own]])
    for number in range(several):
        coefficients[number][own] = terms[:, 2 + number]
    classes = np.column_stack([law, counts, *coefficients])
    _, chosen, again = np.unique(classes, axis=0, return_index=True, return_inverse=True)
    return NoiseClasses(
        again.reshape(-1)[of.reshape(-1)], law[chosen], counts[chosen], tuple(c[chosen] for c in coefficients), scales
    )


def _grouped(
    noises: Noises, terms: list[_Identified], several: int, height: int, scales: tuple[Floats, ...]
) -> NoiseClasses:
    if not terms:
        nothing = np.zeros((1, 1))
        none = np.zeros((1, 1), dtype=np.intp)
        return NoiseClasses(np.zeros(height, dtype=np.intp), none, none.astype(np.int64), (nothing,) * several, scales)
    laws = np.stack([t.law for _, t in terms], axis=1)
    copies = np.array(noises.copies, dtype=np.int64)
    counts = np.stack([_up(t.count * copies[t.law]) for _, t in terms], axis=1)
    coefficients = [np.stack([_rounded(t.coefficients[n]) for _, t in terms], axis=1) for n in range(several)]
    used = counts > 0
    whole = np.column_stack([np.where(used, laws, 0), counts, *(np.where(used, c, 0.0) for c in coefficients)])
    if len(whole) and (whole == whole[0]).all():
        first, of = np.zeros(1, dtype=np.intp), np.zeros(height, dtype=np.intp)
    else:
        _, first, of = np.unique(whole, axis=0, return_index=True, return_inverse=True)
    return NoiseClasses(of.reshape(-1), laws[first], counts[first], tuple(c[first] for c in coefficients), scales)


def _rounded(x: Floats) -> Floats:
    """To ten digits of 1: what differs by rounding alone is one class."""
    return np.rint(x / _DIGITS) * _DIGITS


def _up(counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """Many equal noises counted a little larger: that only widens, and there are fewer classes."""
    step = 2 ** np.maximum(0, np.floor(np.log2(np.maximum(counts, 1))) - 5).astype(np.int64)
    return np.where(counts <= _EXACTLY, counts, -(-counts // step) * step)
