"""A measurement that asks twice: the second question is a template of the first one's noisy number."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any
from uuid import uuid4

import pytest

from dpsql.core.engine import RawTable
from dpsql.core.ir.components import RowCount
from dpsql.core.ledger.ledger import Caps, Entry, Receipt
from dpsql.core.ledger.memory import MemoryLedger
from dpsql.core.noise.backends import ExactBackend
from dpsql.core.noise.integer_columns import Integers
from dpsql.core.noise.measurement import Measurement
from dpsql.core.noise.mechanisms import AdditiveNoise, DiscreteLaplace
from dpsql.core.noise.sensitivity import Sensitivity
from dpsql.core.printing.shapes.release_statement import Statement, number
from dpsql.core.privacy_loss import PrivacyLoss, compose
from dpsql.core.release.drawing import TOTAL_CAP, EngineAsk, NoiseDraws, Noisy, drawn
from dpsql.diagnostics.errors import EngineError
from tests.support.canary import CANARY
from tests.support.fake_engine import FakeEngine

ONE = Sensitivity(1, 1, Fraction(1), 1)
HOW_MANY = Statement("SELECT COUNT(*) FROM t", (0,), "direct")
BELOW = Statement(f"SELECT COUNT(*) FROM t WHERE x < {number('limit')}", (1,), "direct")


@dataclass(frozen=True)
class Twice:
    """How many rows there are, and how many are below the number released first."""

    scale: Fraction = Fraction(2)

    @property
    def declared(self) -> Sequence[Measurement]:
        return [Measurement(RowCount(), ONE, DiscreteLaplace(self.scale)) for _ in range(2)]

    def draw(self, ask: EngineAsk, noise: NoiseDraws) -> tuple[Noisy, ...]:
        first = noise(0, of(ask(HOW_MANY)))
        return first, noise(1, of(ask(BELOW, limit=first)))


@dataclass(frozen=True)
class Doing:
    """Anything else."""

    does: Callable[[EngineAsk, NoiseDraws], Any]
    declared: Sequence[Measurement] = tuple(Twice().declared)

    def draw(self, ask: EngineAsk, noise: NoiseDraws) -> Any:
        return self.does(ask, noise)


def of(table: RawTable) -> Integers:
    return Integers.of(table.columns[0])


def receipt(loss: PrivacyLoss) -> Receipt:
    return MemoryLedger("test").reserve(Entry(uuid4().hex, "*", {"t": loss}, "", "", "", {}, ()), Caps())


def counting(*answers: int) -> FakeEngine:
    """One number after the other."""
    waiting = iter(answers)
    return FakeEngine(lambda sql: RawTable(("n",), ([next(waiting)],)))


CHARGED = receipt(PrivacyLoss(Fraction(1)))


def test_the_second_question_is_filled_with_the_noisy_number_of_the_first() -> None:
    engine = counting(1000, 10)
    first, second = drawn(Twice(Fraction(100)), engine, CHARGED, 7)
    assert engine.queries == ["SELECT COUNT(*) FROM t", f"SELECT COUNT(*) FROM t WHERE x < {first.integers[0]}"]
    assert len(first.integers) == len(second.integers) == 1
    assert BELOW.shown == "SELECT COUNT(*) FROM t WHERE x < limit"


def test_what_it_costs_and_how_it_is_stored_is_known_before_it_asks() -> None:
    declared = Twice().declared
    assert compose(m.loss for m in declared) == PrivacyLoss(Fraction(1))
    noises = [m.mechanism for m in declared]
    assert [(n.name, n.parameter) for n in noises if isinstance(n, AdditiveNoise)] == [("laplace", 2), ("laplace", 2)]


def test_without_a_receipt_nothing_is_asked_or_drawn() -> None:
    class Forbidden(ExactBackend):
        def laplace(self, scale: Fraction, n: int) -> list[int]:
            raise AssertionError("drawn")

    engine = counting(1000, 10)
    with pytest.raises(AssertionError, match="noise without a receipt"):
        drawn(Twice(), engine, None, 7, backend=Forbidden())
    assert engine.queries == []


@pytest.mark.parametrize(
    "does",
    [
        lambda ask, noise: ask(BELOW, limit=ask(HOW_MANY)),
        lambda ask, noise: ask(BELOW, limit=of(ask(HOW_MANY))),
        lambda ask, noise: ask(BELOW, limit=ask(HOW_MANY).columns[0][0]),
        lambda ask, noise: ask(BELOW, limit=Noisy(of(ask(HOW_MANY)), None)),
        lambda ask, noise: ask(BELOW, limit=noise(0, Integers.of([1, 2]))),
    ],
    ids=["a table", "integers", "a number", "said to be noisy", "several"],
)
def test_nothing_but_a_noisy_number_fills_a_question(does: Callable[[EngineAsk, NoiseDraws], Any]) -> None:
    engine = counting(1000, 10)
    with pytest.raises(EngineError):
        drawn(Doing(does), engine, CHARGED, 7)
    assert len(engine.queries) <= 1


@pytest.mark.parametrize("place", [0, 2])
def test_what_is_not_declared_or_was_drawn_is_not_drawn(place: int) -> None:
    def does(ask: EngineAsk, noise: NoiseDraws) -> None:
        noise(0, Integers.of([1]))
        noise(place, Integers.of([1]))

    with pytest.raises(EngineError):
        drawn(Doing(does), counting(), CHARGED, 7)


def test_arithmetic_over_noisy_numbers_gives_noisy_numbers() -> None:
    def does(ask: EngineAsk, noise: NoiseDraws) -> tuple[Noisy, Noisy]:
        found = noise(0, of(ask(HOW_MANY)))
        return found, found.then(lambda values: [1 << max(0, v).bit_length() for v in values])

    found, power = drawn(Doing(does), counting(1000), CHARGED, 7)
    assert power.integers == [1 << max(0, found.integers[0]).bit_length()]


def test_totals_are_saturated_before_their_noise() -> None:
    (found,) = drawn(Doing(lambda ask, noise: [noise(0, Integers.of([1 << 120]))]), counting(), CHARGED, 7)
    assert abs(found.integers[0] - TOTAL_CAP) < 10**4


def test_an_exception_carries_nothing() -> None:
    def fails(ask: EngineAsk, noise: NoiseDraws) -> None:
        (value,) = ask(Statement("SELECT x FROM t", (), "direct")).columns[0]
        raise ValueError(value)

    engine = FakeEngine([RawTable(("x",), ([CANARY],))])
    with pytest.raises(EngineError) as raised:
        drawn(Doing(fails), engine, CHARGED, 7)
    assert CANARY not in repr(raised.value) and raised.value.__cause__ is raised.value.__context__ is None
