"""A query's ε is split over everything it measures, and no part costs more than its share."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pytest

from dpsql.core.ir.nodes import Release
from dpsql.core.noise.calibration import LossRequest, measure
from dpsql.core.noise.mechanisms import DiscreteLaplace
from dpsql.diagnostics.errors import Rejected
from dpsql.planner.rewrites.rewrite_context import ContributionLimits
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
    n: {type: integer, bounds: [0, 5], nullable: false}
alone:
  unit: {column: id}
  max_groups_per_unit: 1
  max_rows_per_group: 1
  columns:
    id: {type: bigint, nullable: false}
    word: {type: varchar}
"""
POLICY = policy(TABLES)


@pytest.mark.parametrize(
    ("sql", "parts"),
    [
        ("SELECT COUNT(*) FROM t", 1),
        ("SELECT COUNT(*), COUNT(n), COUNT(*) * 2 FROM t", 1),
        ("SELECT COUNT(*), SUM(n) FROM t", 2),
        ("SELECT AVG(n) FROM t", 2),
        ("SELECT AVG(n), COUNT(*), AVG(n) FROM t", 2),
        ("SELECT AVG(x), COUNT(*) FROM t", 3),
        ("SELECT COUNT(*), SUM(0), AVG(7) FROM t", 1),
        ("SELECT word, COUNT(*) + COUNT(word) FROM alone GROUP BY word", 3),
        ("SELECT word, COUNT(DISTINCT id) FROM alone GROUP BY word", 1),
        ("SELECT a.n, b.n FROM (SELECT COUNT(*) n FROM t) a CROSS JOIN (SELECT SUM(n) n FROM t) b", 2),
        ("SELECT DISTINCT kind FROM t", 0),
    ],
)
@pytest.mark.parametrize("epsilon", ["1", "0.1", "1/7"])
def test_equal_shares(sql: str, parts: int, epsilon: str) -> None:
    plan = planned(sql, POLICY, epsilon=epsilon)
    noisy = [m for r in plan.releases for m in r.measured.measurements if m.sensitivity.l1]
    assert len(noisy) == parts
    for m in noisy:
        assert isinstance(m.mechanism, DiscreteLaplace)
        assert m.mechanism.scale >= m.sensitivity.l1 / (Fraction(epsilon) / parts)
        assert 0.999 * Fraction(epsilon) <= m.loss.epsilon * parts <= Fraction(epsilon)
    spent = sum(m.loss.epsilon for m in noisy)
    assert spent <= Fraction(epsilon) and plan.loss.epsilon - spent < Fraction(1, 10**50)


def test_two_key_sets_share_delta() -> None:
    one = "SELECT word, COUNT(*) AS n FROM t GROUP BY word"
    single = planned(one, POLICY)
    other = one.replace("FROM t", "FROM t WHERE n > 1")  # equal releases would be measured once
    both = planned(f"SELECT a.n, b.n FROM ({one}) AS a JOIN ({other}) AS b ON a.word = b.word", POLICY)
    assert len(both.releases) == 2 and both.loss.delta <= both.bid.delta
    thresholds = [r.measured.threshold.threshold for r in both.releases if r.measured.threshold]
    assert single.releases[0].measured.threshold is not None
    assert len(thresholds) == 2 and all(t > single.releases[0].measured.threshold.threshold for t in thresholds)


@pytest.mark.parametrize(
    ("groups", "family", "other"),
    [(1, "laplace", "gaussian"), (3, "laplace", "gaussian"), (5, "gaussian", "laplace"), (10, "gaussian", "laplace")],
)
def test_private_keys_take_the_noise_that_shows_them_sooner(groups: int, family: str, other: str) -> None:
    """Laplace noise has the smaller variance in all four; a threshold that is hardly smaller is not worth the other."""
    own = policy(TABLES.replace("max_groups_per_unit: 3", f"max_groups_per_unit: {groups}"))
    plan = planned("SELECT word, COUNT(DISTINCT id) AS n FROM t GROUP BY word", own)
    releases = [t for t in plan.tree.walk() if isinstance(t.node, Release)]
    request = LossRequest(plan.bid.epsilon, plan.bid.delta)
    found = {name: measure(releases, replace(request, family=name))[0] for name in (family, other)}
    variance = {name: m.measurements[0].mechanism.variance() for name, m in found.items()}
    thresholds = {name: m.threshold.threshold for name, m in found.items() if m.threshold is not None}
    assert plan.releases[0].measured == found[family]
    assert variance["laplace"] < variance["gaussian"]
    assert thresholds[family] < (0.9 if family == "gaussian" else 1 / 0.9) * thresholds[other]


def test_the_delta_of_shown_keys_is_charged() -> None:
    plan = planned("SELECT word, COUNT(*) AS n FROM t GROUP BY word", POLICY)
    (release,) = plan.releases
    threshold, (unit,) = release.measured.threshold, release.measured.contributions
    assert threshold is not None and threshold.delta > 0
    assert sum(loss.delta for loss in release.measured.losses(unit)) == threshold.delta <= plan.loss.delta


def test_min_units_raises_the_threshold() -> None:
    sql = "SELECT word, COUNT(*) AS n FROM t GROUP BY word"
    plain, higher = (
        planned(sql, POLICY, limits=ContributionLimits(min_units=u)).releases[0].measured.threshold for u in (1, 1000)
    )
    assert plain is not None and higher is not None and higher.threshold >= 1000 > plain.threshold


REPLACED = policy("""
rows:
  unit: {rows: 3, neighbours: replace_one}
  size: {exact: 10}
  columns:
    n: {type: integer, bounds: [4, 10], nullable: false}
    x: {type: double, bounds: [4, 10], nullable: false}
    word: {type: varchar, nullable: false}
""")


def test_keys_that_one_unit_can_show() -> None:
    """Three rows or groups are three new keys; of three replaced rows, too: the other three are keys that go."""
    word = "/* dpsql: anyway=on */ SELECT word, COUNT(*) AS n FROM"
    for sql, of in ((f"{word} t GROUP BY word", POLICY), (f"{word} rows GROUP BY word", REPLACED)):
        threshold = planned(sql, of).releases[0].measured.threshold
        assert threshold is not None and threshold.g == 3


def test_a_double_may_be_no_number() -> None:
    """A row with NaN adds nothing to a sum: of a public number of rows it moves it by more than high - low."""
    whole, double = (planned(f"SELECT SUM({c}) FROM rows", REPLACED).releases[0].measured.measurements for c in "nx")
    assert [m.sensitivity.l1 * m.unit for m in whole] == [3 * (10 - 4)]
    assert [m.sensitivity.l1 * m.unit for m in double] == [3 * 10]


@pytest.mark.parametrize("epsilon", ["1e-12", "1e-30"])
def test_absurd_scales_are_refused(epsilon: str) -> None:
    with pytest.raises(Rejected) as refusal:
        planned("SELECT SUM(x) FROM t", POLICY, epsilon=epsilon)
    (found,) = refusal.value.diagnostics
    assert found.code == "DP410" and found.help and found.span is not None
