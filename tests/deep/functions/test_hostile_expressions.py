"""Hostile expressions on the engine: every claim about their values holds on extreme rows, and none of them fails.

Intervals, ranges, numbers of values, NULL, NaN, keys, constants, types; and the values are those that the engine gives
without any optimizer. Each twin puts one old belief back, and is found.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest

from dpsql.core.ir.types import INTEGER, Kind
from dpsql.core.numbers import interval as iv
from dpsql.core.numbers.interval import Interval
from dpsql.core.values.value import Args
from dpsql.functions import expression_values, registry
from dpsql.functions.registry import REGISTRY
from dpsql.planner import distinct_values
from tests.support import hostile_checks
from tests.support.hostile import FUNCTIONS, signatures
from tests.support.hostile_checks import Table, expressions, nulls


@pytest.fixture(scope="module")
def table() -> Table:
    return Table()


@pytest.mark.parametrize("seed", [0, *(pytest.param(s, marks=pytest.mark.exhaustive) for s in range(1, 51))])
def test_every_claim_holds_on_every_row(table: Table, seed: int) -> None:
    found = expressions(table, seed, 2_000 if seed else 400)
    assert not found.problems, "\n".join(found.problems[:5])


def test_every_function_is_drawn() -> None:
    """What the registry gains is attacked without being named here."""
    assert {f.name for f in FUNCTIONS} == {name for named in signatures().values() for name in named}


def test_strict_functions_are_null_where_an_argument_is(table: Table) -> None:
    found = nulls(table, 3)
    assert found.tried > 200 and not found.problems, "\n".join(found.problems[:5])


# --- twins ------------------------------------------------------------------------------------------------------------

Rule = Callable[[Args], Any]


def _real(args: Args) -> bool:
    """In real arithmetic nothing is without a value but what has one that is."""
    return any(a.nullable for a in args)


def _sign(args: Args) -> Interval:
    i = args[0].interval
    return iv.interval(1 if i.lo is not None and i.lo > 0 else -1, -1 if i.hi is not None and i.hi < 0 else 1)


def _first(args: Args) -> Interval:
    return args[0].interval


LIES: dict[str, tuple[str, dict[str, Rule], str]] = {
    "no quotient of numbers is NULL": ("div", {"nullable": _real, "finite": lambda args: True}, "is NULL"),
    "no logarithm of a number is NULL": ("ln", {"nullable": _real, "finite": lambda args: True}, "is NULL"),
    "the sign of a DOUBLE is that of its interval": ("sign", {"interval": _sign}, "outside of its interval"),
    "COALESCE is its first argument": ("coalesce", {"range": _first}, "outside of its range"),
    "GREATEST has the range of its first argument": ("greatest", {"range": _first}, "outside of its range"),
    "a sum fits INTEGER": ("add", {"type": lambda args: min(REGISTRY["add"].type(args), INTEGER, key=_width)}, "fails"),
    "a product of DOUBLEs is finite": ("mul", {"finite": lambda args: True}, "claimed finite"),
}
"""What is believed of which function, and what its first problem says."""


def _width(t: Any) -> int:
    return {"TINYINT": 0, "SMALLINT": 1, "INTEGER": 2, "BIGINT": 3, "HUGEINT": 4}.get(t.name, -1)


@pytest.fixture
def fresh() -> Iterator[None]:
    """Facts that were worked out by other rules are forgotten, before and after."""
    registry._APPLIED.clear()
    yield
    registry._APPLIED.clear()


def _is_found(table: Table, said: str) -> bool:
    return expressions(table, 1_000, 20_000, until=said).told(said)


@pytest.mark.usefixtures("fresh")
@pytest.mark.one_in(3)
@pytest.mark.parametrize("lie", LIES)
def test_a_false_belief_is_found(table: Table, lie: str, monkeypatch: pytest.MonkeyPatch) -> None:
    name, rules, said = LIES[lie]
    lying = {**REGISTRY, name: replace(REGISTRY[name], **rules)}
    monkeypatch.setattr(expression_values, "REGISTRY", lying)
    assert _is_found(table, said)


@pytest.mark.usefixtures("fresh")
def test_intervals_of_doubles_in_real_arithmetic_are_found(table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "rounded", lambda i: i)
    assert _is_found(table, "outside of its interval")


@pytest.mark.usefixtures("fresh")
def test_numbers_of_values_by_intervals_are_found(table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    """COALESCE has no more values than its first argument, were that never NULL."""
    held = distinct_values._held

    def believed(value: Any) -> int | None:
        return 1 if value.type.kind is Kind.BOOLEAN else held(value)

    monkeypatch.setattr(distinct_values, "_held", believed)
    assert _is_found(table, "different values")


def test_or_taken_for_strict_is_found(table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hostile_checks, "strict", lambda name: name == "or")
    assert nulls(table, 3).problems
