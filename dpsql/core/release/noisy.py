"""A release whose exact integers are asked for once: from them to noisy ones, of which alone anything is returned."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, replace
from itertools import compress
from types import MappingProxyType
from typing import Any
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from dpsql.core.engine import Engine
from dpsql.core.ir.components import KeySource
from dpsql.core.ir.expressions import LiteralValue
from dpsql.core.ir.nodes import key_sources
from dpsql.core.ledger.ledger import Receipt
from dpsql.core.measures.largest import other_picks
from dpsql.core.noise.backends import EXACT, Backend
from dpsql.core.noise.integer_columns import Integers
from dpsql.core.noise.measurement import Measurement
from dpsql.core.noise.mechanisms import AdditiveNoise, made_by
from dpsql.core.release.drawing import EngineAsk, NoiseDraws, drawn
from dpsql.core.release.given_answers import Beside as Beside
from dpsql.core.release.given_answers import Estimate as Estimate
from dpsql.core.release.given_answers import GivenAnswers as GivenAnswers
from dpsql.core.release.given_answers import NoisyRelease as NoisyRelease
from dpsql.core.release.given_answers import NoisySource as NoisySource
from dpsql.core.release.given_answers import StoredNumbers as StoredNumbers
from dpsql.core.release.given_answers import Sums as Sums
from dpsql.core.release.given_answers import public_keys as public_keys
from dpsql.core.release.given_answers import wanted as wanted
from dpsql.core.release.histograms import Entries, Histograms
from dpsql.core.release.key_matching import Key as Key
from dpsql.core.release.key_matching import KeyColumns, columns_of, numbered, places
from dpsql.core.release.planned import PlannedRelease
from dpsql.core.values.key_lists import LazyKeys

NOTHING_GIVEN = GivenAnswers()


def draw_release(
    planned: PlannedRelease,
    engine: Engine,
    receipt: Receipt | None,
    salt: int,
    earlier: Mapping[str, str] = MappingProxyType({}),
    given: GivenAnswers = NOTHING_GIVEN,
    backend: Backend = EXACT,
    is_first: bool = False,
) -> NoisyRelease:
    """Fetch a release's exact integers and add the planned noise.

    receipt: proof that the plan's cost is durably charged; None only where every sensitivity is 0.
    salt: the ledger's secret number, which fixes the truncation order.
    earlier: label of a release that this one reads → its noisy rows as a query.
    given: stored answers; no noise is drawn for them, and if nothing else is wanted, nothing is fetched.
    backend: who draws the noise. is_first: as of `drawn`.
    Raises EngineError, whose text never depends on data.
    """
    # Without anything to draw no private row is read, not even for public keys or a sum that is always 0: that the
    # engine fails on some data, or takes its time, would be told for free.
    if not wanted(planned.measured, given):
        return assembled(planned, given)
    return drawn(OneQuestion(planned, given), engine, receipt, salt, earlier, backend, is_first)


@dataclass(frozen=True, slots=True)
class OneQuestion:
    """The drawing of a release that asks for all its exact integers, and then draws their noise."""

    planned: PlannedRelease
    given: GivenAnswers

    @property
    def declared(self) -> Sequence[Measurement]:
        """One for each component."""
        return self.planned.measured.measurements

    def draw(self, ask: EngineAsk, noise: NoiseDraws) -> NoisyRelease:
        """The released numbers."""
        return assembled(self.planned, self.given, _fetch(self.planned, ask), noise)


Exact = Integers | Histograms
"""What is exact of one component: a number for each group, or a histogram."""


@dataclass(frozen=True, slots=True, repr=False)
class PrivateIntegers:
    """What is exact of all components, one column each, for the keys found. Private: it shows nothing of itself.

    keys: each once, in an order that depends on the data.
    """

    keys: KeyColumns
    columns: list[Exact]

    def __repr__(self) -> str:
        return "<private>"

    def rows(self) -> dict[Key, list[int | Entries]]:
        """Key → its integers, and its histograms where cells are chosen."""
        columns = [
            [_entries(column, group) for group in range(len(column))] if isinstance(column, Histograms) else column
            for column in self.columns
        ]
        rows = zip(*columns, strict=True) if columns else ((),) * len(self.keys)
        return {key: list(row) for key, row in zip(self.keys, rows, strict=True)}

    def of(self, keys: Sequence[Key]) -> list[Exact]:
        """The columns for these keys; 0, or an empty histogram, where a key was not found."""
        at = places(self.keys, keys)
        return [_for_places(column, at) for column in self.columns]


def _for_places(column: Exact, at: NDArray[np.intp]) -> Exact:
    if isinstance(column, Histograms):
        return column.taken(at)
    return Integers.joined([column, Integers.zeros(1)]).taken(at)  # the 0 stands at the end, where position -1 is


def assembled(
    planned: PlannedRelease, given: GivenAnswers, exact: PrivateIntegers | None = None, noise: NoiseDraws | None = None
) -> NoisyRelease:
    """The released numbers, of stored answers and of exact ones with noise.

    exact, noise: not needed where none is wanted.
    """
    if given.estimate is not None:
        return given.estimate.of(planned)
    noise = noise or NoiseDraws([])
    exact = exact or PrivateIntegers(KeyColumns([], 0), [Integers.zeros(0) for _ in planned.measured.node.components])
    sources, width = key_sources(planned.measured.node), len(planned.measured.node.keys)
    if given.keys is not None or sources is not None:
        keys = given.keys if given.keys is not None else public_keys(sources or (), width)
        planned, columns, shown = _noised(planned, given, len(keys), exact.of(keys), noise)
        return NoisyRelease(planned, _shown(keys, shown), tuple(columns))
    # Private keys are sorted: the order in which the engine finds groups depends on the data. Noise does not depend on
    # a row's place, so only those that are shown need to be.
    planned, columns, shown = _noised(planned, given, len(exact.keys), exact.columns, noise)
    held = exact.keys.taken(shown)
    order = in_order(held.columns, len(held))
    return NoisyRelease(planned, tuple(held.taken(order)), tuple(column.taken(order) for column in columns))


def noised(
    planned: PlannedRelease, given: GivenAnswers, keys: Sequence[Key], exact: Sequence[Exact], noise: NoiseDraws
) -> NoisyRelease:
    """Noise and threshold: the released rows for these keys.

    exact: of each component, one integer or histogram for each key. Private. The rows do not influence each other, so
    that an audit may draw many releases at once, as one of as many times the keys. Cells are chosen for the keys that
    are shown.
    """
    planned, columns, shown = _noised(planned, given, len(keys), exact, noise)
    return NoisyRelease(planned, _shown(keys, shown), tuple(columns))


def _shown(keys: Sequence[Key], shown: NDArray[np.bool_]) -> Sequence[Key]:
    if not shown.all():
        return tuple(compress(keys, shown.tolist()))
    return keys if isinstance(keys, LazyKeys) else tuple(keys)  # a million keys of a public list are not written out


def _noised(
    planned: PlannedRelease, given: GivenAnswers, height: int, exact: Sequence[Exact], noise: NoiseDraws
) -> tuple[PlannedRelease, list[Integers], NDArray[np.bool_]]:
    """With the mechanisms that made the numbers, these of the rows that are shown, and which are, of `height` keys."""
    node, measurements = planned.measured.node, list(planned.measured.measurements)
    columns: list[Integers] = []
    for i, m in enumerate(measurements):
        if i in given.answers:
            answer = given.answers[i]
            columns.append(Integers.of(answer.values))
            measurements[i] = replace(m, mechanism=made_by(answer.mechanism, answer.parameter))
        elif m.known is not None:  # whatever the data hold: a size that is promised must not be corrected by them
            columns.append(m.noise.add_noise([m.known] * height))
        else:
            own = exact[i]
            columns.append(Integers.zeros(height) if isinstance(own, Histograms) else noise(i, own).integers)
    shown: NDArray[np.bool_] = np.ones(height, dtype=np.bool_)
    threshold = planned.measured.threshold
    if threshold is not None:
        assert node.threshold is not None
        stored = given.answers.get(node.threshold)
        if stored is None:
            shown = np.array(threshold.release(columns[node.threshold]), dtype=np.bool_)
            columns = [column.taken(shown) for column in columns]
        elif stored.shown is not None:
            made = made_by(stored.mechanism, stored.parameter)
            assert isinstance(made, AdditiveNoise)
            threshold = replace(
                threshold, threshold=stored.shown.threshold, mechanism=made, r=stored.shown.r, g=stored.shown.g
            )
    for i in wanted(planned.measured, given):
        if isinstance(own := exact[i], Histograms):
            others = other_picks(node.components, i)
            taken = [columns[at] for at in others if at < i or at in given.answers]
            columns[i] = noise.choose(i, own.taken(shown), taken).integers
    measured = replace(planned.measured, measurements=tuple(measurements), threshold=threshold)
    planned = replace(planned, measured=measured) if given.answers else planned
    return planned, columns, shown


def exact_totals(
    planned: PlannedRelease, engine: Engine, salt: int, earlier: Mapping[str, str] = MappingProxyType({})
) -> dict[Key, list[int | Entries]]:
    """Every key that may be released → the exact integers of all components, of what is chosen its histogram.

    Private: for audits of databases that they made up themselves. What is released comes from `draw_release` alone.
    """
    found = _fetch(planned, EngineAsk(engine, salt, earlier))
    sources = key_sources(planned.measured.node)
    if sources is None:
        keys = found.keys.taken(in_order(found.keys.columns, len(found.keys)))
    else:
        listed = public_keys(sources, _width(planned))
        keys = KeyColumns(columns_of(listed, _width(planned)), len(listed))
    return PrivateIntegers(keys, found.of(keys)).rows()


def _entries(column: Histograms, group: int) -> Entries:
    """Of a quantile as `Histograms.entries`; of a mode the number of each value that rows have, and what they weigh."""
    if not isinstance(column.cells, KeySource):
        return column.entries(group)
    number = int(column.chosen[group])
    if number < 0:
        return ()
    there = slice(int(column.ends[number - 1]) if number else 0, int(column.ends[number]))
    return tuple(zip(column.at[there].tolist(), column.weights.array[there].tolist(), strict=True))


def _fetch(planned: PlannedRelease, ask: EngineAsk) -> PrivateIntegers:
    """The keys found and the exact integers of all components. Private."""
    node, width = planned.measured.node, _width(planned)
    tables = list(map(ask, planned.statements))
    keys = [list(map(with_texts, table.columns[:width])) for table in tables]
    distinct, at_each = numbered(keys, [table.height for table in tables])
    totals: list[Integers] = [Integers.zeros(len(distinct)) for _ in node.components]
    histograms: dict[int, Histograms] = {}
    for statement, table, at in zip(planned.statements, tables, at_each, strict=True):
        if statement.cells is not None:
            *slices, told, weights = table.columns[width:]
            entries = statement.cells, at, len(distinct), with_texts(told), weights
            if statement.slices:
                each = Histograms.by_slice(*entries, *slices)
                histograms |= {i: each[n] for i, n in zip(statement.components, statement.slices, strict=True)}
            else:
                histograms |= dict.fromkeys(statement.components, Histograms.of(*entries))
            continue
        for i, values in zip(statement.components, table.columns[width:], strict=True):
            # Added up: should two keys ever be equal in Python, neither replaces the other.
            totals[i] = totals[i].plus(Integers.of(values).added_at(at, len(distinct)))
    exact = [histograms.get(i, column) for i, column in enumerate(totals)]
    if node.threshold is None:
        return PrivateIntegers(distinct, exact)
    # A key without any unit is never a candidate: whether it is seen must not depend on the engine's zero groups.
    present = np.asarray(totals[node.threshold].array > 0, dtype=np.bool_)
    return PrivateIntegers(distinct.taken(present), [column.taken(present) for column in exact])


def _width(planned: PlannedRelease) -> int:
    return len(planned.measured.node.keys)


def with_texts(column: Sequence[Any]) -> Sequence[Any]:
    """An engine's column with texts for its UUIDs, as everywhere else."""
    if isinstance(column, Integers) or UUID not in set(map(type, column)):
        return column
    return [str(v) if isinstance(v, UUID) else v for v in column]


def in_order(columns: Sequence[Sequence[LiteralValue]], height: int) -> NDArray[np.intp]:
    """The positions of the rows, the least row first: compared by the first column, then the next, and so on.

    A column holds values of one type, or None.
    """
    if len(columns) > 1 and len(set(columns[0])) == height and float not in map(type, columns[0]):
        columns = columns[:1]  # no two rows are equal there, as two NaN are that a set takes for two
    order = np.arange(height)
    for column in reversed(columns):
        kinds = {int} if isinstance(column, Integers) else set(map(type, column))
        if len(columns) == 1 and not kinds <= {int, float}:
            return _sorted(column)
        order = order[np.argsort(_ranks(column, kinds)[order], kind="stable")]
    return order


def _sorted(column: Sequence[Any]) -> NDArray[np.intp]:
    present = [at for at, value in enumerate(column) if value is not None]
    missing = [at for at, value in enumerate(column) if value is None] if len(present) < len(column) else []
    return np.array(sorted(present, key=column.__getitem__) + missing, dtype=np.intp)


def _ranks(column: Sequence[Any], kinds: Set[type]) -> NDArray[Any]:
    """Numbers in the order of the values, which are of these kinds."""
    if kinds == {int}:
        return Integers.of(column).array
    if kinds == {float}:
        return np.array(column, dtype=np.float64)  # NaN goes to the end
    distinct = sorted(set(column) - {None})
    rank = {value: at for at, value in enumerate([*distinct, None])}
    return np.fromiter(map(rank.__getitem__, column), np.intp, len(column))
