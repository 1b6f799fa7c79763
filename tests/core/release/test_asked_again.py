"""When a statement that failed is asked a second time: only while nothing of the plan is drawn.

The twin of that condition asks and draws anew after a draw: the odds of two neighbours then lie apart without end.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import pytest

from dpsql.core.engine import RawTable, engine_failed
from dpsql.core.noise.integer_columns import Integers
from dpsql.core.printing.shapes.release_statement import Statement, number
from dpsql.core.release.drawing import EngineAsk, NoiseDraws, drawn
from dpsql.diagnostics.errors import EngineError
from tests.core.release.test_two_questions import CHARGED, Doing, Twice, of
from tests.support.fake_engine import FakeEngine

AGAIN = Statement("SELECT pg_temp.f()", (0,), "direct", functions=(("f", "CREATE FUNCTION pg_temp.f()"),))
FAILS = Statement("SELECT fails", (0,), "direct", again=AGAIN)


class Asking(FakeEngine):
    """Fails where the text says so, and gives 7 for everything else."""

    def __init__(self) -> None:
        super().__init__(lambda sql: engine_failed() if "fails" in sql else RawTable(("n",), ([7],)))

    def at_hand(self, functions: Sequence[tuple[str, str]]) -> None:
        raise AssertionError("a run says what it needs, not a release")

    def fetch_again(self, sql: str, again: str, functions: Sequence[str]) -> RawTable:
        assert functions == ["f"]
        try:
            return self.fetch(sql)
        except EngineError:
            return self.fetch(again)


def asked(ask: EngineAsk, noise: NoiseDraws) -> Integers:
    return of(ask(FAILS))


def test_what_fails_before_anything_is_drawn_is_asked_again() -> None:
    engine = Asking()
    assert tuple(drawn(Doing(asked), engine, CHARGED, 7, is_first=True)) == (7,)
    assert engine.queries == [FAILS.sql, AGAIN.sql]


def test_what_does_not_fail_is_asked_once() -> None:
    engine = Asking()
    once = Statement("SELECT 1", (0,), "direct", again=AGAIN)
    drawn(Doing(lambda ask, noise: of(ask(once))), engine, CHARGED, 7, is_first=True)
    assert engine.queries == ["SELECT 1"]


def test_a_later_release_of_the_plan_is_not_asked_again() -> None:
    engine = Asking()
    with pytest.raises(EngineError):
        drawn(Doing(asked), engine, CHARGED, 7)
    assert engine.queries == [FAILS.sql]


def test_after_a_draw_of_the_same_release_nothing_is_asked_again() -> None:
    engine = Asking()

    def does(ask: EngineAsk, noise: NoiseDraws) -> object:
        noise(0, Integers.of([1]))
        return ask(FAILS)

    with pytest.raises(EngineError):
        drawn(Doing(does), engine, CHARGED, 7, is_first=True)
    assert engine.queries == [FAILS.sql]


def test_an_engine_that_cannot_is_asked_once() -> None:
    engine = FakeEngine(lambda sql: engine_failed())
    with pytest.raises(EngineError):
        drawn(Doing(asked), engine, CHARGED, 7, is_first=True)
    assert engine.queries == [FAILS.sql]


def test_the_second_text_gets_the_same_numbers() -> None:
    texts = [f"SELECT {name} < {number('limit')}" for name in ("fails", "f")]
    again = Statement(texts[1], (0,), "direct", functions=AGAIN.functions)
    engine, noise = Asking(), NoiseDraws(Twice().declared)
    limit = noise(0, Integers.of([5]))
    EngineAsk(engine, 3, again=lambda: True)(Statement(texts[0], (0,), "direct", again=again), limit=limit)
    shown = str(limit.integers[0])
    assert engine.queries == [t.replace(number("limit"), shown) for t in texts]


# --- the twin, in exact odds ----------------------------------------------------------------------------------------


def odds(has_row: bool, many: int, drawn_anew: bool) -> list[Fraction]:
    """How likely each noisy number leaves, of as many that are equally likely whatever the data hold.

    A later statement reads the number, and a row makes it fail where it is 0. The second asking gives what the first
    one would have given without the row. drawn_anew: the number is drawn once more with it.
    """
    each = Fraction(1, many)
    fails = each if has_row and drawn_anew else Fraction(0)
    return [each * (0 if fails and number == 0 else 1) + fails * each for number in range(many)]


@pytest.mark.parametrize("many", [2, 10, 1000])
def test_drawing_anew_after_a_draw_is_found(many: int) -> None:
    """A number that tells nothing of the row tells of it as much as one likes."""
    assert odds(True, many, False) == odds(False, many, False)
    there, absent = odds(True, many, True), odds(False, many, True)
    assert sum(there) == sum(absent) == 1
    assert max(a / t for a, t in zip(absent, there, strict=True)) == many
