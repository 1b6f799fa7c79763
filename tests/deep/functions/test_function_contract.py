"""More calls of every function, nested calls too, are total and as their rules claim; wrong rules are caught."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from typing import Any

import pytest

from dpsql.core.ir.types import INTEGER, decimal
from dpsql.core.numbers.interval import interval
from dpsql.core.printing.dialect import Dialect
from dpsql.core.values.value import Domain
from dpsql.functions.function import Function, SignatureError
from dpsql.functions.registry import REGISTRY, apply
from tests.functions.test_function_contract import CALLS, FUNCTIONS, LABORATORIES, Lab
from tests.support.function_checker import Argument, check_sql


@pytest.fixture(scope="module", params=LABORATORIES)
def laboratory(request: pytest.FixtureRequest) -> Lab:
    return Lab(20, request.param)


@pytest.fixture
def lab(laboratory: Lab, request: pytest.FixtureRequest) -> Lab:
    """What a test draws depends on its name alone, not on the tests before it in the same process."""
    laboratory.rng.seed(os.environ.get("FUNCTIONS_SEED", "") + request.node.name)
    return laboratory


@pytest.mark.sampled(4)
@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.name)
def test_every_claim_holds_in_more_calls(lab: Lab, function: Function) -> None:
    """As in tests/functions, with twice as many calls, and others."""
    if lab.dialect.spells(function.name):
        complaints = lab.complaints(function, 2 * CALLS)
        assert not complaints, "\n".join(complaints[:8])


@dataclass(frozen=True)
class Twin:
    """A function that tells one lie. spelling: how its calls are printed, where that is the lie."""

    function: Function
    spelling: str | None = None


class Misspelt:
    """A dialect in which every call is printed by one template."""

    def __init__(self, dialect: Dialect, template: str) -> None:
        self.dialect, self.template = dialect, template

    def __getattr__(self, name: str) -> Any:
        return getattr(self.dialect, name)

    def call(self, function: str, sql: Any, args: Any, result: Any) -> str:
        return self.template.format(*sql)


def _twin(name: str, spell: str | None = None, **wrong: Any) -> tuple[str, Twin]:
    what = ", ".join([*([] if spell is None else ["spell"]), *wrong])
    return f"{name}: {what}", Twin(replace(REGISTRY[name], **wrong), spell)


def _not_null(args: Any) -> bool:
    return False


TWINS = dict(
    [
        _twin("month", interval=lambda args: interval(1, 11)),
        _twin("mul", interval=lambda args: args[0].interval),
        _twin("length", interval=lambda args: interval(0, 10)),
        _twin("greatest", interval=lambda args: args[0].interval),
        _twin("div", nullable=_not_null, finite=lambda args: True),
        _twin("sqrt", nullable=_not_null, finite=lambda args: True),
        _twin("clip", nullable=lambda args: args[0].nullable),
        _twin("year", nullable=lambda args: args[0].nullable),
        _twin("exp", finite=lambda args: all(a.finite for a in args)),
        _twin("mul", finite=lambda args: True),
        _twin("intdiv", spell="({} // {})"),
        _twin("week", spell="CAST(dayofyear({}) // 7 + 1 AS BIGINT)"),
        _twin("neg", spell="(- {})"),
        _twin("substring", spell="substring({}, {})", type=lambda args: REGISTRY["left"].type(args)),
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
def test_a_wrong_rule_is_caught(lab: Lab, twin: Twin) -> None:
    """The checker can fail: each of these functions tells one lie."""
    dialect: Any = lab.dialect if twin.spelling is None else Misspelt(lab.dialect, twin.spelling)
    assert lab.complaints(twin.function, 100, dialect)


def _expression(lab: Lab, depth: int) -> Argument:
    """A random well-typed expression, nested up to `depth` calls."""
    if depth == 0 or lab.rng.random() < 0.15:
        return lab.rng.choice(lab.columns)
    while True:
        function = lab.rng.choice([f for f in FUNCTIONS if lab.dialect.spells(f.name)])
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
        return Argument(lab.dialect.call(function.name, [a.sql for a in args], facts, result), result, None)


def test_nested_expressions_are_total(lab: Lab) -> None:
    """What one function promises the next one relies on: compositions raise no error and keep every claim."""
    complaints: list[str] = []
    for _ in range(400):
        expression = _expression(lab, 3)
        loose = replace(expression.value, domain=None)
        complaints += check_sql(lab.con, expression.sql, loose, [])[0]
    assert not complaints, "\n".join(complaints[:5])
