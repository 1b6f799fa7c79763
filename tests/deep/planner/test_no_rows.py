"""A question about no rows is answered as an empty database answers it, for nothing; any other question is paid.

The answer to a query with a constant condition is compared with that to the query without it over a copy of the
database whose private tables hold no row. There ε is 10¹⁵: no integer has a larger sensitivity than 2⁴¹, so that noise
other than 0 has a probability below e⁻⁴⁰⁰ for each.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import pytest

from dpsql.api.connection import Connection, connect
from dpsql.core.ir.nodes import key_sources
from dpsql.core.ledger.memory import MemoryLedger
from dpsql.core.privacy_loss import PrivacyLoss
from dpsql.core.release.noisy import NoisyRelease, public_keys
from dpsql.diagnostics.errors import Rejected
from dpsql.engines.duckdb.scratch import Scratch
from dpsql.planner.plan import Plan
from dpsql.planner.postprocessing.run import post_process
from dpsql.service.planning.public_facts import FactStore
from tests.deep.frontend.test_meaning import _query, _tables
from tests.support.neighbour_oracle import exact, plan_of
from tests.support.random_databases import Store, World, world_of

pytestmark = pytest.mark.filterwarnings("ignore::dpsql.diagnostics.errors.UtilityWarning")

HUGE = 10**15
POLICY = """\
version: 1
name: club
database: club.duckdb
privacy: {neighbours: add_remove, accountant: approx_dp}
units: {member: {table: members, key: id}}
tables:
  members:
    unit: {column: id}
    primary_key: [id]
    columns:
      id:   {type: bigint, nullable: false}
      city: {type: varchar, domain: [Bonn, Lyon, Oslo], nullable: false}
      age:  {type: integer, bounds: [10, 100], nullable: false}
      fee:  {type: 'decimal(8,2)', bounds: [-20, 500]}
      day:  {type: date, bounds: [2020-01-01, 2020-12-31], nullable: false}
      old:  {type: boolean}
      note: {type: varchar}
      tags: {type: 'varchar[]', max_length: 3}
  visits:
    unit: {column: id}
    max_rows_per_unit: 4
    max_groups_per_unit: 3
    max_rows_per_group: 2
    columns:
      id:    {type: bigint, nullable: false}
      hours: {type: double, bounds: [0, 10]}
      town:  {type: varchar, domain: [Bonn, Lyon], nullable: false}
  orders:
    unit: {path: [{column: member, references: members(id)}]}
    max_rows_per_unit: 5
    columns:
      member: {type: bigint, nullable: false}
      price:  {type: double, bounds: [-1, 7]}
  tills:
    unit: {rows: 2}
    columns:
      amount: {type: integer, bounds: [0, 50], nullable: false}
      city:   {type: varchar, nullable: false}
  loans:
    unit: {rows: 1, neighbours: replace_one}
    size: {exact: 100}
    columns:
      amount: {type: integer, bounds: [100, 300], nullable: false}
  cities:
    public: true
    unique: [[city]]
    columns:
      city:    {type: varchar, nullable: false}
      country: {type: varchar, nullable: false}
budgets:
  total: {epsilon: 1e18, delta: 1e-3}
"""
DATA = """\
CREATE TABLE members AS SELECT i AS id, ['Bonn', 'Lyon', 'Oslo'][1 + i % 3] AS city,
  CAST(10 + i % 80 AS INTEGER) AS age, CAST(i % 400 AS DECIMAL(8,2)) AS fee,
  DATE '2020-01-01' + CAST(i % 360 AS INTEGER) AS day, i % 2 = 0 AS old, 'n' || i % 3 AS note, ['a', 'b'] AS tags
  FROM range(300) t(i);
CREATE TABLE visits AS SELECT i % 100 AS id, CAST(i % 10 AS DOUBLE) AS hours, 'Bonn' AS town FROM range(500) t(i);
CREATE TABLE orders AS SELECT i % 100 AS member, CAST(i % 6 AS DOUBLE) AS price FROM range(500) t(i);
CREATE TABLE tills AS SELECT CAST(i % 50 AS INTEGER) AS amount, ['Bonn', 'Paris'][1 + i % 2] AS city
  FROM range(200) t(i);
CREATE TABLE loans AS SELECT CAST(100 + i AS INTEGER) AS amount FROM range(100) t(i);
CREATE TABLE cities AS FROM (VALUES ('Bonn', 'Germany'), ('Lyon', 'France'), ('Oslo', 'Norway')) t(city, country);
"""
NEVER = ("1 = 0", "FALSE", "NULL", "1 <> 1", "NOT TRUE", "2 < 1", "1 IN (2, 3)", "NULL = 1", "'a' = 'b'",
         "1 BETWEEN 2 AND 3", "(FALSE OR NULL)", "DATE '2024-01-01' > DATE '2024-01-02'", "1 IS NULL",
         "abs(-1) < 0", "0.1 + 0.2 < 0.3", "CASE WHEN TRUE THEN FALSE END", "length('ab') = 3")  # fmt: skip


def _queries(text: str) -> tuple[str, ...]:
    return tuple(" ".join(query.split()) for query in text.split(";"))


BELOW = _queries("""
SELECT COUNT(*) AS n FROM members WHERE {};
SELECT COUNT(*) + 1 AS n, 7 AS seven FROM members WHERE age > 20 AND {};
SELECT city, COUNT(*) AS n, SUM(fee) AS s, AVG(age) AS a FROM members WHERE {} GROUP BY city;
SELECT city, old, COUNT(DISTINCT note) AS d, COUNT(DISTINCT id) AS u FROM members WHERE {} GROUP BY city, old;
SELECT VAR_POP(age) AS a, VAR_SAMP(age) AS b, STDDEV_POP(fee) AS c, STDDEV_SAMP(fee) AS d FROM members WHERE
  {};
SELECT AVG(fee) AS a, AVG(CAST(fee AS DOUBLE)) AS b, COUNT(fee) AS c, SUM(3) AS d FROM members WHERE {};
SELECT note, COUNT(*) AS n FROM members WHERE {} GROUP BY note;
SELECT DISTINCT note FROM members WHERE {};
SELECT DISTINCT city FROM members WHERE {} ORDER BY city;
SELECT month(day) AS m, COUNT(*) AS n FROM members WHERE {} GROUP BY ALL ORDER BY m;
SELECT city, COUNT(*) AS n FROM members WHERE {} AND city IN ('Bonn', 'Rome') GROUP BY city;
SELECT city, COUNT(*) AS n FROM members WHERE {} GROUP BY ROLLUP (city) ORDER BY n, city;
SELECT city, note, COUNT(*) AS n, GROUPING(note) AS g FROM members WHERE {} GROUP BY GROUPING SETS (city,
  note, ());
SELECT city, COUNT(*) AS n FROM members WHERE {} GROUP BY city HAVING COUNT(*) < 5 ORDER BY city LIMIT 2
  OFFSET 1;
SELECT town, SUM(hours) AS h, AVG(hours) AS a FROM visits WHERE {} GROUP BY town;
SELECT SUM(CLIP(hours, 0, 20)) AS h, SUM(CLIP(n, 0, 9)) AS n
  FROM (SELECT id, SUM(hours) AS hours, COUNT(*) AS n FROM visits WHERE {} GROUP BY id);
SELECT SUM(CLIP(n, 0, 4)) AS n, COUNT(*) AS c FROM (SELECT id, COUNT(*) AS n FROM visits WHERE {} GROUP BY id);
SELECT SUM(CLIP(n, 0, 3)) AS n FROM (SELECT city, COUNT(*) AS n FROM tills WHERE {} GROUP BY city);
SELECT city, SUM(hours) AS h FROM members JOIN visits USING (id) WHERE {} GROUP BY city;
SELECT country, COUNT(*) AS n FROM members JOIN cities USING (city) WHERE {} GROUP BY country;
SELECT country, COUNT(id) AS n FROM cities LEFT JOIN members USING (city) WHERE {} GROUP BY country;
SELECT COUNT(*) AS n, SUM(price) AS p FROM orders JOIN members ON member = id WHERE {};
SELECT city, SUM(price) AS p FROM orders JOIN members ON member = id WHERE {} GROUP BY city;
SELECT COUNT(*) AS n FROM members WHERE {} AND id IN (SELECT id FROM visits);
SELECT COUNT(*) AS n FROM members WHERE {} AND NOT EXISTS (SELECT 1 FROM visits WHERE visits.id = members.id);
SELECT COUNT(*) AS n FROM members WHERE age > (SELECT AVG(age) FROM members WHERE {0}) AND {0};
SELECT tag, COUNT(*) AS n FROM members, UNNEST(tags) AS u(tag) WHERE {} AND tag IN ('a', 'b') GROUP BY tag;
SELECT COUNT(*) AS n FROM (SELECT id FROM members WHERE {0} UNION ALL SELECT id FROM visits WHERE {0});
SELECT COUNT(*) AS n FROM (SELECT id FROM members EXCEPT SELECT id FROM visits) WHERE {};
SELECT COUNT(*) AS n, SUM(amount) AS s, AVG(amount) AS a FROM tills WHERE {};
SELECT city, COUNT(*) AS n, SUM(amount) AS s FROM tills WHERE {} GROUP BY city;
SELECT n, n / 2 AS h, SUM(n) OVER (ORDER BY city) AS r FROM (SELECT city, COUNT(*) AS n FROM members WHERE {}
  GROUP BY city);
WITH r AS (SELECT city, COUNT(*) AS n FROM members WHERE {} GROUP BY city) SELECT country, n FROM r JOIN
  cities USING (city);
SELECT MAX(n) AS m FROM (SELECT city, COUNT(*) AS n FROM members WHERE {} GROUP BY city);
SELECT MAX(n) AS m, COUNT(*) AS c FROM (SELECT note, COUNT(*) AS n FROM members WHERE {} GROUP BY note);
SELECT city, (SELECT COUNT(*) FROM members WHERE {}) AS n FROM cities ORDER BY city;
SELECT COUNT(*) AS n, DP_INTERVAL_LOW(n) AS low, DP_INTERVAL_HIGH(n) AS high FROM members WHERE {};
SELECT SUM(fee, contribution_bounds_per_group => (-3, 5)) AS s FROM members WHERE {};
SELECT COALESCE(SUM(old_fee), 3) AS s FROM (SELECT CASE WHEN old THEN fee ELSE 1 END AS old_fee FROM members)
  WHERE {}
""")
"""Queries with a place for a condition below every release."""
ROWS = _queries("""
SELECT * FROM members WHERE {};
SELECT city, fee * 2 AS double, upper(note) AS up FROM members WHERE {} ORDER BY fee LIMIT 3;
SELECT * FROM visits JOIN members USING (id) WHERE {};
SELECT price, city FROM orders JOIN members ON member = id WHERE {} AND price > 2;
SELECT * FROM (SELECT * FROM tills UNION ALL SELECT * FROM tills) WHERE {};
SELECT tag FROM members, UNNEST(tags) AS u(tag) WHERE {};
SELECT TRUE FROM members WHERE {} LIMIT 1;
SELECT n FROM (SELECT city, COUNT(*) AS n FROM members GROUP BY city) WHERE {};
SELECT city, COUNT(*) AS n FROM members GROUP BY city HAVING {};
SELECT note, AVG(fee) AS n FROM members GROUP BY note HAVING COUNT(*) > 3 AND {} ORDER BY n;
SELECT city, COUNT(*) AS n, RANK() OVER (ORDER BY COUNT(*)) AS r FROM members GROUP BY city QUALIFY {};
SELECT * FROM cities WHERE {};
SELECT country, n FROM cities JOIN (SELECT city, COUNT(*) AS n FROM members GROUP BY city) USING (city) WHERE
  {};
SELECT city FROM cities WHERE {} UNION SELECT note FROM members WHERE {} UNION ALL SELECT city FROM tills
  WHERE {};
SELECT city, COUNT(*) AS n FROM members GROUP BY city INTERSECT SELECT country, 3 FROM cities WHERE {};
SELECT a.n FROM (SELECT COUNT(*) AS n FROM members) AS a, (SELECT COUNT(*) AS m FROM visits HAVING {}) AS b
""")
"""Queries whose rows this condition leaves out, all of them."""


def _folder(folder: Path, *, empty: bool) -> Path:
    folder.mkdir()
    with duckdb.connect(str(folder / "club.duckdb")) as database:
        database.execute(DATA)
        for table in ("members", "visits", "orders", "tills") if empty else ():
            database.execute(f"DELETE FROM {table}")
    (folder / "club.yaml").write_text(POLICY, encoding="utf-8")
    return folder / "club.yaml"


@pytest.fixture(scope="module")
def full(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Connection]:
    policy = _folder(tmp_path_factory.mktemp("rows") / "full", empty=False)
    with connect(policy, ledger=MemoryLedger("club")) as connection:
        yield connection


@pytest.fixture(scope="module")
def emptied(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Connection]:
    policy = _folder(tmp_path_factory.mktemp("rows") / "none", empty=True)
    with connect(policy, ledger=MemoryLedger("club")) as connection:
        yield connection


@pytest.mark.parametrize("number", range(len(BELOW)))
def test_below_a_release_the_answer_is_that_of_an_empty_database(
    number: int, full: Connection, emptied: Connection
) -> None:
    sql, never = BELOW[number], NEVER[number % len(NEVER)]
    free = full.sql(sql.format(never)).run()
    paid = emptied.sql(sql.format("1 = 1")).run(epsilon=HUGE, delta="1e-9", fresh=True)
    assert (paid.spent == PrivacyLoss()) is ("DISTINCT city" in sql)  # a public list is free with rows, too
    assert free.spent == PrivacyLoss() == full.sql(sql.format(never)).cost()
    assert (free.columns, free.types) == (paid.columns, paid.types)
    assert free.rows == paid.rows
    assert [[type(v) for v in row] for row in free.rows] == [[type(v) for v in row] for row in paid.rows]


@pytest.mark.parametrize("never", NEVER)
def test_every_spelling_of_never_does_the_same(never: str, full: Connection) -> None:
    sql = BELOW[2]
    free = full.sql(sql.format(never)).run()
    assert free.spent == PrivacyLoss() and free.rows == full.sql(sql.format("1 = 0")).run().rows
    assert all(r.measured.empty for r in free.plan.releases)


@pytest.mark.parametrize("number", range(len(ROWS)))
def test_above_the_releases_there_are_no_rows_and_the_types_stay(number: int, full: Connection) -> None:
    sql = ROWS[number].replace("{}", NEVER[number % len(NEVER)])
    free = full.sql(sql).run()
    assert free.rows == () and free.spent == PrivacyLoss() and free.plan.releases == ()
    private = any(
        f"FROM {table} " in sql or f"FROM {table}," in sql for table in ("members", "visits", "orders", "tills")
    )
    if not private or "COUNT" in sql or "AVG" in sql:  # then there is an answer with rows, of the same types
        rows = full.sql(ROWS[number].replace("{}", "1 = 1")).run(epsilon=1, delta="1e-9")
        assert (free.columns, free.types) == (rows.columns, rows.types)


@pytest.mark.parametrize("sql", [*BELOW[::4], *ROWS[::2]])
def test_limit_0_around_anything(sql: str, full: Connection) -> None:
    inner = sql.format(*["1 = 0"] * 3)
    free = full.sql(f"SELECT * FROM ({inner}) AS q LIMIT 0").run()
    assert free.rows == () and free.spent == PrivacyLoss()
    assert free.types == full.sql(inner).run().types


@pytest.mark.parametrize("sql", BELOW[::3])
def test_a_true_constant_is_paid(sql: str, full: Connection) -> None:
    cost = full.sql(sql.format("1 = 1")).cost(epsilon=1, delta="1e-9")
    assert (cost == PrivacyLoss()) is ("DISTINCT city" in sql)


PAID = _queries("""
SELECT COUNT(*) FROM members WHERE (SELECT COUNT(*) FROM visits) < 0;
SELECT n FROM (SELECT COUNT(*) AS n FROM members) WHERE n < 0;
SELECT COUNT(*) AS n FROM members HAVING COUNT(*) < 0;
SELECT COUNT(*) FROM members WHERE age < 0;
SELECT COUNT(*) FROM members WHERE age < 0 OR FALSE;
SELECT COUNT(*) FROM members WHERE age <> age;
SELECT COUNT(*) FROM members WHERE NULL IS NULL;
SELECT COUNT(*) FROM members WHERE age > 3 OR NULL;
SELECT COUNT(*) FROM (SELECT id FROM members UNION ALL SELECT id FROM visits WHERE FALSE);
SELECT COUNT(*) FROM (SELECT id FROM members EXCEPT SELECT id FROM visits WHERE FALSE);
SELECT COUNT(*) FROM members WHERE id NOT IN (SELECT id FROM visits WHERE FALSE);
SELECT COUNT(*) FROM members LEFT JOIN (SELECT id, hours FROM visits WHERE FALSE) AS v USING (id);
SELECT COUNT(*) FROM members LEFT JOIN cities ON members.city = cities.city AND FALSE;
SELECT COUNT(*) FROM members LEFT JOIN (SELECT * FROM cities LIMIT 0) AS c USING (city);
SELECT COUNT(*), (SELECT COUNT(*) FROM visits WHERE FALSE) FROM members;
SELECT COUNT(*) FROM members UNION ALL SELECT COUNT(*) FROM visits LIMIT 1;
SELECT city, COUNT(*) FROM members GROUP BY city LIMIT 1
""")
"""Rows may be left, or a released number is asked for what would leave none."""


@pytest.mark.parametrize("sql", PAID)
def test_what_may_have_rows_is_paid(sql: str, full: Connection) -> None:
    assert full.sql(sql).plan(epsilon=1).loss == PrivacyLoss(1)
    assert full.sql(sql).run(epsilon=1, fresh=True).spent == PrivacyLoss(1)


def _without(world: World) -> World:
    """The world with no private rows."""
    tables = [t if t.public else replace(t, rows=()) for t in world.tables]
    return world_of(tables, 0, "empty")


def _answer(store: Store, plan: Plan) -> list[tuple[Any, ...]]:
    """The rows without noise; a release of no rows is not asked for, as in a run."""
    found = []
    for planned in plan.releases:
        if planned.measured.empty:
            zeros = [0] * len(planned.measured.measurements)
            keys = public_keys(key_sources(planned.measured.node) or (), len(planned.measured.node.keys))
            vector = dict.fromkeys(keys, zeros)
        else:
            vector = exact(planned, store)
        found.append(NoisyRelease.of_rows(planned, vector, vector.values()))
    scratch = Scratch()
    rows = post_process(plan.post, found, store, scratch).rows
    scratch.close()
    return list(rows)


@pytest.mark.one_in(2)
@pytest.mark.parametrize("seed", range(6))
def test_random_queries_over_no_rows_are_those_over_an_empty_database(seed: int) -> None:
    rng = random.Random(seed)
    full, none, compared = Store(), Store(), 0
    for _ in range(2):
        world = world_of(_tables(rng), 0, "meaning")
        full.load(world)
        none.load(_without(world))
        for _ in range(12):
            sql, ordered = _query(rng, world)
            never = rng.choice(("LIMIT 0", *(f"WHERE {n}" for n in NEVER)))
            private = re.compile(r"\b(FROM|JOIN) (visits|log|people)\b( AS \w+)?")
            ours = private.sub(lambda m: f"{m[1]} (SELECT * FROM {m[2]} {never}){m[3] or f' AS {m[2]}'}", sql)  # noqa: B023
            try:
                theirs = plan_of(none, FactStore(none), world, sql)
            except Rejected as refusal:
                with pytest.raises(Rejected) as same:
                    plan_of(full, FactStore(full), world, ours)
                assert {d.code for d in same.value.diagnostics} == {d.code for d in refusal.diagnostics}, ours
                continue
            plan = plan_of(full, FactStore(full), world, ours)
            assert all(r.measured.empty for r in plan.releases) and plan.loss == PrivacyLoss(), ours
            assert [c.type for c in plan.columns] == [c.type for c in theirs.columns], ours
            found, expected = _answer(full, plan), _answer(none, theirs)
            if not ordered:
                found, expected = (sorted(rows, key=repr) for rows in (found, expected))
            assert found == expected, ours
            compared += 1
    full.close()
    none.close()
    assert compared > 12
