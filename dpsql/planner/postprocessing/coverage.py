"""What limits take away, as far as it may be told: how many units are above a limit and how many are not."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

from dpsql.core.noise.integer_columns import rounded
from dpsql.core.numbers.confidence import LEVEL
from dpsql.core.release.noisy import NoisyRelease
from dpsql.diagnostics.note import Note, Rank
from dpsql.frontend.aggregates.formula import Bounds, output_intervals
from dpsql.planner.postprocessing.planning.steps import Coverage


@dataclass(frozen=True, slots=True)
class Units:
    """One cell of a histogram. above: limit by limit, whether these units are above it. number: of units, noisy, so
    that it may be negative. interval: at 95 % confidence.
    """

    above: tuple[bool, ...]
    number: int
    interval: Bounds


@dataclass(frozen=True, slots=True)
class Covered:
    """How many units are above the limits of one release: each unit is counted in one cell.

    unit: the privacy unit. limits: in words, as in `more than 5 rows`. cells: all combinations, those above first.
    """

    unit: str
    limits: tuple[str, ...]
    cells: tuple[Units, ...]


def covered(limited: Sequence[Coverage], noisy: Sequence[NoisyRelease], level: Fraction = LEVEL) -> tuple[Covered, ...]:
    """The coverage of an answer; nothing where it was not asked for."""
    return tuple(_covered(c.limits, noisy[c.place], level) for c in limited)


def _covered(limits: tuple[str, ...], counted: NoisyRelease, level: Fraction) -> Covered:
    measured = counted.planned.measured
    (output,) = measured.node.outputs
    unit = measured.measurements[0].unit
    numbers = rounded(counted.columns[0], unit.numerator, unit.denominator)
    intervals = output_intervals(counted, output, level)
    cells = zip(counted.keys, numbers, intervals, strict=True)
    return Covered(measured.unit, limits, tuple(Units(tuple(map(bool, key)), n, i) for key, n, i in cells))


def coverage_notes(found: Sequence[Covered]) -> Iterator[Note]:
    """Coverage in plain words."""
    for c in found:
        told = "; ".join(f"about {_around(cell)} {_where(c, cell)}" for cell in c.cells)
        yield Note(f"units of {c.unit}: {told}. What is above a limit is missing from the numbers", Rank.BIAS)


def _around(cell: Units) -> str:
    low, high = cell.interval
    return f"{cell.number:,} ± {(high - low) / 2:,.0f}"


def _where(c: Covered, cell: Units) -> str:
    over = [words for words, above in zip(c.limits, cell.above, strict=True) if above]
    if not over:
        return "above none" if len(c.limits) > 1 else "not"
    only = " only" if len(over) < len(c.limits) else ""
    return f"with {' and '.join(over)}{only}"
