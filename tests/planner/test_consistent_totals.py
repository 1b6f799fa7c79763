"""Where totals can be made the sums of their parts, what is refused, and how ε is divided between sets of groups."""

from __future__ import annotations

from fractions import Fraction

import pytest

from dpsql.core.ir.nodes import Filter, GroupKeys, Release
from dpsql.core.ir.public_facts import PublicFacts
from dpsql.core.ir.short_text import expression
from dpsql.core.ir.walk import walk
from dpsql.diagnostics.diagnostic import Source
from dpsql.diagnostics.errors import Rejected
from dpsql.planner.compile import compile_query
from dpsql.planner.plan import Plan
from dpsql.planner.settings.query_settings import QuerySettings
from dpsql.planner.stages.totalling import _error
from tests.support.planning import policy

TABLES = """
people:
  unit: {rows: 1}
  columns:
    g: {type: varchar, domain: [a, b], nullable: false}
    h: {type: integer, bounds: [1, 5]}
    d: {type: date, bounds: [2024-01-01, 2024-12-31], nullable: false}
    t: {type: varchar, nullable: false}
    x: {type: integer, bounds: [0, 10], nullable: false}
    f: {type: boolean, nullable: false}
    k: {type: varchar, domain: [p, q, r, s], nullable: false}
visits:
  unit: {column: id}
  max_rows_per_unit: 4
  columns:
    id: {type: bigint, nullable: false}
    g: {type: varchar, domain: [a, b], nullable: false}
    h: {type: integer, bounds: [1, 5], nullable: false}
    x: {type: integer, bounds: [0, 10], nullable: false}
grouped:
  unit: {column: id}
  max_rows_per_group: 2
  max_groups_per_unit: 2
  columns:
    id: {type: bigint, nullable: false}
    g: {type: varchar, domain: [a, b], nullable: false}
    h: {type: integer, bounds: [1, 5], nullable: false}
searched:
  unit: {column: id}
  max_rows_per_unit: 4
  columns:
    id: {type: bigint, nullable: false}
    g: {type: varchar, domain: [a, b], nullable: false}
    x: {type: integer, bounds: search}
"""
POLICY = policy(TABLES)


def planned(sql: str, *, consistent: bool = True, of: str = "epsilon", **more: object) -> Plan:
    wish = QuerySettings(
        **{"epsilon": Fraction(1), "delta": Fraction(1, 10**9), "consistent_totals": consistent, **more}
    )  # type: ignore[arg-type]
    return compile_query(Source(sql), POLICY, PublicFacts(), wish)


def conditions(plan: Plan) -> list[str]:
    """The conditions below each release."""
    found = []
    for release in (n for n in walk(plan.tree.node) if isinstance(n, Release)):
        keyed = next(n for n in walk(release) if isinstance(n, GroupKeys))
        found.append(expression(keyed.input.predicate) if isinstance(keyed.input, Filter) else "")
    return found


def test_every_set_reads_the_rows_of_the_finest() -> None:
    found = conditions(planned("SELECT g, h, COUNT(*) FROM people GROUP BY ROLLUP (g, h)"))
    assert len(found) == 3 and len(set(found)) == 1
    assert found[0] == "g IN ('a', 'b') AND (((h >= 1) AND (h <= 5)) OR h IS NULL)"


def test_keys_that_cannot_be_others_need_no_condition() -> None:
    plan = planned("SELECT f, COUNT(*) FROM people GROUP BY ROLLUP (f)")
    assert plan.totals and all("IN" in text or not text for text in conditions(plan))


def test_without_the_wish_nothing_changes() -> None:
    sql = "SELECT g, h, COUNT(*), SUM(x) FROM people GROUP BY ROLLUP (g, h)"
    plain = planned(sql, consistent=False)
    assert not plain.totals and conditions(plain) == [""] * 3
    one = "SELECT g, COUNT(*) FROM people GROUP BY g"
    assert planned(one).hash == planned(one, consistent=False).hash
    assert planned(sql).hash != plain.hash


@pytest.mark.parametrize(
    ("sql", "positions"),
    [
        ("SELECT g, h, COUNT(*) FROM people GROUP BY ROLLUP (g, h)", {(0, 1), (0,), ()}),
        ("SELECT g, h, COUNT(*) FROM people GROUP BY CUBE (g, h)", {(0, 1), (0,), (1,), ()}),
        ("SELECT h, COUNT(*) FROM people GROUP BY GROUPING SETS ((h, g), (g))", {(0, 1), (1,)}),
        ("SELECT g, month(d) AS m, COUNT(*), SUM(x) FROM people GROUP BY ROLLUP (g, m)", {(0, 1), (0,), ()}),
        ("SELECT g, h, COUNT(*), SUM(x) FROM visits GROUP BY ROLLUP (g, h)", {(0, 1), (0,), ()}),
        ("SELECT g, COUNT(*) AS n FROM people GROUP BY g UNION ALL SELECT 'all', COUNT(*) FROM people", {(0,), ()}),
    ],
)
def test_the_sets_and_their_keys(sql: str, positions: set[tuple[int, ...]]) -> None:
    (totals,) = planned(sql).totals
    assert set(totals.positions) == positions
    assert all(len(places) == len(positions) for places in totals.components)


def test_the_cost_is_what_was_asked() -> None:
    plan = planned("SELECT g, h, COUNT(*), SUM(x) FROM visits GROUP BY CUBE (g, h)")
    assert Fraction(99, 100) < plan.loss.epsilon <= 1


@pytest.mark.parametrize(
    ("sql", "says"),
    [
        ("SELECT g, COUNT(DISTINCT x) FROM people GROUP BY ROLLUP (g)", "counts what may be in several groups"),
        ("SELECT g, COUNT(DISTINCT id) FROM visits GROUP BY ROLLUP (g)", "counts what may be in several groups"),
        ("SELECT g, h, COUNT(*) FROM grouped GROUP BY ROLLUP (g, h)", "weigh a row by its groups"),
        ("SELECT t, COUNT(*) FROM people GROUP BY ROLLUP (t)", "which groups are shown is decided by noise"),
        ("SELECT g, h, COUNT(*) FROM people GROUP BY GROUPING SETS ((g), (h))", "no set of groups has all keys"),
        (
            "SELECT g, COUNT(*) AS n FROM people GROUP BY g UNION ALL SELECT 'all', COUNT(*) FROM people WHERE x > 1",
            "not made of the same rows",
        ),
        ("SELECT g, COUNT(*) AS n FROM people GROUP BY g UNION ALL SELECT 'x', SUM(x) FROM people", "the same numbers"),
    ],
)
def test_what_does_not_add_up_is_refused_with_a_repair(sql: str, says: str) -> None:
    with pytest.raises(Rejected) as refused:
        planned(sql)
    (diagnostic, *_) = refused.value.diagnostics
    assert diagnostic.code == "DP120" and says in diagnostic.message and diagnostic.help
    assert planned(sql, consistent=False).releases


@pytest.mark.parametrize(
    ("sql", "more"),
    [
        ("SELECT g, SUM(x) FROM searched GROUP BY ROLLUP (g)", {}),
        ("SELECT g, SUM(x), AVG(x), COUNT(*) FROM searched GROUP BY ROLLUP (g)", {}),
        ("SELECT g, SUM(x), COUNT(*) FROM visits GROUP BY ROLLUP (g)", {"search": True}),
        ("SELECT g, COUNT(*) FROM visits GROUP BY ROLLUP (g)", {"search": True}),
    ],
)
def test_a_limit_that_is_searched_in_each_set_adds_up_nowhere(sql: str, more: dict[str, object]) -> None:
    with pytest.raises(Rejected) as refused:
        planned(sql, **more)
    (diagnostic, *_) = refused.value.diagnostics
    assert diagnostic.code == "DP120" and "is searched in each set of groups by itself" in diagnostic.message
    assert planned(sql, consistent=False, **more).searches
    assert planned(sql.replace("searched", "visits")).totals  # the repair


def test_averages_of_searched_bounds_add_up_by_their_rows() -> None:
    plan = planned("SELECT g, AVG(x), COUNT(*) FROM searched GROUP BY ROLLUP (g)")
    assert plan.searches and plan.totals


def test_a_largest_error_is_refused() -> None:
    with pytest.raises(Rejected) as refused:
        planned("SELECT g, COUNT(*) AS n FROM people GROUP BY ROLLUP (g)", epsilon=None, max_error={"n": Fraction(50)})
    assert refused.value.diagnostics[0].code == "DP406"


def test_the_text_can_ask() -> None:
    clause = "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (epsilon = 1, consistent_totals = {}) g, COUNT(*) FROM people "
    assert planned(clause.format("TRUE") + "GROUP BY ROLLUP (g)", consistent=False).totals
    assert not planned(clause.format("FALSE") + "GROUP BY ROLLUP (g)").totals
    with pytest.raises(Rejected) as refused:
        planned(clause.format("maybe") + "GROUP BY ROLLUP (g)")
    assert refused.value.diagnostics[0].code == "DP014"


def variances(sql: str) -> list[float]:
    plan = planned(sql)
    return [m.measurements[0].noise.variance() for m in (r.measured for r in plan.releases)]


def test_shares_follow_the_sizes_of_sets() -> None:
    """A total of many parts is hardly made of its own number, and more accurate by it where parts are many."""
    few = variances("SELECT g, COUNT(*) FROM people GROUP BY ROLLUP (g)")
    many = variances("SELECT month(d) AS m, COUNT(*) FROM people GROUP BY ROLLUP (m)")
    assert few[0] < few[1] and many[1] < few[1]


def test_few_groups_are_asked_of_the_finest_set_alone() -> None:
    """One release pays for all: under noise of ε that is the least where totals have few parts."""
    finest, *totals = variances("SELECT f, k, COUNT(*) FROM people GROUP BY CUBE (f, k)")
    (whole,) = variances("SELECT f, k, COUNT(*) FROM people GROUP BY f, k")
    assert whole < finest < whole * 1.02 and min(totals) > 1000 * finest
    finest, *totals = variances("SELECT g, month(d) AS m, COUNT(*) FROM people GROUP BY CUBE (g, m)")
    assert min(totals) < 4 * finest


def test_no_warning_is_of_noise_that_a_total_does_not_have() -> None:
    sized = policy(TABLES.replace("{rows: 1}", "{rows: 1, neighbours: replace_one}\n  size: {exact: 300}", 1))
    sql = Source("SELECT g, f, COUNT(*) AS n, SUM(x) AS s FROM people GROUP BY CUBE (g, f)")
    for epsilon, warned in (("0.5", False), ("0.001", True)):
        wish = QuerySettings(Fraction(epsilon), Fraction(1, 10**9), consistent_totals=True)
        assert bool(compile_query(sql, sized, PublicFacts(), wish).warnings) == warned


def test_an_average_keeps_its_noise() -> None:
    plan = planned("SELECT month(d) AS m, COUNT(*), AVG(x) FROM people GROUP BY ROLLUP (m)")
    assert len({m.measurements[0].noise.variance() for m in (r.measured for r in plan.releases)}) == 1


@pytest.mark.parametrize("gaussian", [False, True])
def test_no_set_is_less_accurate_than_with_equal_shares_and_no_least_squares(gaussian: bool) -> None:
    (totals,) = planned("SELECT g, month(d) AS m, COUNT(*) FROM people GROUP BY ROLLUP (g, m)").totals
    sizes = {(0,): 2.0, (1,): 12.0}
    assert _error(totals, sizes, [1 / 3] * 3, gaussian) < (3 if gaussian else 9)
    assert _error(totals, sizes, [0.001, 0.001, 0.998], gaussian) == float("inf")


def test_the_error_is_that_of_the_normal_equations() -> None:
    """Variances of 2 groups of 12, by the inverse of the matrix."""
    import numpy as np

    (totals,) = planned("SELECT g, month(d) AS m, COUNT(*) FROM people GROUP BY ROLLUP (g, m)").totals
    shares = [0.5, 0.3, 0.2]
    by_set = {(0, 1): np.eye(24), (0,): np.kron(np.eye(2), np.ones((1, 12))), (): np.ones((1, 24))}
    matrices = [by_set[p] for p in totals.positions]
    inverse = np.linalg.inv(sum(s * a.T @ a for s, a in zip(shares, matrices, strict=True)))
    wanted = np.mean([np.mean(np.diag(a @ inverse @ a.T)) for a in matrices])
    assert _error(totals, {(0,): 2.0, (1,): 12.0}, shares, gaussian=True) == pytest.approx(wanted)
