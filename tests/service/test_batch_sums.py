"""Sums and averages of a batch: the numbers their queries would give alone, at a price recomputed from the noise."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import duckdb
import pytest

import dpsql
from dpsql.core.privacy_loss import PrivacyLoss
from tests.support.built_once import build

POLICY = """
version: 1
name: shop
database: shop.duckdb
privacy: {neighbours: add_remove}
units: {person: {}}
tables:
  sales:
    unit: {rows: 2}
    columns:
      id: {type: bigint, nullable: false}
      town: {type: varchar, domain: [a, b, c]}
      day: {type: date, bounds: [2025-01-01, 2025-01-31]}
      paid: {type: 'decimal(8,2)', bounds: [0, 100]}
      debt: {type: integer, bounds: [-40, 10]}
      score: {type: double, bounds: [0, 1]}
      free: {type: integer}
      sure: {type: integer, bounds: [0, 9], nullable: false}
  visits:
    unit: {column: id, of: person}
    max_rows_per_unit: 3
    columns:
      id: {type: bigint, nullable: false}
      town: {type: varchar, domain: [a, b, c], nullable: false}
      debt: {type: integer, bounds: [-40, 10]}
      paid: {type: integer, bounds: [0, 100]}
budgets: {total: {epsilon: 1e12, delta: 0.1}}
ledger: shop.sqlite
"""
HUGE = 10**9
ROWS = """
CREATE TABLE sales (id BIGINT NOT NULL, town VARCHAR, day DATE, paid DECIMAL(8, 2), debt INTEGER, score DOUBLE,
  free INTEGER, sure INTEGER NOT NULL);
INSERT INTO sales SELECT i, CASE i % 5 WHEN 0 THEN NULL WHEN 1 THEN 'elsewhere' WHEN 2 THEN 'c' ELSE 'a' END,
  DATE '2024-12-25' + CAST(i % 40 AS INTEGER), CASE WHEN i % 7 = 0 THEN NULL ELSE i * 1.37 - 20 END, i % 70 - 50,
  CASE i % 11 WHEN 0 THEN 'NaN'::DOUBLE WHEN 1 THEN NULL ELSE (i % 8) / 4.0 END, i, i % 12 FROM range(150) t(i);
CREATE TABLE visits (id BIGINT NOT NULL, town VARCHAR NOT NULL, debt INTEGER, paid INTEGER);
INSERT INTO visits SELECT i % 40, CASE i % 4 WHEN 0 THEN 'a' WHEN 1 THEN 'b' ELSE 'z' END, i % 70 - 50, i * 2
  FROM range(100) t(i);
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "shop.yaml").write_text(POLICY, encoding="utf-8")
    build(tmp_path / "shop.duckdb", ROWS)
    return tmp_path


def connected(folder: Path) -> dpsql.Connection:
    return dpsql.connect(folder / "shop.yaml", ledger=":memory:")


@pytest.fixture
def con(folder: Path) -> Iterator[dpsql.Connection]:
    with connected(folder) as found:
        yield found


MEMBERS = [
    "SELECT town, SUM(paid) AS s, AVG(paid) AS m, COUNT(paid) AS n FROM sales GROUP BY town ORDER BY town",
    "SELECT SUM(debt) AS s, AVG(debt) AS m, COUNT(*) AS n FROM sales WHERE town <> 'a'",
    "SELECT SUM(score) AS s, AVG(score) AS m, COUNT(score) AS n FROM sales WHERE day >= DATE '2025-01-10'",
    "SELECT SUM(sure) FILTER (WHERE town = 'c') AS s, AVG(sure) FILTER (WHERE sure > 3) AS m FROM sales",
    "SELECT SUM(2 * debt - sure) AS s, SUM(CLIP(free, 0, 5)) AS c FROM sales WHERE town IS NULL",
    "SELECT sure, SUM(paid) AS s FROM sales WHERE town = 'a' GROUP BY sure",
    "SELECT SUM(CASE WHEN town = 'a' THEN paid END) AS s FROM sales",
]


def test_the_numbers_are_those_of_the_queries(con: dpsql.Connection) -> None:
    """At a huge ε: clips, NULL, NaN and rows outside public lists are what they are in each query alone."""
    members = MEMBERS
    answers = con.batch(members).run(epsilon=HUGE)
    for sql, answer in zip(members, answers, strict=True):
        alone = con.sql(sql).run(epsilon=HUGE)
        assert [str(t) for t in answer.types] == [str(t) for t in alone.types]
        assert len(answer) == len(alone)
        for mine, other in zip(sorted(answer, key=str), sorted(alone, key=str), strict=True):
            for a, b in zip(mine, other, strict=True):
                assert type(a) is type(b), sql
                assert a == (pytest.approx(b, abs=1e-4) if isinstance(b, float) else b), sql
        for row, ends in zip(answer.rows, answer.intervals(), strict=True):
            for name, value in zip(answer.columns, row, strict=True):
                if ends.get(name) is not None:
                    low, high = ends[name] or (0, 0)
                    assert low <= value <= high
    assert isinstance(answers[0].rows[0][1], Decimal)


def test_sums_of_ids_weigh_rows_as_counts_do(folder: Path) -> None:
    """A limit C on rows weighs each row of an id by C/rows in every number of it, so that tiles agree."""
    with duckdb.connect(str(folder / "shop.duckdb")) as db:
        db.execute("INSERT INTO visits SELECT 7, 'b', -30, 50 FROM range(9)")
        weighed = db.execute(
            "SELECT town, SUM(LEAST(GREATEST(debt, -40), 10) * 3 / GREATEST(n, 3)), SUM(LEAST(paid, 100) * 3 / "
            "GREATEST(n, 3)), SUM(3 / GREATEST(n, 3)) FROM visits JOIN (SELECT id, COUNT(*) AS n FROM visits GROUP BY "
            "id) USING (id) GROUP BY town"
        ).fetchall()
    sql = [
        "SELECT town, SUM(debt) AS s, SUM(paid) AS p, COUNT(*) AS n FROM visits GROUP BY town",
        "SELECT SUM(debt) AS s, SUM(paid) AS p, COUNT(*) AS n FROM visits",
        "SELECT AVG(debt) AS m FROM visits WHERE town = 'b'",
    ]
    with connected(folder) as con:
        towns, whole, mean = con.batch(sql).run(epsilon=HUGE)
    truth = {town: numbers for town, *numbers in weighed}
    for town, *numbers in towns.rows:
        assert numbers == pytest.approx(truth.get(town, [0, 0, 0]), abs=0.6)
    sums = [sum(row[i] for row in weighed) for i in (1, 2, 3)]
    assert whole.rows[0] == pytest.approx(sums, abs=0.6)
    debts, _, rows = truth["b"]
    assert mean.rows[0][0] == pytest.approx(debts / rows, abs=0.01)


def test_one_price_for_counts_and_sums_from_the_noise_that_is_drawn(con: dpsql.Connection) -> None:
    batch = con.batch(MEMBERS)
    plan = batch.plan(epsilon=1)
    drawn = [m for r in plan.releases for m in r.measured.measurements]
    price = sum(m.mechanism.loss(m.sensitivity.l1, m.sensitivity.l2_squared).epsilon for m in drawn)
    assert Fraction("0.999") < price <= 1
    for m, (_, _, share) in zip(drawn, batch.design.measured, strict=True):
        assert float(m.mechanism.loss(m.sensitivity.l1, m.sensitivity.l2_squared).epsilon) == pytest.approx(
            float(share), rel=1e-3
        )
    assert batch.cost(epsilon=1).epsilon == price
    assert batch.run(epsilon=1).spent.epsilon == price
    assert batch.run(epsilon=1).spent == PrivacyLoss()


def test_what_is_measured_is_of_texts_alone(con: dpsql.Connection, folder: Path) -> None:
    first = con.batch(MEMBERS).design
    con.close()
    with duckdb.connect(str(folder / "shop.duckdb")) as db:
        db.execute("DELETE FROM sales WHERE id % 2 = 0; UPDATE sales SET paid = 3, town = 'b'")
    with connected(folder) as other:
        second = other.batch(MEMBERS).design
    assert first.sql == second.sql
    assert first.shares == second.shares
    assert sum(share for _, _, share in first.measured) == 1


def test_sums_take_the_form_that_errs_less(con: dpsql.Connection) -> None:
    """With counts beside it a sum is one about the middle and a count; alone it is itself. All over one budget."""
    alone = con.batch(["SELECT SUM(paid) AS s FROM sales"]).design
    assert [q.sql for q in alone.shares] == ["SUM(CLIP(paid, 0.00, 100.00))"]
    beside = con.batch(["SELECT town, SUM(paid) AS s, AVG(paid) AS m FROM sales GROUP BY town"]).design
    assert sorted(q.sql for q in beside.shares) == [
        "COUNT(CLIP(paid, 0.00, 100.00))",
        "SUM((CLIP(paid, 0.00, 100.00)) - (50))",
    ]
