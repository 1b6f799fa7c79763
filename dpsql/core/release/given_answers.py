"""Released numbers, and the stored ones that a run is given in place of new noise."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from dpsql.core.ir.components import KeySource
from dpsql.core.ir.expressions import LiteralValue
from dpsql.core.ir.nodes import key_sources
from dpsql.core.ledger.released import StoredAnswer
from dpsql.core.noise.integer_columns import Integers
from dpsql.core.noise.measurement import MeasuredRelease
from dpsql.core.noise.mechanisms import Additive
from dpsql.core.release.key_matching import Key, columns_of
from dpsql.core.release.planned import PlannedRelease


@dataclass(frozen=True, slots=True)
class NoisyRelease:
    """Released numbers: one row per key, one column of noisy integers per component, in the components' units.

    planned: with the mechanisms that made these very numbers; for stored ones that is not what the plan had.
    estimate: what they were computed of, if no noise was drawn for them.
    """

    planned: PlannedRelease
    keys: Sequence[Key]
    columns: tuple[Integers, ...]
    estimate: Estimate | None = None

    @classmethod
    def of_rows(cls, planned: PlannedRelease, keys: Iterable[Key], rows: Iterable[Sequence[int]]) -> NoisyRelease:
        """From one row of integers for each key."""
        columns = list(zip(*rows, strict=True)) or [()] * len(planned.measured.measurements)
        return cls(planned, tuple(keys), tuple(map(Integers.of, columns)))

    def only(self, rows: Sequence[int]) -> NoisyRelease:
        """Some of the rows."""
        columns = tuple(Integers(column.array[list(rows)]) for column in self.columns)
        return NoisyRelease(self.planned, tuple(self.keys[row] for row in rows), columns)

    @property
    def values(self) -> tuple[tuple[int, ...], ...]:
        """The same row by row."""
        return tuple(zip(*self.columns, strict=True)) if self.columns else ((),) * len(self.keys)

    @property
    def key_columns(self) -> Sequence[Sequence[LiteralValue]]:
        """The keys column by column."""
        return columns_of(self.keys, self.width)

    @property
    def width(self) -> int:
        """How many columns a key has."""
        return len(self.planned.measured.node.keys)


@dataclass(frozen=True, slots=True)
class NoisySource:
    """Sums of `copies` stored numbers each. A stored number has this noise, and is in one of the sums."""

    mechanism: Additive
    copies: int
    values: Integers


@dataclass(frozen=True, slots=True)
class Sums:
    """For each key of a release a sum of numbers of sources, in integer units of the component that it stands for.

    cells: their places among the numbers of all sources, one source after the other. coefficients: of each. start:
    where each key's begin; one more for the end.
    """

    start: NDArray[np.intp]
    cells: NDArray[np.intp]
    coefficients: NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Estimate:
    """Stored numbers that a release is computed of: arithmetic, on which no privacy rests.

    answers: all that are charged for together, whichever of them have a coefficient. sources: what they say; the same
    object for all that is computed of the same numbers. sums: component → its numbers; one without them is public.
    exact: component → what its sums are, where they are no more than stored numbers added up.
    """

    answers: tuple[StoredAnswer, ...]
    sources: tuple[NoisySource, ...] = field(compare=False)
    sums: Mapping[int, Sums] = field(compare=False)
    exact: Mapping[int, Integers] = field(default_factory=dict, compare=False)

    def of(self, planned: PlannedRelease) -> NoisyRelease:
        """The numbers of a release with public keys, each the nearest integer."""
        stored = np.concatenate([source.values.floats() for source in self.sources])
        columns = list[Integers]()
        keys = public_keys(key_sources(planned.measured.node) or (), len(planned.measured.node.keys))
        for i, m in enumerate(planned.measured.measurements):
            if m.known is not None:
                columns.append(Integers.of([m.known] * len(keys)))
                continue
            if i in self.exact:
                columns.append(self.exact[i])
                continue
            sums = self.sums[i]
            rows = np.repeat(np.arange(len(keys)), np.diff(sums.start))
            totals = np.bincount(rows, sums.coefficients * stored[sums.cells], len(keys))
            columns.append(Integers.of([round(total) for total in totals.tolist()]))
        return NoisyRelease(planned, tuple(keys), tuple(columns), self)


class Beside(Protocol):
    """Stored numbers, and what they say beside others."""

    @property
    def answers(self) -> tuple[StoredAnswer, ...]:
        """All that are charged for together."""
        ...

    def with_drawn(self, drawn: NoisyRelease) -> NoisyRelease:
        """Together with new numbers of other groups."""
        ...


class StoredNumbers(Protocol):
    """Stored numbers, and what they say of a whole release, as `Estimate`."""

    @property
    def answers(self) -> tuple[StoredAnswer, ...]:
        """All that are charged for together."""
        ...

    def of(self, planned: PlannedRelease) -> NoisyRelease:
        """The numbers of a release."""
        ...


@dataclass(frozen=True, slots=True)
class GivenAnswers:
    """Stored answers for some components of a release, by their place; with private keys, the keys they are for.

    estimate: in their place what all components are computed of: then none is drawn. earlier: draws with which that of
    a component, given or new, is averaged. beside: what is put together with what is drawn, which is of other groups.
    """

    answers: Mapping[int, StoredAnswer] = field(default_factory=dict)
    keys: tuple[Key, ...] | None = None
    estimate: StoredNumbers | None = None
    earlier: Mapping[int, tuple[StoredAnswer, ...]] = field(default_factory=dict)
    beside: Beside | None = None

    @property
    def every(self) -> tuple[StoredAnswer, ...]:
        """All stored answers that the account has to have for it."""
        more = (answer for draws in self.earlier.values() for answer in draws)
        others = (answer for own in (self.estimate, self.beside) if own is not None for answer in own.answers)
        return (*self.answers.values(), *others, *more)


def wanted(measured: MeasuredRelease, given: GivenAnswers) -> tuple[int, ...]:
    """The components for which noise is drawn: neither known to everybody, nor given or computed of what is given."""
    if given.estimate is not None:
        return ()
    return tuple(i for i, m in enumerate(measured.measurements) if m.known is None and i not in given.answers)


def public_keys(sources: Sequence[KeySource], width: int) -> Sequence[Key]:
    """All combinations of the public key lists, in release order; one empty key without grouping."""
    if len(sources) == 1 and sources[0].positions == tuple(range(width)):
        return sources[0].keys
    keys = []
    for combination in product(*(list(s.keys) for s in sources)):
        key: list[LiteralValue] = [None] * width
        for source, values in zip(sources, combination, strict=True):
            for position, value in zip(source.positions, values, strict=True):
                key[position] = value
        keys.append(tuple(key))
    return keys
