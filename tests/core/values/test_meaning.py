"""No price rests on what the core is told that expressions mean: facts of finished plans are the same under lies."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from dpsql.core.analysis.context import Context
from dpsql.core.analysis.derive import derive
from dpsql.core.analysis.facts import Facts
from dpsql.core.analysis.rules.filter import filter_
from dpsql.core.ir.expressions import Expr
from dpsql.core.ir.nodes import Filter, Node
from dpsql.core.ir.public_facts import PublicFacts
from dpsql.core.ir.types import SqlType
from dpsql.core.numbers.interval import point
from dpsql.core.value_classes import replace
from dpsql.core.values.meaning import Env, hand_in, meaning
from dpsql.core.values.value import Value
from dpsql.diagnostics.diagnostic import Span
from dpsql.diagnostics.errors import Rejected
from dpsql.functions import meant
from dpsql.planner.plan import Plan
from tests.fixtures.cases import files, outcome_of, policy


class Lies:
    """Of the right type, and never anything but 0."""

    first_name = staticmethod(meant.first_name)
    compared_as = staticmethod(meant.compared_as)

    def evaluate(self, expr: Expr, env: Env) -> Value:
        return _lie(meant.evaluate(expr, env))

    def call(self, name: str, values: tuple[Value, ...], span: Span | None, expr: Expr | None = None) -> Value:
        return _lie(meant.call(name, values, span, expr))

    def cast(self, arg: Value, target: SqlType) -> Value:
        return _lie(meant.cast(arg, target))


def _lie(told: Value) -> Value:
    """A constant stays one: it is printed instead of what gives it."""
    return told if told.is_constant else Value(told.type, point(0), point(0), False, True, told.domain, reach=0)


@pytest.fixture
def told_again() -> Iterator[None]:
    before = meaning()
    yield
    hand_in(before)


def _priced(node: Node, ctx: Context) -> list[Facts]:
    """All facts but what is known of values."""
    return [_without_values(tagged.fact) for tagged in derive(node, ctx).walk()]


def _without_values(facts: Facts) -> Facts:
    return Facts(
        {}, facts.stability, facts.ids, facts.keys, facts.frequency, facts.padding, facts.by_id, facts.hops,
        facts.promised_keys, facts.contribution, facts.replaced, facts.replaced_rows, facts.size, facts.empty,
    )  # fmt: skip


def _different() -> tuple[int, int]:
    """How many finished plans of the fixtures have other facts under lies, and how many were compared."""
    other = compared = 0
    for file in files()[::3]:
        for case in file.cases:
            plan = outcome_of(case)
            if not isinstance(plan, Plan):
                continue
            node, ctx = plan.tree.node, Context(policy(case.settings["policy"]), PublicFacts())
            hand_in(meant)
            try:
                true = _priced(node, ctx)
            except Rejected:  # it rests on something that was measured
                continue
            hand_in(Lies())
            other += true != _priced(node, ctx)
            hand_in(meant)
            compared += 1
    return other, compared


@pytest.mark.usefixtures("told_again")
def test_lies_change_no_price() -> None:
    other, compared = _different()
    assert other == 0 and compared > 100


@pytest.mark.usefixtures("told_again")
def test_a_rule_that_believes_them_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """The broken twin: a condition that is believed to be false leaves one row at most."""

    def believing(node: Filter, below: Facts) -> Facts:
        found = filter_(node, below)
        believed = below.value(node.predicate).interval == point(0)
        return replace(found, keys=found.keys | {frozenset()}) if believed else found

    monkeypatch.setattr("dpsql.core.analysis.derive.filter_", believing)
    assert _different()[0] > 0
