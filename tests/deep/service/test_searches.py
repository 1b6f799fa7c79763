"""Limits that are found: prices and refusals, over more queries"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest

from dpsql.api.connection import Connection, connect
from dpsql.core.noise.measurement import MeasuredRelease
from dpsql.core.privacy_loss import PrivacyLoss
from dpsql.core.release.charge import Price, price
from dpsql.core.release.noisy import GivenAnswers
from dpsql.diagnostics.errors import Rejected
from dpsql.planner.costs.privacy_cost import cost_of
from dpsql.planner.plan import Plan
from dpsql.planner.settings.query_settings import QuerySettings
from dpsql.service import pipeline
from dpsql.service.planning.planning import WrittenQuery
from dpsql.service.session import Session
from tests.service.test_searches import COUNT, EPSILON, POLICY, QUERIES, RHO, SMALL, SURE, _found, folder

PURE = "privacy: {accountant: pure_dp}\nbudgets: {total: {epsilon: 100000000}}\n"


REPLACED = EPSILON.replace("approx_dp}", "approx_dp, neighbours: replace_one}")


@pytest.mark.parametrize("accounts", [PURE, RHO, REPLACED], ids=["pure_dp", "zcdp", "replace_one"])
def test_other_ledgers_and_relations(tmp_path: Path, accounts: str) -> None:
    with connect(folder(tmp_path, accounts) / "walks.yaml", ledger=":memory:") as con:
        query = Session(con.service, None, QuerySettings(search=True)).sql(
            "SELECT place, COUNT(*) AS n, SUM(steps) AS s FROM walks GROUP BY place"
        )
        plan = query.plan(epsilon=SURE)
        assert plan.searches is not None
        (octaves, _) = plan.searches.plan.releases
        noise = octaves.measured.measurements[0]
        assert noise.sensitivity.l1 == (2 if accounts is REPLACED else 1), "who is replaced leaves one and enters one"
        small = query.plan(epsilon=1).searches
        assert small is not None
        named = {r.measured.measurements[0].mechanism.name for r in small.plan.releases}
        assert named == {"gaussian" if accounts is RHO else "laplace"}
        answer = query.run(epsilon=SURE)
        assert [(n, round(s, -4)) for _, n, s in answer.rows] == [(2000, 600_000)] * 3
        assert answer.spent == plan.loss
        whole = PrivacyLoss(**_whole(accounts))
        # Noise is drawn at rates that are whole multiples of something: a ρ is used up but for a millionth.
        assert plan.loss.within(whole) and whole.rho - plan.loss.rho <= whole.rho / 10**6


def _whole(accounts: str) -> dict[str, Fraction]:
    return {"rho": Fraction(SURE**2, 2)} if accounts is RHO else {"epsilon": Fraction(SURE)}


@pytest.mark.parametrize("accounts", [EPSILON, PURE, RHO, REPLACED], ids=["approx_dp", "pure_dp", "zcdp", "replace"])
def test_whatever_is_found_costs_what_was_reserved(tmp_path: Path, accounts: str) -> None:
    """Every limit that a search can find: the rest costs the very same, in the same parts."""
    with connect(folder(tmp_path, accounts) / "walks.yaml", ledger=":memory:") as con:
        own = Session(con.service, None, QuerySettings(search=True))
        for sql in QUERIES:
            for epsilon in ("0.01", "100"):
                if "tag" in sql and accounts is PURE:
                    continue  # private keys need a δ
                plan = own.plan(sql, epsilon=epsilon, delta="1e-7")
                assert plan.searches is not None
                largest = max(s.largest for s in plan.searches.limits)
                for k in range(largest + 1) if sql is COUNT else (0, 9, 30, largest):
                    limits = {s.limit.label: _found(s, k) for s in plan.searches.limits}
                    limited = pipeline.compile(
                        con.service, WrittenQuery(sql), replace(plan.searches.settings, found=limits)
                    )
                    assert limited.searches is None
                    assert _price(limited, con).within(_price(plan, con)), (sql, k)
                    assert cost_of([r.measured for r in plan.first.releases] + _measured(limited), con.policy)[
                        "walker"
                    ].within(plan.cost["walker"])


def test_no_bounds_of_rows_that_are_found_end_in_a_refusal(tmp_path: Path) -> None:
    by_rows = POLICY.replace("unit: {column: id, of: walker}", "unit: {rows: 3}").replace("units: {walker: {}}\n", "")
    at = folder(tmp_path)
    (at / "walks.yaml").write_text(by_rows.replace("ACCOUNTS\n", REPLACED), encoding="utf-8")
    with connect(at / "walks.yaml", ledger=":memory:") as con:
        own, refused = Session(con.service, None, QuerySettings(search=True)), 0
        for sql in ("SELECT SUM(steps) AS s FROM walks", "SELECT AVG(CLIP(steps, AUTO) * 3) AS s FROM walks"):
            for epsilon in SMALL:
                try:
                    plan = own.plan(sql, epsilon=epsilon)
                except Rejected as refusal:
                    assert [d.code for d in refusal.diagnostics] == ["DP410"]
                    refused += 1
                    continue
                assert plan.searches is not None
                for k in range(0, 63, 4):
                    limits = {s.limit.label: _found(s, k) for s in plan.searches.limits}
                    settings = replace(plan.searches.settings, found=limits)
                    assert pipeline.compile(con.service, WrittenQuery(sql), settings).searches is None
        assert 0 < refused < 2 * len(SMALL)


def _price(plan: Plan, con: Connection) -> Price:
    return price(plan.releases, [GivenAnswers() for _ in plan.releases], (), con.policy.privacy.accountant)


def _measured(plan: Plan) -> list[MeasuredRelease]:
    return [r.measured for r in plan.releases]
