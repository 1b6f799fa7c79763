"""Nested calls of functions are total, and wrong rules of functions are caught."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Any

import pytest

from dpsql.core.functions.function import Function, SignatureError
from dpsql.core.functions.registry import REGISTRY, apply
from dpsql.core.functions.value import Domain
from dpsql.core.ir.types import INTEGER, decimal
from dpsql.core.numbers.interval import interval
from tests.core.functions.test_function_contract import FUNCTIONS, Lab
from tests.support.function_checker import Argument, check_sql


@pytest.fixture(scope="module")
def laboratory() -> Lab:
    return Lab(20)


@pytest.fixture
def lab(laboratory: Lab, request: pytest.FixtureRequest) -> Lab:
    """What a test draws depends on its name alone, not on the tests before it in the same process."""
    laboratory.rng.seed(os.environ.get("FUNCTIONS_SEED", "") + request.node.name)
    return laboratory


def _twin(name: str, **wrong: Any) -> tuple[str, Function]:
    return f"{name}: {', '.join(wrong)}", replace(REGISTRY[name], **wrong)


def _spelled(template: str) -> dict[str, Any]:
    return {"duckdb": lambda sql, args, result: template.format(*sql)}


def _not_null(args: Any) -> bool:
    return False


TWINS = dict(
    [
        _twin("month", interval=lambda args: interval(1, 11)),
        _twin("mul", interval=lambda args: args[0].interval),
        _twin("length", interval=lambda args: interval(0, 10)),
        _twin("greatest", interval=lambda args: args[0].interval),
        _twin("div", nullable=_not_null),
        _twin("sqrt", nullable=_not_null),
        _twin("clip", nullable=lambda args: args[0].nullable),
        _twin("year", nullable=lambda args: args[0].nullable),
        _twin("exp", finite=lambda args: all(a.finite for a in args)),
        _twin("mul", finite=lambda args: True),
        _twin("intdiv", spell=_spelled("({} // {})")),
        _twin("week", spell=_spelled("CAST(week({}) AS BIGINT)")),
        _twin("neg", spell=_spelled("(- {})")),
        _twin("substring", spell=_spelled("substring({}, {})"), type=lambda args: REGISTRY["left"].type(args)),
        _twin("add", type=lambda args: (REGISTRY["add"].type(args), INTEGER)[1]),
        _twin("div", type=lambda args: (REGISTRY["div"].type(args), decimal(18, 3))[1]),
        _twin("quarter", domain=lambda args: Domain(range(1, 4))),
        _twin("eq", domain=lambda args: Domain((True,))),
        _twin("mod", python=lambda a, b: None if None in (a, b) or b == 0 else a % b),
        _twin("trim", python=lambda x, chars="": None if x is None else x),
        _twin("greatest", python=lambda *values: values[0]),
    ]
)


@pytest.mark.parametrize("twin", TWINS.values(), ids=TWINS.keys())
def test_a_wrong_rule_is_caught(lab: Lab, twin: Function) -> None:
    """The checker can fail: each of these functions tells one lie."""
    assert lab.complaints(twin, 100)


def _expression(lab: Lab, depth: int) -> Argument:
    """A random well-typed expression, nested up to `depth` calls."""
    if depth == 0 or lab.rng.random() < 0.15:
        return lab.rng.choice(lab.columns)
    while True:
        function = lab.rng.choice(FUNCTIONS)
        arity = lab.rng.choice([1, 2, 3])
        args = [
            lab.argument(function, i)
            if i in function.literal or lab.rng.random() < 0.3
            else _expression(lab, depth - 1)
            for i in range(arity)
        ]
        facts = [a.value for a in args]
        try:
            result = apply(function, facts)
        except SignatureError:
            continue
        return Argument(function.spell["duckdb"]([a.sql for a in args], facts, result), result, None)


def test_nested_expressions_are_total(lab: Lab) -> None:
    """What one function promises the next one relies on: compositions raise no error and keep type, range, NULLs."""
    complaints: list[str] = []
    for _ in range(400):
        expression = _expression(lab, 3)
        loose = replace(expression.value, interval=interval(None, None), domain=None)
        complaints += check_sql(lab.con, expression.sql, loose, [])[0]
    assert not complaints, "\n".join(complaints[:5])
