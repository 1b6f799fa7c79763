"""Asking for exact integers and drawing noise: the only two ways to either, and the one driver that hands both out.

*Claim.* Nothing private is asked for before the loss of all that will be drawn is durably charged, and what leaves
depends on private rows through declared noise only. *Why.* `EngineAsk` is made here alone, after a receipt was shown;
`NoiseDraws` draws what was declared, by the mechanisms that were priced, each once; a later statement takes numbers of
type `Noisy` only, and those are made by `NoiseDraws` alone; whatever fails in between becomes the constant EngineError.
*When it would be false.* A drawing that hands out what it was told instead of what noise made of it; a receipt of
another plan.
*Tested by* tests/core/release/test_two_questions.py, tests/core/release/test_receipts.py.

*Claim.* That a statement is asked a second time moves no answer but that of the id whose row made it fail. *Why.* The
second text gives what the first one gives, where that gives anything; it sees the same snapshot; and nothing of the
plan is drawn yet, so that neither the failure nor what follows it depends on noise. *When it would be false.* In a
newer snapshot: one row decides which data are read. After a draw that is drawn again: what was drawn first decides
whether it counts. *Tested by* tests/core/release/test_asked_again.py,
tests/engines_elsewhere/postgres/test_asked_again.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import Protocol, TypeVar

from dpsql.core.engine import AsksAgain, Engine, RawTable, guarded
from dpsql.core.ledger.ledger import Receipt
from dpsql.core.measures.all_measures import rule
from dpsql.core.noise.backends import EXACT, Backend
from dpsql.core.noise.integer_columns import Integers
from dpsql.core.noise.measurement import Measurement
from dpsql.core.noise.mechanisms import Exponential
from dpsql.core.printing.shapes.release_statement import Statement
from dpsql.core.release.histograms import Histograms

T_co = TypeVar("T_co", covariant=True)
T = TypeVar("T")

TOTAL_CAP = 2**100
"""Totals are saturated here; saturating moves no two neighbours further apart (it is 1-Lipschitz)."""
_MADE_BY_NOISE = object()


class Noisy:
    """Integers with noise on them, or what public arithmetic made of such: public."""

    __slots__ = ("integers",)

    def __init__(self, integers: Integers, made_by: object) -> None:
        """`NoiseDraws` makes them, and `then`. Raises TypeError for everybody else."""
        if made_by is not _MADE_BY_NOISE:
            raise TypeError("noisy numbers are made by noise")
        self.integers = integers

    def then(self, step: Callable[[Sequence[int]], Iterable[int]]) -> Noisy:
        """What `step`, a function of these numbers alone, makes of them."""
        return Noisy(Integers.of(step(self.integers)), _MADE_BY_NOISE)


class EngineAsk:
    """The way to exact integers.

    salt: the ledger's secret number, which fixes what is kept where contributions are truncated. earlier: label of a
    release that statements read → its noisy rows as a query. again: whether what fails may be asked a second time, now.
    """

    __slots__ = ("_again", "_earlier", "_engine", "_salt")

    def __init__(
        self,
        engine: Engine,
        salt: int,
        earlier: Mapping[str, str] = MappingProxyType({}),
        again: Callable[[], bool] = lambda: False,
    ) -> None:
        self._engine, self._salt, self._earlier, self._again = engine, salt, earlier, again

    def __call__(self, statement: Statement, **noisy: Noisy) -> RawTable:
        """The statement's rows. Private.

        noisy: one number for each place of the statement that waits for one (`release_statement.number`).
        Raises TypeError for anything that is no noisy number, so that no exact one is ever sent anywhere.
        """
        if not all(type(value) is Noisy and len(value.integers) == 1 for value in noisy.values()):
            raise TypeError("a statement is filled with single noisy numbers")
        numbers = {name: value.integers[0] for name, value in noisy.items()}
        first = statement.salted(self._salt, self._earlier, numbers)
        if not self._again() or not isinstance(self._engine, AsksAgain) or statement.again is None:
            return self._engine.fetch(first)
        again = statement.again
        called = [name for name, _ in again.functions]
        return self._engine.fetch_again(first, again.salted(self._salt, self._earlier, numbers), called)


class NoiseDraws:
    """The way to chance: each measurement that was declared can be drawn, once."""

    __slots__ = ("_backend", "_declared", "_drawn")

    def __init__(self, declared: Sequence[Measurement], backend: Backend = EXACT) -> None:
        self._declared, self._backend, self._drawn = declared, backend, set[int]()

    @property
    def is_untouched(self) -> bool:
        """Whether nothing was drawn yet."""
        return not self._drawn

    def __call__(self, place: int, exact: Integers) -> Noisy:
        """The exact integers of a measurement, saturated, with fresh noise of its mechanism on each.

        place: of the measurement among those declared. Raises ValueError if it was drawn before, IndexError if it was
        not declared.
        """
        noise = self._once(place).noise
        return Noisy(noise.add_noise(exact.clipped(-TOTAL_CAP, TOTAL_CAP), self._backend), _MADE_BY_NOISE)

    def choose(self, place: int, exact: Histograms, without: Sequence[Integers] = ()) -> Noisy:
        """For each group the number of a cell, chosen by the measurement's mechanism from all public cells.

        without: released numbers of cells for each group, which are not chosen again.
        """
        measurement = self._once(place)
        mechanism, component = measurement.mechanism, measurement.component
        if not isinstance(mechanism, Exponential) or not rule(component).chosen:
            raise TypeError("not a measurement that chooses")
        chosen = []
        for group in range(len(exact)):
            first, counts, scores = exact.scored(group, component, [taken[group] for taken in without])
            run, at = mechanism.choose(counts, scores)
            chosen.append(first[run] + at)
        return Noisy(Integers.of(chosen), _MADE_BY_NOISE)

    def _once(self, place: int) -> Measurement:
        if place in self._drawn or place < 0:
            raise ValueError("noise is drawn once for what is charged once")
        measurement = self._declared[place]
        self._drawn.add(place)
        return measurement


class Drawing(Protocol[T_co]):
    """What measures one release: it says what it will draw, then asks, as often as it needs, and draws.

    How often it asks and what a later statement says may depend on noisy numbers, never on exact ones.
    """

    @property
    def declared(self) -> Sequence[Measurement]:
        """All that may be drawn: each with the sensitivity and the mechanism that state its loss and stored form."""
        ...

    def draw(self, ask: EngineAsk, noise: NoiseDraws) -> T_co:
        """The released numbers: what noise made, and nothing else of what `ask` told."""
        ...


def drawn(
    drawing: Drawing[T],
    engine: Engine,
    receipt: Receipt | None,
    salt: int,
    earlier: Mapping[str, str] = MappingProxyType({}),
    backend: Backend = EXACT,
    is_first: bool = False,
) -> T:
    """What a drawing releases.

    receipt: proof that the loss of all that is declared is durably charged; without it nothing is asked.
    backend: who draws the noise. is_first: whether nothing of its plan is drawn yet.
    Raises EngineError, whose text never depends on data.
    """
    if receipt is None:
        raise AssertionError("noise without a receipt")
    noise = NoiseDraws(drawing.declared, backend)
    ask = EngineAsk(engine, salt, earlier, lambda: is_first and noise.is_untouched)
    # Whatever fails from here on holds exact numbers in its frames, and may have failed because of them.
    return guarded(partial(drawing.draw, ask, noise))
