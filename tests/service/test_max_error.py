"""Accuracy first: the least that meets every named column, and nothing less does."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpsql.api.connection import Connection, connect
from dpsql.core.ledger.memory import MemoryLedger
from dpsql.core.noise.mechanisms import DiscreteGaussian, DiscreteLaplace
from dpsql.core.privacy_loss import PrivacyLoss
from dpsql.diagnostics.errors import BudgetExceeded, Rejected

ACCOUNTANTS = ["pure_dp", "approx_dp", "zcdp"]
CAPS = {"pure_dp": "{epsilon: 1e6}", "approx_dp": "{epsilon: 1e6, delta: 0.1}", "zcdp": "{rho: 1e6, delta: 0.1}"}
NAMED = {
    "SELECT COUNT(*) AS n FROM members": ["n"],
    "SELECT SUM(age) AS s, COUNT(*) AS n FROM members": ["s", "n"],
    "SELECT city, SUM(fee) AS s, COUNT(*) AS n, COUNT(fee) AS f FROM members GROUP BY city": ["s", "n", "f"],
    "SELECT SUM(hours) AS h, COUNT(DISTINCT id) AS d, AVG(hours) AS a FROM visits": ["h", "d"],
    "SELECT COUNT(*) AS n FROM members UNION ALL SELECT SUM(hours) FROM visits": ["n"],
    "SELECT city, COUNT(*) AS n FROM members GROUP BY ROLLUP (city)": ["n"],
    "SELECT n AS renamed, n * 2 AS twice FROM (SELECT COUNT(*) AS n FROM members) WHERE n > 5 ORDER BY 1": ["renamed"],
}
QUERIES = pytest.mark.parametrize("sql", NAMED)


@pytest.fixture(scope="module")
def sessions(club_folder: Path) -> Iterator[dict[str, Connection]]:
    """Accountant → a session."""
    opened = {}
    text = (club_folder / "club.yaml").read_text(encoding="utf-8")
    for accountant in ACCOUNTANTS:
        path = club_folder / f"{accountant}.yaml"
        own = text.replace("{epsilon: 10000, delta: 1e-3}", CAPS[accountant])
        path.write_text(own.replace("units:", f"privacy: {{accountant: {accountant}}}\nunits:"), encoding="utf-8")
        opened[accountant] = connect(path, ledger=MemoryLedger("club", accountant))
    yield opened
    for con in opened.values():
        con.close()


def price(loss: PrivacyLoss) -> Fraction:
    """What is charged: ε, or ρ."""
    return loss.epsilon or loss.rho


@settings(max_examples=15, deadline=None)
@given(
    accountant=st.sampled_from(ACCOUNTANTS),
    width=st.one_of(st.integers(0, 100), st.integers(0, 10**6)),
    confidence=st.sampled_from([0.5, 0.95, 0.999]),
)
def test_a_little_less_does_not_meet_it(
    sessions: dict[str, Connection], accountant: str, width: int, confidence: float
) -> None:
    """One count, all of whose noise the whole is spent on: at a little less no family of noise is narrow enough."""
    plan = (
        sessions[accountant]
        .sql("SELECT COUNT(*) AS n FROM members")
        .plan(max_error={"n": width + Fraction(1, 3)}, confidence=confidence)
    )
    (measured,) = plan.releases[0].measured.measurements
    level = Fraction(str(confidence))
    assert measured.mechanism.half_width(level) <= width
    less = price(plan.loss) * (1 - Fraction(1, 10**9))
    pure = Fraction(math.sqrt(2 * less)) * (1 - Fraction(1, 10**12)) if accountant == "zcdp" else less
    assert DiscreteLaplace.calibrate(Fraction(1), pure).half_width(level) > width
    if accountant == "zcdp":
        assert DiscreteGaussian.calibrate(Fraction(1), less).half_width(level) > width


# What each part gets --------------------------------------------------------------------------------


def parts(con: Connection, sql: str, **wish: Any) -> list[PrivacyLoss]:
    return [m.loss for r in con.sql(sql).plan(**wish).releases for m in r.measured.measurements]


def test_every_part_gets_what_its_own_columns_need(con: Connection) -> None:
    sql = "SELECT COUNT(*) AS n, COUNT(fee) AS f FROM members"
    both = parts(con, sql, max_error={"n": 50, "f": 7})
    (n,) = parts(con, "SELECT COUNT(*) AS n FROM members", max_error={"n": 50})
    (f,) = parts(con, "SELECT COUNT(fee) AS f FROM members", max_error={"f": 7})
    assert both == [n, f]


def test_what_was_not_named_gets_the_least_of_the_named_ones(con: Connection) -> None:
    sql = "SELECT COUNT(*) AS n, COUNT(fee) AS f, COUNT(note) AS k, AVG(fee) AS a FROM members"
    n, f, *others = parts(con, sql, max_error={"n": 50, "f": 7})
    assert n.epsilon < f.epsilon and others == [n] * 2


def test_sums_share_the_noise_of_a_count_where_that_is_cheaper(con: Connection) -> None:
    """And are met all the same; a sum alone stays plain."""
    (alone,) = parts(con, "SELECT SUM(age) AS s FROM members", max_error={"s": 5000})
    _, s = parts(con, "SELECT COUNT(*) AS n, SUM(age) AS s FROM members", max_error={"n": 20, "s": 5000})
    assert s.epsilon < 0.6 * alone.epsilon
    both = con.sql("SELECT COUNT(*) AS n, SUM(age) AS s FROM members").accuracy(max_error={"n": 20, "s": 5000})
    assert both["n"] == 20 and both["s"] is not None and 4999 < both["s"] <= 5000
    # Where the count may be poor, its noise would be paid twice over.
    coarse = con.sql("SELECT COUNT(*) AS n, SUM(age) AS s FROM members").cost(max_error={"n": 2000, "s": 5000})
    assert (
        coarse.epsilon
        <= alone.epsilon + parts(con, "SELECT COUNT(*) AS n FROM members", max_error={"n": 2000})[0].epsilon
    )


def test_a_column_shown_twice_and_a_component_asked_for_twice(con: Connection) -> None:
    """The narrowest wish decides; the component is measured, and paid, once."""
    sql = "SELECT COUNT(*) AS n, COUNT(*) AS m, AVG(age) AS a FROM members"
    (n, s) = sorted(parts(con, sql, max_error={"n": 50, "m": 10}), key=lambda loss: loss.epsilon)
    assert n == s == parts(con, "SELECT COUNT(*) AS n FROM members", max_error={"n": 10})[0]
    doubled = "SELECT COUNT(*) AS n, SUM(age) AS n FROM members"
    worst = con.sql(doubled).accuracy(max_error={"n": 50})["n"]
    assert worst is not None and 40 < worst <= 50


def test_names_in_any_case_of_letters(con: Connection) -> None:
    query = con.sql("SELECT COUNT(*) AS Total FROM members")
    assert query.cost(max_error={"TOTAL": 50}) == query.cost(max_error={"Total": 50})


def test_private_keys_get_their_part_and_their_delta(con: Connection) -> None:
    query = con.sql("SELECT note, COUNT(fee) AS n FROM members GROUP BY note")
    with pytest.raises(Rejected) as refusal:
        query.cost(max_error={"n": 5})
    assert refusal.value.diagnostics[0].code == "DP402"
    plan = query.plan(delta="1e-9", max_error={"n": 5})
    assert 0 < plan.loss.delta <= Fraction(1, 10**9)
    named, deciding = (m.loss for m in plan.releases[0].measured.measurements)
    assert named == deciding


def test_exact_numbers_are_met_for_nothing(con: Connection) -> None:
    public = con.sql("SELECT country, COUNT(*) AS n FROM cities GROUP BY country")
    assert public.cost(max_error={"n": 1}) == PrivacyLoss()


# The run, and what is told --------------------------------------------------------------------------------


def test_the_run_charges_what_was_announced(con: Connection, ledger: MemoryLedger) -> None:
    query = con.sql("SELECT city, COUNT(*) AS n FROM members GROUP BY city")
    cost = query.cost(max_error={"n": 20})
    result = query.run(max_error={"n": 20})
    assert result.spent == cost == ledger.spent("member") and 0 < cost.epsilon < Fraction(16, 100)
    for around in result.intervals():
        assert around["n"] is not None and around["n"][1] - around["n"][0] <= 40
    assert con.execute("SELECT COUNT(*) AS n FROM visits", max_error={"n": 20}).spent.epsilon > 0


def test_explain_says_what_for(con: Connection, sessions: dict[str, Connection]) -> None:
    query = con.sql("SELECT COUNT(*) AS n, SUM(age) AS s FROM members")
    first = query.explain(max_error={"n": 50, "s": "12.5"}, confidence=0.9).splitlines()[0]
    assert re.fullmatch(r"epsilon \d+\.\d+ for n ± 50, s ± 12\.5 at 90 %", first)
    told = json.loads(query.explain(max_error={"n": 50}, format="json"))
    assert told["max_error"] == {"n": 50} and told["confidence"] == 0.95
    assert "max_error" not in json.loads(query.explain(epsilon=1, format="json"))
    rho = sessions["zcdp"].sql("SELECT COUNT(*) AS n FROM members").explain(max_error={"n": 50})
    assert rho.startswith("rho 0.000753154 for n ± 50 at 95 %")


def test_caps_refuse_it_and_nothing_is_spent(con: Connection, ledger: MemoryLedger) -> None:
    with pytest.raises(BudgetExceeded):
        con.sql("SELECT SUM(hours) AS s FROM visits").run(max_error={"s": "1e-9"})
    assert ledger.spent("member") == PrivacyLoss()


@pytest.mark.parametrize(
    "wish",
    [
        {"max_error": {"n": 5}, "epsilon": 1},
        {"max_error": {"n": 5}, "rho": 1},
        {"epsilon": 1, "rho": 1},
        {"max_error": {"n": 5}, "weights": {"n": 2}},
        {"max_error": {"n": 5}, "confidence": 1},
        {"max_error": {"n": 5}, "confidence": "1e-30"},
        {"max_error": {"n": 5}, "confidence": "95 %"},
        {"rho": 0},
        {"rho": 1},  # approx_dp counts in ε
        {"weights": {"n": 0}},
        {"weights": {}},
        {"weights": ["n"]},
    ],
    ids=repr,
)
def test_wishes_that_exclude_each_other_or_mean_nothing(con: Connection, wish: dict[str, Any]) -> None:
    with pytest.raises(Rejected) as refusal:
        con.sql("SELECT COUNT(*) AS n FROM members").run(**{"epsilon": 1, **wish} if "weights" in wish else wish)
    (found,) = refusal.value.diagnostics
    assert found.code == "DP406" and found.help


def test_a_clause_in_the_query_says_how_much(con: Connection, sessions: dict[str, Connection]) -> None:
    sql = "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (epsilon = 0.5) COUNT(*) AS n FROM members"
    with pytest.raises(Rejected) as refusal:
        con.sql(sql).plan(max_error={"n": 5})
    assert refusal.value.diagnostics[0].code == "DP406"
    assert sessions["zcdp"].sql(sql).cost(rho=7).rho == Fraction(1, 8)


def test_the_session_and_the_policy_give_way(club_folder: Path) -> None:
    with connect(club_folder / "given.yaml", ledger=MemoryLedger(), epsilon=3) as con:
        query = con.sql("SELECT COUNT(*) AS n FROM members")
        assert query.accuracy(max_error={"n": 50})["n"] == 50 and query.cost(max_error={"n": 50}).epsilon < Fraction(
            1, 16
        )
