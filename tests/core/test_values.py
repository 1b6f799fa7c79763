"""A value is a frozen dataclass in all but the guard of its fields, which mypy keeps."""

from __future__ import annotations

import copy
import pickle
from dataclasses import dataclass, field, fields, replace

import pytest

from dpsql.core.ir.expressions import Call, Column, Literal
from dpsql.core.ir.nodes import Limit, Values
from dpsql.core.ir.types import BIGINT, BOOLEAN, value_range
from dpsql.core.ir.walk import kinds
from dpsql.core.numbers.interval import Interval, interval
from dpsql.core.value_classes import replace as quick
from dpsql.core.value_classes import value
from dpsql.core.values.value import Value


@value(frozen=True, slots=True)
class Quick:
    """One of ours."""

    a: int
    b: str = field(default="", compare=False)
    c: tuple[int, ...] = field(default_factory=tuple)


def test_a_value_is_what_the_frozen_dataclass_is() -> None:
    frozen = dataclass(frozen=True, slots=True)(
        type("Quick", (), {"__annotations__": Quick.__annotations__, "b": field(default="", compare=False), "c": ()})
    )
    ours, theirs = Quick(1, "x", (2,)), frozen(1, "x", (2,))
    assert (repr(ours), hash(ours)) == (repr(theirs), hash(theirs))
    assert ours == Quick(1, "another text", (2,)) != Quick(2, "x", (2,))
    assert [(f.name, f.compare) for f in fields(ours)] == [("a", True), ("b", False), ("c", True)]
    assert not hasattr(ours, "__dict__")
    assert replace(ours, a=7) == Quick(7, "x", (2,))
    assert copy.deepcopy(ours) == pickle.loads(pickle.dumps(ours)) == ours
    with pytest.raises(TypeError):
        Quick()  # type: ignore[call-arg]


def test_values_are_keys_as_before() -> None:
    """Plans look expressions up in dictionaries, whatever their spans."""
    column = Column(1, "x", BIGINT)
    call, same = (Call("gt", (column.at(None), Literal(3, BIGINT)), BOOLEAN) for _ in range(2))
    assert call is not same and {call: 1}[same] == 1
    assert interval(0, 1) == Interval(0, 1) and hash(interval(0, 1)) == hash(Interval(0, 1))
    whole = value_range(BIGINT)
    assert whole is not None and Value(BIGINT, whole) == Value(BIGINT, whole)


def test_nodes_that_are_equal_are_two_keys() -> None:
    """One of two equal subqueries has its own facts, whatever is known of the other."""
    one, other = (Limit(Values((), ()), 1) for _ in range(2))
    assert one == other and {one: 1}.get(other) is None and len({one, other, one}) == 2
    assert kinds(one) == {Limit, Values} and copy.deepcopy(one) == one


def test_another_value_is_what_dataclasses_make_of_it() -> None:
    """Also where fields are made by the object itself, or have the names that the maker could use for its own."""

    @value(frozen=True, slots=True)
    class Odd:
        kind: int
        same: int = 2
        made: list[int] = field(default_factory=list, init=False, compare=False)

    first = Odd(1)
    first.made.append(3)
    assert quick(first, same=5) == replace(first, same=5) == Odd(1, 5)
    assert quick(first) == first and quick(first).made == []
    assert quick(Fact(1), x=None) == Fact(None)
    for wrong in (quick, replace):
        with pytest.raises(TypeError):
            wrong(first, other=1)
    with pytest.raises(ValueError, match="empty interval"):
        quick(interval(0, 1), hi=-1)


@dataclass(frozen=True, slots=True)
class Fact:
    x: int | None
