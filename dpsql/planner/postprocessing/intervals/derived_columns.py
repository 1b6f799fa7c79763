"""Columns of numbers made of noisy ones, and their intervals. `answer_intervals.py` makes them.

An *atom* is a number whose interval follows from its own noise: a sum, a quotient, an average. The intervals of a
function of several atoms hold all at once, each at 1 - outside/m; whatever depends on what, that is m times outside/m
at most (Bonferroni). The same atom counts once.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpsql.core.ir.recipes import Terms
from dpsql.core.ir.types import Kind as TypeKind
from dpsql.core.noise.integer_columns import Floats
from dpsql.core.release.noisy import NoisyRelease
from dpsql.core.values.value import Value
from dpsql.frontend.aggregates.formula import formula, output_intervals
from dpsql.planner.postprocessing.consistency.totals import Consistent
from dpsql.planner.postprocessing.intervals.column_enclosures import (
    ELSEWHERE,
    FINE,
    MANY,
    ZERO,
    Bounds,
    enclosed,
    rounded,
)
from dpsql.planner.postprocessing.intervals.consistent_numbers import estimated
from dpsql.planner.postprocessing.intervals.fieller import linear_bounds, quotient_bounds
from dpsql.planner.postprocessing.intervals.found_cuts import (
    is_cut,
    part_that_is_cut,
    quotient_with_what_is_cut,
    with_what_is_cut,
)
from dpsql.planner.postprocessing.intervals.linear import Flags, LinearColumn, Noises, Places, Stretch, TooMany, chosen

Atoms = Mapping[object, "NDArray[np.int64] | int"]
"""Atom → how many of it are in each row; what stands for it is the same for the same noise."""


class IntervalColumn(ABC):
    """A column, row by row. missing: where it is NULL, without noise."""

    missing: Flags

    def __len__(self) -> int:
        return len(self.missing)

    @abstractmethod
    def taken(self, at: Places) -> IntervalColumn:
        """These rows; NULL where a row's number is -1."""

    @abstractmethod
    def atoms(self) -> Atoms:
        """What it is made of."""

    @abstractmethod
    def bounds(self, outside: Fraction) -> Bounds:
        """Where it lies, if each atom is outside of its interval with this probability."""

    @property
    def noisy(self) -> Flags:
        """Where there is any noise in it."""
        return np.ones(len(self), dtype=np.bool_)

    def linear(self) -> LinearColumn:
        """The same as a sum of noise. Raises TypeError for what is none."""
        raise TypeError


@dataclass(frozen=True, slots=True, eq=False)
class KnownColumn(IntervalColumn):
    """Values without noise; NaN for what is no number."""

    values: Floats
    missing: Flags

    @classmethod
    def of(cls, values: Sequence[Any]) -> KnownColumn:
        """Of the engine's values."""
        numbers = [float(v) if isinstance(v, (int, float, Decimal)) else np.nan for v in values]
        return cls(np.array(numbers, dtype=np.float64), np.array([v is None for v in values], dtype=np.bool_))

    def taken(self, at: Places) -> KnownColumn:
        there, at = at >= 0, np.maximum(at, 0)
        if not len(self):
            return KnownColumn(np.zeros(len(at)), np.ones(len(at), dtype=np.bool_))
        return KnownColumn(self.values[at], ~there | self.missing[at])

    def atoms(self) -> Atoms:
        return {}

    def bounds(self, outside: Fraction) -> Bounds:
        return Bounds.of(self.values, self.values, self.missing)

    @property
    def noisy(self) -> Flags:
        return np.zeros(len(self), dtype=np.bool_)

    def linear(self) -> LinearColumn:
        return LinearColumn.fixed(np.nan_to_num(self.values), self.missing | np.isnan(self.values))


@dataclass(frozen=True, slots=True, eq=False)
class OutputColumn(IntervalColumn):
    """An output of a release in these rows of it. release: as it was drawn."""

    noises: Noises
    place: int
    at: int
    release: NoisyRelease
    rows: Places
    missing: Flags
    consistent: Consistent

    def taken(self, at: Places) -> OutputColumn:
        there, at = at >= 0, np.maximum(at, 0)
        if not len(self):
            nothing = np.zeros(len(at), dtype=np.intp)
            return replace(self, rows=nothing, missing=np.ones(len(at), dtype=np.bool_))
        return replace(self, rows=self.rows[at], missing=~there | self.missing[at])

    def atoms(self) -> Atoms:
        return {(self.place, self.at): 1}

    def bounds(self, outside: Fraction) -> Bounds:
        if self.release.estimate is not None or any((self.place, n) in self.consistent for n, _ in self._terms or ()):
            return TotalColumn(self.noises, self.linear()).bounds(outside)
        output = self.release.planned.measured.node.outputs[self.at]
        if not any((self.place, i) in self.noises.cut for i in output.recipe.components):
            return self._of_what_limits_leave(outside)
        try:
            if self._terms is not None:
                found = self._of_what_limits_leave(outside)
                return with_what_is_cut(self.noises, self.linear(), found, outside)
            return self._with_rows_that_are_cut(outside / 3)
        except TooMany:
            return nothing(len(self), MANY, self.missing)

    def _with_rows_that_are_cut(self, outside: Fraction) -> Bounds:
        """outside: of the interval of what is left, of the count, and of what is cut, each. Raises TooMany."""
        measured = self.release.planned.measured
        made_by = formula(measured.node.outputs[self.at])
        assert made_by.rows is not None
        m = measured.measurements[made_by.rows]
        counts = (self.release.columns[made_by.rows].floats() - (m.noise.half_width(1 - outside) + 1)) * float(m.unit)
        counted = counts[np.where(self.missing, 0, self.rows)] if len(counts) else np.zeros(len(self))
        part = part_that_is_cut(self.noises, (self.place, made_by.rows), counted, outside)
        found = self._of_what_limits_leave(outside)
        low, high = made_by.with_missing((found.low, found.high), part, counted)
        return replace(found, low=low, high=high)

    def _of_what_limits_leave(self, outside: Fraction) -> Bounds:
        found = np.full((len(self), 2), np.nan)
        there = np.flatnonzero(~self.missing)
        if len(there):
            asked = self.release.only(self.rows[there].tolist())
            output = self.release.planned.measured.node.outputs[self.at]
            found[there] = np.array(output_intervals(asked, output, 1 - outside), dtype=np.float64).reshape(-1, 2)
        zero = np.where(np.isnan(found[:, 0]), ZERO, FINE).astype(np.int8)
        return Bounds.of(found[:, 0], found[:, 1], self.missing, zero)

    @property
    def _terms(self) -> Terms | None:
        measured = self.release.planned.measured
        return measured.node.outputs[self.at].recipe.terms([m.component for m in measured.measurements])

    def linear(self) -> LinearColumn:
        measured, terms = self.release.planned.measured, self._terms
        output = measured.node.outputs[self.at]
        if terms is None:
            raise TypeError
        rows = np.where(self.missing, 0, self.rows)
        constant, slack, stretches, exact = np.zeros(len(self)), np.zeros(len(self)), list[Stretch](), True
        for i, worth in terms:
            column, known = self.noises.column(self.place, i), measured.measurements[i].known
            exact = exact and worth.denominator == 1
            if (self.place, i) in self.consistent:
                found = estimated(self.noises, self.consistent[self.place, i], (self.place, i), rows)
                constant = constant + float(worth) * found.constant
                stretches += [s.scaled(np.where(self.missing, 0.0, float(worth))) for s in found.stretches]
                slack = slack + abs(float(worth)) * found.slack
            elif column is None:
                own = (
                    self.release.columns[i].floats() if known is None else np.full(len(self.release.keys), float(known))
                )
                constant = constant + float(worth) * (own[rows] if len(own) else 0.0)
            else:
                by = np.where(self.missing, 0.0, float(worth))
                sequence, starts = column
                stretches.append(Stretch(sequence, starts[rows], starts[rows + 1], by))
        if not exact:
            kind, scale = output.column.type.kind, output.column.type.scale
            slack = slack + {TypeKind.INTEGER: 0.5, TypeKind.DECIMAL: 0.5 * 10.0**-scale}.get(kind, 0.0)
        if self.release.estimate is not None:  # each component is the nearest integer
            slack = slack + sum(0.5 * abs(float(worth)) for _, worth in terms)
        return LinearColumn(np.where(self.missing, 0.0, constant), tuple(stretches), self.missing, slack)


def whole_output(
    noises: Noises, place: int, at: int, release: NoisyRelease, consistent: Consistent = MappingProxyType({})
) -> OutputColumn:
    """An output in all rows of its release."""
    rows = np.arange(len(release.keys))
    return OutputColumn(noises, place, at, release, rows, np.zeros(len(rows), dtype=np.bool_), consistent)


@dataclass(frozen=True, slots=True, eq=False)
class TotalColumn(IntervalColumn):
    """A weighted sum of noisy numbers."""

    noises: Noises
    sum: LinearColumn

    @property
    def missing(self) -> Flags:  # type: ignore[override]
        return self.sum.missing

    def taken(self, at: Places) -> TotalColumn:
        return replace(self, sum=self.sum.taken(at))

    def atoms(self) -> Atoms:
        used = [s for s in self.sum.stretches if s.used.any()]
        if len(used) == 1:  # in whatever unit: its noise is outside at the same time
            return {("one", used[0].sequence, used[0].start.tobytes(), used[0].stop.tobytes()): 1}
        return {self: 1}

    def bounds(self, outside: Fraction) -> Bounds:
        try:
            low, high = linear_bounds(self.noises, self.sum, outside)
            return with_what_is_cut(self.noises, self.sum, Bounds.of(low, high, self.missing), outside)
        except TooMany:
            return nothing(len(self), MANY, self.missing)

    @property
    def noisy(self) -> Flags:
        return self.sum.used

    def linear(self) -> LinearColumn:
        return self.sum


@dataclass(frozen=True, slots=True, eq=False)
class Quotient(IntervalColumn):
    """One weighted sum over another. nonnegative: the divisor, without noise."""

    noises: Noises
    above: LinearColumn
    below: LinearColumn
    nonnegative: bool

    @property
    def missing(self) -> Flags:  # type: ignore[override]
        return self.above.missing | self.below.missing

    def taken(self, at: Places) -> Quotient:
        return replace(self, above=self.above.taken(at), below=self.below.taken(at))

    def atoms(self) -> Atoms:
        return {self: 1}

    def bounds(self, outside: Fraction) -> Bounds:
        try:
            if is_cut(self.noises, self.above, self.below):
                return self._with_what_is_cut(outside)
            low, high, zero = quotient_bounds(self.noises, self.above, self.below, outside, self.nonnegative)
        except TooMany:
            return nothing(len(self), MANY, self.missing)
        why = np.where(zero, ZERO, FINE).astype(np.int8)
        return Bounds.of(np.where(zero, np.nan, low), np.where(zero, np.nan, high), self.missing, why)

    def _with_what_is_cut(self, outside: Fraction) -> Bounds:
        """Half of the doubt is of the quotient that limits leave, a quarter of its divisor. Raises TooMany."""
        low, high, zero = quotient_bounds(self.noises, self.above, self.below, outside / 2, self.nonnegative)
        least, _ = linear_bounds(self.noises, self.below, outside / 4)
        zero = zero | (least <= 0)
        if self.nonnegative:
            why = np.where(zero, ZERO, FINE).astype(np.int8)
            found = Bounds.of(np.where(zero, np.nan, low), np.where(zero, np.nan, high), self.missing, why)
            least = np.where(zero, 1.0, least)
            if cut := quotient_with_what_is_cut(self.noises, self.above, self.below, found, least, outside / 4):
                return cut
        sides = [TotalColumn(self.noises, side).bounds(outside / 2) for side in (self.above, self.below)]
        return enclosed("div", (), sides, (False, self.nonnegative))

    @property
    def noisy(self) -> Flags:
        return self.above.used | self.below.used

    def plus(self, other: LinearColumn) -> Quotient:
        """With a number without noise added."""
        return replace(self, above=self.above.plus(self.below.scaled(other.constant, other.missing)))

    def scaled(self, by: LinearColumn) -> Quotient:
        """Times a number without noise."""
        return replace(self, above=self.above.scaled(by.constant, by.missing))


@dataclass(frozen=True, slots=True, eq=False)
class FunctionColumn(IntervalColumn):
    """A function of columns. places: where it only rounds, to how many; nonnegative: which arguments, without noise."""

    name: str
    values: tuple[Value, ...]
    args: tuple[IntervalColumn, ...]
    nonnegative: tuple[bool, ...]
    places: int | None = None

    @property
    def missing(self) -> Flags:  # type: ignore[override]
        of = [a.missing for a in self.args]
        if self.name in ("case", "if"):
            return np.zeros(len(of[0]), dtype=np.bool_)
        found: Flags = (np.all if self.name in ("greatest", "least") else np.any)(of, axis=0)
        return found

    def taken(self, at: Places) -> FunctionColumn:
        return replace(self, args=tuple(a.taken(at) for a in self.args))

    def atoms(self) -> Atoms:
        return _together(self.args)

    def bounds(self, outside: Fraction) -> Bounds:
        args = [a.bounds(outside) for a in self.args]
        if self.name == "cast":
            return rounded(args[0], self.places)
        return enclosed(self.name, self.values, args, self.nonnegative)

    @property
    def noisy(self) -> Flags:
        found: Flags = np.any([a.noisy for a in self.args], axis=0)
        return found


@dataclass(frozen=True, slots=True, eq=False)
class Picked(IntervalColumn):
    """Each row from the column with that number; NULL where it is -1."""

    which: Places
    columns: tuple[IntervalColumn, ...]

    @property
    def missing(self) -> Flags:  # type: ignore[override]
        found = self.which < 0
        for i, column in enumerate(self.columns):
            found = np.where(self.which == i, column.missing, found)
        return found

    def taken(self, at: Places) -> Picked:
        there, safe = at >= 0, np.maximum(at, 0)
        which = np.where(there, self.which[safe] if len(self) else -1, -1)
        return Picked(which, tuple(c.taken(at) for c in self.columns))

    def __len__(self) -> int:
        return len(self.which)

    def atoms(self) -> Atoms:
        found: dict[object, NDArray[np.int64] | int] = {}
        for i, column in enumerate(self.columns):
            for atom, count in column.atoms().items():
                found[atom] = np.maximum(found.get(atom, 0), count * (self.which == i))
        return found

    def bounds(self, outside: Fraction) -> Bounds:
        whole = nothing(len(self), ELSEWHERE, self.which < 0)
        for i, column in enumerate(self.columns):
            rows = np.flatnonzero(self.which == i)
            if len(rows):
                whole = whole.replaced(rows, column.taken(rows).bounds(outside))
        return whole

    def linear(self) -> LinearColumn:
        return chosen([c.linear() for c in self.columns], self.which)

    def quotient(self, noises: Noises) -> Quotient:
        """The same as one quotient. Raises TypeError for what is none."""
        quotients = [as_quotient(noises, c) for c in self.columns]
        above, below = (chosen([getattr(q, side) for q in quotients], self.which) for side in ("above", "below"))
        # Where nothing is divided by, that is 1, and not 0.
        below = replace(below, constant=np.where(self.which < 0, 1.0, below.constant))
        return Quotient(noises, above, below, all(q.nonnegative for q in quotients))

    @property
    def noisy(self) -> Flags:
        found = np.zeros(len(self), dtype=np.bool_)
        for i, column in enumerate(self.columns):
            found |= (self.which == i) & column.noisy
        return found


@dataclass(frozen=True, slots=True, eq=False)
class NoInterval(IntervalColumn):
    """No interval in any row. why: a code."""

    missing: Flags
    why: int = ELSEWHERE

    def taken(self, at: Places) -> NoInterval:
        return NoInterval(np.zeros(len(at), dtype=np.bool_), self.why)

    def atoms(self) -> Atoms:
        return {}

    def bounds(self, outside: Fraction) -> Bounds:
        return nothing(len(self), self.why, self.missing)


def nothing(height: int, why: int, missing: Flags) -> Bounds:
    """Bounds of which nothing is known."""
    unknown = np.full(height, np.nan)
    return Bounds(unknown, unknown, missing, np.full(height, why, dtype=np.int8))


def as_quotient(noises: Noises, column: IntervalColumn) -> Quotient:
    """A weighted sum, over 1; or a quotient as it is."""
    if isinstance(column, Quotient):
        return column
    if isinstance(column, Picked):
        return column.quotient(noises)
    number = column.linear()
    one = LinearColumn.fixed(np.ones(len(number)), np.zeros(len(number), dtype=np.bool_))
    return Quotient(noises, number, one, nonnegative=True)


def _together(columns: Sequence[IntervalColumn]) -> Atoms:
    found: dict[object, NDArray[np.int64] | int] = {}
    for column in columns:
        for atom, count in column.atoms().items():
            found[atom] = np.maximum(found.get(atom, 0), count)
    return found
