"""Copies that carry the rows that theirs belong to: what is read in place of joins, and what is not."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import duckdb
import pytest

import dpsql
from dpsql.core.release.noisy import exact_totals
from dpsql.diagnostics.errors import CannotOpen, Rejected
from dpsql.service.preparing.prepare import prepare
from tests.support.built_once import build

POLICY = """\
version: 1
name: shop
database: shop.duckdb
units: {person: {table: people, key: id}}
tables:
  people:
    unit: {column: id}
    primary_key: [id]
    prepared: true
    carries: [nations]
    columns:
      id: {type: bigint}
      age: {type: integer, bounds: [0, 100]}
      nation: {type: integer, domain: {table: nations, column: nation}}
  orders:
    unit: {column: buyer}
    max_rows_per_unit: 6
    primary_key: [nr]
    prepared: true
    carries: [people, nations]
    columns:
      nr: {type: bigint}
      buyer: {type: bigint}
      day: {type: date, bounds: [2024-01-01, 2024-12-31]}
      price: {type: double, bounds: [0, 100]}
  lines:
    unit: {path: [{column: nr, references: orders(nr)}]}
    max_rows_per_unit: 20
    prepared: true
    carries: [orders, people, nations, {table: parts, columns: [kind]}]
    columns:
      line: {type: bigint}
      nr: {type: bigint}
      part: {type: integer, domain: {table: parts, column: part}}
      qty: {type: integer, bounds: [0, 9]}
  parts:
    public: true
    primary_key: [part]
    columns: {part: {type: integer}, kind: {type: varchar}, cost: {type: double, bounds: [0, 60]}}
  nations: {public: true, primary_key: [nation], columns: {nation: {type: integer}, name: {type: varchar}}}
budgets: {total: {epsilon: 1e12}}
"""
DATA = """
CREATE TABLE people AS SELECT i::BIGINT AS id, (i * 7 % 60 + 18)::INTEGER AS age, (i % 5)::INTEGER AS nation
    FROM range(40) t(i);
CREATE TABLE orders AS SELECT i::BIGINT AS nr, (i * 31 % 43)::BIGINT AS buyer, DATE '2024-01-01' + (i % 300)::INTEGER
    AS day, (i % 97 + .5)::DOUBLE AS price FROM range(180) t(i);
CREATE TABLE lines AS SELECT i::BIGINT AS line, (i * 17 % 190)::BIGINT AS nr, (i % 40)::INTEGER AS part,
    (i % 9)::INTEGER AS qty FROM range(600) t(i);
CREATE TABLE parts AS SELECT i::INTEGER AS part, 'k' || (i % 6) AS kind, (i * 1.5)::DOUBLE AS cost FROM range(38) t(i);
CREATE TABLE nations AS SELECT i::INTEGER AS nation, 'n' || i AS name FROM range(5) t(i);
"""
ONE_SCAN = (
    "SELECT COUNT(*) FROM lines l JOIN orders o ON l.nr = o.nr",
    "SELECT COUNT(*), SUM(l.qty) FROM lines l JOIN orders o ON l.nr = o.nr JOIN people p ON o.buyer = p.id "
    "WHERE p.age > 40 AND o.day < DATE '2024-05-01'",
    "SELECT n.name, COUNT(*), SUM(o.price) FROM people p, orders o, nations n "
    "WHERE p.id = o.buyer AND p.nation = n.nation GROUP BY n.name",
    "SELECT n.name, SUM(l.qty) FROM people p, orders o, lines l, nations n, parts t WHERE l.nr = o.nr "
    "AND p.id = o.buyer AND p.nation = n.nation AND t.part = l.part AND t.kind = 'k1' GROUP BY n.name",
    "SELECT t.kind, SUM(l.qty), COUNT(DISTINCT o.buyer) FROM lines l JOIN orders o USING (nr) JOIN parts t "
    "USING (part) GROUP BY t.kind",
    "SELECT n.nation, COUNT(DISTINCT p.id) FROM lines l JOIN orders o ON l.nr = o.nr JOIN people p ON p.id = o.buyer "
    "JOIN nations n ON n.nation = p.nation GROUP BY n.nation",
    "SELECT AVG(o.price), MEDIAN(l.qty) FROM lines l JOIN orders o ON l.nr = o.nr AND o.price > l.qty",
    "SELECT name, COUNT(*) FROM people JOIN nations USING (nation) GROUP BY name",
    "SELECT SUM(most) FROM (SELECT p.id, LEAST(COUNT(*), 9) AS most FROM orders o JOIN people p ON p.id = o.buyer "
    "WHERE p.age > 30 GROUP BY p.id) t",
)
JOINED = (
    "SELECT SUM(t.cost * l.qty) FROM lines l JOIN parts t ON t.part = l.part",  # of parts only kinds are carried
    "SELECT COUNT(*) FROM lines l JOIN parts t ON t.part = l.qty",  # another key
    "SELECT COUNT(*) FROM people p LEFT JOIN orders o ON o.buyer = p.id",
    "SELECT COUNT(*) FROM orders o JOIN people p ON o.buyer = p.id JOIN orders q ON q.buyer = p.id WHERE o.nr < q.nr",
)
pytestmark = pytest.mark.filterwarnings("ignore::dpsql.UtilityWarning")


@contextmanager
def shop(folder: Path, policy: str, data: str = DATA) -> Iterator[dpsql.Connection]:
    if not (folder / "shop.duckdb").exists():
        build(folder / "shop.duckdb", data)
    (folder / "shop.yaml").write_text(policy)
    prepare(folder / "shop.yaml")
    with dpsql.connect(folder / "shop.yaml", ledger=":memory:") as connection:
        yield connection


def planned(connection: dpsql.Connection, sql: str) -> tuple[object, object, str]:
    """What a query costs, its exact integers, and its statements."""
    plan = connection.sql(sql).plan(epsilon=1)
    exact = [exact_totals(planned, connection.service.engine, 0) for planned in plan.releases]
    return plan.cost, exact, "\n".join(s.sql for r in plan.releases for s in r.statements)


def test_what_is_carried_is_read_in_place_of_joins_and_gives_the_same(tmp_path: Path) -> None:
    alone = re.sub(r"(?m)^    carries: .*\n", "", POLICY)
    with shop(tmp_path, alone) as connection:
        before = [planned(connection, sql) for sql in (*ONE_SCAN, *JOINED)]
    with shop(tmp_path, POLICY) as connection:
        now = [planned(connection, sql) for sql in (*ONE_SCAN, *JOINED)]
    for sql, (cost, exact, text), (cost_now, exact_now, text_now) in zip(
        (*ONE_SCAN, *JOINED), before, now, strict=True
    ):
        assert (cost_now, exact_now) == (cost, exact), sql
        joined = [len(re.findall(r"JOIN \"memory\"|JOIN \"data\"", each)) for each in (text, text_now)]
        assert joined[0] and (joined[1] == 0) == (sql in ONE_SCAN), (sql, text_now)


def test_who_has_no_partner_is_left_out_of_a_join_alone(tmp_path: Path) -> None:
    with shop(tmp_path, POLICY) as connection:
        joined = planned(connection, "SELECT COUNT(*) FROM lines l JOIN parts t ON t.part = l.part")[1]
        alone = planned(connection, "SELECT COUNT(*) FROM lines")[1]
    assert str(joined) < str(alone)


def test_what_is_carried_has_no_name_in_queries(tmp_path: Path) -> None:
    with shop(tmp_path, POLICY) as connection:
        for name in ('"people.age"', '"nations.name"', "people.age"):
            with pytest.raises(Rejected):
                connection.sql(f"SELECT SUM({name}) FROM orders").plan(epsilon=1)
        described = connection.sql("SELECT COUNT(*) FROM orders").explain()
    assert "people.age" not in str(described)


def test_a_key_that_two_rows_have_is_not_carried(tmp_path: Path) -> None:
    """The limit of a unit's rows would be broken, or a row's partner be chosen by chance."""
    twice = DATA + "INSERT INTO parts SELECT * FROM parts WHERE part = 7;"
    with pytest.raises(Rejected, match="two rows of `parts`"), shop(tmp_path, POLICY, twice):
        pass


@pytest.mark.parametrize(
    ("was", "wrong", "said"),
    [
        ("carries: [people, nations]", "carries: [parts]", "to a key of which no column"),
        ("carries: [people, nations]", "carries: [nations, people]", "to a key of which no column"),
        ("carries: [people, nations]", "carries: [orders]", "whose columns are there already"),
        ("carries: [people, nations]", "carries: [persons]", "names table `persons`"),
        ("carries: [people, nations]", "carries: [{table: people, columns: [ages]}]", "names column `ages`"),
        ("public: true, primary_key: [nation]", "public: true", "to a key of which no column"),
        (
            "qty: {type: integer, bounds: [0, 9]}",
            "qty: {type: integer, bounds: [0, 9], domain: {table: parts, column: part}}",
            "is found by part and by qty",
        ),
        ("    prepared: true\n    carries: [people, nations]", "    carries: [people]", "is of a copy"),
    ],
)
def test_what_cannot_be_carried_is_said(tmp_path: Path, was: str, wrong: str, said: str) -> None:
    assert was in POLICY
    with pytest.raises(CannotOpen, match=re.escape(said)), shop(tmp_path, POLICY.replace(was, wrong)):
        pass


def test_of_two_keys_the_named_one_is_meant(tmp_path: Path) -> None:
    two = POLICY.replace(
        "qty: {type: integer, bounds: [0, 9]}",
        "qty: {type: integer, bounds: [0, 9], domain: {table: parts, column: part}}",
    ).replace("{table: parts, columns: [kind]}", "{table: parts, by: [part]}, {table: parts, by: [qty]}")
    sql = (
        "SELECT SUM(a.cost) AS a, SUM(b.cost) AS b FROM lines l JOIN parts a ON a.part = l.part "
        "JOIN parts b ON b.part = l.qty"
    )
    with shop(tmp_path, two) as connection:
        _, found, text = planned(connection, sql)
    with shop(tmp_path, re.sub(r"(?m)^    carries: .*\n", "", two)) as connection:
        assert planned(connection, sql)[1] == found
    assert "JOIN" not in text.split("p AS")[0] and "parts by qty.cost" in text


def test_rows_of_other_people_are_carried_to_nobody(tmp_path: Path) -> None:
    gifts = POLICY.replace(
        "    carries: [people, nations]\n", "    carries: [{table: people, by: [gift]}]\n    foreign_keys: "
        "[{columns: [gift], references: people(id)}]\n",
    ).replace("      buyer: {type: bigint}\n", "      buyer: {type: bigint}\n      gift: {type: bigint}\n")  # fmt: skip
    gifts = gifts.replace("[orders, people, nations, {", "[orders, {")
    given = "UPDATE orders SET gift = CASE nr % 3 WHEN 0 THEN buyer ELSE nr % 40 END;"
    refused = pytest.raises(Rejected, match="joined on something other than their privacy unit")
    with shop(tmp_path, gifts, f"{DATA} ALTER TABLE orders ADD COLUMN gift BIGINT; {given}") as connection, refused:
        connection.sql("SELECT SUM(p.age) FROM orders o JOIN people p ON o.gift = p.id").plan(epsilon=1)
    with duckdb.connect(str(tmp_path / "shop.prepared.duckdb"), read_only=True) as copy:
        carried = copy.execute(
            'SELECT gift = buyer, "people by gift.id" = buyer, COUNT(*) FROM orders GROUP BY ALL'
        ).fetchall()
    assert {found[:2] for found in carried} == {(True, True), (True, None), (False, None)}


def test_a_copy_of_other_carried_columns_is_not_read(tmp_path: Path) -> None:
    with shop(tmp_path, POLICY):
        pass
    (tmp_path / "shop.yaml").write_text(POLICY.replace("columns: [kind]", "columns: [cost]"))
    with pytest.raises(CannotOpen, match="the policy says something else"):
        dpsql.connect(tmp_path / "shop.yaml")
