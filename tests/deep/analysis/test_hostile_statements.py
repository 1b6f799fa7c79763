"""Whole statements with hostile expressions over databases that differ in one unit.

Each ends in the same way in all of them, integers differ by no more than the price allows, facts hold for the rows below,
and no optimizer of ours changes an integer. Twins: an old belief back, and all of DuckDB's optimizers at work.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from math import ceil
from typing import Any

import pytest

from dpsql.core.analysis import derive, expression_values
from dpsql.core.analysis.facts import Facts
from dpsql.core.functions import registry
from dpsql.core.functions.registry import REGISTRY
from dpsql.core.ir.conditions import conjuncts
from dpsql.core.ir.expressions import Call, Column, Literal
from dpsql.core.ir.nodes import Filter
from dpsql.core.numbers.cap import finite
from tests.deep.functions.test_hostile_expressions import _sign
from tests.support.hostile_checks import ALL
from tests.support.hostile_statements import statements


@pytest.mark.parametrize("seed", [0, *(pytest.param(s, marks=pytest.mark.exhaustive) for s in range(1, 21))])
def test_statements_stay_within_their_price_and_never_fail(seed: int) -> None:
    refused: Counter[str] = Counter()
    found = statements(range(100 * seed, 100 * seed + (20 if seed else 5)), refused=refused)
    assert not found.problems, "\n\n".join(found.problems[:3])
    assert found.tried > refused.total(), refused


# --- twins ------------------------------------------------------------------------------------------------------------


@pytest.fixture
def fresh() -> Iterator[None]:
    registry._APPLIED.clear()
    yield
    registry._APPLIED.clear()


@pytest.mark.usefixtures("fresh")
def test_a_limit_that_a_believed_interval_replaces_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """`g <= 1` leaves one row per id where g is a sign that is at least 1, and no limit is enforced."""
    plain = derive.filter_

    def believing(node: Filter, below: Facts) -> Facts:
        found, frequency = plain(node, below), {}
        for term in conjuncts(node.predicate):
            match term:
                case Call(function="le" | "lt" as name, args=(Column(uid=uid), Literal(value=int(most)))):
                    least = below.columns[uid].value.interval.lo
                    left = 0 if least is None else most - (name == "lt") - ceil(least) + 1
                    frequency |= {key - {uid}: finite(left) for key in below.keys if uid in key and left >= 1}
        return replace(found, frequency={**found.frequency, **frequency})

    monkeypatch.setattr(derive, "filter_", believing)
    monkeypatch.setattr(expression_values, "REGISTRY", {**REGISTRY, "sign": replace(REGISTRY["sign"], interval=_sign)})
    said = "is above"
    assert statements(range(1_000, 1_200), until=said).told(said)


def test_statements_that_an_optimizer_rewrites_are_found() -> None:
    said = "by none"
    assert statements(range(1_000, 1_200), ALL, until=said).told(said)
