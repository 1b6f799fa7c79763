"""Stored answers of single periods, put together with each other and with what is drawn, or added up: arithmetic."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction

import numpy as np

from dpsql.answers.stored.ledger_summaries import largest_widths
from dpsql.core.analysis.period_parts import PeriodPart
from dpsql.core.ir.expressions import LiteralValue
from dpsql.core.ir.nodes import key_sources
from dpsql.core.ledger.released import StoredAnswer
from dpsql.core.noise.integer_columns import Integers
from dpsql.core.noise.measurement import MeasuredRelease
from dpsql.core.noise.mechanisms import Additive, Mechanism, made_by
from dpsql.core.release.noisy import Estimate, NoisyRelease, NoisySource, Sums, public_keys
from dpsql.core.release.planned import PlannedRelease

Answers = Mapping[int, StoredAnswer]
"""Component → its stored answer."""
_Piece = tuple[Sequence[tuple[LiteralValue, ...]], Mapping[int, tuple[Mechanism, Integers]]]
"""Keys, and component → the numbers of these keys, and what noise is in them."""


def height_of_part(measured: MeasuredRelease, place: int, part: PeriodPart) -> int:
    """How many keys a part of a release has. place: of the key that tells days."""
    sources = key_sources(measured.node)
    assert sources is not None
    return len(part.keys) * math.prod(len(s.keys) for s in sources if s.positions != (place,))


@dataclass(frozen=True, slots=True)
class DayNumbers:
    """Parts of a release, each with the values of the key that tells days, and its answers. planned: all of it."""

    planned: PlannedRelease = field(compare=False)
    parts: tuple[tuple[tuple[LiteralValue, ...], Answers], ...]

    @property
    def answers(self) -> tuple[StoredAnswer, ...]:
        """All of them."""
        return tuple(answer for _, found in self.parts for answer in found.values())

    def of(self, planned: PlannedRelease) -> NoisyRelease:
        """The numbers of a release that has these parts alone."""
        return _together(planned, self._pieces())

    def with_drawn(self, drawn: NoisyRelease) -> NoisyRelease:
        """The whole release, of which the rest is drawn."""
        made = {i: (m.mechanism, drawn.columns[i]) for i, m in enumerate(drawn.planned.measured.measurements)}
        return _together(self.planned, [*self._pieces(), (drawn.keys, made)])

    def _pieces(self) -> list[_Piece]:
        measured = self.planned.measured
        split, keys = measured.parts, _keys(measured)
        assert split is not None
        rows: dict[LiteralValue, list[tuple[LiteralValue, ...]]] = {}
        part_of = {value: at for at, (values, _) in enumerate(self.parts) for value in values}
        for key in keys:
            if (at := part_of.get(key[split.place])) is not None:
                rows.setdefault(at, []).append(key)
        return [(rows.get(at, []), _made(found)) for at, (_, found) in enumerate(self.parts)]


@dataclass(frozen=True, slots=True)
class SummedDays:
    """Of each period of a range the answers of a release that has the same groups in each."""

    days: tuple[Answers, ...]

    @property
    def answers(self) -> tuple[StoredAnswer, ...]:
        """All of them."""
        return tuple(answer for found in self.days for answer in found.values())

    def of(self, planned: PlannedRelease) -> NoisyRelease:
        """Each number is the sum of those of the periods."""
        measured, height = planned.measured, len(_keys(planned.measured))
        sources, sums, exact, begin = list[NoisySource](), dict[int, Sums](), dict[int, Integers](), 0
        for i, m in enumerate(measured.measurements):
            if m.known is not None:
                continue
            numbers = [_numbers(found[i]) for found in self.days]
            total = Integers.zeros(height)
            for noise, values in numbers:
                assert isinstance(noise, Additive)
                sources.append(NoisySource(noise, 1, values))
                total = total.plus(values)
            cells = begin + np.arange(height)[:, None] + height * np.arange(len(numbers))[None, :]
            starts = np.arange(height + 1) * len(numbers)
            sums[i], exact[i] = Sums(starts, cells.ravel(), np.ones(cells.size)), total
            begin += height * len(numbers)
        return Estimate((), tuple(sources), sums, exact).of(planned)

    def variance(self, component: int) -> float:
        """Of the noise of a sum."""
        return sum(made_by(a.mechanism, a.parameter).variance() for a in (found[component] for found in self.days))

    def widest(self, planned: PlannedRelease, level: Fraction) -> float:
        """The largest ± of its numbers."""
        return max(largest_widths(self.of(planned), level), default=0.0)


def _numbers(answer: StoredAnswer) -> tuple[Mechanism, Integers]:
    return made_by(answer.mechanism, answer.parameter), Integers.of(answer.values)


def _made(found: Answers) -> dict[int, tuple[Mechanism, Integers]]:
    return {i: _numbers(answer) for i, answer in found.items()}


def _keys(measured: MeasuredRelease) -> Sequence[tuple[LiteralValue, ...]]:
    return public_keys(key_sources(measured.node) or (), len(measured.node.keys))


def _together(planned: PlannedRelease, pieces: Sequence[_Piece]) -> NoisyRelease:
    """The numbers of all keys. Where noise of one component differs from piece to piece, each number has its own."""
    measured, keys = planned.measured, _keys(planned.measured)
    at = {key: row for row, key in enumerate(key for own, _ in pieces for key in own)}
    order = np.array([at[key] for key in keys], dtype=np.intp)
    columns, measurements = list[Integers](), list(measured.measurements)
    for i, m in enumerate(measured.measurements):
        if m.known is not None:
            columns.append(Integers.of([m.known] * len(keys)))
            continue
        columns.append(Integers.joined([made[i][1] for _, made in pieces]).taken(order))
        noises = {made[i][0] for _, made in pieces}
        measurements[i] = replace(m, mechanism=noises.pop()) if len(noises) == 1 else m
        if noises:
            return _of_different_noise(planned, pieces, order)
    whole = replace(planned, measured=replace(measured, measurements=tuple(measurements)))
    return NoisyRelease(whole, tuple(keys), tuple(columns))


def _of_different_noise(planned: PlannedRelease, pieces: Sequence[_Piece], order: np.ndarray) -> NoisyRelease:
    sources, sums, exact, begin = list[NoisySource](), dict[int, Sums](), dict[int, Integers](), 0
    for i, m in enumerate(planned.measured.measurements):
        if m.known is not None:
            continue
        for _, made in pieces:
            noise, values = made[i]
            assert isinstance(noise, Additive)
            sources.append(NoisySource(noise, 1, values))
        sums[i] = Sums(np.arange(len(order) + 1), begin + order, np.ones(len(order)))
        exact[i] = Integers.joined([made[i][1] for _, made in pieces]).taken(order)
        begin += len(order)
    return Estimate((), tuple(sources), sums, exact).of(planned)
