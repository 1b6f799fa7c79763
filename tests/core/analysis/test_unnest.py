"""UNNEST: as many rows as the list is cut to, made of one row."""

from __future__ import annotations

from dataclasses import replace

from dpsql.core.analysis.rules.unnest import unnest
from dpsql.core.ir.nodes import Unnest
from dpsql.core.numbers.cap import finite
from tests.support.plan_nodes import at, column, facts_of, keys, refused, scan, stability
from tests.support.planning import named


def unnested(name: str, most: int = 4, listed: str = "l") -> Unnest:
    node = scan(name)
    return Unnest(node, at(node, listed), most, column("element"))


def test_rows_that_differ() -> None:
    assert stability(unnested("log")) == {"log": "12"} and stability(unnested("log", 1)) == {"log": "3"}


def test_keys_become_frequencies() -> None:
    found = unnested("log")
    facts = facts_of(found)
    assert keys(found) == set()
    assert str(facts.most_rows(frozenset({at(found, "r").uid}))) == "4"
    assert str(facts.most_rows(frozenset({at(found, "k").uid}))) == "8"


def test_ids() -> None:
    found = unnested("visits", 3)
    facts = facts_of(found)
    assert stability(found) == {"person": "1"} and named(facts.ids, found) == {"id"}
    assert str(facts.most_rows(facts.ids)) == "12" and found.column.uid not in facts.by_id


def test_elements_are_unknown() -> None:
    value = facts_of(found := unnested("log")).columns[found.column.uid].value
    assert value.nullable and not value.interval.bounded and value.interval.why[0].code == "DP202"


def test_only_lists() -> None:
    assert refused(unnested("log", listed="k")) == "DP106"


def test_replaced_rows_stay_replaced_and_their_number_is_lost() -> None:
    node = unnested("log", 4)
    facts = unnest(node, replace(facts_of(node.input), replaced_rows={"log": finite(3)}, size=10))
    assert {unit: str(cap) for unit, cap in (facts.replaced_rows or {}).items()} == {"log": "12"} and facts.size is None
