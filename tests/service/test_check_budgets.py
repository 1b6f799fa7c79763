"""The check refuses what no account of the policy could ever pay, and repairs name no ε beyond the budgets."""

from __future__ import annotations

from typing import Any

import pytest

import dpsql
from dpsql.policy.policy import Policy

SQL = "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (epsilon = {}) COUNT(*) AS n FROM t"
TABLES = {"t": {"unit": {"rows": 1}, "columns": {"k": {"type": "varchar"}}}}
ANA = {"analysts": {"ana": {"epsilon": 2, "delta": 1e-6, "per_query": {"max_epsilon": 0.5}}, "ben": {"epsilon": 1}}}


def policy(budgets: dict[str, Any], **more: Any) -> Policy:
    return Policy.model_validate({"version": 1, "name": "t", "tables": TABLES, "budgets": budgets, **more})


@pytest.mark.parametrize(
    ("budgets", "epsilon", "code"),
    [
        ({"total": {"epsilon": 1}}, "9.1", "DP403"),
        ({"total": {"epsilon": 10}, **ANA}, "1.5", "DP405"),  # ana may not at once, ben not at all
        ({"total": {"epsilon": 10}, **ANA}, "3", "DP404"),
    ],
)
def test_a_query_that_nobody_could_pay_is_refused(budgets: dict[str, Any], epsilon: str, code: str) -> None:
    for sql in (SQL.format(epsilon), f"/* dpsql: epsilon={epsilon} */ SELECT COUNT(*) AS n FROM t"):
        (found,) = dpsql.check(sql, policy(budgets))
        assert found.code == code and found.severity == "error" and found.help[0].startswith("use epsilon = ")
        repaired = SQL.format(found.help[0].split()[3])
        assert dpsql.check(repaired, policy(budgets)) == []


def test_what_somebody_could_pay_or_nobody_has_said_is_not() -> None:
    assert dpsql.check(SQL.format("0.9"), policy({"total": {"epsilon": 10}, **ANA})) == []  # ben
    tight = policy({"total": {"epsilon": 0.5}})
    assert dpsql.check("SELECT COUNT(*) AS n FROM t", tight) == []  # the caller says how much
    (found,) = dpsql.check("SELECT COUNT(*) AS n FROM t", policy({"total": {"epsilon": 0.5}}, defaults={"epsilon": 1}))
    assert found.code == "DP403"


@pytest.mark.parametrize(("total", "repair"), [(100, "use an ε of "), (0.1, "no ε within the policy's budgets")])
def test_no_repair_is_beyond_the_budgets(total: float, repair: str) -> None:
    sql = "SELECT k, COUNT(*) AS n FROM t GROUP BY k"
    of = policy({"total": {"epsilon": total, "delta": 1e-6}}, defaults={"epsilon": 0.1, "delta": 1e-9})
    (found,) = dpsql.check(sql, of)
    assert found.code == "DP503" and found.help[0].startswith(repair)
