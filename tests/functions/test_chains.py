"""Chains of + - *: whatever order an engine takes the operands in, no partial result leaves the type of the chain."""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import combinations

import pytest

from dpsql.core.ir.types import BIGINT, DOUBLE, HUGEINT, INTEGER, decimal
from dpsql.core.numbers.interval import interval
from dpsql.core.values.constants import literal
from dpsql.core.values.value import Value, type_range
from dpsql.functions.numbers import arithmetic
from dpsql.functions.registry import REGISTRY, apply

LONGEST = 6
"""Operands of a chain."""


def leaf(rng: random.Random) -> tuple[Value, list[int]]:
    """An integer, and the values that it may have at its ends."""
    if rng.random() < 0.4:
        n = rng.choice([1, 2, -1, -3, 2**31 - 1, -(2**31), 1000])
        return literal(n, INTEGER), [n]
    low, high = sorted(rng.choices([0, 1, 5, -2, -(2**31), 2**31 - 1, 2**31 - 3, 2**30, -7], k=2))
    return Value(INTEGER, range=interval(low, high)), [low, high]


def chain(rng: random.Random, operators: str, size: int) -> tuple[Value, list[list[int]]]:
    """A random chain, and its operands in the sense of a sum or product: those that are subtracted with both signs."""
    if size == 1:
        value, ends = leaf(rng)
        return value, [ends]
    left = rng.randint(1, size - 1)
    (a, mine), (b, others) = chain(rng, operators, left), chain(rng, operators, size - left)
    name = rng.choice(operators.split())
    if name == "sub":
        others = [[*(ends if size > 2 else []), *(-n for n in ends)] for ends in others]
    found = apply(REGISTRY[name], (a, b))
    if isinstance(found.constant, int):  # printed as one literal
        return found, [[found.constant]]
    return found, [*mine, *others]


def partial_results(operands: list[list[int]], product: bool) -> Iterator[tuple[int, int]]:
    """The least and the greatest sum (or product) of each set of operands."""
    for size in range(1, len(operands) + 1):
        for some in combinations(operands, size):
            low = high = 1 if product else 0
            for ends in some:
                each = [x * n if product else x + n for x in (low, high) for n in ends]
                low, high = min(each), max(each)
            yield low, high


def overflows(operators: str) -> int:
    """Chains with a partial result that their type does not hold."""
    rng, found = random.Random(operators), 0
    for _ in range(400):
        value, operands = chain(rng, operators, rng.randint(2, LONGEST))
        if value.type != DOUBLE and not value.is_constant:
            held = type_range(value.type)
            found += any(n not in held for ends in partial_results(operands, operators == "mul") for n in ends)
    return found


@pytest.mark.parametrize("operators", ["add", "add sub", "mul"])
def test_no_order_overflows(operators: str) -> None:
    assert overflows(operators) == 0


def test_the_range_of_the_result_alone_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arithmetic, "_regrouped", lambda found, args, reach: found)
    assert overflows("add sub")


def test_what_a_chain_needs() -> None:
    a, b = Value(INTEGER, range=interval(5, 2**31 - 3)), Value(INTEGER, range=interval(-3, -2))
    add = REGISTRY["add"]
    left, right = apply(add, (a, literal(1, INTEGER))), apply(add, (b, literal(2, INTEGER)))
    assert (left.type, right.type, apply(add, (left, right)).type) == (INTEGER, INTEGER, BIGINT)
    few = Value(INTEGER, range=interval(0, 100))
    assert apply(add, (apply(add, (few, few)), apply(REGISTRY["mul"], (few, few)))).type == INTEGER
    assert apply(REGISTRY["sub"], (few, few)).reach == 200
    wide = Value(HUGEINT, range=interval(0, 2**126))
    assert apply(REGISTRY["sub"], (wide, apply(REGISTRY["neg"], (apply(add, (wide, few)),)))).type == DOUBLE


def test_decimals_of_a_chain() -> None:
    price, sub, add = Value(decimal(4, 2), range=interval(0, 99)), REGISTRY["sub"], REGISTRY["add"]
    nothing = apply(sub, (price, price))
    assert nothing.type == decimal(4, 2)
    assert apply(add, (nothing, nothing)).type == decimal(5, 2)


def test_a_column_of_a_subquery_carries_its_parts() -> None:
    a = Value(INTEGER, range=interval(0, 2**30))
    total = apply(REGISTRY["sub"], (a, a))
    for passed_on in (total.with_interval(interval(0, 1)), total.without_domain()):
        assert passed_on.reach == 2**31
