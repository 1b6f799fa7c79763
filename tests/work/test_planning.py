"""How much planning does, counted: no node is derived twice, and no expression is looked at more often than before."""

from __future__ import annotations

from collections import Counter

import pytest

from benchmarks.planning import FIVE_TABLES, FIVE_TABLES_POLICY
from dpsql.core.analysis import derive
from dpsql.core.analysis import expression_values as values
from dpsql.core.ir.nodes import Aggregate, Node, Release
from dpsql.core.ir.walk import walk
from dpsql.policy.load import parse_policy
from tests.unit.planning import planned


def test_every_node_is_derived_once_but_for_what_stands_on_a_draft(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Node] = []
    rule = derive._rule

    def counted(node: Node, below: object, ctx: object) -> object:
        seen.append(node)
        return rule(node, below, ctx)  # type: ignore[arg-type]

    monkeypatch.setattr(derive, "_rule", counted)
    planned(FIVE_TABLES, parse_policy(FIVE_TABLES_POLICY))
    times = Counter(id(node) for node in seen)
    assert len(times) > 10
    twice = [n for n in seen if times[id(n)] > 1]
    assert all(any(isinstance(b, Aggregate | Release) for b in walk(n)) for n in twice)
    assert len(seen) <= 17, "a rewrite rebuilds nodes that stay the same, or derives in a context of its own"


def test_how_often_functions_are_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    apply = values.apply

    def counted(function: object, args: object) -> object:
        asked.append(function.name)  # type: ignore[attr-defined]
        return apply(function, args)  # type: ignore[arg-type]

    monkeypatch.setattr(values, "apply", counted)
    planned(FIVE_TABLES, parse_policy(FIVE_TABLES_POLICY))
    assert len(asked) <= MOST_ASKED, Counter(asked)


MOST_ASKED = 48
"""The statement holds 18 calls: bound once, derived once, and those inside of sums clipped, gridded and printed.

One for the type of the clip that a grid stands for. Three for the queries that count rows before and after HAVING and
LIMIT: noisy numbers choose among them."""
