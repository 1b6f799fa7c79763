"""What is written for a new aggregate: one value, and one line of the table. All the rest asks it, by no name."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pytest

import dpsql.frontend.aggregates.all_aggregates as table
from dpsql.api.connection import Connection
from dpsql.core.analysis.facts import Facts
from dpsql.core.ir.nodes import AggregateCall
from dpsql.diagnostics.errors import Rejected
from dpsql.frontend.aggregates.aggregate import AggregateFunction, Shared
from dpsql.frontend.aggregates.count import COUNT, Count, counted
from dpsql.planner.explain.explain_text import as_text
from dpsql.planner.explain.stable_json import as_json
from tests.support.club import club_folder, con, ledger  # noqa: F401 — fixtures
from tests.support.planning import planned, policy

POLICY = policy(
    """
people:
  unit: {rows: 1}
  columns:
    x: {type: integer, bounds: [0, 9]}
    kind: {type: varchar, domain: [a, b], nullable: false}
"""
)


def _bind(call: AggregateCall, facts: Facts, shared: Shared) -> Count:
    return Count(shared(counted(call.arg, call, facts)), times=Fraction(2))


TWICE = replace(
    COUNT, name="count_twice", signature="count_twice(x) → bigint", summary="Twice as many as there are.", bind=_bind,
    distinct=False,
)  # fmt: skip


@pytest.fixture(autouse=True)
def one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    known: dict[str, AggregateFunction] = table.AGGREGATES  # type: ignore[assignment]
    monkeypatch.setitem(known, TWICE.name, TWICE)


def test_it_is_bound_measured_and_explained() -> None:
    plan = planned("SELECT kind, COUNT_TWICE(x) AS n, COUNT(x) AS m FROM people GROUP BY kind", POLICY)
    (release,) = plan.releases
    (component,) = release.measured.node.components
    assert component.arg is not None
    assert "COUNT_TWICE(x) = 2 · COUNT(x)" in as_text(plan)
    first, second = as_json(plan)["releases"][0]["outputs"]
    assert first["expected_error"] == 2 * second["expected_error"]


def test_it_is_answered_with_an_interval(con: Connection) -> None:  # noqa: F811
    sql = "SELECT COUNT_TWICE(age) AS n, DP_INTERVAL_LOW(n) AS low, DP_INTERVAL_HIGH(n) AS high FROM members"
    answer = con.sql(sql).run(epsilon=1000)
    ((n, low, high),), (row,) = answer.rows, answer.intervals()
    assert n % 2 == 0 and low <= n <= high and row["n"] == (low, high)


@pytest.mark.parametrize(
    ("sql", "code", "said"),
    [
        ("SELECT COUNT_TWICE(DISTINCT x) FROM people", "DP101", "DISTINCT"),
        ("SELECT COUNT_TWICE() FROM people", "DP106", "one argument"),
        ("SELECT COUNT_TWICE(x, x) FROM people", "DP106", "one argument"),
        ("SELECT COUNT_TWIC(x) FROM people", "DP105", "count_twice"),
        ("SELECT kind FROM people WHERE COUNT_TWICE(x) > 1 GROUP BY kind", "DP108", "WHERE"),
        ("SELECT COUNT_TWICE(n) FROM (VALUES (1)) AS t(n)", "DP101", "COUNT_TWICE"),
        ("SELECT kind, COUNT_TWICE(COUNT(*)) OVER () FROM people GROUP BY kind", "DP101", "COUNT_TWICE"),
        ("SELECT SUM(n) FROM (SELECT kind, COUNT_TWICE(x) AS n FROM people GROUP BY kind)", "DP101", "COUNT_TWICE"),
    ],
)
def test_where_it_means_nothing_it_is_refused_by_name(sql: str, code: str, said: str) -> None:
    with pytest.raises(Rejected) as refused:
        planned(sql, POLICY)
    (found,) = refused.value.diagnostics
    assert found.code == code and said in f"{found.message} {' '.join(found.help)}"
