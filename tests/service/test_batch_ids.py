"""Batches over persons: every neighbour stays within the price, and marginals are of one table, or are refused."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import cache
from typing import Any

import duckdb
import pytest

import dpsql
from dpsql.core.ir.components import ValueSum
from dpsql.diagnostics.errors import Rejected
from dpsql.planner.plan import Plan
from dpsql.service.batches.batch_design import require_additive

COLUMNS = """
      id: {type: bigint, nullable: false}
      ward: {type: varchar, domain: [a, b], nullable: false}
      debt: {type: integer, bounds: [-2, 5]}
"""
POLICY = f"""
version: 1
name: shop
database: shop.duckdb
units: {{person: {{}}}}
tables:
  visits:
    unit: {{column: id, of: person}}
    max_rows_per_unit: 3
    columns: {COLUMNS}
  groups:
    unit: {{column: id, of: person}}
    max_groups_per_unit: 2
    max_rows_per_group: 3
    columns: {COLUMNS}
  mixed:
    unit: {{column: id, of: person}}
    max_rows_per_unit: 6
    max_rows_per_group: 3
    max_groups_per_unit: 2
    columns: {COLUMNS}
  once:
    unit: {{column: id, of: person}}
    primary_key: [id]
    columns: {COLUMNS}
  promised:
    unit: {{column: id, of: person}}
    max_rows_per_unit: {{rows: 3, enforce: assume}}
    columns: {COLUMNS}
budgets: {{total: {{epsilon: 1e12, delta: 0.1}}}}
ledger: shop.sqlite
"""
HUGE = 10**9
TABLES = ("visits", "groups", "mixed", "once", "promised")


@pytest.fixture(scope="module", params=["add_remove", "replace_one"])
def con(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dpsql.Connection]:
    folder = tmp_path_factory.mktemp("shop")
    text = POLICY.replace("units:", f"privacy: {{neighbours: {request.param}}}\nunits:")
    (folder / "shop.yaml").write_text(text, encoding="utf-8")
    with duckdb.connect(str(folder / "shop.duckdb")) as db:
        for name in TABLES:
            key = " PRIMARY KEY" if name == "once" else ""
            db.execute(f"CREATE TABLE {name} (id BIGINT NOT NULL{key}, ward VARCHAR NOT NULL, debt INTEGER)")
            db.execute(
                f"INSERT INTO {name} SELECT i, CASE i % 3 WHEN 0 THEN 'a' ELSE 'b' END, i % 5 FROM range(9) t(i)"
            )
    with dpsql.connect(folder / "shop.yaml", ledger=":memory:") as found:
        yield found


def members(table: str) -> list[str]:
    return [
        f"SELECT ward, COUNT(*) AS n, SUM(debt) AS s, AVG(debt) AS m FROM {table} GROUP BY ward",
        f"SELECT COUNT(*) AS n, SUM(debt) AS s FROM {table}",
        f"SELECT debt, COUNT(debt) AS n FROM {table} GROUP BY debt",
        f"SELECT COUNT(*) AS n FROM {table} WHERE ward = 'a' AND debt > 1",
    ]


Row = tuple[str, int | None]


ROWS: list[Row] = [("a", -9), ("a", 9), ("z", 3), ("b", None)]
OTHERS: Sets = ((("a", 1), ("b", 2)), (("a", 5),) * 5)
Sets = tuple[tuple[Row, ...], ...]
"""Each the rows that one id may have."""


def sets_of(kinds: Sequence[Row], most: int) -> Sets:
    """All sets of up to so many rows, each as often as it may be."""
    return tuple(rows for n in range(most + 1) for rows in itertools.combinations_with_replacement(kinds, n))


@cache
def exact(statements: tuple[str, ...], sets: Sets) -> list[list[dict[tuple[Any, ...], int]]]:
    """For each set, beside the rows of others, and each statement over visits: key → exact integer.

    Cached: the statements of both neighbour relations are the same, and so for each test.
    """
    found = []
    with duckdb.connect() as db:
        db.execute("ATTACH ':memory:' AS data")
        db.execute("CREATE TABLE data.main.visits (id BIGINT NOT NULL, ward VARCHAR NOT NULL, debt INTEGER)")
        for mine in sets:
            rows = [value for i, each in enumerate([*OTHERS, mine]) for row in each for value in (i, *row)]
            db.execute("DELETE FROM data.main.visits")
            db.execute(f"INSERT INTO data.main.visits VALUES {', '.join(['(?, ?, ?)'] * (len(rows) // 3))}", rows)
            found.append([{tuple(key): int(n) for *key, n in db.execute(sql).fetchall()} for sql in statements])
    return found


def exact_of(plan: Plan, sets: Sets) -> list[list[dict[tuple[Any, ...], int]]]:
    """For each set and each release."""
    assert all(len(release.statements) == 1 for release in plan.releases)
    return exact(tuple(statement.sql for release in plan.releases for statement in release.statements), sets)


def moved(one: dict[tuple[Any, ...], int], other: dict[tuple[Any, ...], int]) -> list[int]:
    return [one.get(key, 0) - other.get(key, 0) for key in {**one, **other}]


def each_neighbour_is_within_the_price(con: dpsql.Connection, sets: Sets) -> None:
    """l1 and l2 of every marginal, where an id with one of the sets is added, or replaces another; some are tight."""
    plan = con.batch(members("visits")).plan(epsilon=1)
    mine = exact_of(plan, sets)
    replaced = con.policy.privacy.neighbours == "replace_one"
    pairs = list(itertools.combinations(range(len(sets)), 2)) if replaced else [(0, i) for i in range(1, len(sets))]
    tight = 0
    for place, release in enumerate(plan.releases):
        (measurement,) = release.measured.measurements
        bound = measurement.sensitivity
        worst, squares = 0, 0
        for a, b in pairs:
            by = moved(mine[a][place], mine[b][place])
            worst, squares = max(worst, sum(map(abs, by))), max(squares, sum(x * x for x in by))
        assert worst <= bound.l1
        assert squares <= bound.l2_squared
        tight += worst == bound.l1
    assert tight > 0


def marginals_add_up(con: dpsql.Connection, sets: Sets) -> None:
    """Totals of all cells are the same in every marginal of a quantity, but for one integer per id and cell."""
    batch = con.batch(members("visits"))
    plan = batch.plan(epsilon=1)
    quantities = [q for q, _, _ in batch.design.measured]
    assert any(isinstance(r.measured.measurements[0].component, ValueSum) for r in plan.releases)
    for found in exact_of(plan, sets):
        for quantity in set(quantities):
            totals = [sum(r.values()) for q, r in zip(quantities, found, strict=True) if q == quantity]
            assert max(totals) - min(totals) <= 3 * 8


SOME = sets_of(ROWS[:3], 4)


def test_every_neighbour_is_within_the_price(con: dpsql.Connection) -> None:
    """Up to four rows of three kinds; of all kinds up to five in tests/deep/service/test_batch_ids.py."""
    each_neighbour_is_within_the_price(con, SOME)


def test_marginals_add_up_whatever_an_id_has(con: dpsql.Connection) -> None:
    marginals_add_up(con, SOME)


@pytest.mark.parametrize(("table", "word"), [("groups", "max_rows_per_unit: 6"), ("mixed", "add up")])
def test_limits_that_depend_on_groups_are_refused_with_the_limit_that_would_do(
    con: dpsql.Connection, table: str, word: str
) -> None:
    before = con.budget.spent
    with pytest.raises(Rejected, match=r"add up") as refused:
        con.batch(members(table)).run(epsilon=1)
    assert word in str(refused.value)
    assert con.budget.spent == before


def test_all_marginals_have_one_limit(con: dpsql.Connection) -> None:
    """Rows that weigh in one marginal and count in another would not add up."""
    weighed, counted = (con.batch(members(table)).plan(epsilon=1) for table in ("visits", "promised"))
    require_additive(weighed)
    require_additive(counted)
    with pytest.raises(Rejected, match="some marginals"):
        require_additive(replace(weighed, stages=(*weighed.stages, *counted.stages)))


@pytest.mark.parametrize("table", ["once", "promised"])
def test_ids_of_few_rows_need_no_weights(con: dpsql.Connection, table: str) -> None:
    """A key, or a promise: every row counts as it is, and a count of distinct ids is one of rows."""
    sql = members(table)
    if table == "once":
        sql.append("SELECT ward, COUNT(DISTINCT id) AS n FROM once GROUP BY ward")
    answers = con.batch(sql).run(epsilon=HUGE)
    for text, answer in zip(sql, answers, strict=True):
        alone = con.sql(text).run(epsilon=HUGE)
        assert sorted(answer.rows, key=str) == [
            tuple(pytest.approx(x, abs=1e-6) if isinstance(x, float) else x for x in row)
            for row in sorted(alone.rows, key=str)
        ]
    plan = con.batch(sql).plan(epsilon=1)
    assert all(m.component.weight == 1 for r in plan.releases for m in r.measured.measurements)


def test_a_count_of_ids_that_are_no_key_is_refused_by_name(con: dpsql.Connection) -> None:
    with pytest.raises(Rejected, match=r"COUNT\(DISTINCT id\) does not add up") as refused:
        con.batch(["SELECT COUNT(DISTINCT id) AS n FROM visits"]).run(epsilon=1)
    (found,) = refused.value.diagnostics
    assert found.code == "DP101"
    assert "primary_key: [id]" in str(refused.value)
    assert found.span is not None and found.source is not None
    assert found.source.text[found.span.start : found.span.end] == "COUNT(DISTINCT id)"


def test_the_price_is_that_of_the_noise(con: dpsql.Connection) -> None:
    batch = con.batch(members("visits"))
    drawn = [m for r in batch.plan(epsilon=1).releases for m in r.measured.measurements]
    price = sum(m.mechanism.loss(m.sensitivity.l1, m.sensitivity.l2_squared).epsilon for m in drawn)
    assert Fraction("0.999") < price <= 1
    assert batch.run(epsilon=1).spent.epsilon == price
