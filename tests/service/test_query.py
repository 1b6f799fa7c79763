"""A query before its run: plan, price, accuracy, EXPLAIN. After it: the very same plan."""

from __future__ import annotations

import json
from fractions import Fraction

import pytest

from dpsql.api.connection import Connection
from dpsql.core.ledger.memory import MemoryLedger
from dpsql.core.privacy_loss import PrivacyLoss
from dpsql.diagnostics.errors import Rejected


def test_two_units_are_charged_apart(con: Connection, ledger: MemoryLedger) -> None:
    both = "SELECT a.n, b.n FROM (SELECT COUNT(*) n FROM members) a CROSS JOIN (SELECT COUNT(*) n FROM tills) b"
    result = con.sql(both).run(epsilon=1)
    assert ledger.spent("member").epsilon == ledger.spent("tills").epsilon == result.spent.epsilon
    # The noise is split over both numbers, but nobody is in both tables: each unit pays for its own.
    assert result.spent.epsilon == Fraction(1, 2)


def test_looking_costs_nothing(con: Connection, ledger: MemoryLedger) -> None:
    query = con.sql("SELECT city, COUNT(*) AS n, AVG(age) AS a FROM members GROUP BY city")
    query.plan(epsilon=1)
    query.explain()
    query.explain(format="json")
    query.cost(epsilon=1)
    query.accuracy(epsilon=1)
    assert ledger.spent("member") == PrivacyLoss() and ledger.spent("tills") == PrivacyLoss()


def test_public_queries_cost_nothing(con: Connection, ledger: MemoryLedger) -> None:
    result = con.sql("SELECT country, COUNT(*) AS n FROM cities GROUP BY country ORDER BY country").run()
    assert result.fetchall() == [("France", 1), ("Germany", 1), ("Norway", 1)]
    assert result.spent == PrivacyLoss()
    assert [row["n"] for row in result.intervals()] == [None] * 3  # exact numbers have no error to speak of
    assert con.sql("SELECT DISTINCT city FROM members ORDER BY 1").run(epsilon=1).spent == PrivacyLoss()
    assert ledger.spent("member") == PrivacyLoss()


def test_the_preview_is_the_run(con: Connection) -> None:
    """The plan that was looked at is run itself, and its result points back at it."""
    query = con.sql("SELECT city, COUNT(*) AS n FROM members GROUP BY city")
    plan = query.plan(epsilon=2)
    result = con.run(plan)
    assert result.plan is plan
    assert result.spent == plan.loss
    again = query.run(epsilon=2)
    assert again.plan.hash == plan.hash and again.plan == plan
    assert result.components == json.loads(query.explain(epsilon=2, format="json"))["releases"][0]["components"]
    assert query.plan(epsilon=3).hash != plan.hash


def test_a_plan_of_another_policy_is_refused(con: Connection, club_folder, ledger: MemoryLedger) -> None:  # type: ignore[no-untyped-def]
    from dpsql.api.connection import connect

    plan = con.sql("SELECT COUNT(*) FROM members").plan(epsilon=1)
    with connect(club_folder / "given.yaml", ledger=ledger) as other, pytest.raises(Rejected) as refusal:
        other.run(plan)
    assert refusal.value.diagnostics[0].code == "DP903"
    assert ledger.spent("member") == PrivacyLoss()


def test_accuracy(con: Connection) -> None:
    """± from public facts: exact for counts and sums, unknown for averages and arithmetic, keys left out."""
    query = con.sql(
        "SELECT city, COUNT(*) AS n, SUM(age) AS s, AVG(age) AS a, COUNT(*) * 2 AS m FROM members GROUP BY 1"
    )
    found = query.accuracy(epsilon=1)
    assert set(found) == {"n", "s", "a"}  # m is computed from n: its error is the reader's arithmetic
    n, s = found["n"], found["s"]
    assert found["a"] is None and n is not None and s is not None
    # Two parts, half of ε each: Laplace of scale 2, 95 % within ln(20) scales; and the sum of two of scale 100, of
    # which 95 % lie within 4.106 scales: (1 + t/2)·e^-t = 0.05.
    assert n == 6 and 410 <= s <= 413
    half = query.accuracy(epsilon="0.5")["n"]
    assert half is not None and 1.9 * n <= half <= 2.1 * n
    wide = query.accuracy(epsilon=1, confidence="0.999")["n"]
    assert wide is not None and 2 * n < wide < 3 * n


@pytest.mark.parametrize("confidence", [0, 1, -1, 2, "x", float("nan"), None])
def test_confidence_is_checked(con: Connection, confidence: object) -> None:
    with pytest.raises(Rejected) as refusal:
        con.sql("SELECT COUNT(*) FROM members").accuracy(epsilon=1, confidence=confidence)  # type: ignore[arg-type]
    assert refusal.value.diagnostics[0].code == "DP406"


def test_explain(con: Connection) -> None:
    query = con.sql("SELECT city, COUNT(*) AS n FROM members GROUP BY city ORDER BY n")
    text = query.explain()
    assert "scan members" in text and "release 1" in text and "cost:" in text and "SELECT" not in text
    assert 'FROM "' in query.explain(engine_sql=True) and "-- post-processing" in query.explain(engine_sql=True)
    tree = json.loads(query.explain(format="json"))
    assert {"releases", "nodes", "cost", "plan"} <= set(tree)
    wanted = "name aggregate l0 l1 l2 linf mechanism scale epsilon delta rho expected_error"
    assert set(wanted.split()) <= set(tree["releases"][0]["components"][0])
    with pytest.raises(Rejected) as refusal:
        query.explain(format="xml")
    assert refusal.value.diagnostics[0].code == "DP903" and "xml" in refusal.value.diagnostics[0].message


def test_repr_is_one_short_line(con: Connection) -> None:
    assert repr(con.sql("SELECT\n  COUNT(*)\nFROM members")) == "<dpsql query: SELECT COUNT(*) FROM members>"
    assert len(repr(con.sql("SELECT " + "1 + " * 100 + "1"))) < 100


def test_nothing_is_parsed_before_it_is_needed(con: Connection) -> None:
    query = con.sql("SELEC nonsense (")
    for use in (query.plan, query.explain, query.cost, query.accuracy, query.run):
        with pytest.raises(Rejected):
            use()
