"""`?` takes the values in the order of the text, whatever the order in which clauses are bound."""

from __future__ import annotations

from pathlib import Path

import pytest

import dpsql
from dpsql.core.ir.short_text import expression
from dpsql.diagnostics.diagnostic import Source
from dpsql.policy.load import load_policy
from dpsql.service.checks.check import static_plan


@pytest.mark.parametrize(
    ("sql", "values", "shown"),
    [
        ("SELECT COUNT(*) FILTER (WHERE day = ?) AS n FROM flights WHERE month = ?", [8, 7], ["day = 8", "month = 7"]),
        ("SELECT COUNT(*) AS n FROM flights WHERE month = ? AND day = ?", [7, 15], ["month = 7", "day = 15"]),
        (
            "WITH a AS (SELECT * FROM flights WHERE month = ?) "
            "SELECT COUNT(*) FILTER (WHERE day = ?) AS n FROM a HAVING COUNT(*) > ?",
            [7, 15, 3],
            ["month = 7", "day = 15", "> 3"],
        ),
        ("SELECT COUNT(*) FILTER (WHERE day = ?) AS n FROM (SELECT * FROM flights WHERE month = ?) AS f", [15, 7],
         ["day = 15", "month = 7"]),
    ],
)  # fmt: skip
def test_values_go_where_the_text_says(policies: Path, sql: str, values: list[int], shown: list[str]) -> None:
    plan = static_plan(Source(sql), load_policy(policies / "flights.yaml"), values)
    text = "\n".join(explained(plan))
    assert [part for part in shown if part not in text] == []


def explained(plan: object) -> list[str]:
    from dpsql.planner.explain.components import component_name
    from dpsql.planner.explain.nodes import operator
    from dpsql.planner.plan import Plan

    assert isinstance(plan, Plan)
    nodes = [operator(t.node) for t in plan.tree.walk()]
    parts = [m.component for r in plan.releases for m in r.measured.measurements]
    filters = [expression(c.filter) for c in parts if c.filter is not None]
    return [*nodes, *filters, *(component_name(c, plan.releases[0].measured) for c in parts)]


@pytest.mark.parametrize("dialect", ["duckdb", "postgres", "bigquery", "snowflake", "mysql", "tsql", "spark"])
def test_every_dialect_numbers_them(policies: Path, dialect: str) -> None:
    policy = policies / "flights.yaml"
    sql = "SELECT COUNT(*) AS n FROM flights WHERE month = ? AND origin = ?"
    assert dpsql.check(sql, policy, [7, "JFK"], dialect=dialect) == []
    assert {d.code for d in dpsql.check(sql, policy, ["JFK", 7], dialect=dialect)} == {"DP106"}
    assert [d.code for d in dpsql.check(sql, policy, [7], dialect=dialect)] == ["DP013"]


def test_a_missing_value_points_at_its_placeholder(policies: Path) -> None:
    sql = "SELECT COUNT(*) AS n FROM flights WHERE month = ? AND day = ?"
    (found,) = dpsql.check(sql, policies / "flights.yaml", [7])
    assert found.code == "DP013" and found.span is not None
    assert sql[found.span.start : found.span.end] == "?" and found.span.start == len(sql) - 1


@pytest.mark.parametrize("dialect", ["duckdb", "postgres", "mysql"])
@pytest.mark.parametrize("text", ["month = %s", "month IN (%s, 7)", "origin = '%s' AND month = %s"])
def test_the_mark_of_drivers_is_none(policies: Path, dialect: str, text: str) -> None:
    sql = f"SELECT COUNT(*) AS n FROM flights WHERE {text}"
    (found,) = dpsql.check(sql, policies / "flights.yaml", dialect=dialect)
    assert (found.code, found.message) == ("DP010", "syntax error: %s is no placeholder here")
    assert found.span is not None and found.span.start == sql.replace("'%s'", "'..'").index("%s")
    assert sql[found.span.start : found.span.end] == "%s" and found.help == ("write  ?",)


@pytest.mark.parametrize(
    ("column", "value", "type"),
    [("key", "00000000-0000-0000-0000-000000000003", "UUID"), ("at", "08:00:00", "TIME")],
)
def test_texts_that_only_a_cast_makes_a_value_of(column: str, value: str, type: str) -> None:
    """A refusal does not say that a UUID is none; what it names instead is accepted."""
    columns = {"id": "bigint", "key": "uuid", "at": "time"}
    table = {"unit": {"column": "id"}, "primary_key": ["id"], "columns": {n: {"type": t} for n, t in columns.items()}}
    policy = dpsql.Policy.from_dict(
        {"version": 1, "name": "keys", "tables": {"t": table}, "budgets": {"total": {"epsilon": 1}}}
    )
    sql = f"SELECT COUNT(*) AS n FROM t WHERE {column} = "
    for found in (*dpsql.check(f"{sql}'{value}'", policy), *dpsql.check(f"{sql}?", policy, [value])):
        assert found.message == f"{value!r} is a text, and not a {type}" and f"CAST(… AS {type})" in found.help[0]
    assert len(dpsql.check(f"{sql}?", policy, [value])) == 1
    assert dpsql.check(f"{sql}CAST(? AS {type})", policy, [value]) == []
