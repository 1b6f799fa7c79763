"""MODE in a session: what it answers, what is charged, what is served again, what needs no data.

At ε 10,000 a value that has dozens of rows more than any other is missed with a probability below e^-1000.
"""

from __future__ import annotations

import datetime as dt
from dataclasses import replace
from decimal import Decimal

import pytest

from dpsql.answers.stored.address import Addresses
from dpsql.api.connection import Connection
from dpsql.core.ledger.memory import MemoryLedger


@pytest.mark.parametrize(
    ("sql", "answer"),
    [
        ("SELECT MODE(city) FROM members WHERE age % 2 = 1", [("Lyon",)]),
        ("SELECT MODE(age) FROM members WHERE age > 0 AND age < 3 AND city = 'Lyon'", [(1,)]),
        ("SELECT MODE(age < 70) FROM members", [(True,)]),
        ("SELECT MODE(joined) FILTER (WHERE age = 40) FROM members WHERE month(joined) = 2", [(dt.date(2020, 2, 10),)]),
        ("SELECT MODE(fee) FROM members WHERE fee IN (3, 7.5, 400)", [(Decimal("3.00"),)]),
        ("SELECT MODE(note) FROM members WHERE note IN ('n1', 'x')", [("n1",)]),
        ("SELECT MODE() WITHIN GROUP (ORDER BY city DESC) FROM members WHERE age % 2 = 0", [("Bonn",)]),
        # NULLs count nowhere, however many they are
        ("SELECT MODE(CASE WHEN age < 70 THEN NULL ELSE city = 'Lyon' END) FROM members WHERE age <> 70", [(True,)]),
        # by groups, beside others, above the release
        ("SELECT city, MODE(age % 2) AS m FROM members WHERE city <> 'Oslo' GROUP BY city", [("Bonn", 0), ("Lyon", 1)]),
        (
            "SELECT city, MODE(age % 2) AS m, COUNT(*) > 1000 AS many FROM members WHERE city <> 'Oslo' GROUP BY city "
            "HAVING MODE(age % 2) = 1 ORDER BY m",
            [("Lyon", 1, True)],
        ),
        ("SELECT m, COUNT(*) FROM (SELECT city, MODE(age % 2) AS m FROM members WHERE city <> 'Oslo' GROUP BY city) "
         "GROUP BY m ORDER BY m", [(0, 1), (1, 1)]),
        ("SELECT upper(MODE(city)) || '!' FROM members WHERE age % 2 = 1", [("LYON!",)]),
        # ids with several rows, private keys
        ("SELECT MODE(hours < 9) FROM visits", [(True,)]),
        ("SELECT note, MODE(city) FILTER (WHERE age % 2 = 1) AS m FROM members GROUP BY note",
         [("n0", "Lyon"), ("n1", "Lyon"), ("n2", "Lyon")]),
    ],
)  # fmt: skip
def test_the_most_frequent_value_in_its_type(con: Connection, sql: str, answer: list[tuple[object, ...]]) -> None:
    found = con.sql(sql).run(epsilon=10_000, delta=1e-9 if "note," in sql else 0).fetchall()
    assert sorted(found, key=str) == answer
    assert [[type(v) for v in row] for row in sorted(found, key=str)] == [[type(v) for v in row] for row in answer]


@pytest.mark.parametrize(
    ("sql", "answer"),
    [
        ("SELECT MODE(country) FROM cities", "France"),
        ("SELECT MODE() WITHIN GROUP (ORDER BY country DESC) FROM cities", "Norway"),
        ("SELECT MODE(length(city)) FILTER (WHERE city <> 'Oslo') FROM cities", 4),
        ("SELECT MODE(CASE WHEN city = 'Oslo' THEN 1.5 END) FROM cities", Decimal("1.5")),
        ("SELECT MODE(city) FROM cities WHERE city = 'Rome'", None),
        ("SELECT MODE(x) FROM (VALUES (2), (3), (3), (1), (1), (NULL), (NULL), (NULL)) AS t(x)", 1),
        ("SELECT MODE() WITHIN GROUP (ORDER BY x DESC) FROM (VALUES (1), (3), (3), (1), (2)) AS t(x)", 3),
    ],
)
def test_of_public_rows_it_is_exact_and_free(con: Connection, sql: str, answer: object) -> None:
    """Of equally frequent values the first in order."""
    found = con.sql(sql).run(epsilon=1)
    assert found.fetchall() == [(answer,)] and found.spent.epsilon == 0


def test_of_released_numbers_it_is_exact(con: Connection) -> None:
    inner = "SELECT city, COUNT(*) AS n FROM members GROUP BY city"
    query = con.sql(f"SELECT MODE(n > 700) AS m, MODE() WITHIN GROUP (ORDER BY city DESC) AS c FROM ({inner}) AS t")
    (release,) = query.plan(epsilon=1).releases
    assert [m.mechanism.name for m in release.measured.measurements] == ["laplace"]
    assert query.run(epsilon=100).fetchall() == [(True, "Oslo")]


def test_the_order_of_private_rows_changes_nothing(con: Connection) -> None:
    sql = "SELECT MODE(city) AS a, MODE() WITHIN GROUP (ORDER BY city DESC) AS b FROM members"
    (release,) = con.sql(sql).plan(epsilon=1).releases
    assert len(release.measured.measurements) == 1


def test_a_column_is_called_by_its_text(con: Connection) -> None:
    (column,) = con.sql("SELECT MODE() WITHIN GROUP (ORDER BY city DESC) FROM members").plan(epsilon=1).columns
    assert column.name == "mode() within group (order by city desc)"


def test_each_mode_pays_its_share(con: Connection, ledger: MemoryLedger) -> None:
    query = con.sql(
        "SELECT MODE(city) FILTER (WHERE age < 9), MODE(city) FILTER (WHERE age > 9), COUNT(*) FROM members"
    )
    assert query.cost(epsilon=1) == query.run(epsilon=1).spent == ledger.spent("member")
    assert ledger.spent("member").epsilon == 1 and ledger.spent("member").delta == 0


def test_an_answer_is_served_again_and_no_other(con: Connection, ledger: MemoryLedger) -> None:
    first = con.sql("SELECT MODE(city) FROM members").run(epsilon=1)
    again = con.sql("SELECT mode() WITHIN GROUP (ORDER BY city) FROM members").run(epsilon=1)
    assert again.spent.epsilon == 0 and again.fetchall() == first.fetchall()
    for number, other in enumerate(
        (
            "SELECT MODE(city = 'Bonn') FROM members",
            "SELECT MODE(city) FROM members WHERE city <> 'Oslo'",
            "SELECT MODE(city) FILTER (WHERE age > 3) FROM members",
            "SELECT note, MODE(city) FROM members WHERE note IN ('n0', 'n1') GROUP BY note",
        ),
        2,
    ):
        assert con.sql(other).run(epsilon=1).spent.epsilon == 1, other
        assert ledger.spent("member").epsilon == number


def test_the_list_is_part_of_the_address(con: Connection) -> None:
    """What is stored is the place of a value in its list; where the list came from changes nothing."""
    plan = con.sql("SELECT MODE(city) FROM members").plan(epsilon=1)
    (component,) = plan.releases[0].measured.node.components
    listed, address = component.choices, Addresses(plan, con.policy).of(0).address
    assert listed is not None
    other, elsewhere = replace(listed, keys=tuple(reversed(listed.keys))), replace(listed, origin="elsewhere")
    assert address(replace(component, choices=other)) != address(component)
    assert address(replace(component, choices=elsewhere)) == address(component)


def test_no_rows_and_empty_groups(con: Connection) -> None:
    """Of rows that nobody has NULL, for nothing; of a group that happens to be empty some value, for its price."""
    none = con.sql("SELECT MODE(city) FROM members WHERE FALSE").run(epsilon=1)
    assert none.fetchall() == [(None,)] and none.spent.epsilon == 0
    empty = con.sql("SELECT city, MODE(age) AS m FROM members WHERE age > 90 GROUP BY city").run(epsilon=1)
    assert [city for city, _ in empty.fetchall()] == ["Bonn", "Lyon", "Oslo"] and empty.spent.epsilon == 1
    assert all(90 < value <= 100 for _, value in empty.fetchall())


def test_weights_may_name_a_mode(con: Connection) -> None:
    plan = con.sql("SELECT MODE(city) AS m, COUNT(*) AS n FROM members").plan(epsilon=1, weights={"m": 3})
    assert [float(m.loss.epsilon) for m in plan.releases[0].measured.measurements] == [0.75, 0.25]
