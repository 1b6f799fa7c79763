"""Bounded DP in a session: a public size is an answer that costs nothing and reads nothing."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest

from dpsql.api.connection import Connection
from dpsql.core.engine import RawTable
from dpsql.core.ledger.memory import MemoryLedger
from dpsql.core.privacy_loss import PrivacyLoss
from dpsql.diagnostics.errors import EngineError, Rejected
from dpsql.frontend.aggregates.avg import Ratio
from dpsql.policy.load import parse_policy
from tests.support.fake_engine import FakeEngine

POLICY = """
version: 1
name: bank
database: bank.duckdb
privacy: {neighbours: replace_one}
defaults: {epsilon: 1, delta: 1e-9}
units: {person: {}}
tables:
  loans:
    unit: {rows: 1}
    size: {exact: 1000}
    columns:
      amount: {type: integer, bounds: [100, 300], nullable: false}
      rate: {type: double, bounds: [0, 1]}
      kind: {type: varchar, domain: [a, b], nullable: false}
  cards:
    unit: {rows: 2}
    size: {exact: 50}
    columns:
      amount: {type: integer, bounds: [0, 10], nullable: false}
  queue:
    unit: {rows: 1}
    columns: {amount: {type: integer, bounds: [0, 10], nullable: false}}
  people:
    unit: {of: person, column: id}
    max_rows_per_unit: 3
    columns: {id: {type: bigint, nullable: false}, amount: {type: integer, bounds: [0, 10], nullable: false}}
  visits:
    unit: {rows: 1, neighbours: add_remove}
    columns: {amount: {type: integer, bounds: [0, 10], nullable: false}}
budgets: {total: {epsilon: 10000, delta: 1e-3}}
"""
UNITS = ("loans", "cards", "queue", "person", "visits")
FREE = {
    "SELECT COUNT(*) FROM loans": 1000,
    "SELECT COUNT(amount) FROM loans": 1000,
    "SELECT COUNT(*) + 1 AS n FROM loans": 1001,
    "SELECT COUNT(*) FROM (SELECT amount * 2 AS a FROM loans)": 1000,
    "SELECT COUNT(*) FROM loans CROSS JOIN (VALUES (1), (2)) AS v(i)": 2000,
    "SELECT COUNT(*) FROM (SELECT amount FROM loans UNION ALL SELECT amount FROM cards)": 1050,
    "SELECT SUM(7) FROM loans": 7000,
    "SELECT SUM(2.5) FROM loans": 2500,
    "SELECT COUNT(*) FROM loans WHERE FALSE": 0,
    "SELECT COUNT(*) FILTER (WHERE 1 = 0) FROM loans": 0,
    "SELECT SUM(7) FILTER (WHERE 1 = 0) FROM loans": 0,
    "SELECT COUNT(NULL) FROM loans": 0,
}


class _Session:
    """A session over an engine that remembers what it was asked, and holds other numbers than the policy says."""

    def __init__(self, answer: Any = None) -> None:
        self.engine = FakeEngine(answer or (lambda sql: EngineError()), tables=(*UNITS, "people"))
        self.ledger = MemoryLedger("bank")
        self.con = Connection(parse_policy(POLICY, "bank.yaml"), self.engine, ledger=self.ledger)

    @property
    def spent(self) -> list[PrivacyLoss]:
        return [self.ledger.spent(unit) for unit in UNITS]


@pytest.mark.parametrize("sql", FREE)
def test_a_public_size_reads_nothing_and_costs_nothing(sql: str) -> None:
    session = _Session()
    query = session.con.sql(sql)
    assert query.cost() == PrivacyLoss()
    answer = query.run()
    assert answer.fetchall() == [(FREE[sql],)]
    assert session.engine.queries == [] and session.spent == [PrivacyLoss()] * len(UNITS)
    plan = query.plan()
    assert [m.mechanism.name for r in plan.releases for m in r.measured.measurements] == ["exact"]
    assert "exact" in query.explain() and "nothing is read" in query.explain()


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT COUNT(*) FROM loans WHERE amount > 0",
        "SELECT COUNT(*) FROM queue",
        "SELECT COUNT(rate) FROM loans",
        "SELECT COUNT(*) FILTER (WHERE amount > 0) FROM loans",
        "SELECT COUNT(*) FROM (SELECT DISTINCT amount FROM loans)",
        "SELECT COUNT(*) FROM people",
        "SELECT COUNT(*) FROM (SELECT amount FROM loans UNION ALL SELECT amount FROM queue)",
        "SELECT COUNT(*) FROM (SELECT amount FROM loans EXCEPT ALL SELECT amount FROM loans)",
        "SELECT kind, COUNT(*) FROM loans GROUP BY kind",
    ],
)
def test_any_other_count_is_noisy_and_paid(sql: str) -> None:
    session = _Session()
    assert session.con.sql(sql).cost().epsilon > 0
    with pytest.raises(EngineError):
        session.con.sql(sql).run()
    assert len(session.engine.queries) == 1


def test_beside_noisy_numbers_the_size_stays_the_declared_one() -> None:
    """The data hold 990 rows; nobody learns that."""
    session = _Session(lambda sql: RawTable(("m0", "m1"), ([990], [200_000])))
    answer = session.con.sql("SELECT COUNT(*) AS n, SUM(amount) AS s FROM loans").run(epsilon=1)
    ((n, s),) = answer.fetchall()
    assert n == 1000 and isinstance(s, int)
    # All of ε is the sum's, whose sensitivity is 300 - 100.
    (release,) = answer.plan.releases
    count, total = release.measured.measurements
    assert count.known == 1000 and count.loss == PrivacyLoss()
    assert total.sensitivity.l1 == 200 and total.mechanism.scale == 200
    assert session.ledger.spent("loans").epsilon == 1


@pytest.mark.parametrize("epsilon", [Fraction(1, 100), Fraction(1, 2), Fraction(12)])
def test_an_average_over_a_public_size_is_a_noisy_sum_divided_by_it(epsilon: Fraction) -> None:
    session = _Session(lambda sql: RawTable(("m0", "m1"), ([-30_000], [990])))
    query = session.con.sql("SELECT AVG(amount) AS a FROM loans")
    answer = query.run(epsilon=epsilon)
    (release,) = answer.plan.releases
    recipe = release.measured.node.outputs[0].recipe
    assert isinstance(recipe, Ratio)
    total, count = (release.measured.measurements[i] for i in (recipe.sum, recipe.count))
    assert count.known == 1000 and total.sensitivity.l1 * total.unit == 200
    assert total.loss.epsilon == epsilon == session.ledger.spent("loans").epsilon
    ((a,),) = answer.fetchall()
    width = float(total.mechanism.half_width(Fraction(95, 100)) * total.unit) / 1000
    assert query.accuracy(epsilon=epsilon) == {"a": pytest.approx(width)}
    ((low, high),) = (row["a"] for row in answer.intervals(0.95))
    assert 100 <= low <= a <= high <= 300
    assert high - low == pytest.approx(min(300, a + width) - max(100, a - width)) or not 100 < a < 300
    if epsilon == 12:
        assert abs(a - 170) < 1  # 60 times the scale of the noise; (200 · 1000 - 30,000) / 1000, not / 990


def test_several_replaced_units_in_one_query() -> None:
    """The noise follows the worst unit, and each pays what it can lose."""
    both = "(SELECT amount FROM loans UNION ALL SELECT amount FROM cards)"
    sql = f"SELECT SUM(CLIP(amount, 0, 10)) AS s FROM {both}"
    plan = _Session().con.sql(sql).plan(epsilon=1)
    (release,) = plan.releases
    (m,) = release.measured.measurements
    assert m.sensitivity.l1 == 20 and {u: s.l1 for u, s in m.by_unit.items()} == {"loans": 10, "cards": 20}
    assert plan.cost["cards"].epsilon == 1 and plan.cost["loans"].epsilon == Fraction(1, 2)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT COUNT(*) FROM loans JOIN visits USING (amount)",
        "SELECT COUNT(*) FROM visits JOIN loans USING (amount)",
        "SELECT COUNT(*) FROM visits LEFT JOIN people USING (amount)",
        "SELECT COUNT(*) FROM (SELECT amount FROM loans UNION ALL SELECT amount FROM visits)",
        "SELECT COUNT(*) FROM (SELECT amount FROM visits UNION SELECT amount FROM loans)",
        "SELECT COUNT(*) FROM (SELECT amount FROM visits EXCEPT SELECT amount FROM people)",
        "SELECT a.n, b.n FROM (SELECT COUNT(*) n FROM loans) a CROSS JOIN (SELECT COUNT(*) n FROM visits) b",
        "SELECT a.n, b.n FROM (SELECT COUNT(*) n FROM visits) a CROSS JOIN (SELECT COUNT(*) n FROM people) b",
    ],
)
def test_relations_are_not_mixed(sql: str) -> None:
    with pytest.raises(Rejected) as refusal:
        _Session().con.sql(sql).plan()
    (found,) = refusal.value.diagnostics
    assert found.code == "DP230" and "different ways" in found.message and found.help and found.span is not None


@pytest.mark.parametrize(
    ("sql", "max_error", "reached"),
    [
        ("SELECT AVG(amount) AS a, COUNT(*) AS n FROM loans", {"a": 0.5, "n": 3}, {"a": 0.5, "n": 0}),
        ("SELECT AVG(amount) AS a, SUM(amount) AS s FROM loans", {"a": 0.5, "s": 1000}, {"a": 0.5, "s": 500}),
        ("SELECT COUNT(*) AS n FROM loans", {"n": 3}, {"n": 0}),
        ("SELECT COUNT(*) AS n, SUM(amount) AS s FROM loans", {"n": 3}, "DP411"),
        ("SELECT COUNT(*) AS n, AVG(amount) AS a FROM queue", {"a": 0.5}, "DP411"),
    ],
)
def test_averages_over_a_public_size_can_be_planned(
    sql: str, max_error: dict[str, float], reached: dict[str, float] | str
) -> None:
    query = _Session().con.sql(sql)
    if isinstance(reached, str):
        with pytest.raises(Rejected) as refusal:
            query.cost(max_error=max_error)
        assert refusal.value.diagnostics[0].code == reached
    else:
        assert query.accuracy(max_error=max_error) == pytest.approx(reached)
