"""Facts of a call that are kept are those that working it out again gives, and nothing large is kept."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Sequence
from decimal import Decimal
from typing import Any

import pytest

from dpsql.core.ir import step_count
from dpsql.core.ir.types import BIGINT, BOOLEAN, DATE, DOUBLE, INTEGER, VARCHAR, SqlType, decimal
from dpsql.core.numbers.interval import everything, interval
from dpsql.core.values.constants import literal
from dpsql.core.values.value import TRUTH, Domain, Value
from dpsql.diagnostics.diagnostic import Reason
from dpsql.functions import expression_values, registry
from dpsql.functions.registry import apply, lookup
from tests.fixtures.cases import File, files, outcome_of


@pytest.fixture(autouse=True)
def nothing_kept() -> Iterator[None]:
    registry._APPLIED.clear()
    yield
    registry._APPLIED.clear()


def function(name: str) -> registry.Function:
    found = lookup(name)
    assert found is not None
    return found


def test_the_same_values_are_asked_once_and_equal_ones_again() -> None:
    column, one = Value(INTEGER), literal(1, INTEGER)
    first = apply(function("add"), (column, one))
    assert apply(function("add"), [column, one]) is first
    other = apply(function("add"), (Value(INTEGER), one))
    assert other is not first and other == first
    assert apply(function("sub"), (column, one)) != first
    assert apply(function("sub"), (one, column)) != apply(function("sub"), (column, one))


def test_reasons_are_those_of_the_very_argument() -> None:
    """Intervals that are equal may be open for other reasons."""
    why = [Reason("DP201", name) for name in ("x", "y")]
    for reason in why:
        column = Value(INTEGER, everything(reason))
        assert apply(function("neg"), (column,)).interval.why == (reason,)


def test_numbers_of_objects_that_are_gone_mean_nothing() -> None:
    for top in range(2000):
        found = apply(function("neg"), (Value(BIGINT, interval(0, top)),))
        assert found.interval == interval(-top, 0)


@pytest.mark.parametrize(
    ("value", "other", "type_"),
    [
        (Decimal("0.2"), Decimal("0.20"), decimal(3, 2)),
        (0.0, -0.0, DOUBLE),
        (1, True, INTEGER),
        (dt.date(2024, 1, 1), dt.datetime(2024, 1, 1), DATE),
    ],
)
def test_constants_that_are_equal_and_not_the_same(value: Any, other: Any, type_: SqlType) -> None:
    for constant in (value, other, value):
        found = literal(constant, type_).constant
        assert (type(found), str(found)) == (type(constant), str(constant))
    assert literal(value, type_) is literal(value, type_)


def test_what_was_kept_for_long_goes() -> None:
    for top in range(3 * registry.MOST_APPLIED):
        apply(function("neg"), (Value(BIGINT, interval(0, top)),))
        assert len(registry._APPLIED) <= registry.MOST_APPLIED


@pytest.mark.parametrize(
    ("name", "args"),
    [
        ("add", (Value(INTEGER, domain=Domain(range(10))), literal(1, INTEGER))),
        ("eq", (Value(VARCHAR), literal("x" * 65, VARCHAR))),
        ("add", (literal(1, INTEGER), literal(1, INTEGER))),
        ("coalesce", (Value(BOOLEAN, domain=TRUTH), literal(True, BOOLEAN))),
    ],
)
def test_neither_lists_nor_long_texts_nor_what_took_steps_is_kept(name: str, args: tuple[Value, ...]) -> None:
    """A text takes the same steps whatever was planned before."""
    taken = []
    for _ in range(2):
        step_count.begin()
        apply(function(name), args)
        counted = step_count._counting.get()
        assert counted is not None
        taken.append(counted.taken)
        step_count.end()
    assert not registry._APPLIED and len(set(taken)) == 1


def test_in_fixtures_it_is_what_working_it_out_gives(monkeypatch: pytest.MonkeyPatch) -> None:
    assert again_in(files()[::6], monkeypatch) > 100


def again_in(some: Sequence[File], monkeypatch: pytest.MonkeyPatch) -> int:
    """How often planning these asks for facts that are kept, each compared with those that are worked out anew."""
    again = 0

    def compared(called: registry.Function, args: registry.Args) -> Value:
        nonlocal again
        kept = (id(called), *map(id, args)) in registry._APPLIED
        found = apply(called, args)
        if kept:
            again += 1
            anew = registry._applied(called, args)
            assert (found, found.interval.why, repr(found)) == (anew, anew.interval.why, repr(anew)), called.name
        return found

    monkeypatch.setattr(expression_values, "apply", compared)
    for file in some:
        for case in file.cases:
            outcome_of(case)
    return again
