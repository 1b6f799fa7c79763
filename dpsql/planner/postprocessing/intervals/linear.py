"""Sums of noisy numbers with known coefficients, a whole column at a time, and which noise they share.

A sum may be long (a total of all groups, a running total): it is kept as a stretch of a sequence of noises, so that a
column of n totals needs n stretches, and not n times all noises.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from collections.abc import Sequence as Listed
from dataclasses import dataclass, replace
from functools import cached_property
from types import MappingProxyType
from typing import Any, Final, TypeVar

import numpy as np
from numpy.typing import NDArray

from dpsql.core.noise.integer_columns import Floats
from dpsql.core.noise.mechanisms import Additive
from dpsql.core.release.noisy import NoisyRelease, Sums
from dpsql.planner.postprocessing.searches.octaves import SearchResult, WhatIsCut, what_is_cut

Place = tuple[int, int]
"""(release, component)."""
Cut = Mapping[Place, SearchResult]
"""The searches that found limits."""
NO_CUT: Final[Cut] = MappingProxyType({})
Places = NDArray[np.intp]
Flags = NDArray[np.bool_]
Made = TypeVar("Made")
_EXACT = float(1 << 53)
_ROUNDING = 2.0**-50
"""Relative allowance for the few roundings on the way to a number."""
MOST_TERMS = 4_000_000
"""Noises that are written out at most."""


class TooMany(Exception):
    """A column is made of so many noises that its intervals would take too long."""


class Noises:
    """All noise of an answer. Each noise has a number: those of a component stand together, in its release's order.

    law: of each noise which of `laws` it has; `copies` of them together are one noise here. values: the noisy
    integer that it is in. What a release is computed of has its noise once, whatever is computed of it. cut: what
    limits cut, as far as octaves tell, whose noise is in the intervals of that.
    """

    def __init__(self, releases: Listed[NoisyRelease], cut: Cut = NO_CUT) -> None:
        self.releases = releases
        told = {at: what_is_cut(found) for at, found in cut.items()}
        self.cut: dict[Place, WhatIsCut] = {at: each for at, each in told.items() if each is not None}
        self.laws: list[Additive] = []
        self.copies: list[int] = []
        self._starts: dict[tuple[int, int], int] = {}
        self._known: dict[object, int] = {}
        self._parts: list[tuple[Places, Floats]] = [(np.zeros(0, dtype=np.intp), np.zeros(0))]
        self._height = 0
        stored: dict[int, int] = {}  # the sources of an estimate → where their noise begins
        estimated: dict[tuple[int, int], tuple[int, Sums]] = {}
        for place, noisy in enumerate(releases):
            if (estimate := noisy.estimate) is None:
                self._add(place, noisy)
                continue
            if id(estimate.sources) not in stored:
                stored[id(estimate.sources)] = self._height
                for source in estimate.sources:
                    self._append(source.mechanism, source.copies, source.values.floats())
            for i, sums in estimate.sums.items():
                estimated[place, i] = stored[id(estimate.sources)], sums
        self._octaves: dict[str, int] = {}
        for octaves in {each.octaves.label: each.octaves for each in self.cut.values()}.values():
            self._octaves[octaves.label] = self._height
            self._append(octaves.noise, 1, np.array([float(n) for n in octaves.counts]))
        self.law, self.values = (np.concatenate(each) for each in zip(*self._parts, strict=True))
        self.every = Sequence(self, np.arange(self._height), np.ones(self._height))
        self._estimated = {
            key: (Sequence(self, start + sums.cells, sums.coefficients), sums.start)
            for key, (start, sums) in estimated.items()
        }
        self._kept: dict[int, tuple[object, Any]] = {}

    def first(self, place: int, component: int) -> int | None:
        """The number of the noise in a component's first row; None if it has none."""
        return self._starts.get((place, component))

    def octave(self, label: str) -> int:
        """The number of the noise in the first octave of a search."""
        return self._octaves[label]

    def component_of(self, ids: Places) -> list[tuple[int, int] | None]:
        """(release, component) that each noise is in; None of octaves, and of what estimates are made of."""
        known = sorted((start, at) for at, start in self._starts.items())
        starts = np.array([start for start, _ in known], dtype=np.intp)
        heights = {at: len(self.releases[at[0]].keys) for _, at in known}
        found = np.searchsorted(starts, ids, side="right") - 1
        return [
            known[i][1] if i >= 0 and n < known[i][0] + heights[known[i][1]] else None
            for i, n in zip(found.tolist(), ids.tolist(), strict=True)
        ]

    def _add(self, place: int, noisy: NoisyRelease) -> None:
        for i, m in enumerate(noisy.planned.measured.measurements):
            if m.known is not None or not isinstance(m.mechanism, Additive) or not m.noise.scale:
                continue
            self._starts[place, i] = self._height
            self._append(m.noise, 1, noisy.columns[i].floats())

    def _append(self, law: Additive, copies: int, values: Floats) -> None:
        at = self._known.setdefault((law, copies), len(self.laws))
        if at == len(self.laws):
            self.laws.append(law)
            self.copies.append(copies)
        self._height += len(values)
        self._parts.append((np.full(len(values), at, dtype=np.intp), values))

    def column(self, place: int, component: int) -> tuple[Sequence, Places] | None:
        """A component as stretches of a sequence, each row's from its place up to the next; None if it has no noise."""
        if (place, component) in self._estimated:
            return self._estimated[place, component]
        first = self._starts.get((place, component))
        return None if first is None else (self.every, first + np.arange(self._height - first + 1))

    def kept(self, of: object, make: Callable[[], Made]) -> Made:
        """What is made of an object once: sequences are the same only if they are one."""
        if id(of) not in self._kept:
            self._kept[id(of)] = of, make()
        made: Made = self._kept[id(of)][1]
        return made


@dataclass(frozen=True, slots=False, eq=False)
class Sequence:
    """Noises one after the other, each with a coefficient."""

    noises: Noises
    ids: Places
    coefficients: Floats

    @cached_property
    def _parts(self) -> Floats:
        parts: Floats = self.coefficients * self.noises.values[self.ids]
        return parts

    @cached_property
    def _sums(self) -> tuple[Floats, Floats]:
        zero = np.zeros(1)
        return np.concatenate([zero, np.cumsum(self._parts)]), np.concatenate([zero, np.cumsum(np.abs(self._parts))])

    @cached_property
    def whole(self) -> bool:
        """Whether all its sums are integers that floating-point numbers hold."""
        return bool((self._parts == np.rint(self._parts)).all()) and self._sums[1][-1] < _EXACT

    @cached_property
    def largest(self) -> float:
        """The largest |coefficient|."""
        return float(np.abs(self.coefficients).max(initial=0))

    @cached_property
    def kinds(self) -> tuple[Places, Floats, Places]:
        """Law and coefficient of each kind of element, and of each element its kind."""
        pairs = np.stack([self.noises.law[self.ids].astype(np.float64), self.coefficients], axis=1)
        if len(pairs) and (pairs == pairs[0]).all():
            kinds, of = pairs[:1], np.zeros(len(pairs), dtype=np.intp)
        else:
            kinds, of = np.unique(pairs, axis=0, return_inverse=True)
        return kinds[:, 0].astype(np.intp), kinds[:, 1], of.reshape(-1)

    @cached_property
    def counted(self) -> NDArray[np.int64]:
        """How many elements of each kind stand before each place: one row per kind."""
        _, coefficients, of = self.kinds
        found = np.zeros((len(coefficients), len(self.ids) + 1), dtype=np.int64)
        for kind in range(len(coefficients)):
            np.cumsum(of == kind, out=found[kind, 1:])
        return found

    @cached_property
    def _sorted(self) -> tuple[Places, Places]:
        order = np.argsort(self.ids, kind="stable")
        return self.ids[order], order

    @cached_property
    def unique(self) -> bool:
        """Whether no noise is there twice."""
        ids, _ = self._sorted
        return not (ids[1:] == ids[:-1]).any()

    def places(self, ids: Places) -> Places:
        """Where these noises stand; -1 where one does not."""
        known, order = self._sorted
        if not len(known):
            return np.full(len(ids), -1)
        at = np.minimum(np.searchsorted(known, ids), len(known) - 1)
        return np.where(known[at] == ids, order[at], -1)

    def totals(self, start: Places, stop: Places) -> tuple[Floats, Floats]:
        """Sums of stretches, and how far rounding may have moved them."""
        one = stop - start == 1
        at = np.minimum(start, max(0, len(self.ids) - 1))
        alone = self._parts[at] if len(self.ids) else np.zeros(len(start))
        sums, sizes = self._sums
        found = np.where(one, alone, sums[stop] - sums[start])
        if self.whole:
            return found, np.zeros(len(start))
        error = np.where(one, np.abs(alone), sizes[-1] * (1 + (stop - start) * 2.0**-3)) * _ROUNDING
        return found, np.where(start == stop, 0.0, error)


@dataclass(frozen=True, slots=True, eq=False)
class Stretch:
    """coefficient · Σ of the sequence from start up to stop, row by row."""

    sequence: Sequence
    start: Places
    stop: Places
    coefficient: Floats

    def taken(self, at: Places) -> Stretch:
        """Those of these rows; nothing where a row's number is -1."""
        there, at = at >= 0, np.maximum(at, 0)
        start = self.start[at] if len(self.start) else np.zeros(len(at), dtype=np.intp)
        stop = np.where(there, self.stop[at] if len(self.stop) else 0, start)
        return Stretch(self.sequence, start, stop, self.coefficient[at] if len(self.coefficient) else np.zeros(len(at)))

    def scaled(self, by: Floats | float) -> Stretch:
        """Times a number of each row."""
        return replace(self, coefficient=self.coefficient * by)

    @property
    def used(self) -> Flags:
        """Where there is anything in it."""
        used: Flags = (self.stop > self.start) & (self.coefficient != 0)
        return used

    def like(self, other: Stretch) -> bool:
        """Whether it is of the same noises in every row."""
        return (
            self.sequence is other.sequence
            and np.array_equal(self.start, other.start)
            and np.array_equal(self.stop, other.stop)
        )


@dataclass(frozen=True, slots=True, eq=False)
class LinearColumn:
    """A column: constant + Σ of stretches. missing: where it is NULL.

    slack: how far the number that the engine shows may be from it, because it adds up numbers that were rounded.
    """

    constant: Floats
    stretches: tuple[Stretch, ...]
    missing: Flags
    slack: Floats

    @classmethod
    def fixed(cls, values: Floats, missing: Flags) -> LinearColumn:
        """Numbers without noise."""
        return cls(np.where(missing, 0.0, values), (), missing, np.zeros(len(values)))

    def __len__(self) -> int:
        return len(self.constant)

    @property
    def used(self) -> Flags:
        """Where there is any noise in it."""
        found: Flags = np.zeros(len(self), dtype=np.bool_)
        for stretch in self.stretches:
            found |= stretch.used
        return found

    def valued(self) -> tuple[Floats, Floats]:
        """The noisy numbers, and how far rounding may have moved them."""
        value, error = self.constant.copy(), np.zeros(len(self))
        size, whole = np.abs(value), bool((value == np.rint(value)).all())
        for stretch in self.stretches:
            total, own = stretch.sequence.totals(stretch.start, stretch.stop)
            part = stretch.coefficient * total
            value, error, size = value + part, error + own * np.abs(stretch.coefficient), size + np.abs(part)
            whole = whole and bool((part == np.rint(part)).all())
        exact = whole & (size < _EXACT) & (error == 0)
        return value, np.where(exact, 0.0, error + size * _ROUNDING)

    def taken(self, at: Places) -> LinearColumn:
        """These rows; NULL where a row's number is -1."""
        there, safe = at >= 0, np.maximum(at, 0)
        if not len(self):
            return LinearColumn.fixed(np.zeros(len(at)), np.ones(len(at), dtype=np.bool_))
        return LinearColumn(
            np.where(there, self.constant[safe], 0.0), tuple(s.taken(at) for s in self.stretches),
            ~there | self.missing[safe], np.where(there, self.slack[safe], 0.0),
        )  # fmt: skip

    def scaled(self, by: Floats, missing: Flags) -> LinearColumn:
        """Times a number of each row, which may be NULL."""
        by = np.where(missing, 0.0, by)
        return LinearColumn(
            self.constant * by, tuple(s.scaled(by) for s in self.stretches), self.missing | missing,
            self.slack * np.abs(by),
        )  # fmt: skip

    def plus(self, other: LinearColumn) -> LinearColumn:
        """The sum, row by row; noise that both have is added up."""
        stretches = list(self.stretches)
        for stretch in other.stretches:
            at = next((i for i, known in enumerate(stretches) if known.like(stretch)), None)
            if at is None:
                stretches.append(stretch)
            else:
                stretches[at] = replace(stretches[at], coefficient=stretches[at].coefficient + stretch.coefficient)
        return LinearColumn(
            self.constant + other.constant, tuple(stretches), self.missing | other.missing, self.slack + other.slack
        )

    def where(self, chosen: Flags) -> LinearColumn:
        """0 without noise in the other rows."""
        return replace(
            self.scaled(chosen.astype(np.float64), np.zeros(len(self), dtype=np.bool_)), missing=self.missing
        )


def chosen(columns: Listed[LinearColumn], which: Places) -> LinearColumn:
    """Each row from the column with that number; NULL where it is -1."""
    found = LinearColumn.fixed(np.zeros(len(which)), np.zeros(len(which), dtype=np.bool_))
    missing = which < 0
    for i, column in enumerate(columns):
        found = found.plus(column.where(which == i))
        missing = np.where(which == i, column.missing, missing)
    return replace(found, missing=missing)


@dataclass(frozen=True, slots=True, eq=False)
class Spans:
    """For each row of a column several rows of another: those of `order` from start up to stop."""

    order: Places
    start: Places
    stop: Places

    def taken(self, at: Places) -> Spans:
        """Those of these rows, which have none where the number is -1."""
        there, at = at >= 0, np.maximum(at, 0)
        return Spans(self.order, np.where(there, self.start[at], 0), np.where(there, self.stop[at], 0))

    def present(self, missing: Flags) -> NDArray[np.int64]:
        """How many of them are not NULL. missing: where the other column is."""
        counted = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(~missing[self.order])])
        found: NDArray[np.int64] = counted[self.stop] - counted[self.start]
        return found


@dataclass(frozen=True, slots=True, eq=False)
class LaidOut:
    """The rows of a column in an order, their noises one after the other: those of row i from at[i] up to at[i+1].

    constants, slacks: sums of the rows before each place.
    """

    column: LinearColumn
    order: Places
    sequence: Sequence
    at: Places
    constants: Floats
    slacks: Floats

    @classmethod
    def of(cls, noises: Noises, column: LinearColumn, order: Places) -> LaidOut:
        """NULL adds nothing. Raises TooMany."""
        ordered = column.taken(order)
        keep = ~ordered.missing
        parts = [written_out(s, keep.astype(np.float64)) for s in ordered.stretches]
        nothing = [(np.zeros(0, dtype=np.intp), np.zeros(0, dtype=np.intp), np.zeros(0))]
        rows, ids, coefficients = (np.concatenate(each) for each in zip(*(parts or nothing), strict=True))
        sorted_ = np.argsort(rows, kind="stable")
        counts = np.bincount(rows, minlength=len(ordered))
        constants, slacks = (
            np.concatenate([np.zeros(1), np.cumsum(np.where(keep, x, 0.0))]) for x in (ordered.constant, ordered.slack)
        )
        at = np.concatenate([np.zeros(1, dtype=np.intp), np.cumsum(counts)])
        return cls(column, order, Sequence(noises, ids[sorted_], coefficients[sorted_]), at, constants, slacks)

    def sums(self, spans: Spans) -> LinearColumn:
        """Σ of several rows; NULL where none has a value. spans: in this order."""
        stretch = Stretch(self.sequence, self.at[spans.start], self.at[spans.stop], np.ones(len(spans.start)))
        return LinearColumn(
            self.constants[spans.stop] - self.constants[spans.start], (stretch,),
            spans.present(self.column.missing) == 0, self.slacks[spans.stop] - self.slacks[spans.start],
        )  # fmt: skip


def written_out(stretch: Stretch, by: Floats) -> tuple[Places, Places, Floats]:
    """Row, noise and coefficient of everything in a stretch, times a number of each row. Raises TooMany."""
    lengths = np.where(stretch.used & (by != 0), stretch.stop - stretch.start, 0)
    total = int(lengths.sum())
    if total > MOST_TERMS:
        raise TooMany
    rows = np.repeat(np.arange(len(lengths)), lengths)
    before = np.cumsum(lengths) - lengths
    at = np.arange(total) - before[rows] + stretch.start[rows]
    own = stretch.sequence.coefficients[at] * (stretch.coefficient * by)[rows]
    return rows, stretch.sequence.ids[at], own
