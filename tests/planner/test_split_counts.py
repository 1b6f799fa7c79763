"""COUNT(*) beside COUNT FILTER: when it is made of the counts of slices, what that costs, and what its columns say."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest

from dpsql.core.ir.public_facts import PublicFacts
from dpsql.core.ir.short_text import expression
from dpsql.core.noise.mechanisms import DiscreteLaplace
from dpsql.diagnostics.diagnostic import Source
from dpsql.frontend.aggregates.count import Count
from dpsql.frontend.aggregates.interval_end import End
from dpsql.planner.compile import compile_query
from dpsql.planner.explain.explain_text import as_text
from dpsql.planner.explain.stable_json import as_json
from dpsql.planner.plan import Plan
from dpsql.planner.settings.query_settings import QuerySettings
from tests.support.planning import policy

COLUMNS = """\
  columns:
    id: {type: bigint, nullable: false}
    b: {type: integer}
    f: {type: integer, nullable: false}
    y: {type: integer}
    x: {type: integer, bounds: [0, 100], nullable: false}
    s: {type: varchar, domain: [n, s], nullable: false}
    w: {type: varchar}
"""
POLICY = policy(
    f"""
rows:
  unit: {{rows: 1}}
{COLUMNS}
replaced:
  unit: {{rows: 1, neighbours: replace_one}}
{COLUMNS}
sized:
  unit: {{rows: 1, neighbours: replace_one}}
  size: {{exact: 50}}
{COLUMNS}
limited:
  unit: {{of: person, column: id}}
  max_rows_per_unit: 10
{COLUMNS}
grouped:
  unit: {{of: person, column: id}}
  max_rows_per_group: 4
  max_groups_per_unit: 5
{COLUMNS}
""".replace("\n\n", "\n")
)
SHARE = "SELECT COUNT(*) AS n, COUNT(*) FILTER (WHERE b > 0) AS yes FROM rows"


def plan(sql: str, **asked: object) -> Plan:
    given = QuerySettings(**{"epsilon": Fraction(1), **asked})  # type: ignore[arg-type]
    return compile_query(Source(sql), POLICY, PublicFacts(), given)


def parts(sql: str) -> dict[str, list[str]]:
    """Column → the filters of the counts that it is the sum of; without those that are one component alone."""
    return {name: filters for name, (filters, _) in counts(plan(sql)).items() if len(filters) > 1}


def counts(found: Plan) -> dict[str, tuple[list[str], float]]:
    """Column that is a count → the filters of its components, and the standard deviation of its noise."""
    measured, made = found.releases[0].measured, {}
    variances = [m.mechanism.variance() for m in measured.measurements]
    for column, source in zip(found.columns, found.post.branches[0], strict=True):
        recipe = None if source is None else measured.node.outputs[source[1]].recipe
        if isinstance(recipe, Count):
            terms = recipe.terms(measured.node.components)
            filters = [measured.node.components[i].filter for i, _ in terms]
            variance = sum(float(worth) ** 2 * variances[i] for i, worth in terms)
            made[column.name] = [expression(f) if f is not None else "all" for f in filters], math.sqrt(variance)
    return made


def test_a_count_and_its_share() -> None:
    """1.36 and 1.92 in place of 2.80 and 2.80."""
    assert parts(SHARE) == {"n": ["(b > 0) IS NOT TRUE", "b > 0"]}
    assert {name: round(deviation, 2) for name, (_, deviation) in counts(plan(SHARE)).items()} == {
        "n": 1.92,
        "yes": 1.36,
    }
    alone = counts(plan("SELECT COUNT(*) AS n FROM rows", epsilon=Fraction(1, 2)))
    assert round(alone["n"][1], 1) == 2.8


@pytest.mark.parametrize(
    ("calls", "found"),
    [
        ("COUNT(*) AS n, COUNT(*) FILTER (WHERE y = 1) AS a, COUNT(*) FILTER (WHERE y = 2) AS c",
         {"n": ["((y = 1) OR (y = 2)) IS NOT TRUE", "y = 1", "y = 2"]}),
        ("COUNT(*) AS n, COUNT(*) FILTER (WHERE y = 1) AS a, COUNT(*) FILTER (WHERE y < 3) AS c",
         {"n": ["(y = 1) IS NOT TRUE", "y = 1"]}),
        ("COUNT(*) AS n, COUNT(*) FILTER (WHERE b > 0) AS a, COUNT(*) FILTER (WHERE (b > 0) IS NOT TRUE) AS c",
         {"n": ["b > 0", "NOT_TRUE"]}),
        ("COUNT(*) AS n, COUNT(*) FILTER (WHERE f > 0) AS a, COUNT(*) FILTER (WHERE NOT (f > 0)) AS c",
         {"n": ["f > 0", "NOT (f > 0)"]}),
        ("COUNT(*) AS n, COUNT(*) FILTER (WHERE b > 0) AS a, COUNT(*) FILTER (WHERE NOT (b > 0)) AS c",
         {"n": ["((b > 0) OR NOT (b > 0)) IS NOT TRUE", "b > 0", "NOT (b > 0)"]}),
        ("COUNT(y) AS n, COUNT(y) FILTER (WHERE f > 0) AS a", {"n": ["(f > 0) IS NOT TRUE", "f > 0"]}),
        ("COUNT(*) AS n, COUNT(*) AS m, COUNT(*) FILTER (WHERE f > 0) AS a, SUM(y) FILTER (WHERE y < 3) AS z", None),
        ("COUNT(*) AS n, COUNT(*) FILTER (WHERE b + 0 > 0) AS a",
         {"n": ["((b + 0) > 0) IS NOT TRUE", "(b + 0) > 0"]}),
        ("COUNT(*) AS n, COUNT(y) FILTER (WHERE b > 0) AS a", {}),
        ("COUNT(*) AS n, SUM(x) FILTER (WHERE b > 0) AS a", {}),
        ("COUNT(*) FILTER (WHERE b > 0) AS a, COUNT(*) FILTER (WHERE y = 1) AS c", {}),
        ("COUNT(DISTINCT y) AS n, COUNT(DISTINCT y) FILTER (WHERE b > 0) AS a", {}),
    ],
)  # fmt: skip
def test_which_counts_are_split(calls: str, found: dict[str, list[str]] | None) -> None:
    made = parts(f"SELECT {calls.replace('SUM(y)', 'SUM(x)')} FROM rows")
    if found is None:
        assert made["n"] == made["m"] == ["(f > 0) IS NOT TRUE", "f > 0"]
        return
    wanted = {name: [w.replace("NOT_TRUE", "(b > 0) IS NOT TRUE") for w in filters] for name, filters in found.items()}
    assert {k: sorted(v) for k, v in made.items()} == {k: sorted(v) for k, v in wanted.items()}


@pytest.mark.parametrize(
    ("table", "split"),
    [("rows", True), ("limited", True), ("grouped", True), ("replaced", False), ("sized", False)],
)
def test_where_parts_cost_as_one(table: str, split: bool) -> None:
    assert bool(parts(SHARE.replace("rows", table))) is split
    by_group = SHARE.replace("SELECT", "SELECT s,").replace("rows", table) + " GROUP BY s"
    assert bool(parts(by_group)) is split


def test_what_is_clipped_by_itself_is_not_split() -> None:
    own = "COUNT(*, contribution_bounds_per_group => (0, 2))"
    assert not parts(f"SELECT {own} AS n, {own} FILTER (WHERE b > 0) AS a FROM limited")
    assert not parts("SELECT COUNT(DISTINCT id) AS n, COUNT(DISTINCT id) FILTER (WHERE b > 0) AS a FROM limited")


def test_a_count_that_is_needed_anyway_stays() -> None:
    """For AVG, and where it decides on keys: one more component would cost more than it saves."""
    assert not parts("SELECT COUNT(*) AS n, COUNT(*) FILTER (WHERE b > 0) AS a, AVG(x) AS m FROM rows")
    found = plan(SHARE.replace("SELECT", "SELECT w,") + " GROUP BY w", delta=Fraction(1, 10**9)).releases[0].measured
    assert found.node.threshold is not None
    deciding = found.node.components[found.node.threshold]
    assert deciding.filter is None and (found.node.threshold,) in found.parallel_groups


def test_ends_of_intervals_follow() -> None:
    sql = SHARE.replace("COUNT(*) AS n", "COUNT(*) AS n, DP_INTERVAL_LOW(COUNT(*)) AS low")
    recipes = [o.recipe for o in plan(sql).releases[0].measured.node.outputs]
    assert isinstance(recipes[1], End) and recipes[1].of == recipes[0] == Count(1, (0,))
    assert recipes[1].moved({0: 5, 1: 3}) == End(Count(3, (5,)), False)


# --- what its parts make of a column ----------------------------------------------------------------------------------


@pytest.mark.parametrize("accountant", ["pure", "zcdp"])
def test_the_interval_is_that_of_the_sum(accountant: str) -> None:
    found = plan(SHARE)
    (release,) = as_json(found)["releases"]
    assert [o["expected_error"] for o in release["outputs"]] == [4, 3]
    assert DiscreteLaplace(Fraction(1)).half_width_of_sum(2, Fraction(95, 100)) == 4
    assert "COUNT(*) = COUNT(*) FILTER ((b > 0) IS NOT TRUE) + COUNT(*) FILTER (b > 0)  ± 4" in as_text(found)


def test_weights_count_for_what_a_column_measures_of_its_own() -> None:
    """A weight of the total is the parallel group's: other columns lose no more than they would to the total alone."""
    sql = SHARE.replace("AS yes", "AS yes, SUM(x) AS z")
    even = plan(sql).releases[0].measured
    assert sorted({m.loss.epsilon for m in even.measurements}) == [Fraction(1, 3), Fraction(2, 3)]
    heavy = plan(sql, weights={"n": Fraction(3)}).releases[0].measured
    assert sorted({m.loss.epsilon for m in heavy.measurements}) == [Fraction(1, 5), Fraction(4, 5)]


@pytest.mark.parametrize("error", [1, 3, 10, 1000])
@pytest.mark.parametrize("confidence", [Fraction(95, 100), Fraction(999, 1000)])
def test_the_least_that_meets_an_error(error: int, confidence: Fraction) -> None:
    """The total alone named, or both: the error is met, with a thousandth less noise it would be too, with more not."""
    errors = {"n": Fraction(error), "yes": Fraction(error)}
    found = plan(SHARE, epsilon=None, max_error=errors, confidence=confidence)
    assert parts(SHARE)
    measured = found.releases[0].measured
    (scale,) = {m.mechanism.scale for m in measured.measurements}
    assert DiscreteLaplace(scale).half_width_of_sum(2, confidence) <= error
    assert DiscreteLaplace(scale * Fraction(1001, 1000)).half_width_of_sum(2, confidence) > error
    assert found.loss.epsilon <= 1 / scale + Fraction(1, 10**50)
    apart = plan(SHARE.replace("rows", "replaced"), epsilon=None, max_error=errors, confidence=confidence)
    assert found.loss.epsilon < apart.loss.epsilon


def test_an_error_of_the_total_alone() -> None:
    found = plan(SHARE, epsilon=None, max_error={"n": Fraction(10)})
    scale = found.releases[0].measured.measurements[0].mechanism.scale
    assert DiscreteLaplace(scale).half_width_of_sum(2, Fraction(95, 100)) <= 10


def test_coefficients_of_several_counts() -> None:
    count = type(plan(SHARE).releases[0].measured.node.components[0])(weight=8)
    assert Count(1, (0, 2)).terms([count] * 3) == tuple((i, Fraction(1, 8)) for i in (1, 0, 2))
