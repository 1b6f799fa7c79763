"""Operators that need public rows."""

from __future__ import annotations

import pytest

from dpsql.core.ir.nodes import (
    Aggregate,
    AggregateCall,
    Item,
    Limit,
    Node,
    Sort,
    SortKey,
    Values,
    Window,
    WindowCall,
    output_columns,
)
from dpsql.core.ir.types import BIGINT, INTEGER
from dpsql.diagnostics.errors import Rejected
from tests.support.plan_nodes import column, facts_of, scan

ROWS = Values((column("a"), column("b")), ((1, 5), (2, None)))
A, B = ROWS.columns
PLACE = column("place", BIGINT)


def _kinds(below: Node) -> dict[str, Node]:
    return {
        "order by": Sort(below, (SortKey(output_columns(below)[0]),)),
        "limit": Limit(below, 1),
        "window": Window(below, (WindowCall("rank", (), PLACE, order=(SortKey(output_columns(below)[0]),)),)),
    }


@pytest.mark.parametrize("rule", ["order by", "limit", "window"])
def test_keys_stay(rule: str) -> None:
    facts = facts_of(_kinds(ROWS)[rule])
    assert facts.public and facts.rule == rule
    assert facts.is_key(frozenset({A.uid, B.uid})) and facts.columns[A.uid] == facts_of(ROWS).columns[A.uid]


@pytest.mark.parametrize(("rule", "code"), [("order by", "DP112"), ("limit", "DP112"), ("window", "DP113")])
def test_private_rows_are_refused(rule: str, code: str) -> None:
    with pytest.raises(Rejected) as refusal:
        facts_of(_kinds(scan("log"))[rule])
    assert refusal.value.diagnostics[0].code == code


def test_a_window_adds_a_column_of_which_nothing_is_known() -> None:
    value = facts_of(_kinds(ROWS)["window"]).columns[PLACE.uid].value
    assert value.type == BIGINT and not value.interval.bounded and value.nullable


def test_groups_of_public_rows_have_their_keys() -> None:
    key, total = column("k"), column("n", BIGINT)
    found = facts_of(Aggregate(ROWS, (Item(key, B),), (AggregateCall("count", None, total),)))
    assert found.public and set(found.columns) == {key.uid, total.uid}
    assert found.keys == frozenset({frozenset({key.uid})})
    assert facts_of(Aggregate(ROWS, (), (AggregateCall("count", None, total),))).keys == frozenset({frozenset()})
    assert found.columns[key.uid].value.type == INTEGER
