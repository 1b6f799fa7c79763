"""Slices of one set: their components share what one of them costs, and the price says so."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest

from dpsql.core.ir.components import Component, DistinctCount, DistinctSum, ProductSum, RowCount, UnitCount, ValueSum
from dpsql.core.ir.contributions import Contributing, PerGroup, UnitTotal, Weighing
from dpsql.core.ir.expressions import Literal
from dpsql.core.ir.public_facts import PublicFacts
from dpsql.core.ir.slice_sets import SliceSet
from dpsql.core.ir.types import BIGINT
from dpsql.core.ir.well_formed import require_well_formed
from dpsql.core.ledger.paid import draw_of
from dpsql.core.noise.mechanisms import DiscreteGaussian, DiscreteLaplace
from dpsql.core.noise.parallel_composition import parallel_groups
from dpsql.core.release.charge import price
from dpsql.core.release.draw_names import _names
from dpsql.core.release.noisy import GivenAnswers
from dpsql.diagnostics.diagnostic import Source
from dpsql.diagnostics.errors import Rejected
from dpsql.planner.compile import compile_query
from dpsql.planner.costs.privacy_cost import cost_of
from dpsql.planner.explain.explain_text import as_text
from dpsql.planner.explain.stable_json import as_json
from dpsql.planner.plan import Plan
from dpsql.planner.rewrites.releases.cut_slices import as_filter
from dpsql.planner.settings.query_settings import QuerySettings
from dpsql.policy.load import parse_policy
from dpsql.policy.policy import Policy

TABLES = """
  orders:
    unit: {rows: 1}
    columns: &columns
      id:     {type: bigint, nullable: false}
      status: {type: varchar}
      region: {type: varchar, domain: [n, s], nullable: false}
      word:   {type: varchar}
      x:      {type: integer, bounds: [0, 100], nullable: false}
  bought:   {unit: {rows: 3}, columns: *columns}
  replaced: {unit: {rows: 1, neighbours: replace_one}, columns: *columns}
  limited:  {unit: {of: person, column: id}, max_rows_per_unit: 4, columns: *columns}
  promised: {unit: {of: person, column: id}, max_rows_per_unit: {rows: 4, enforce: assume}, columns: *columns}
  people:   {unit: {of: person, column: id}, primary_key: [id], columns: *columns}
"""
CAPS = {"pure_dp": "{epsilon: 100}", "approx_dp": "{epsilon: 100, delta: 1e-3}", "zcdp": "{rho: 100, delta: 1e-3}"}
PIVOT = (
    "SELECT COUNT(*) FILTER (WHERE status = 'a') AS a, COUNT(*) FILTER (WHERE status = 'b') AS b, "
    "SUM(x) FILTER (WHERE status = 'c') AS c FROM orders"
)
WITH_ALL = PIVOT.replace(" FROM", ", COUNT(*) AS n FROM")


def policy(accountant: str) -> Policy:
    head = f"version: 1\nname: test\ndatabase: x.duckdb\nprivacy: {{accountant: {accountant}}}\n"
    caps = f"budgets: {{total: {CAPS[accountant]}}}\n"
    return parse_policy(f"{head}units: {{person: {{}}}}\n{caps}tables:{TABLES}", "test.yaml")


POLICIES = {accountant: policy(accountant) for accountant in CAPS}


def plan(sql: str, accountant: str = "pure_dp", **asked: object) -> Plan:
    given = QuerySettings(**{"epsilon": Fraction(1), **asked})  # type: ignore[arg-type]
    return compile_query(Source(sql), POLICIES[accountant], PublicFacts(), given)


def losses(found: Plan) -> list[Fraction]:
    return [m.loss.epsilon + m.loss.rho for r in found.releases for m in r.measured.measurements if m.sensitivity.l1]


def test_a_pivot_costs_as_one() -> None:
    found = plan(PIVOT)
    assert losses(found) == [1, 1, 1] and found.loss.epsilon == 1
    (release,) = found.releases
    assert [m.mechanism for m in release.measured.measurements] == [
        DiscreteLaplace(Fraction(1)), DiscreteLaplace(Fraction(1)), DiscreteLaplace(Fraction(100)),
    ]  # fmt: skip


def test_a_parallel_group_has_the_weight_of_all_its_members() -> None:
    """Three slices of weight 1 and a total of weight 1: three quarters of ε for all slices."""
    assert losses(plan(WITH_ALL)) == [Fraction(3, 4)] * 3 + [Fraction(1, 4)]
    heavy = plan(WITH_ALL, weights={"a": Fraction(5), "n": Fraction(3)})
    assert losses(heavy) == [Fraction(7, 10)] * 3 + [Fraction(3, 10)] and heavy.loss.epsilon == 1


def test_these_shares_are_the_best() -> None:
    """No other share of the parallel group makes Σ ln variance smaller."""

    def error(parallel: float) -> float:
        return 3 * -2 * math.log(parallel) - 2 * math.log(1 - parallel)

    assert min((n / 1000 for n in range(1, 1000)), key=error) == 0.75


@pytest.mark.parametrize("accountant", CAPS)
@pytest.mark.parametrize("delta", ["0", "1e-9"])
def test_the_price_is_what_was_asked_for(accountant: str, delta: str) -> None:
    if accountant == "pure_dp" and delta != "0":
        return
    for sql in (PIVOT, WITH_ALL, PIVOT.replace("SELECT", "SELECT region,") + " GROUP BY region"):
        found = plan(sql, accountant, delta=Fraction(delta))
        asked = Fraction(1, 2) if accountant == "zcdp" else Fraction(1)
        paid = found.loss.rho if accountant == "zcdp" else found.loss.epsilon
        assert asked * (1 - Fraction(1, 10**7)) <= paid <= asked + Fraction(1, 10**50)


def test_gaussian_noise_of_a_pivot() -> None:
    """ρ is that of one component. (Of Laplace noise at the same price the variance would be less: 2/ε² = 1/ρ.)"""
    pivot = PIVOT.replace("SELECT", "SELECT " + ", ".join(f"COUNT(*) FILTER (WHERE x > {i})" for i in range(20)) + ",")
    (release,) = plan(pivot, "zcdp").releases
    *_, a, b, c = release.measured.measurements
    assert isinstance(a.mechanism, DiscreteGaussian)
    assert a.loss == b.loss == c.loss and a.loss.rho == Fraction(1, 2) * Fraction(3, 23)
    (parallel,) = [b for b in release.measured.parallel_groups if len(b) > 1]
    assert parallel == (20, 21, 22)


@pytest.mark.parametrize(
    ("table", "together"),
    [("orders", True), ("bought", True), ("promised", True), ("replaced", False)],
)
def test_where_rows_count_as_they_are(table: str, together: bool) -> None:
    found = plan(PIVOT.replace("orders", table))
    assert losses(found) == [1 if together else Fraction(1, 3)] * 3
    assert found.loss.epsilon - 1 < Fraction(1, 10**50)


PAIRS = (
    "SELECT COUNT(*) FILTER (WHERE status = 'a') AS a, AVG(x) FILTER (WHERE status = 'b') AS b, "
    "AVG(x) FILTER (WHERE status = 'c') AS c FROM limited"
)


def test_a_pivot_under_a_limit_costs_as_one() -> None:
    """Counts and centred sums: all rows of an id decide their weights."""
    found = plan(PAIRS)
    (release,) = found.releases
    assert sorted(release.measured.parallel_groups) == [(0, 1, 3), (2, 4)]
    assert found.loss.epsilon - 1 < Fraction(1, 10**50)
    assert losses(found) == [Fraction(3, 5), Fraction(3, 5), Fraction(2, 5), Fraction(3, 5), Fraction(2, 5)]
    four = ", ".join(f"COUNT(*) FILTER (WHERE status = '{s}') AS {s}" for s in "abcd")
    alone = plan("SELECT COUNT(*) FILTER (WHERE status = 'a') AS a FROM limited")
    (noise,) = {m.mechanism for m in plan(f"SELECT {four} FROM limited").releases[0].measured.measurements}
    assert noise == alone.releases[0].measured.measurements[0].mechanism


def test_sums_of_a_pivot_under_a_limit_are_weighed_like_counts() -> None:
    calls = [f"SUM(x) FILTER (WHERE status = '{s}') AS s{s}" for s in "abc"]
    (release,) = plan(f"SELECT {', '.join(calls)} FROM limited").releases
    (alone,) = plan(f"SELECT {calls[0]} FROM limited").releases
    assert release.measured.parallel_groups == ((0, 1, 2),)
    assert {c.contribution for c in release.measured.node.components} == {Weighing.BY_ROW}
    (one,) = alone.measured.measurements
    assert one.component.contribution is Weighing.ALONE
    for each in release.measured.measurements:
        assert isinstance(each.mechanism, DiscreteLaplace) and isinstance(one.mechanism, DiscreteLaplace)
        assert each.mechanism.scale / each.component.weight == one.mechanism.scale


@pytest.mark.parametrize(
    "calls",
    [
        "COUNT(DISTINCT x) FILTER (WHERE {}) AS s{}",
        "COUNT(DISTINCT id) FILTER (WHERE {}) AS s{}",
        "COUNT(*, contribution_bounds_per_group => (0, 2)) FILTER (WHERE {}) AS s{}",
        "SUM(x, contribution_bounds_per_group => (0, 2)) FILTER (WHERE {}) AS s{}",
    ],
)
def test_what_is_cut_by_itself_shares_nothing_under_a_limit(calls: str) -> None:
    found = plan("SELECT " + ", ".join(calls.format(f"status = '{s}'", s) for s in "abc") + " FROM limited")
    assert found.releases[0].measured.parallel_groups == ((0,), (1,), (2,))
    assert losses(found) == [Fraction(1, 3)] * 3


MEDIANS = ", ".join(f"MEDIAN(x) FILTER (WHERE status = '{s}') AS m{s}" for s in "abc")


@pytest.mark.parametrize(
    ("calls", "groups"),
    [
        (MEDIANS, ((0, 1, 2),)),
        (MEDIANS.replace("MEDIAN(x)", "MODE(region)"), ((0, 1, 2),)),
        (MEDIANS.replace("MEDIAN(x)", "MEDIAN(x + 1)", 1), ((0,), (1, 2))),  # other cells: another statement
        (f"{MEDIANS}, QUANTILE_DISC(x, 0.9) FILTER (WHERE status = 'b') AS q", ((0, 1, 2), (3,))),
        (f"{MEDIANS}, COUNT(*) FILTER (WHERE status = 'd') AS n", ((0, 1, 2), (3,))),
        (f"{MEDIANS}, COUNT(*) FILTER (WHERE status = 'c') AS n, COUNT(*) FILTER (WHERE status = 'd') AS o",
         ((0, 1, 2), (3, 4))),
        ("MEDIAN(CASE WHEN status = 'a' THEN x END) AS a, MEDIAN(CASE WHEN status = 'b' THEN x END) AS b", ((0, 1),)),
    ],
)  # fmt: skip
@pytest.mark.parametrize("table", ["orders", "limited", "promised"])
def test_choices_by_slices_cost_as_one(calls: str, groups: tuple[tuple[int, ...], ...], table: str) -> None:
    """Of the same cells or values: one statement gives each row one slice."""
    found = plan(f"SELECT {calls} FROM {table}")
    (release,) = found.releases
    assert release.measured.parallel_groups == groups and found.loss.epsilon - 1 < Fraction(1, 10**50)
    chosen = [s for s in release.statements if s.cells is not None]
    for own in (each for each in groups if len(each) > 1 and each[0] == 0):
        assert any(set(own) <= set(s.components) and s.sql.count('CASE WHEN ((t1."status"') == 1 for s in chosen)
    apart = plan(f"SELECT {calls} FROM replaced")
    assert all(len(each) == 1 for each in apart.releases[0].measured.parallel_groups)


IDS = (
    "SELECT COUNT(DISTINCT t.id) FILTER (WHERE p.status = 'a') AS a, "
    "COUNT(DISTINCT t.id) FILTER (WHERE p.status = 'b') AS b, "
    "COUNT(*) FILTER (WHERE p.status = 'c') AS c FROM {} AS t JOIN people AS p ON t.id = p.id"
)


@pytest.mark.parametrize(
    ("table", "groups"),
    [("people", ((0, 1, 2),)), ("limited", ((0, 1), (2,))), ("promised", ((0,), (1,), (2,)))],
)
def test_ids_by_slices_of_a_column_of_theirs_cost_as_one(table: str, groups: tuple[tuple[int, ...], ...]) -> None:
    """The ids of one row each are rows. Of several rows that count as they are each could be in another slice."""
    (release,) = plan(IDS.format(table)).releases
    assert release.measured.parallel_groups == groups


def test_under_a_limit_an_id_counts_in_the_first_of_its_slices() -> None:
    (release,) = plan(IDS.format("limited")).releases
    (statement,) = release.statements
    assert "CASE WHEN m0 > 0 THEN 1" in statement.sql and "CASE WHEN m1 > 0 AND m0 = 0 THEN 1" in statement.sql
    (other,) = plan(IDS.format("limited").replace("p.status", "t.status")).releases
    assert other.measured.parallel_groups == ((0,), (1,), (2,))  # no column of the id: it may have rows in both


@pytest.mark.parametrize(
    "changed", [{"ids": 2}, {"replaces_rows": True}, {"scaled": False, "scaled_over_groups": True}]
)
def test_only_an_id_that_comes_or_goes_is_weighed_once(changed: dict[str, Any]) -> None:
    measured = plan(PAIRS).releases[0].measured
    found = parallel_groups(measured.node, {unit: replace(c, **changed) for unit, c in measured.contributions.items()})
    assert found == ((0,), (1,), (2,), (3,), (4,))


def _changed(c: Component, other: Contributing | Component) -> Component:
    """Another component of the same rows, or the same one of which otherwise much is counted."""
    if isinstance(other, Component):
        return replace(other, filter=c.filter)
    return replace(c, contribution=other)  # type: ignore[call-arg]


@pytest.mark.parametrize(
    "changed",
    [
        PerGroup((Fraction(0), Fraction(9))),
        DistinctCount(Literal(1, BIGINT)),
        Weighing.ALONE,
        UnitTotal(9),
    ],
)
def test_a_member_of_another_form_is_alone(changed: Contributing | Component) -> None:
    """However a plan came by it: of a paired sum no plan clips the total, and none has a count that decides."""
    measured = plan(PAIRS).releases[0].measured
    a, s, *others = measured.node.components
    found = parallel_groups(
        replace(measured.node, components=(a, _changed(s, changed), *others)), measured.contributions
    )
    assert sorted(found) == [(0, 2, 3), (1,), (4,)]
    assert (1,) in parallel_groups(replace(measured.node, threshold=1), measured.contributions)


def test_two_counts_under_limits_of_their_own_may_both_be_full() -> None:
    measured = plan(PAIRS).releases[0].measured
    limited = (
        replace(c, contribution=UnitTotal(9)) if isinstance(c, RowCount) else c for c in measured.node.components
    )
    found = parallel_groups(replace(measured.node, components=tuple(limited)), measured.contributions)
    assert sorted(found) == [(0,), (1, 3), (2,), (4,)]


def test_each_of_several_units_loses_the_largest_of_its_own_losses() -> None:
    both = "(SELECT status, x FROM orders UNION ALL SELECT status, x FROM bought)"
    found = plan(PIVOT.replace("orders", both))
    assert {unit: loss.epsilon for unit, loss in found.cost.items()} == {"orders": Fraction(1, 3), "bought": 1}
    nothing = [GivenAnswers() for _ in found.releases]
    assert price(found.releases, nothing, (), "pure_dp").new == found.cost  # all of them are charged


def test_the_count_that_decides_on_keys_is_in_no_parallel_group() -> None:
    found = plan(PIVOT.replace("SELECT", "SELECT word,") + " GROUP BY word", "approx_dp", delta=Fraction(1, 10**9))
    measured = found.releases[0].measured
    (alone,) = [parallel for parallel in measured.parallel_groups if measured.node.threshold in parallel]
    assert len(alone) == 1 and found.loss.delta <= Fraction(1, 10**9)
    assert found.loss.epsilon <= 1 + Fraction(1, 10**50)


@pytest.mark.parametrize("deciding", range(3))
def test_a_count_that_decides_shares_nothing_even_with_a_filter(deciding: int) -> None:
    """No plan has such a filter now; the noise that decides on keys has a δ of its own all the same."""
    measured = plan(PIVOT).releases[0].measured
    assert measured.parallel_groups == ((0, 1, 2),)
    found = parallel_groups(replace(measured.node, threshold=deciding), measured.contributions)
    assert (deciding,) in found and sorted(map(len, found)) == [1, 2]


@pytest.mark.parametrize(
    "changed",
    [
        {"scaled": True},
        {"scaled_over_groups": True},
        {"replaces_rows": True},
        {"ids": 2},
        {"by_rows": None, "per_group": 2, "groups": 1},
    ],
)
def test_rows_that_do_not_count_as_they_are_share_nothing(changed: dict[str, Any]) -> None:
    measured = plan(PIVOT).releases[0].measured
    found = parallel_groups(measured.node, {unit: replace(c, **changed) for unit, c in measured.contributions.items()})
    assert found == ((0,), (1,), (2,))


def test_rows_of_which_each_is_in_a_group_of_its_own_share_as_others_do() -> None:
    measured = plan(PIVOT).releases[0].measured
    apart = {u: replace(c, by_rows=None, per_group=1, groups=1) for u, c in measured.contributions.items()}
    assert parallel_groups(measured.node, apart) == ((0, 1, 2),)


@pytest.mark.parametrize(
    "changed",
    [
        PerGroup((Fraction(0), Fraction(9))),
        UnitCount(),
        DistinctCount(Literal(1, BIGINT), values=2),
        UnitTotal(9),
    ],
)
def test_what_one_id_does_in_each_part_is_added_up(changed: Contributing | Component) -> None:
    node = plan(PIVOT).releases[0].measured.node
    first, *others = node.components
    edited = replace(node, components=(_changed(first, changed), *others))
    assert parallel_groups(edited, plan(PIVOT).releases[0].measured.contributions) == ((0,), (1, 2))


def test_a_row_with_the_value_0_is_left_out_only_where_it_adds_0() -> None:
    found = plan("SELECT SUM(CASE WHEN status = 'a' THEN x ELSE 0 END) FROM orders").releases[0].measured.node
    (total,) = found.components
    assert isinstance(total, ValueSum) and total.arg is not None
    assert as_filter(total).filter == total.arg.args[0] and as_filter(total).arg == total.arg.args[1]  # type: ignore[attr-defined]
    product, different = (kind(total.arg, lo=total.lo, hi=total.hi) for kind in (ProductSum, DistinctSum))
    assert as_filter(different).filter == as_filter(total).filter
    beyond = (replace(total, center=3), replace(total, lo=1), replace(total, hi=-1))
    for other in (*beyond, product, DistinctCount(total.arg)):
        assert as_filter(other) is other


def test_never_true_filters_join_no_count_that_decides() -> None:
    sql = "SELECT word, COUNT(*) FILTER (WHERE false) AS z, COUNT(*) AS n FROM orders GROUP BY word"
    measured = plan(sql, "approx_dp", delta=Fraction(1, 10**9)).releases[0].measured
    assert all(len(parallel) == 1 for parallel in measured.parallel_groups if measured.node.threshold in parallel)


def test_averages_have_a_parallel_group_for_sums_and_one_for_counts() -> None:
    sql = ", ".join(f"AVG(x) FILTER (WHERE status = '{s}') AS {s}" for s in "abcd")
    found = plan(f"SELECT {sql} FROM orders")
    assert sorted(map(len, found.releases[0].measured.parallel_groups)) == [4, 4]
    assert losses(found) == [Fraction(1, 2)] * 8


def test_an_edited_plan_does_not_become_cheaper() -> None:
    """Which components are in parallel is found anew from the slices and the contribution of the release itself."""
    (release,) = plan(PIVOT).releases
    node = replace(release.measured.node, slices=())
    assert cost_of([replace(release.measured, node=node)], POLICIES["pure_dp"])["orders"].epsilon == 3
    contributions = {u: replace(c, ids=2) for u, c in release.measured.contributions.items()}
    edited = replace(release.measured, contributions=contributions)
    assert cost_of([edited], POLICIES["pure_dp"])["orders"].epsilon == 3


def test_those_of_one_slice_add_up() -> None:
    sql = "COUNT(*) FILTER (WHERE status = 'a') AS n, SUM(x) FILTER (WHERE status = 'a') AS s, "
    found = plan(f"SELECT {sql} COUNT(*) FILTER (WHERE status <> 'a') AS m FROM orders")
    measured = found.releases[0].measured
    assert measured.parallel_groups == ((0, 1), (2,)) and losses(found) == [
        Fraction(2, 3),
        Fraction(2, 3),
        Fraction(1, 3),
    ]
    one = replace(measured.node, slices=(SliceSet(((0, 1, 2),)),))
    assert parallel_groups(one, measured.contributions) == ((0,), (1,), (2,))


def test_conditions_of_computed_values_are_slices_too() -> None:
    """That they exclude each other is a guess, which the number of a row's slice makes true."""
    found = plan("SELECT COUNT(*) FILTER (WHERE x % 3 = 0) AS a, COUNT(*) FILTER (WHERE x % 3 = 1) AS b FROM orders")
    assert losses(found) == [1, 1]
    (statement,) = found.releases[0].statements
    assert statement.shape == "sliced" and statement.sql.count("FILTER") == 2


def test_parts_of_a_parallel_group_cost_the_largest_of_their_own_losses() -> None:
    measured = plan(WITH_ALL).releases[0].measured
    assert sum(loss.epsilon for loss in measured.losses("orders", {0, 2})) == Fraction(3, 4)
    assert sum(loss.epsilon for loss in measured.losses("orders", {1})) == Fraction(3, 4)
    assert sum(loss.epsilon for loss in measured.losses("orders", {1, 3})) == 1
    assert measured.losses("orders", ()) == ()
    assert measured.loss_of(0, "orders").epsilon == Fraction(3, 4)


@pytest.mark.parametrize("accountant", ["pure_dp", "zcdp"])
def test_errors_of_a_pivot_cost_the_largest_need(accountant: str) -> None:
    """Every member gets what the most exacting one needs; it costs no more than that one alone."""
    errors = {"a": Fraction(10), "b": Fraction(50), "c": Fraction(5000)}
    found = plan(PIVOT, accountant, epsilon=None, max_error=errors)
    alone = plan(
        "SELECT COUNT(*) FILTER (WHERE status = 'a') AS a FROM orders", accountant, epsilon=None,
        max_error={"a": Fraction(10)},
    )  # fmt: skip
    assert found.loss == alone.loss
    assert len(set(losses(found))) == 1
    for m, widest in zip(found.releases[0].measured.measurements, (10, 50, 5000), strict=True):
        assert m.mechanism.half_width(Fraction(95, 100)) * m.unit <= widest


def test_of_two_errors_for_one_number_the_smaller_is_met() -> None:
    both = "SELECT COUNT(*) AS a, COUNT(x) AS b FROM orders"
    errors = [{"a": Fraction(10), "b": Fraction(50)}, {"a": Fraction(50), "b": Fraction(10)}]
    prices = [plan(both, epsilon=None, max_error=e).loss for e in errors]
    assert prices == [plan("SELECT COUNT(*) AS a FROM orders", epsilon=None, max_error={"a": Fraction(10)}).loss] * 2


def test_explain_says_what_is_paid_once() -> None:
    found = plan(WITH_ALL)
    assert (
        "  components 1–3: each row counts in the first that it satisfies, so together they cost ε 0.75\n"
        in as_text(found)
    )
    assert as_json(found)["releases"][0]["together"] == [[0, 1, 2]]
    apart = plan(PIVOT.replace("orders", "replaced"))
    assert "components" not in as_text(apart) and as_json(apart)["releases"][0]["together"] == []


def test_slices_of_one_set_have_one_draw_and_nothing_else_has_it() -> None:
    """What has one draw is received at the price of one."""
    measured = plan(WITH_ALL).releases[0].measured
    *slices, alone = [draw_of(name) for name in _names(measured, GivenAnswers(), "d").values()]
    assert len(set(slices)) == 1 and alone not in slices
    two = plan("SELECT COUNT(*) AS n, SUM(x) AS s FROM orders").releases[0].measured
    assert len({draw_of(name) for name in _names(two, GivenAnswers(), "d").values()}) == 2


@pytest.mark.parametrize(
    "slices", [((0, 1), (2,)), ((0,), (0,)), ((0,), (7,)), ((0,), (1,), (2, 3)), ((0, 1, 2), (3,))]
)
def test_a_slice_is_of_one_condition(slices: tuple[tuple[int, ...], ...]) -> None:
    node = plan(WITH_ALL).releases[0].measured.node
    require_well_formed(node)
    with pytest.raises(Rejected, match="slice"):
        require_well_formed(replace(node, slices=(SliceSet(slices),)))
