"""AUTO in the place of a limit or bound: what is read as it, where it may stand, and that a policy may refuse it."""

from __future__ import annotations

import pytest

from dpsql.core.ir.expressions import Call, Column
from dpsql.core.ir.nodes import Aggregate
from dpsql.core.ir.types import INTEGER
from dpsql.core.ir.walk import walk
from dpsql.core.values.value import Value
from dpsql.diagnostics.diagnostic import Diagnostic, Source
from dpsql.diagnostics.errors import Rejected
from dpsql.frontend.bind.aggregates.searched_clips import is_auto, searched_in
from dpsql.frontend.bind.statement import bind
from dpsql.frontend.google.privacy_clause import Clause
from dpsql.frontend.parse import parse
from dpsql.functions.expression_values import evaluate
from dpsql.planner.settings.privacy_clause import with_clause
from dpsql.planner.settings.query_settings import QuerySettings
from dpsql.policy.policy import Policy
from dpsql.service.checks.check import examine

TEXT = """\
version: 1
name: shop
tables:
  orders:
    unit: {column: customer}
    max_rows_per_unit: 20
    columns:
      customer: {type: bigint}
      n: {type: integer}
      price: {type: 'decimal(9,2)'}
      weight: {type: double}
      day: {type: date}
      "auto": {type: integer}
defaults: {epsilon: 1}
budgets: {total: {epsilon: 9}}
"""
SHOP = Policy.from_yaml(TEXT)
REFUSING = Policy.from_yaml(TEXT + "search: refuse\n")


def bound_clip(sql: str) -> Call | None:
    """The first clip to AUTO of the first aggregate."""
    root = bind(parse(Source(f"SELECT {sql} AS s FROM orders")), SHOP).root
    calls = [call for node in walk(root) if isinstance(node, Aggregate) for call in node.calls]
    return searched_in(calls[0].arg)


def refused(sql: str, policy: Policy = SHOP, *, search: bool = False) -> Diagnostic:
    found = examine(Source(sql), policy, search=search)
    assert found.plan is None
    return found.diagnostics[-1]


@pytest.mark.parametrize(
    ("sql", "ends"),
    [
        ("SUM(CLIP(n, AUTO))", (True, True)), ("AVG(clip(weight, auto))", (True, True)),
        ("SUM(CLIP(n, AUTO, AUTO))", (True, True)), ("VAR_POP(CLAMP(weight, 0, AUTO))", (False, True)),
        ("SUM(CLIP(price, AUTO, 100))", (True, False)), ("SUM(2 * CLIP(n - 5, -5, Auto))", (False, True)),
        ("SUM(CLIP(weight, -0.5, AUTO))", (False, True)), ("MEDIAN(CLIP(n, AUTO))", (True, True)),
        ("PERCENTILE_CONT(0.9) WITHIN GROUP (ORDER BY CLIP(price, 0, AUTO))", (False, True)),
        ("SUM(CLIP(n, AUTO)) FILTER (WHERE n > 3)", (True, True)),
    ],
)  # fmt: skip
def test_auto_stands_for_a_bound(sql: str, ends: tuple[bool, bool]) -> None:
    found = bound_clip(sql)
    assert found is not None and tuple(map(is_auto, found.args[1:])) == ends
    assert found.type == found.args[0].type


def test_every_analysis_refuses_what_was_not_searched() -> None:
    """Default deny: AUTO has no value, so nothing is known of the clip, not even with a bounded argument."""
    found = bound_clip("SUM(CLIP(n, 0, AUTO))")
    assert found is not None
    column = found.args[0]
    assert isinstance(column, Column)
    with pytest.raises(Rejected, match="DP106"):
        evaluate(found, {column.uid: Value(INTEGER)})


@pytest.mark.parametrize(
    ("sql", "code", "at"),
    [
        ("SELECT COUNT(*) FROM orders WHERE CLIP(n, AUTO) > 3", "DP106", "CLIP(n, AUTO)"),
        ("SELECT COUNT(CLIP(n, AUTO)) FROM orders", "DP106", "CLIP(n, AUTO)"),
        ("SELECT COUNT(DISTINCT CLIP(n, AUTO)) FROM orders", "DP106", "CLIP(n, AUTO)"),
        ("SELECT SUM(DISTINCT CLIP(n, AUTO)) FROM orders", "DP106", "CLIP(n, AUTO)"),
        ("SELECT MAX(CLIP(n, AUTO)) FROM orders", "DP106", "CLIP(n, AUTO)"),
        ("SELECT COUNT_IF(CLIP(n, AUTO) > 1) FROM orders", "DP106", "CLIP(n, AUTO)"),
        ("SELECT SUM(n) FILTER (WHERE CLIP(n, AUTO) > 1) FROM orders", "DP106", "CLIP(n, AUTO)"),
        ("SELECT CLIP(SUM(CLIP(n, 0, 9)), AUTO) AS s FROM orders", "DP106", "CLIP(SUM(CLIP(n, 0, 9)), AUTO)"),
        ("SELECT COUNT(*) FROM orders GROUP BY CLIP(n, AUTO)", "DP106", "CLIP(n, AUTO)"),
        ("SELECT SUM(CLIP(day, AUTO)) FROM orders", "DP106", "CLIP(day, AUTO)"),
        ("SELECT MEDIAN(CLIP(day, AUTO)) FROM orders", "DP106", "CLIP(day, AUTO)"),
        ("SELECT MEDIAN(n) FILTER (WHERE CLIP(n, AUTO) > 1) FROM orders", "DP106", "CLIP(n, AUTO)"),
        ("SELECT SUM(CLIP(n, 0.5, AUTO)) FROM orders", "DP106", "0.5"),
        ("SELECT SUM(CLIP(n, 0, n, AUTO)) FROM orders", "DP106", "CLIP(n, 0, n, AUTO)"),
        ("SELECT SUM(CLIP(n, 'a', AUTO)) FROM orders", "DP106", "CLIP(n, 'a', AUTO)"),
        ("SELECT SUM(CLIP(n, n, AUTO)) FROM orders", "DP115", "n"),
        ('SELECT SUM(CLIP(n, "auto", 9)) FROM orders', "DP115", '"auto"'),
        ("SELECT SUM(CLIP(n, orders.auto, 9)) FROM orders", "DP115", "orders.auto"),
        ("SELECT SUM(CLIP(n, NULL, NULL)) FROM orders", "DP106", "CLIP(n"),
        ("SELECT SUM(n, contribution_bounds_per_row => (0, AUTO)) FROM orders", "DP115", "AUTO"),
    ],
)
def test_where_nothing_is_searched(sql: str, code: str, at: str) -> None:
    found = refused(sql)
    assert found.code == code, found
    assert found.span is not None and sql[found.span.start : found.span.end] == at
    assert found.help


def clause(options: str) -> Clause:
    found = parse(Source(f"SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS ({options}) COUNT(*) AS n FROM t")).clause
    assert found is not None
    return found


def test_the_clause_may_leave_its_limit_to_a_search() -> None:
    assert clause("max_rows_contributed = AUTO") == Clause(search=True)
    assert clause("epsilon = 1, max_rows_contributed = auto").search
    assert with_clause(QuerySettings(), clause("max_rows_contributed = AUTO")).search
    assert not with_clause(QuerySettings(), clause("epsilon = 1")).search
    assert with_clause(QuerySettings(search=True), clause("epsilon = 1")).search


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ("max_groups_contributed = AUTO", "DP115"),
        ("epsilon = AUTO", "DP115"),
        ("max_rows_contributed = 'AUTO'", "DP115"),
        ("max_rows_contributed = AUTO, max_rows_contributed = 3", "DP014"),
        ("max_rows_contributed = 3, max_rows_contributed = AUTO", "DP014"),
        ("max_rows_contributed = AUTO, max_rows_contributed = AUTO", "DP014"),
        ("max_rows_contributed = AUTO, max_groups_contributed = 3", "DP014"),
        ("max_rows_contributed = AUTO 3", "DP115"),
    ],
)
def test_what_the_clause_may_not_say(options: str, code: str) -> None:
    with pytest.raises(Rejected) as refusal:
        clause(options)
    assert refusal.value.diagnostics[0].code == code


@pytest.mark.parametrize(
    ("sql", "at"),
    [
        ("SELECT SUM(CLIP(n, AUTO)) AS s FROM orders", "CLIP(n, AUTO)"),
        (
            "SELECT COUNT(*) AS c FROM (SELECT customer, SUM(CLIP(n, AUTO)) AS s FROM orders GROUP BY 1)",
            "CLIP(n, AUTO)",
        ),
        (
            "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (max_rows_contributed = AUTO) COUNT(*) AS n FROM orders",
            "WITH DIFFERENTIAL_PRIVACY OPTIONS (max_rows_contributed = AUTO)",
        ),
    ],
)
def test_a_policy_may_refuse_every_search(sql: str, at: str) -> None:
    found = refused(sql, REFUSING)
    assert found.code == "DP213" and found.span is not None and sql[found.span.start : found.span.end] == at
    assert found.help[0].startswith("write them into the query")


def test_a_policy_may_refuse_the_setting() -> None:
    assert refused("SELECT COUNT(*) AS n FROM orders", REFUSING, search=True).code == "DP213"
    assert examine(Source("SELECT COUNT(*) AS n FROM orders"), REFUSING).plan is not None
