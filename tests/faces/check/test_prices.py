"""`--budget-report`: sums per unit, limits of the policy, what fits, and statements without a price."""

from __future__ import annotations

import json
from fractions import Fraction

from dpsql.core.privacy_loss import PrivacyLoss
from dpsql.diagnostics.diagnostic import Source
from dpsql.faces.check.documents.document import Document
from dpsql.faces.check.examine.examination import examine
from dpsql.faces.check.examine.prices import BudgetReport, as_json, as_text, budget_report
from dpsql.policy.load import parse_policy
from tests.support.checked_files import CHEAP, DEAR, GOOD, NO_BOUNDS, POLICY

CLAUSE = "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS"
KEYS = f"{CLAUSE} (epsilon = 0.1, delta = 1e-9) code, COUNT(*) AS n FROM visits GROUP BY code"
ROWS = f"{CLAUSE} (epsilon = 1) COUNT(*) AS n FROM orders"
ANALYSTS = "\n  analysts: {ana: {epsilon: 6, delta: 1e-7}, '*': {epsilon: 0.1}}\n"


def report(*texts: str, policy: str | None = None) -> BudgetReport:
    given = parse_policy(POLICY.read_text(encoding="utf-8") + ANALYSTS if policy is None else policy)
    documents = [Document(Source(text, f"q{number}.sql")) for number, text in enumerate(texts)]
    return budget_report([(d, examine(d.text, given, "duckdb")) for d in documents], given)


def test_sums_and_limits() -> None:
    found = report(
        f"{CHEAP};\n\n{DEAR}", f"{NO_BOUNDS};\n{GOOD}", "SELECT COUNT(*) AS n FROM items", f"{KEYS};{ROWS}", DEAR
    )
    # Gaussian noise of private keys costs hardly less than it was asked for.
    assert [(r.path, r.line, r.status, r.unit, round(r.total.epsilon, 9)) for r in found.rows] == [
        ("q0.sql", 1, "charged", "patient", Fraction(1, 4)),
        ("q0.sql", 3, "charged", "patient", Fraction(21, 4)),
        ("q1.sql", 1, "refused", "", 0),
        ("q1.sql", 2, "no epsilon", "", 0),
        ("q2.sql", 1, "public", "", 0),
        ("q3.sql", 1, "charged", "patient", Fraction(107, 20)),
        ("q3.sql", 1, "charged", "orders", 1),
        ("q4.sql", 1, "charged", "patient", Fraction(207, 20)),
    ]
    assert found.rows[5].total.delta > 0
    accounts = {(a.name, a.unit): (a.fitting, a.over and a.over.path) for a in found.accounts}
    assert accounts == {
        ("budgets.total", "patient"): (3, "q4.sql"),
        ("budgets.total", "orders"): (1, None),
        ("budgets.analysts.ana", "patient"): (3, "q4.sql"),
        ("budgets.analysts.ana", "orders"): (1, None),
        ("budgets.analysts.*", "patient"): (0, "q0.sql"),
        ("budgets.analysts.*", "orders"): (0, "q3.sql"),
    }


def test_text_and_json() -> None:
    found = report(f"{CHEAP};\n{DEAR};\n{DEAR}", NO_BOUNDS)
    lines = as_text(found).splitlines()
    assert lines[0].split() == ["statement", "unit", "cost", "together"]
    assert lines[1].split("  ")[0] == "q0.sql:1" and lines[1].endswith("ε 0.25") and lines[3].endswith("ε 10.25")
    assert lines[4].split() == ["q1.sql:1", "refused"]
    assert "budgets.total, patient: ε 10.25 of ε 10 δ 1e-6: the first 2 fit; q0.sql:3 does not" in lines
    assert "budgets.analysts.*, patient: ε 10.25 of ε 0.1: none fits" in lines
    assert "budgets.analysts.ana, orders: ε 0 of ε 6 δ 1e-7: all fit" in lines
    content = json.loads(as_json(found))
    assert [s["status"] for s in content["statements"]] == ["charged"] * 3 + ["refused"]
    assert content["statements"][2]["together"] == {"epsilon": 10.25, "delta": 0, "rho": 0}
    assert content["budgets"][0] == {
        "name": "budgets.total", "unit": "patient", "limit": {"epsilon": 10, "delta": 1e-6, "rho": 0},
        "together": {"epsilon": 10.25, "delta": 0, "rho": 0}, "fitting": 2, "over": {"path": "q0.sql", "line": 3},
    }  # fmt: skip
    assert json.loads(as_json(BudgetReport((), ()))) == {"statements": [], "budgets": []}


def test_rho_under_zcdp() -> None:
    text = POLICY.read_text(encoding="utf-8").replace("approx_dp", "zcdp").replace("epsilon: 10,", "rho: 50,")
    found = report(CHEAP, DEAR, policy=text)
    assert all(row.loss.epsilon == 0 and row.loss.rho > 0 for row in found.rows)
    assert found.rows[1].total == found.rows[0].loss + found.rows[1].loss
    assert found.accounts[0].cap == PrivacyLoss(delta=Fraction(1, 10**6), rho=Fraction(50))
    assert "ρ" in as_text(found)
