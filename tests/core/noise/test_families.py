"""Laplace or Gaussian noise for the whole query, shares by weight, and a price that is never above the request."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import pytest

from dpsql.core.ir.public_facts import PublicFacts
from dpsql.core.noise.measurement import Measurement
from dpsql.core.noise.mechanisms import DiscreteGaussian, DiscreteLaplace
from dpsql.core.privacy_loss import PrivacyLoss, epsilon_to_rho
from dpsql.diagnostics.diagnostic import Source
from dpsql.diagnostics.errors import Rejected
from dpsql.planner.compile import compile_query
from dpsql.planner.costs.privacy_cost import cost_of
from dpsql.planner.plan import Plan
from dpsql.planner.settings.query_settings import QuerySettings
from dpsql.policy.load import parse_policy
from dpsql.policy.policy import Policy

TABLES = """
  people:
    unit: {rows: 1}
    columns:
      region: {type: varchar, domain: [n, s, e, w], nullable: false}
      word:   {type: varchar}
      income: {type: double, bounds: [0, 200000]}
      age:    {type: integer, bounds: [0, 100], nullable: false}
  visits:
    unit: {column: id}
    max_groups_per_unit: 16
    max_rows_per_group: 1
    columns:
      id:   {type: bigint, nullable: false}
      kind: {type: integer, bounds: [1, 1000], nullable: false}
"""
CAPS = {
    "pure_dp": "{epsilon: 100}",
    "approx_dp": "{epsilon: 100, delta: 1e-3}",
    "zcdp": "{rho: 100, delta: 1e-3}",
}
WIDE = "SELECT " + ", ".join(f"COUNT(*) FILTER (WHERE age > {i})" for i in range(30)) + " FROM people"
SPREAD = "SELECT kind, COUNT(*) FROM visits GROUP BY kind"
Q2 = "SELECT region, COUNT(*) AS n, SUM(income) AS s, AVG(age) AS a FROM people GROUP BY region"
PRIVATE = "SELECT word, COUNT(*) AS n, SUM(age) AS s FROM people GROUP BY word"
NOWHERE = Fraction(0)


def policy(accountant: str) -> Policy:
    head = (
        f"version: 1\nname: test\ndatabase: x.duckdb\nprivacy: {{accountant: {accountant}}}\nunits: {{person: {{}}}}\n"
    )
    return parse_policy(f"{head}budgets: {{total: {CAPS[accountant]}}}\ntables:{TABLES}", "test.yaml")


POLICIES = {accountant: policy(accountant) for accountant in CAPS}


def plan(sql: str, accountant: str = "approx_dp", **asked: object) -> Plan:
    given = QuerySettings(**{"epsilon": Fraction(1), **asked})  # type: ignore[arg-type]
    return compile_query(Source(sql), POLICIES[accountant], PublicFacts(), given)


def noisy(found: Plan) -> list[Measurement]:
    return [m for r in found.releases for m in r.measured.measurements if m.sensitivity.l1]


def families(found: Plan) -> set[str]:
    return {m.mechanism.name for m in noisy(found)}


def error(found: Plan) -> float:
    return sum(math.log(m.mechanism.variance()) for m in noisy(found))


@pytest.mark.parametrize(
    ("sql", "accountant", "delta", "family"),
    [
        (Q2, "approx_dp", NOWHERE, "laplace"),
        (Q2, "approx_dp", Fraction(1, 10**9), "laplace"),
        (WIDE, "approx_dp", NOWHERE, "laplace"),
        (WIDE, "approx_dp", Fraction(1, 10**9), "gaussian"),
        (SPREAD, "approx_dp", NOWHERE, "laplace"),
        (SPREAD, "approx_dp", Fraction(1, 10**9), "laplace"),
        (SPREAD, "approx_dp", Fraction(1, 10**5), "gaussian"),
        (WIDE, "pure_dp", Fraction(1, 10**9), "laplace"),
        (Q2, "zcdp", NOWHERE, "gaussian"),
        (SPREAD, "zcdp", NOWHERE, "gaussian"),
        (PRIVATE, "zcdp", Fraction(1, 10**9), "gaussian"),
    ],
)
def test_one_family_whichever_errs_less(sql: str, accountant: str, delta: Fraction, family: str) -> None:
    assert families(plan(sql, accountant, delta=delta)) == {family}


def test_the_gaussian_is_taken_because_it_errs_less() -> None:
    """30 counts: Laplace has variance 2·30² = 1800 each, the Gaussian 1/(2ρ/30) = 1002 at δ = 1e-9."""
    laplace, gaussian = plan(WIDE, delta=NOWHERE), plan(WIDE, delta=Fraction(1, 10**9))
    assert noisy(laplace)[0].mechanism.variance() == pytest.approx(1800, rel=1e-3)
    rho = epsilon_to_rho(Fraction(1), Fraction(1, 10**9))
    assert noisy(gaussian)[0].mechanism.variance() == pytest.approx(15 / float(rho), rel=1e-6)
    assert error(gaussian) < error(laplace)


def test_a_delta_is_charged_only_where_it_is_used() -> None:
    delta = Fraction(1, 10**9)
    assert plan(Q2, delta=delta).loss == PrivacyLoss(Fraction(1))
    found = plan(WIDE, delta=delta).loss
    assert 1 - Fraction(1, 10**8) < found.epsilon <= 1 and found.delta == delta and not found.rho


def test_thresholds_and_conversion_share_the_delta() -> None:
    """Half each: the threshold's δ is at most its half, the conversion's exactly the other."""
    many = ", ".join(f"COUNT(*) FILTER (WHERE age > {i})" for i in range(40))
    delta = Fraction(1, 10**6)
    found = plan(f"SELECT word, {many} FROM people GROUP BY word", delta=delta)
    (release,) = found.releases
    assert families(found) == {"gaussian"} and release.measured.threshold is not None
    assert release.measured.conversion_delta == delta / 2
    assert 0 < release.measured.threshold.delta <= delta / 2
    assert found.loss.delta <= delta and found.loss.epsilon <= 1


def test_rho_is_what_is_paid_under_zcdp() -> None:
    found = plan(Q2, "zcdp", epsilon=None, rho=Fraction(1, 50))
    assert found.loss.rho == Fraction(1, 50) and not found.loss.epsilon
    for m in noisy(found):
        assert isinstance(m.mechanism, DiscreteGaussian)
        assert m.mechanism.sigma_squared == m.sensitivity.l2_squared / (2 * Fraction(1, 150))
    with pytest.raises(Rejected, match="rho"):
        plan(Q2, "approx_dp", epsilon=None, rho=Fraction(1, 50))


def test_shares_follow_the_weights() -> None:
    """COUNT(*) serves n and a; s is weighted 4, so ε is split 1 : 4 : 1."""
    found = plan(Q2, weights={"s": Fraction(4)})
    spent = {m.component.kind + str(m.component.center): m.loss.epsilon for m in noisy(found)}
    assert sorted(spent.values()) == [Fraction(1, 6), Fraction(1, 6), Fraction(4, 6)]
    assert spent["sum0"] == Fraction(4, 6)
    assert found.loss.epsilon == 1
    gaussian = plan(Q2, "zcdp", weights={"s": Fraction(4)})
    assert max(m.loss.rho for m in noisy(gaussian)) == Fraction(4, 6) * Fraction(1, 2)


def test_a_weight_of_one_changes_nothing() -> None:
    plain, named = plan(Q2), plan(Q2, weights={"n": Fraction(1), "a": Fraction(1)})
    assert [m.mechanism for m in noisy(plain)] == [m.mechanism for m in noisy(named)]


def test_weights_name_columns_that_exist() -> None:
    with pytest.raises(Rejected) as refusal:
        plan(Q2.replace("AS s", "AS total"), weights={"totl": Fraction(2)})
    (found,) = refusal.value.diagnostics
    assert found.code == "DP411" and found.help == ("did you mean total?", "its columns are region, n, total, a")


def test_an_edited_conversion_pays_for_what_it_claims() -> None:
    """Whatever δ a plan names for the conversion, the ε that belongs to it is charged."""
    found = plan(WIDE, delta=Fraction(1, 10**9))
    (release,) = found.releases
    other = replace(release.measured, conversion_delta=Fraction(1, 10**12))
    charged = cost_of([other], POLICIES["approx_dp"])["people"]
    assert charged.delta == Fraction(1, 10**12) and charged.epsilon > 1
    with pytest.raises(ValueError, match="delta"):
        cost_of([replace(other, conversion_delta=NOWHERE)], POLICIES["approx_dp"])


def test_an_epsilon_worth_no_rho_is_priced_with_laplace_noise() -> None:
    with pytest.raises(Rejected) as refusal:
        plan(WIDE, epsilon=Fraction(1, 10**30), delta=Fraction(1, 10**70))
    assert refusal.value.diagnostics[0].code == "DP410"


def test_scales_beyond_the_largest() -> None:
    """Where neither family fits, the refusal is that of Laplace noise; where one does, it is taken."""
    with pytest.raises(Rejected) as refusal:
        plan("SELECT SUM(income) FROM people", epsilon=Fraction(1, 10**13), delta=Fraction(1, 10**9))
    assert refusal.value.diagnostics[0].code == "DP410"


# --- the whole query at ε = 1 --------------------------------------------------------------------------------------


def test_the_errors_that_are_promised_at_epsilon_one() -> None:
    """Root mean squares of COUNT(*), SUM(income), AVG(age) per region at ε = 1 in all, from the mechanisms alone."""
    found = plan(Q2)
    assert found.loss == PrivacyLoss(Fraction(1))
    (release,) = found.releases
    by_column = {o.column.name: o.recipe for o in release.measured.node.outputs}
    assert set(by_column) >= {"n", "s", "a"} or len(by_column) == 3
    sizes = {}
    for m in noisy(found):
        assert isinstance(m.mechanism, DiscreteLaplace)
        sizes[m.component.kind + str(m.component.center)] = math.sqrt(m.mechanism.variance()) * float(m.unit)
    assert sizes["count0"] <= 4.8
    assert sizes["sum0"] <= 1.15e6
    group = 250_000  # 1 M rows in four regions; the mean is within 50 of the centre
    assert math.hypot(sizes["sum50"], 50 * sizes["count0"]) / group <= 0.016


def test_each_of_several_units_is_charged_its_own_loss() -> None:
    """The noise follows the unit that changes most, 3 rows; one of 1 row loses a ninth of ρ, a third of ε."""
    tables = """
  one:  {unit: {rows: 1}, columns: {x: {type: integer, bounds: [0, 9], nullable: false}}}
  many: {unit: {rows: 3}, columns: {x: {type: integer, bounds: [0, 9], nullable: false}}}
"""
    sql = "SELECT COUNT(*) AS n, SUM(x) AS s FROM (SELECT x FROM one UNION ALL SELECT x FROM many)"
    for accountant, part in (("zcdp", Fraction(1, 9)), ("pure_dp", Fraction(1, 3))):
        head = f"version: 1\nname: test\ndatabase: x.duckdb\nprivacy: {{accountant: {accountant}}}\n"
        both = parse_policy(f"{head}budgets: {{total: {CAPS[accountant]}}}\ntables:{tables}", "test.yaml")
        found = compile_query(Source(sql), both, PublicFacts(), QuerySettings(epsilon=Fraction(1))).cost
        losses = {unit: loss.rho + loss.epsilon for unit, loss in found.items()}
        assert losses["one"] == part * losses["many"]
        assert losses["many"] <= 1
