"""EXPLAIN says what the plan holds: every number in it is the plan's own."""

from __future__ import annotations

import json
import math
import re
from fractions import Fraction

import pytest

from dpsql.frontend.aggregates.count import Count
from dpsql.planner.costs.expected_error import expected_error
from dpsql.planner.explain.components import component_name
from dpsql.planner.explain.explain_text import as_text
from dpsql.planner.explain.nodes import operator
from dpsql.planner.explain.stable_json import as_json, dumps
from tests.support.planning import planned, policy

TABLES = """
t:
  unit: {column: id}
  max_groups_per_unit: 3
  max_rows_per_group: 2
  columns:
    id: {type: bigint, nullable: false}
    kind: {type: varchar, domain: [a, b, c, d], nullable: false}
    word: {type: varchar}
    x: {type: double, bounds: [-10, 30]}
"""
POLICY = policy(TABLES)
QUERIES = [
    "SELECT COUNT(*) AS n FROM t",
    "SELECT kind, COUNT(*) AS n, SUM(x) AS s, AVG(x) AS a FROM t GROUP BY kind ORDER BY n",
    "SELECT word, COUNT(DISTINCT id) AS n FROM t GROUP BY word",
    "SELECT a.n, b.s FROM (SELECT COUNT(*) AS n FROM t) AS a CROSS JOIN (SELECT SUM(x) AS s FROM t) AS b",
]


@pytest.mark.parametrize("sql", QUERIES)
def test_json_is_the_plan(sql: str) -> None:
    plan = planned(sql, POLICY)
    found = json.loads(dumps(plan))
    assert found == as_json(plan) and found["plan"] == plan.hash
    assert [r["name"] for r in found["releases"]] == [r.label for r in plan.releases]
    for shown, release in zip(found["releases"], plan.releases, strict=True):
        assert shown["unit"] == "person" == release.measured.unit
        threshold = release.measured.threshold
        assert shown["threshold"] == (None if threshold is None else threshold.threshold)
        for part, m in zip(shown["components"], release.measured.measurements, strict=True):
            s = m.sensitivity
            assert part["l1"] == float(s.l1 * m.unit) and part["linf"] == float(s.linf * m.unit)
            assert math.isclose(part["l2"] ** 2, float(s.l2_squared * m.unit**2)) and part["l0"] == s.l0
            assert math.isclose(part["epsilon"], float(m.loss.epsilon)) and part["mechanism"] == m.mechanism.name
            assert math.isclose(part["scale"] * part["epsilon"], part["l1"], rel_tol=1e-6)
    total = sum(c["epsilon"] for r in found["releases"] for c in r["components"])
    assert math.isclose(total, 1, rel_tol=1e-6) and math.isclose(found["cost"]["person"]["epsilon"], 1, rel_tol=1e-6)
    assert len(found["nodes"]) == len(list(plan.tree.walk()))
    bounded = [n["stability"] for n in found["nodes"] if not n["public"]]
    assert bounded and all(s == {"person": 1} for s in bounded)


@pytest.mark.parametrize("sql", QUERIES)
def test_text_shows_every_node_and_component(sql: str) -> None:
    plan = planned(sql, POLICY)
    text = as_text(plan)
    for tagged in plan.tree.walk():
        assert operator(tagged.node) in re.sub(r"release \d+:", "release", text)
    for i, release in enumerate(plan.releases):
        assert f"release {i + 1} · unit person" in text
        for m in release.measured.measurements:
            assert component_name(m.component, release.measured) in text
    assert all(f"note: {note}" in text for note in plan.notes)
    assert "SELECT" not in text and all(s.shown in as_text(plan, True) for r in plan.releases for s in r.statements)


def test_the_salt_is_never_shown() -> None:
    plan = planned(QUERIES[2], POLICY)
    assert ":salt" in as_text(plan, True)
    (statement,) = plan.releases[0].statements
    assert "123456789" in statement.salted(123456789) and ":salt" not in statement.salted(1)


def test_expected_error_is_the_quantile() -> None:
    """P(|noise| ≤ e) ≥ 95 %, and one unit less would be too little."""
    plan = planned("SELECT COUNT(*) AS n FROM t", POLICY)
    (m,) = plan.releases[0].measured.measurements
    assert isinstance(plan.releases[0].measured.node.outputs[0].recipe, Count)
    measured = plan.releases[0].measured
    error = expected_error(measured, 0)
    assert error is not None
    assert m.unit != 1 and m.mechanism.name == "laplace"
    scale = float(m.mechanism.scale * m.unit)
    assert math.isclose(error, scale * math.log(20), rel_tol=1e-4)
    less, more = (expected_error(measured, 0, level) for level in (Fraction(1, 2), Fraction(999, 1000)))
    assert less is not None and more is not None and less < error < more


def test_releases_are_numbered_where_there_are_several() -> None:
    """The numbers in the tree are those of the lists below it; what is measured once stands there once."""
    sql = (
        "SELECT kind, COUNT(*) AS n, (SELECT COUNT(*) FROM t) AS a, (SELECT COUNT(*) FROM t WHERE x > 1) AS b "
        "FROM t GROUP BY kind"
    )
    text = as_text(planned(sql, POLICY))
    tree, *lists = text.split("\n\n")
    numbers = [int(n) for n in re.findall(r"release (\d+): COUNT", tree)]
    assert sorted(numbers) == [1, 2, 3]
    assert [re.match(r"release (\d+) ", part)[1] for part in lists[:3]] == ["1", "2", "3"]  # type: ignore[index]
    by_kind = next(part for part in lists if "keys: domain of t.kind" in part)
    assert f"release {by_kind.split()[1]}: COUNT(*)" in tree.split("group by kind")[0].splitlines()[-3]


def test_a_shared_release_is_shown_once() -> None:
    sql = "SELECT a.kind, b.kind AS other FROM {0} AS a JOIN {0} AS b ON a.n < b.n".format(
        "(SELECT kind, COUNT(*) AS n FROM t GROUP BY kind)"
    )
    both = sql.replace("b ON", "b ON a.kind <> b.kind AND") + " CROSS JOIN (SELECT COUNT(*) AS m FROM t) AS c"
    text = as_text(planned(both, POLICY))
    assert text.count("release 1: COUNT(*)") == 2 and text.count("as above, measured once") == 1
    assert text.count("group by kind") == 1 and text.count("release 2: COUNT(*)") == 1
    assert "release 1:" not in as_text(planned(sql, POLICY))  # one release needs no number


ROWS = policy(
    """
people:
  unit: {rows: 1}
  columns:
    word: {type: varchar}
    x: {type: integer, bounds: [0, 100], nullable: false}
"""
)
MANY = ", ".join(f"COUNT(*) FILTER (WHERE x > {i}) AS n{i}" for i in range(30))


def test_sums_of_two_parts_have_their_own_line() -> None:
    """Two Laplace variables of scale 100 (two components at ε = 1): 95 % within 4.106 scales."""
    plan = planned("SELECT COUNT(*) AS n, SUM(x) AS s FROM people", ROWS)
    text = as_text(plan)
    (line,) = re.findall(r"^  SUM\(x\) = SUM\(x - 50\) \+ 50 · COUNT\(\*\)  ± (\S+)$", text, re.MULTILINE)
    assert 410 <= float(line) <= 413
    count, total = as_json(plan)["releases"][0]["outputs"]
    assert count == {"column": count["column"], "components": [0], "expected_error": 6.0}
    assert total["components"] == [1, 0] and 410 <= total["expected_error"] <= 413


def test_gaussian_noise_is_shown_in_rho() -> None:
    plan = planned(f"SELECT word, {MANY} FROM people GROUP BY word", ROWS)
    (release,) = as_json(plan)["releases"]
    text = as_text(plan)
    assert {c["mechanism"] for c in release["components"]} == {"gaussian"}
    assert re.search(r"component +l1 +l2 +l∞ +mechanism +scale +ρ +± 95 %", text)
    assert "converted to ε at δ 5e-10" in text and release["conversion_delta"] == 5e-10
    for part, m in zip(release["components"], plan.releases[0].measured.measurements, strict=True):
        assert part["epsilon"] == 0 and math.isclose(part["rho"], float(m.loss.rho))
        assert math.isclose(part["scale"] ** 2 * 2 * part["rho"], part["l2"] ** 2, rel_tol=1e-9)
        assert math.isclose(part["expected_error"], 1.96 * part["scale"], rel_tol=0.02)
    assert sum(c["delta"] for c in release["components"]) <= 5e-10


def test_a_unit_without_a_name_is_not_named_twice() -> None:
    nameless = policy("t:\n  unit: {column: x}\n  max_rows_per_unit: 2\n  columns: {x: {type: integer}}", head="")
    text = as_text(planned("SELECT COUNT(*) FROM t", nameless))
    assert "release 1 · unit · keys" in text and "unit unit" not in text
    assert "release 1 · unit people · keys" in as_text(planned("SELECT COUNT(*) FROM people", ROWS))


def test_a_quantile_of_no_rows_has_no_error() -> None:
    plan = planned("SELECT MEDIAN(x) AS m FROM t WHERE FALSE", POLICY)
    (shown,) = as_json(plan)["releases"][0]["components"]
    assert (shown["mechanism"], shown["scale"], shown["expected_error"]) == ("exact", 0, None)
    assert "nothing: no rows are asked for" in as_text(plan) and "0 rows" not in as_text(plan)
