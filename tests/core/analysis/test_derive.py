"""What is remembered within one compilation: facts of the very same node, never a draft."""

from __future__ import annotations

from dataclasses import replace

import pytest

from dpsql.core.analysis.context import Context
from dpsql.core.analysis.derive import derive
from dpsql.core.ir.expressions import Call, Column, Expr
from dpsql.core.ir.nodes import Aggregate, Filter, Node, Release
from dpsql.core.ir.public_facts import PublicFacts
from dpsql.core.ir.walk import walk
from dpsql.diagnostics.diagnostic import Source
from dpsql.diagnostics.errors import Rejected
from dpsql.frontend.bind.statement import bind
from dpsql.frontend.parse import parse
from dpsql.planner.rewrites.context import RewriteContext
from dpsql.planner.rewrites.expand_aggregates import expand_aggregates
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


def drafted(root: Node, of: Policy) -> Context:
    """The context of the finished tree, after the same tree was derived as a draft."""
    ctx = Context(of, PublicFacts())
    derive(root, replace(ctx, drafting=True))
    return ctx


def test_an_aggregate_that_was_drafted_is_refused_in_the_finished_tree(of: Policy) -> None:
    root = bound(of)
    ctx = drafted(root, of)
    aggregate = next(n for n in walk(root) if isinstance(n, Aggregate))
    assert ctx.known(aggregate) is None
    with pytest.raises(Rejected) as refusal:
        derive(root, ctx)
    assert refusal.value.diagnostics[0].code == "DP110"


def test_a_release_whose_contributions_are_not_bounded_was_drafted_only(of: Policy) -> None:
    ctx = Context(of, PublicFacts())
    draft = replace(ctx, drafting=True)
    root = expand_aggregates(bound(of), RewriteContext(draft))
    derive(root, draft)
    release = next(n for n in walk(root) if isinstance(n, Release))
    assert draft.known(release) is not None
    assert ctx.known(release) is None
    with pytest.raises(Rejected):
        derive(root, ctx)


def test_nothing_that_stands_on_a_draft_is_carried_over(of: Policy) -> None:
    root = bound(of)
    ctx = drafted(root, of)
    filters = [n for n in walk(root) if isinstance(n, Filter)]
    assert len(filters) == 2
    above, below = filters
    assert ctx.known(above) is None
    assert ctx.known(below) is derive(below, ctx)


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
