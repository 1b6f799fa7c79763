"""Columns that are aggregates of several rows of others, by the intervals of these."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from dpsql.core.noise.integer_columns import Floats
from dpsql.planner.postprocessing.intervals.column_enclosures import MANY, Bounds, Codes
from dpsql.planner.postprocessing.intervals.derived_columns import Atoms, IntervalColumn, nothing
from dpsql.planner.postprocessing.intervals.linear import MOST_TERMS, Flags, Places, Spans


@dataclass(frozen=True, slots=True, eq=False)
class Gathered(IntervalColumn):
    """`sum`, `avg`, `min` or `max` of several rows of a column."""

    function: str
    column: IntervalColumn
    spans: Spans

    @property
    def missing(self) -> Flags:  # type: ignore[override]
        found: Flags = self.spans.present(self.column.missing) == 0
        return found

    def taken(self, at: Places) -> Gathered:
        return replace(self, spans=self.spans.taken(at))

    def atoms(self) -> Atoms:
        rows = np.maximum(1, self.spans.present(self.column.missing))
        each = sum(self.column.atoms().values())
        return {(self.column, id(self.spans.order)): rows * int(np.max(each, initial=1))}

    def bounds(self, outside: Fraction) -> Bounds:
        height = len(self.spans.start)
        frames, of = np.unique(np.stack([self.spans.start, self.spans.stop], axis=1), axis=0, return_inverse=True)
        of = of.reshape(-1)
        lengths = frames[:, 1] - frames[:, 0]
        if lengths.sum() > MOST_TERMS:
            return nothing(height, MANY, self.missing)
        inner = self.column.bounds(outside)
        rows = np.repeat(np.arange(len(frames)), lengths)
        at = self.spans.order[np.arange(len(rows)) - (np.cumsum(lengths) - lengths)[rows] + frames[rows, 0]]
        keep = ~inner.missing[at]
        rows, at = rows[keep], at[keep]
        low, high, why = self._reduced(rows, inner.low[at], inner.high[at], inner.why[at], len(frames))
        return Bounds.of(low[of], high[of], self.missing, why[of])

    def _reduced(
        self, rows: Places, low: Floats, high: Floats, why: Codes, number: int
    ) -> tuple[Floats, Floats, Codes]:
        reason = np.zeros(number, dtype=np.int8)
        np.maximum.at(reason, rows, why)
        add, start = {"min": (np.minimum, np.inf), "max": (np.maximum, -np.inf)}.get(self.function, (np.add, 0.0))
        ends = np.full(number, start), np.full(number, start)
        add.at(ends[0], rows, low)
        add.at(ends[1], rows, high)
        if self.function == "avg":
            count = np.maximum(1, np.bincount(rows, minlength=number))
            ends = ends[0] / count, ends[1] / count
        if self.function in ("sum", "avg"):
            room = 2.0**-40 * np.maximum(np.abs(ends[0]), np.abs(ends[1]))
            ends = ends[0] - room, ends[1] + room
        return ends[0], ends[1], reason
