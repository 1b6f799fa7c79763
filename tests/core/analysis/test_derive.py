"""The last derivation believes nothing that was found before it; within one, each node is derived once."""

from __future__ import annotations

from dataclasses import replace

import pytest

from dpsql.core.analysis.context import Context, Derivation
from dpsql.core.analysis.derive import derive, derive_once
from dpsql.core.analysis.facts import Facts
from dpsql.core.ir.expressions import Call, Column, Expr
from dpsql.core.ir.nodes import Filter, Node, output_columns
from dpsql.core.ir.public_facts import PublicFacts
from dpsql.core.ir.walk import Tagged, walk
from dpsql.diagnostics.diagnostic import Source
from dpsql.diagnostics.errors import Rejected
from dpsql.frontend.bind.statement import bind
from dpsql.frontend.parse import parse
from dpsql.planner.rewrites.releases.expand_aggregates import expand_aggregates
from dpsql.planner.rewrites.rewrite_context import RewriteContext
from dpsql.policy.policy import Policy
from tests.support.planning import policy

TABLES = """
people:
  unit: {column: id}
  max_rows_per_unit: 2
  columns:
    id: {type: bigint, nullable: false}
    age: {type: integer, bounds: [0, 100]}
"""
QUERY = "SELECT n + 1 FROM (SELECT COUNT(*) AS n FROM people WHERE age > 40) WHERE n > 3"


@pytest.fixture(scope="module")
def of() -> Policy:
    return policy(TABLES)


def bound(of: Policy, sql: str = QUERY) -> Node:
    return bind(parse(Source(sql)), of).root


def begun(of: Policy, *, drafting: bool = False) -> Derivation:
    return Derivation.begin(Context(of, PublicFacts()), drafting=drafting)


def test_an_aggregate_that_was_drafted_is_refused_in_the_finished_tree(of: Policy) -> None:
    root = bound(of)
    derive_once(root, begun(of, drafting=True))
    with pytest.raises(Rejected) as refusal:
        derive(root, Context(of, PublicFacts()))
    assert refusal.value.diagnostics[0].code == "DP110"


def test_a_release_whose_contributions_are_not_bounded_was_drafted_only(of: Policy) -> None:
    draft = begun(of, drafting=True)
    root = expand_aggregates(bound(of), RewriteContext(draft))
    derive_once(root, draft)
    with pytest.raises(Rejected):
        derive(root, Context(of, PublicFacts()))


def test_nothing_that_was_found_before_is_believed(of: Policy) -> None:
    """Facts that whoever made the plan put beside it: the very nodes, and the very context."""
    root = bound(of, "SELECT age FROM people WHERE age > 40")
    honest = derive(root, Context(of, PublicFacts()))
    assert not honest.fact.public
    lying = begun(of)
    for node in walk(root):
        lying.facts[node] = Tagged(
            node, Facts({c.uid: honest.fact.columns.get(c.uid) for c in output_columns(node)}), ()
        )  # type: ignore[misc]
    assert derive_once(root, lying).fact.public, "they would be believed where they may be"
    assert derive(root, lying) == honest


def test_within_one_derivation_a_node_is_derived_once(of: Policy) -> None:
    root, found = bound(of), begun(of, drafting=True)
    whole = derive_once(root, found)
    assert derive_once(root, found) is whole
    assert all(derive_once(t.node, found) is t for t in whole.walk())


def test_a_value_is_remembered_for_the_very_same_rows_and_expression(of: Policy) -> None:
    root = bound(of, "SELECT COUNT(*) FROM people WHERE age > 40")
    below = next(n for n in walk(root) if isinstance(n, Filter)).input
    facts = derive(below, Context(of, PublicFacts())).fact
    (age,) = [Column(uid, "age", f.value.type) for uid, f in facts.columns.items() if f.hint and f.hint.column == "age"]
    twice: Expr = Call("add", (age, age), age.type)
    assert facts.value(twice) is facts.value(twice)
    assert facts.value(twice).nullable
    present = {
        uid: replace(f, value=replace(f.value, nullable=False)) if uid == age.uid else f
        for uid, f in facts.columns.items()
    }
    assert not replace(facts, columns=present).value(twice).nullable, "other rows, other values"
