"""LATERAL: which join stands for each, and what is refused, with a repair that is accepted when it is pasted."""

from __future__ import annotations

import pytest

from dpsql.core.ir.nodes import Aggregate, Filter, Join, Project, Window
from dpsql.core.ir.walk import walk
from dpsql.diagnostics.diagnostic import Source
from dpsql.diagnostics.errors import Rejected
from dpsql.frontend.bind.statement import bind
from dpsql.frontend.parse import parse
from tests.frontend.test_bind_subquery import POLICY, bound, joins, text
from tests.support.planning import planned, policy

LIMITED = policy(
    """
people:
  unit: {column: pid, of: person}
  primary_key: [pid]
  columns: {pid: {type: bigint, nullable: false}, city: {type: varchar}, age: {type: integer, bounds: [0, 90]}}
visits:
  unit: {column: pid, of: person}
  max_rows_per_unit: 5
  columns: {pid: {type: bigint, nullable: false}, city: {type: varchar}, cost: {type: double, bounds: [0, 9]}}
"""
)

PEOPLE = "SELECT COUNT(*) AS n FROM people p "


@pytest.mark.parametrize("written", [", {}", "CROSS JOIN {}", "JOIN {} ON TRUE", "LEFT JOIN {} ON TRUE"])
def test_one_row_for_each_is_a_left_join_with_groups(written: str) -> None:
    query = "LATERAL (SELECT COUNT(*) AS n, MAX(cost) AS top FROM visits v WHERE v.pid = p.pid AND v.cost > 1) AS x"
    root = bound(PEOPLE.replace("COUNT(*)", "SUM(x.n)") + written.format(query))
    assert joins(root) == ["left pid = pid"]
    (grouped,) = [n for n in walk(root) if isinstance(n, Aggregate) and n.keys]
    assert [k.column.name for k in grouped.keys] == ["pid"]
    (listed,) = [n for n in walk(root) if isinstance(n, Project) and isinstance(n.input, Join)]
    assert [text(i.expr) for i in listed.items][-2:] == ["coalesce(count, 0)", "max"]


def test_rows_are_joined() -> None:
    rows = "LATERAL (SELECT * FROM visits v WHERE v.pid = p.pid AND v.cost > p.age) AS x"
    assert joins(bound(PEOPLE + f", {rows}")) == ["inner pid = pid and gt(cost, age)"]
    on = joins(bound(PEOPLE + f"LEFT JOIN {rows} ON x.city = p.city"))
    assert on == ["left pid = pid and city = city and gt(cost, age)"]


def test_a_limit_is_the_first_of_each() -> None:
    root = bound(PEOPLE + ", LATERAL (SELECT cost FROM visits v WHERE v.pid = p.pid ORDER BY cost DESC LIMIT 2) AS x")
    (window,) = [n for n in walk(root) if isinstance(n, Window)]
    (call,) = window.calls
    assert [text(e) for e in call.partition] == ["pid"] and call.order[0].descending
    (kept,) = [n for n in walk(root) if isinstance(n, Filter)]
    assert text(kept.predicate) == "le(row_number, 2)" and joins(root) == ["inner pid = pid"]


def test_a_list_that_reads_the_row_needs_no_other_rows() -> None:
    root = bound("SELECT COUNT(*) FROM people p, LATERAL (SELECT p.age * 2 AS twice WHERE p.age > 3) AS x")
    assert joins(root) == [] and any(isinstance(n, Filter) for n in walk(root))


@pytest.mark.parametrize(
    ("item", "code", "says"),
    [
        ("RIGHT JOIN LATERAL (SELECT * FROM codes) AS x ON TRUE", "DP118", "LEFT JOIN LATERAL"),
        ("FULL JOIN LATERAL (SELECT * FROM codes) AS x ON TRUE", "DP118", "LEFT JOIN LATERAL"),
        ("SEMI JOIN LATERAL (SELECT * FROM codes) AS x ON TRUE", "DP118", "EXISTS"),
        ("JOIN LATERAL (SELECT * FROM visits) AS x USING (pid)", "DP118", "ON a.x = b.x"),
        ("CROSS APPLY (SELECT * FROM visits v WHERE v.pid = p.pid) AS x", "DP118", "CROSS JOIN LATERAL"),
        ("OUTER APPLY (SELECT * FROM visits v WHERE v.pid = p.pid) AS x", "DP118", "LEFT JOIN LATERAL"),
        (", LATERAL (VALUES (p.age)) AS x(v)", "DP118", "SELECT t.x"),
        ("LEFT JOIN LATERAL (SELECT COUNT(*) AS n FROM visits v WHERE v.pid = p.pid) AS x ON x.n > 1", "DP118", "TRUE"),
        (", LATERAL (SELECT COUNT(*) AS n FROM visits v WHERE v.cost > p.age) AS x", "DP111", "expression = outer"),
        (", LATERAL (SELECT cost FROM visits v WHERE v.cost > p.age LIMIT 1) AS x", "DP111", "equalities alone"),
        (", LATERAL (SELECT RANK() OVER (ORDER BY cost) FROM visits v WHERE v.cost > p.age) AS x", "DP111", "join"),
        (", LATERAL (SELECT COUNT(*) FROM visits v WHERE v.pid = p.pid HAVING COUNT(*) > 1) AS x", "DP111", "plain"),
        (", LATERAL (SELECT DISTINCT p.age + v.cost FROM visits v WHERE v.pid = p.pid) AS x", "DP111", "around"),
        ("LEFT JOIN LATERAL (SELECT p.age AS a FROM visits v WHERE v.pid = p.pid) AS x ON TRUE", "DP111", "around"),
        (", LATERAL (SELECT SUM(v.cost * p.age) FROM visits v WHERE v.pid = p.pid) AS x", "DP111", "WHERE"),
        (", LATERAL (SELECT pid FROM visits WHERE pid = p.pid UNION SELECT 1) AS x", "DP111", "WHERE"),
        (", LATERAL (SELECT * FROM visits v WHERE v.pid = p.pid) AS p", "DP104", "alias"),
        (
            ", LATERAL (SELECT COUNT(*) AS n FROM visits v WHERE v.pid = p.pid) AS x RIGHT JOIN codes ON TRUE",
            "DP118",
            "",
        ),
    ],
)
def test_refused_by_name(item: str, code: str, says: str) -> None:
    with pytest.raises(Rejected) as caught:
        bind(parse(Source(PEOPLE + item)), POLICY)
    (diagnostic,) = caught.value.diagnostics
    assert (diagnostic.code, diagnostic.span is not None) == (code, True)
    assert says in " ".join(diagnostic.help), diagnostic.help


@pytest.mark.parametrize(
    ("refused", "pasted"),
    [
        (
            "JOIN LATERAL (SELECT * FROM visits v WHERE v.cost > 1) AS x USING (pid)",
            "JOIN LATERAL (SELECT * FROM visits v WHERE v.cost > 1) AS x ON p.pid = x.pid",
        ),
        (
            "CROSS APPLY (SELECT * FROM visits v WHERE v.pid = p.pid) AS x",
            "CROSS JOIN LATERAL (SELECT * FROM visits v WHERE v.pid = p.pid) AS x",
        ),
        (
            "OUTER APPLY (SELECT * FROM visits v WHERE v.pid = p.pid) AS x",
            "LEFT JOIN LATERAL (SELECT * FROM visits v WHERE v.pid = p.pid) AS x ON TRUE",
        ),
        (", LATERAL (VALUES (p.age)) AS x(v)", ", LATERAL (SELECT p.age AS v) AS x"),
        (
            "LEFT JOIN LATERAL (SELECT COUNT(*) AS n FROM visits v WHERE v.pid = p.pid) AS x ON x.n > 1",
            "LEFT JOIN LATERAL (SELECT COUNT(*) AS n FROM visits v WHERE v.pid = p.pid) AS x ON TRUE",
        ),
        (
            ", LATERAL (SELECT cost FROM visits v WHERE v.pid = p.pid AND v.cost > p.age LIMIT 1) AS x",
            ", LATERAL (SELECT cost FROM visits v WHERE v.pid = p.pid LIMIT 1) AS x",
        ),
    ],
)
def test_the_repair_is_accepted(refused: str, pasted: str) -> None:
    """Through the whole planner, over a policy with limits."""
    with pytest.raises(Rejected):
        planned(PEOPLE + refused, LIMITED)
    assert planned(PEOPLE + pasted, LIMITED).releases


@pytest.mark.parametrize(
    "query",
    [
        "SELECT AVG(x.n) AS a FROM people p, LATERAL (SELECT COUNT(*) AS n FROM visits v WHERE v.pid = p.pid) AS x",
        "SELECT SUM(x.cost) AS a FROM people p LEFT JOIN LATERAL"
        " (SELECT * FROM visits v WHERE v.pid = p.pid ORDER BY cost DESC LIMIT 1) AS x ON TRUE",
        "SELECT COUNT(*) AS a FROM people p, LATERAL (SELECT DISTINCT city FROM visits v WHERE v.pid = p.pid) AS x",
        "SELECT COUNT(*) AS a FROM people p WHERE p.age IN"
        " (SELECT CAST(cost AS INTEGER) FROM visits v WHERE v.pid = p.pid ORDER BY cost LIMIT 1)",
    ],
)
def test_tied_by_the_unit_it_is_answered(query: str) -> None:
    assert planned(query, LIMITED).releases


def test_tied_by_anything_else_it_is_judged_as_any_join() -> None:
    query = "SELECT COUNT(*) AS n FROM people p, LATERAL (SELECT * FROM visits v WHERE v.city = p.city) AS x"
    with pytest.raises(Rejected, match="DP230"):
        planned(query, LIMITED)
