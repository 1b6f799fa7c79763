"""What an analyst writes into the privacy clause never loosens what the policy enforces, and never hides anything."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import pytest

from dpsql.diagnostics.diagnostic import Source
from dpsql.diagnostics.errors import Rejected
from dpsql.planner.plan import Plan
from dpsql.planner.settings.query_settings import QuerySettings
from dpsql.policy.load import load_policy
from dpsql.service.checks.check import static_plan

SETTINGS = QuerySettings(Fraction(1), Fraction(1, 10**9))


def planned(policies: Path, sql: str) -> Plan:
    return static_plan(Source(sql), load_policy(policies / "limits.yaml"), settings=SETTINGS)


def norms(plan: Plan) -> list[tuple[Fraction, Fraction]]:
    """l1 and l∞ of each measurement, in the unit of its number."""
    return [
        (m.sensitivity.l1 * m.unit, m.sensitivity.linf * m.unit)
        for release in plan.releases
        for m in release.measured.measurements
    ]


@pytest.mark.parametrize(("table", "most"), [("total", 1000), ("grouped", 400), ("every", 1000), ("promised", 700)])
def test_probe_bounds_of_a_sum_never_loosen_a_limit(policies: Path, table: str, most: int) -> None:
    for ends in ("(0, 1e9)", "(-1e9, 1e9)", "(0, 99999)"):
        plan = planned(policies, f"SELECT SUM(x, contribution_bounds_per_group => {ends}) AS s FROM {table}")
        assert norms(plan) == [(most, most)]


def test_probe_the_policy_keeps_its_minimum_of_units(policies: Path, tmp_path: Path) -> None:
    text = (policies / "limits.yaml").read_text(encoding="utf-8") + "defaults: {min_units: 5000}\n"
    path = tmp_path / "strict.yaml"
    path.write_text(text, encoding="utf-8")
    held = load_policy(path)
    shown = []
    for options in ("epsilon = 1", "epsilon = 1, min_privacy_units_per_group = 1"):
        sql = f"SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS ({options}) word, COUNT(*) AS n FROM total GROUP BY word"
        threshold = static_plan(Source(sql), held, settings=SETTINGS).releases[0].measured.threshold
        assert threshold is not None
        shown.append(threshold.threshold)
    assert shown == [5000, 5000]  # noise and δ alone ask for far fewer


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (epsilon = 1); DROP TABLE t",
        "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (epsilon = 1, ) COUNT(*), * FROM total --)",
        "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (epsilon = 1) * FROM total",
        "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (group_selection_strategy = PUBLIC_GROUPS) id, COUNT(*) FROM total "
        "GROUP BY id",
        "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (privacy_unit_column = kind) COUNT(*) FROM total",
        "SELECT COUNT(*) FROM (SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (epsilon = 1) id, x FROM total) AS a, total",
        "SELECT SUM(id, contribution_bounds_per_group => (0, 1e300)) FROM total",
        "SELECT SUM(x, contribution_bounds_per_group => (0, 1e-300)) FROM total",
        "SELECT COUNT(*, contribution_bounds_per_group => (0, 1e300)) FROM no_limit",
        "SELECT kind, SUM(x, contribution_bounds_per_group => (0, 1e300)) FROM grouped GROUP BY kind",
        "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (max_groups_contributed = 1099511627776) kind, "
        "SUM(x, contribution_bounds_per_group => (0, 1)) FROM no_limit GROUP BY kind",
        "SELECT AVG(x, contribution_bounds_per_row => (0, 1e-320)) FROM total",
        "SELECT DP_INTERVAL_LOW(x) FROM total",
        "SELECT DP_INTERVAL_LOW(MIN(x)) FROM total",
        "SELECT COUNT(*) FROM total HAVING DP_INTERVAL_LOW((SELECT COUNT(*) FROM total)) > 0",
    ],
)
def test_probe_odd_clauses_end_in_a_plan_or_a_coded_refusal(policies: Path, sql: str) -> None:
    try:
        plan = planned(policies, sql)
    except Rejected as refusal:
        assert refusal.diagnostics and all(d.code.startswith("DP") and d.code != "DP904" for d in refusal.diagnostics)
        return
    for release in plan.releases:
        for m in release.measured.measurements:
            assert m.sensitivity.l1 <= 2**40 * release.measured.contribution.ids
