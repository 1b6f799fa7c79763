"""`max_error` of quantiles and modes: the least that keeps them within so many rows."""

from __future__ import annotations

import json
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from dpsql.accuracy.rank_error import rank_error
from dpsql.api.connection import Connection, connect
from dpsql.core.ledger.memory import MemoryLedger
from dpsql.core.noise.mechanisms import Exponential
from dpsql.diagnostics.errors import Rejected
from dpsql.planner.plan import Plan
from tests.service.test_max_error import ACCOUNTANTS, CAPS, price

WISHES: dict[str, dict[str, int | Fraction]] = {
    "SELECT QUANTILE_DISC(age, 0.9) AS p90 FROM members": {"p90": 40},
    "SELECT MODE(city) AS c FROM members": {"c": 3},
    "SELECT city, MEDIAN(age) AS m, QUANTILE_DISC(age, 0.9) AS p90, COUNT(*) AS n FROM members GROUP BY city": {
        "m": Fraction(7, 3), "n": 50,
    },
    "SELECT MEDIAN(hours) AS m, SUM(hours) AS s, MODE(hours < 5) AS f FROM visits": {"m": 300, "s": 5000, "f": 12},
    "SELECT MEDIAN(age) AS m, QUANTILE_DISC(age, 0.9) AS p90 FROM members": {"m": 100, "p90": 20},
    "SELECT age % 2 AS odd, MEDIAN(fee) AS m FROM members WHERE age % 2 IN (0, 1) GROUP BY 1": {"m": 30},
    "SELECT MEDIAN(amount) AS m, COUNT(*) AS n FROM tills": {"m": 30},
}  # fmt: skip


@pytest.fixture(scope="module")
def sessions(club_folder: Path) -> Iterator[dict[str, Connection]]:
    """Accountant → a session."""
    opened = {}
    text = (club_folder / "club.yaml").read_text(encoding="utf-8")
    for accountant in ACCOUNTANTS:
        path = club_folder / f"rows-{accountant}.yaml"
        own = text.replace("{epsilon: 10000, delta: 1e-3}", CAPS[accountant])
        path.write_text(own.replace("units:", f"privacy: {{accountant: {accountant}}}\nunits:"), encoding="utf-8")
        opened[accountant] = connect(path, ledger=MemoryLedger("club", accountant))
    yield opened
    for con in opened.values():
        con.close()


def reached(plan: Plan, confidence: Fraction = Fraction(95, 100)) -> dict[str, Fraction]:
    """Column → its error: rows of what is chosen, else half the width of its interval."""
    (release,) = plan.releases
    node, own = release.measured.node, release.measured.measurements
    found = {}
    for column, output in zip(plan.columns[len(node.keys) :], node.outputs, strict=True):
        (i,) = output.recipe.components
        found[column.name] = (
            rank_error(own, i, confidence)
            if isinstance(own[i].mechanism, Exponential)
            else own[i].noise.half_width(confidence) * own[i].unit
        )
    return found


@pytest.mark.parametrize("accountant", ACCOUNTANTS)
@pytest.mark.parametrize("sql", WISHES)
def test_what_is_asked_for_is_met_and_hardly_more(sessions: dict[str, Connection], accountant: str, sql: str) -> None:
    plan = sessions[accountant].sql(sql).plan(delta=None if accountant == "pure_dp" else "1e-9", max_error=WISHES[sql])
    found = reached(plan)
    for name, most in WISHES[sql].items():
        assert found[name] <= most, (name, float(found[name]))
    assert any(found[name] > most * Fraction(999, 1000) for name, most in WISHES[sql].items())


@pytest.mark.parametrize("accountant", ACCOUNTANTS)
def test_a_little_less_does_not_meet_it(sessions: dict[str, Connection], accountant: str) -> None:
    query = sessions[accountant].sql("SELECT QUANTILE_DISC(age, 0.9) AS p90 FROM members")
    for rows, confidence in ((40, "0.95"), (Fraction(1, 3), "0.5"), (10**9, "0.999")):
        plan = query.plan(max_error={"p90": rows}, confidence=confidence)
        assert reached(plan, Fraction(confidence))["p90"] <= rows
        less = price(plan.loss) * (1 - Fraction(1, 10**9)) - Fraction(1, 10**30)
        other = query.plan(rho=less) if accountant == "zcdp" else query.plan(epsilon=less)
        assert reached(other, Fraction(confidence))["p90"] > rows


@pytest.mark.parametrize("accountant", ACCOUNTANTS)
def test_what_is_charged_is_what_was_announced(sessions: dict[str, Connection], accountant: str) -> None:
    con = sessions[accountant]
    query = con.sql("SELECT city, MEDIAN(age) AS m, COUNT(*) AS n, MODE(age < 9) AS y FROM members GROUP BY city")
    cost = query.cost(max_error={"m": 50, "n": 40})
    result = query.run(max_error={"m": 50, "n": 40})
    assert result.spent == cost and price(cost) > 0 and len(result.fetchall()) == 3


@pytest.mark.parametrize("accountant", ACCOUNTANTS)
def test_what_is_not_named_costs_as_much_as_the_least_of_the_named(
    sessions: dict[str, Connection], accountant: str
) -> None:
    """Counts beside a quantile, and quantiles beside a count."""
    for wish in ({"m": 50}, {"n": 50}):
        query = sessions[accountant].sql("SELECT MEDIAN(age) AS m, COUNT(*) AS n FROM members")
        (release,) = query.plan(max_error=wish).releases
        losses = [m.loss.rho or m.loss.epsilon**2 / 2 if accountant == "zcdp" else m.loss.epsilon
                  for m in release.measured.measurements]  # fmt: skip
        assert float(losses[0]) == pytest.approx(float(losses[1])) and losses[0] > 0


def test_quantiles_that_are_put_in_order_get_what_the_named_one_needs(con: Connection) -> None:
    sql = (
        "SELECT MEDIAN(age) AS m, QUANTILE_DISC(age, 0.9) AS p90, MEDIAN(age) FILTER (WHERE age < 9) AS y FROM members"
    )
    (release,) = con.sql(sql).plan(max_error={"m": 20, "y": 2000}).releases
    m, p90, y = (x.loss.epsilon for x in release.measured.measurements)
    assert m > 50 * y and p90 > m / 2


def test_explain_says_for_how_many_rows(con: Connection) -> None:
    query = con.sql("SELECT MEDIAN(age) AS Middle, COUNT(*) AS n FROM members")
    text = query.explain(max_error={"middle": 50, "n": 40}).splitlines()
    assert text[0].endswith(" for middle within 50 rows, n ± 40 at 95 %")
    assert any("QUANTILE(age, 0.5)" in line and line.endswith(" 50 rows") for line in text)
    told = json.loads(query.explain(max_error={"middle": 50, "n": 40}, format="json"))
    assert told["max_error"] == {"middle": 50, "n": 40}
    assert told["releases"][0]["components"][0]["expected_error"] == pytest.approx(50)
    assert query.accuracy(max_error={"middle": 50, "n": 40}) == {"n": 40}


@pytest.mark.parametrize(
    ("sql", "wish", "code", "says"),
    [
        ("SELECT MEDIAN(age) AS m FROM members", {"m": 0}, "DP406", "above 0"),
        ("SELECT MEDIAN(age) + 1 AS m FROM members", {"m": 5}, "DP411", "computed from released numbers"),
        ("SELECT MEDIAN(age) AS m FROM members", {"m": 10**18}, "DP410", "no noise that is accepted"),
        ("SELECT MEDIAN(age) FILTER (WHERE FALSE) AS m, COUNT(*) AS n FROM members", {"m": 5}, "DP411", "exact"),
        ("SELECT MEDIAN(CLIP(age, AUTO)) AS m FROM members", {"m": 5}, "DP411", "still to be found"),
    ],
)
def test_what_cannot_be_planned(con: Connection, sql: str, wish: dict[str, Any], code: str, says: str) -> None:
    with pytest.raises(Rejected) as refusal:
        con.sql(sql).plan(max_error=wish)
    (found,) = refusal.value.diagnostics
    assert found.code == code and says in found.message and found.help


def test_too_few_rows_are_too_dear_and_nothing_is_spent(con: Connection, ledger: MemoryLedger) -> None:
    with pytest.raises(Exception, match=r"epsilon"):
        con.sql("SELECT MEDIAN(age) AS m FROM members").run(max_error={"m": "1e-9"})
    assert ledger.spent("member").epsilon == 0


def test_an_exact_answer_is_met_for_nothing(con: Connection) -> None:
    assert con.sql("SELECT MEDIAN(age) AS m FROM members WHERE FALSE").cost(max_error={"m": 1}).epsilon == 0
