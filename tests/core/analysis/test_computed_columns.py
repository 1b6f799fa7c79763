"""What is known of a computed column: what its expression says, and never what the policy declares of its values."""

from __future__ import annotations

from dpsql.core.analysis.facts import ColumnFact
from dpsql.core.numbers.interval import Interval
from dpsql.planner.computed import understood
from tests.support.planning import below_release, derived, planned, policy

T = understood(
    policy("""
t:
  unit: {column: id}
  max_rows_per_unit: 2
  columns:
    id: {type: integer, nullable: false}
    x: {type: integer, bounds: [0, 9]}
    s: {type: varchar, nullable: false}
    clipped: {from: "CLIP(x, 0, 3)", type: integer}
    bounded: {from: "x + id", type: bigint, bounds: [0, 5]}
    open: {from: "x + id", type: bigint, bounds: [0, null]}
    least: {from: "coalesce(x, 0)", type: integer}
    never: {from: "x + 1", type: bigint, nullable: false}
    kind: {from: "CASE WHEN x > 3 THEN 'b' ELSE 'a' END", type: varchar}
    some: {from: "CASE WHEN x > 3 THEN 'b' ELSE 'a' END", type: varchar, domain: [a, c]}
    low: {from: "lower(s)", type: varchar}
    month: {from: "extract(month FROM DATE '2024-01-01' + x)", type: integer}
""")
)


def fact(name: str) -> ColumnFact:
    columns = derived(f"SELECT {name} FROM t", T).inputs[0].fact.columns.values()
    (found,) = [c for c in columns if c.hint is not None and c.hint.column == name]
    return found


def test_bounds_are_a_hint_and_no_fact() -> None:
    found = fact("bounded")
    assert not found.value.interval.bounded and found.hint is not None and found.hint.bounds == Interval(0, 5)
    (why,) = {r.message for r in found.value.interval.why}
    assert why == "bounded has no bounds"  # until they are enforced, in a sum
    assert "open at one end" in fact("open").value.interval.why[0].label


def test_what_the_expression_enforces_is_a_fact() -> None:
    assert fact("clipped").value.interval == Interval(0, 3) == fact("clipped").value.range
    assert fact("month").value.interval == Interval(1, 12)
    assert {"least has no bounds"} == {r.message for r in fact("least").value.interval.why}


def test_it_is_null_where_the_expression_is_or_where_nobody_promises_that_it_is_not() -> None:
    nullable = {name for name in T.tables["t"].columns if fact(name).value.nullable}
    assert nullable == {"x", "clipped", "bounded", "open", "month"}


def test_keys_are_those_of_the_expression_unless_some_are_listed() -> None:
    listed = {name: fact(name).value.domain for name in ("kind", "some", "bounded", "clipped", "low")}
    assert listed["low"] is None
    assert {n: d and (list(d.values), d.null) for n, d in listed.items() if n != "low"} == {
        "kind": (["b", "a"], False), "some": (["a", "c"], True), "bounded": (list(range(6)), True),
        "clipped": (list(range(4)), True),
    }  # fmt: skip


def test_a_sum_of_one_without_bounds_is_of_what_it_is_made_of() -> None:
    facts = below_release(planned("SELECT SUM(least) AS s FROM t", T))
    assert facts.columns  # it is planned: x is clipped to its own bounds
    assert planned("SELECT SUM(least) AS s FROM t", T).releases[0].measured.node.components == (
        planned("SELECT SUM(coalesce(x, 0)) AS s FROM t", T).releases[0].measured.node.components
    )
