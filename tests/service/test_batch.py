"""A batch of counts: the numbers its members would give alone, one price, free the second time, refused by name."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import duckdb
import pytest

import dpsql
from dpsql.core.ir.types import HUGEINT
from dpsql.core.privacy_loss import PrivacyLoss
from dpsql.core.values.value import Domain, Value
from dpsql.diagnostics.errors import BudgetExceeded, Rejected
from dpsql.planner.batch.classes import _listed
from tests.support.built_once import build
from tests.support.opened_once import opened

POLICY = """
version: 1
name: shop
database: shop.duckdb
units: {person: {table: people, key: id}}
tables:
  people:
    unit: {column: id}
    primary_key: [id]
    columns:
      id: {type: bigint, nullable: false}
      age: {type: integer, bounds: [0, 9]}
      region: {type: varchar, domain: [north, south]}
      vip: {type: boolean, nullable: false}
      town: {type: varchar}
      price: {type: 'decimal(4,1)', domain: [1.5, 2.5]}
      day: {type: date, bounds: [2025-01-01, 2025-01-31]}
  visits:
    unit: {column: id}
    max_rows_per_unit: 3
    columns:
      id: {type: bigint, nullable: false}
      ward: {type: varchar, domain: [a, b, c], nullable: false}
  tours:
    unit: {column: id}
    max_groups_per_unit: 1
    max_rows_per_group: 1
    columns:
      id: {type: bigint, nullable: false}
      ward: {type: varchar, domain: [a, b, c], nullable: false}
budgets: {total: {epsilon: 1e12, delta: 0.1}, analysts: {ana: {epsilon: 1e12, delta: 0.1}, poor: {epsilon: 0.1}}}
ledger: shop.sqlite
"""
HUGE = 10**9
TABLES = """
CREATE TABLE people (id BIGINT NOT NULL PRIMARY KEY, age INTEGER, region VARCHAR, vip BOOLEAN NOT NULL, town VARCHAR,
  day DATE, price DECIMAL(4, 1));
CREATE TABLE visits (id BIGINT NOT NULL, ward VARCHAR NOT NULL);
CREATE TABLE tours (id BIGINT NOT NULL, ward VARCHAR NOT NULL);
"""
ROWS = """
INSERT INTO people SELECT i, CASE WHEN i % 17 = 0 THEN NULL ELSE i % 13 - 1 END,
  CASE i % 5 WHEN 0 THEN NULL WHEN 1 THEN 'elsewhere' WHEN 2 THEN 'south' ELSE 'north' END, i % 3 = 0, 't' || i % 4,
  DATE '2024-12-25' + CAST(i % 40 AS INTEGER), 0.5 + i % 4 FROM range(200) t(i);
INSERT INTO visits SELECT i % 90, CASE i % 4 WHEN 0 THEN 'a' WHEN 1 THEN 'b' ELSE 'z' END FROM range(150) t(i);
INSERT INTO tours SELECT * FROM visits;
"""


def made(folder: Path) -> Path:
    (folder / "shop.yaml").write_text(POLICY, encoding="utf-8")
    build(folder / "shop.duckdb", TABLES + ROWS)
    return folder


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Only read."""
    return made(tmp_path_factory.mktemp("shop"))


@pytest.fixture
def con(folder: Path) -> Iterator[dpsql.Connection]:
    with dpsql.Connection(*opened(folder / "shop.yaml"), "ana", ":memory:") as found:
        yield found


MEMBERS = [
    "SELECT region, COUNT(*) AS n FROM people GROUP BY region ORDER BY n DESC, region",
    "SELECT COUNT(*) AS n FROM people",
    "SELECT COUNT(*) AS n FROM people WHERE age > 7",
    "SELECT COUNT(*) AS n FROM people WHERE age < 3 OR vip",
    "SELECT COUNT(*) AS n FROM people WHERE region <> 'north'",
    "SELECT COUNT(*) AS n FROM people WHERE region = 'elsewhere' AND NOT vip",
    "SELECT COUNT(*) AS n FROM people WHERE region IS NULL OR age IS NULL",
    "SELECT vip, COUNT(*) AS n, COUNT(*) FILTER (WHERE age BETWEEN 2 AND 20) AS some FROM people GROUP BY vip",
    "SELECT COUNT(*) AS n FROM people WHERE day >= DATE '2024-12-30' AND day < DATE '2025-02-02'",
    "SELECT COUNT(*) AS n FROM people WHERE age IN (1, 5, 11)",
]


def test_the_numbers_are_those_of_the_queries(con: dpsql.Connection, folder: Path) -> None:
    """At a huge ε: rows outside public lists and NULL count where a query alone would count them."""
    answers = con.batch(MEMBERS).run(epsilon=HUGE)
    with duckdb.connect(str(folder / "shop.duckdb"), read_only=True) as db:
        for sql, answer in zip(MEMBERS, answers, strict=True):
            wanted = [r for r in db.execute(sql).fetchall() if r[0] != "elsewhere"]
            assert sorted(answer.rows, key=str) == sorted(wanted, key=str), sql
    assert [region for region, _ in answers[0].rows] == ["north", "south", None]
    assert answers[7].columns == ("vip", "n", "some")


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT COUNT(*) FROM people WHERE age > 10.5",
        "SELECT COUNT(*) FROM people WHERE age > 1e1 OR age < -0.5",
        "SELECT COUNT(*) FROM people WHERE age BETWEEN 9.5 AND 10.5",
        "SELECT COUNT(*) FROM people WHERE age <> 10",
        "SELECT COUNT(*) FROM people WHERE age IS NOT NULL AND NOT age = 2.5",
        "SELECT COUNT(*) FROM people WHERE day > TIMESTAMP '2025-02-01 12:00:00'",
        "SELECT COUNT(*) FROM people WHERE day = TIMESTAMP '2025-02-02 00:00:00'",
        "SELECT COUNT(*) FROM people WHERE region NOT IN ('north', 'elsewhere')",
        "SELECT age > 5 AS k, COUNT(*) FROM people GROUP BY 1",
        "SELECT region = 'north' AS k, COUNT(*) FROM people GROUP BY 1",
        "SELECT region, COUNT(*) FILTER (WHERE region = 'north') FROM people WHERE day IS NOT NULL GROUP BY region",
        "SELECT region, COUNT(*) FILTER (WHERE age < 2 AND age > 2) FROM people WHERE region <> 'x' GROUP BY region",
        "SELECT CASE WHEN age > 5 THEN 'old' ELSE 'young' END AS k, vip, COUNT(*) FROM people GROUP BY 1, 2",
    ],
)
def test_unlisted_values_count_by_what_they_are_compared_with(con: dpsql.Connection, sql: str) -> None:
    """Also by constants of other types than the column's, and where they have the key of a listed value."""
    answers = con.batch([sql, "SELECT COUNT(*) FROM people"]).run(epsilon=HUGE)
    assert sorted(map(str, answers[0].rows)) == sorted(map(str, con.sql(sql).run(epsilon=HUGE).rows))
    assert not [note for note in answers.notes if "whose value is listed" in note]


@pytest.mark.parametrize(
    ("column", "condition"), [("region", "region < 'f'"), ("price", "price > 1"), ("price", "price = 2.5 OR vip")]
)
def test_what_cannot_be_told_apart_counts_listed_values_alone(
    con: dpsql.Connection, folder: Path, column: str, condition: str
) -> None:
    """Texts in order and fractions have no next value: between two of them may be anything. A note says so."""
    sql = f"SELECT COUNT(*) FROM people WHERE ({condition})"
    answers = con.batch([sql, "SELECT COUNT(*) FROM people"]).run(epsilon=HUGE)
    listed = "region IN ('north', 'south') OR region IS NULL" if column == "region" else "price IN (1.5, 2.5)"
    with duckdb.connect(str(folder / "shop.duckdb"), read_only=True) as db:
        assert answers[0].rows == tuple(db.execute(f"{sql} AND ({listed})").fetchall())
    assert answers[1].rows == ((200,),)
    assert f"members that read {column} count rows whose value is listed" in answers.notes


def test_a_member_that_computes_counts_listed_values_alone(con: dpsql.Connection, folder: Path) -> None:
    """`age % 2` of an age outside the bounds is not known: such rows count nowhere, and a note says so."""
    sql = "SELECT COUNT(*) AS n FROM people WHERE age % 2 = 0"
    answers = con.batch([sql, "SELECT COUNT(*) AS n FROM people"]).run(epsilon=HUGE)
    with duckdb.connect(str(folder / "shop.duckdb"), read_only=True) as db:
        assert answers[0].rows == tuple(db.execute(sql + " AND age BETWEEN 0 AND 9").fetchall())
    assert answers[1].rows == ((200,),)
    assert "members that read age count rows whose value is listed" in answers.notes


def test_rows_of_a_unit_are_limited_as_ever(con: dpsql.Connection) -> None:
    """Each id counts with at most three rows, whatever the member's condition: marginals of one table add up."""
    sql = ["SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward", "SELECT COUNT(*) AS n FROM visits"]
    whole = con.batch(sql).run(epsilon=HUGE)
    assert dict(whole[0].rows) == {"a": 38, "b": 38, "c": 0}
    assert whole[1].rows == ((150,),)


def test_the_price_is_one_and_the_second_run_is_free(con: dpsql.Connection) -> None:
    """What is charged is the sum of the marginals' own losses, recomputed from the noise that was drawn."""
    batch = con.batch(MEMBERS)
    price = batch.cost(epsilon="0.5")
    assert Fraction("0.4999") < price.epsilon <= Fraction("0.5")
    first = batch.run(epsilon="0.5")
    assert first.spent == price == con.budget["person"].spent
    drawn = [m for r in batch.plan(epsilon="0.5").releases for m in r.measured.measurements]
    assert sum(m.mechanism.loss(m.sensitivity.l1, m.sensitivity.l2_squared).epsilon for m in drawn) == price.epsilon
    again = con.batch(list(reversed(MEMBERS))).run(epsilon="0.5")
    assert again.spent == PrivacyLoss()
    assert sorted(map(str, (a.rows for a in again))) == sorted(map(str, (a.rows for a in first)))


def test_the_design_is_of_texts_alone(con: dpsql.Connection, tmp_path: Path) -> None:
    """Other rows, the same marginals and shares."""
    first = con.batch(MEMBERS).design
    with duckdb.connect(str(made(tmp_path) / "shop.duckdb")) as db:
        db.execute("DELETE FROM people WHERE id % 2 = 0; UPDATE people SET region = 'west'")
    with dpsql.connect(tmp_path / "shop.yaml", analyst="ana", ledger=":memory:") as other:
        second = other.batch(MEMBERS).design
    assert first.shares == second.shares
    assert first.sql == second.sql


@pytest.mark.parametrize(
    ("sql", "code", "word"),
    [
        ("SELECT MIN(age) FROM people", "DP101", "MIN"),
        ("SELECT SUM(DISTINCT age) FROM people", "DP101", "SUM"),
        ("SELECT COUNT(DISTINCT region) FROM people", "DP101", "does not add up"),
        ("SELECT SUM(id) FROM people", "DP201", "bounds"),
        ("SELECT SUM(2) FROM people", "DP101", "constant"),
        ("SELECT COUNT(*) FROM people WHERE town = 't1'", "DP302", "town"),
        ("SELECT COUNT(*) FROM visits", "DP101", "reads other rows"),
        ("SELECT COUNT(*) + 1 FROM people", "DP101", "computes something"),
        ("SELECT region FROM people GROUP BY region", "DP101", "counts and sums nothing"),
        ("WITH p AS (SELECT * FROM people) SELECT COUNT(*) FROM p", "DP101", "SELECT"),
        ("SELECT COUNT(*) FROM nowhere", "DP102", "nowhere"),
        ("SELECT region, COUNT(*) FROM people GROUP BY region LIMIT 1", "DP101", "GROUP BY"),
    ],
)
def test_other_members_are_refused_by_name_or_left_out(con: dpsql.Connection, sql: str, code: str, word: str) -> None:
    plain = "SELECT COUNT(*) AS n FROM people"
    with pytest.raises(Rejected) as refused:
        con.batch([plain, sql]).run(epsilon=1)
    assert refused.value.diagnostics[0].code == code
    assert word in str(refused.value)
    answers = con.batch([plain, sql, plain], skip_refused=True).run(epsilon=HUGE)
    assert answers[0].rows == answers[2].rows == ((200,),)
    assert answers.refused[1].diagnostics[0].code == code
    with pytest.raises(Rejected):
        answers[1]


def test_more_values_than_a_list_can_have_are_refused() -> None:
    """2⁶³ and more: no Python list or range counts them."""
    with pytest.raises(Rejected) as refused:
        _listed(Value(HUGEINT, domain=Domain(range(10**20))), "x", None)
    assert refused.value.diagnostics[0].code == "DP302"


def test_weights_that_depend_on_the_grouping_are_refused(con: dpsql.Connection) -> None:
    with pytest.raises(Rejected, match="add up"):
        con.batch(["SELECT ward, COUNT(*) AS n FROM tours GROUP BY ward"]).run(epsilon=1)


def test_nothing_runs_that_cannot_be_paid(folder: Path) -> None:
    """The budget is looked at before the first marginal is measured."""
    with dpsql.connect(folder / "shop.yaml", analyst="poor", ledger=":memory:") as con:
        with pytest.raises(BudgetExceeded):
            con.batch(MEMBERS).run(epsilon=1)
        assert con.budget["person"].spent == PrivacyLoss()
        assert con.batch(MEMBERS).run(epsilon="0.1").spent.epsilon > 0


def test_a_unit_that_has_spent_all_is_no_matter_of_another(folder: Path) -> None:
    """Only units whose rows a batch reads have to have something left."""
    text = POLICY.replace("units: {person: {table: people, key: id}}", "units: {person: {}, guest: {}}")
    text = text.replace("unit: {column: id}", "unit: {column: id, of: person}")
    text = text.replace("  visits:\n    unit: {column: id, of: person}", "  visits:\n    unit: {column: id, of: guest}")
    (folder / "two.yaml").write_text(text, encoding="utf-8")
    with dpsql.connect(folder / "two.yaml", analyst="poor", ledger=":memory:") as con:
        con.sql("SELECT COUNT(*) FROM visits").run(epsilon="0.1")
        with pytest.raises(BudgetExceeded, match="'guest'"):
            con.batch(["SELECT COUNT(*) FROM visits WHERE ward = 'a'"]).run(epsilon="0.05")
        assert con.batch(MEMBERS).run(epsilon="0.1").spent.epsilon > 0
        assert con.budget["guest"].spent.epsilon == Fraction("0.1")


def test_explain_names_marginals_and_errors(con: dpsql.Connection) -> None:
    text = con.batch(MEMBERS).explain(epsilon=1)
    assert "batch of 10 queries" in text
    assert "region" in text
    assert text.count("at most ±") == 11
    low, high = con.batch(MEMBERS[1:2]).run(epsilon=HUGE)[0].intervals()[0]["n"] or (0, 0)
    assert (low, high) == (199, 201)
