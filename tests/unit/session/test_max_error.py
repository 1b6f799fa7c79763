"""Accuracy first: the least that meets every named column, and nothing less does."""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpsql.budget.memory import MemoryLedger
from dpsql.diagnostics.errors import BudgetExceeded, Rejected
from dpsql.loss import PrivacyLoss
from dpsql.measure.mechanisms import DiscreteGaussian, DiscreteLaplace
from dpsql.session.connection import Connection, connect

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


wishes = st.fixed_dictionaries(
    {
        "accountant": st.sampled_from(ACCOUNTANTS),
        "sql": st.sampled_from(list(NAMED)),
        "share": st.fractions(Fraction(1, 10), 10, max_denominator=1000),
        "confidence": st.sampled_from([0.5, 0.9, 0.95, 0.999]),
        "delta": st.sampled_from([None, "1e-9"]),
        "width": st.fractions(Fraction(1, 2), 5000, max_denominator=100),
    }
)


def asked(found: dict[str, Any], names: list[str]) -> dict[str, Fraction]:
    """Widths that differ from column to column."""
    return {name: found["width"] * found["share"] ** i for i, name in enumerate(names)}


@settings(max_examples=60, deadline=None)
@given(found=wishes)
def test_the_accuracy_asked_for_is_met(sessions: dict[str, Connection], found: dict[str, Any]) -> None:
    con, names = sessions[found["accountant"]], NAMED[found["sql"]]
    query, wanted = con.sql(found["sql"]), asked(found, names)
    for chosen in (names, names[:1]):
        wish = {name: wanted[name] for name in chosen}
        plan = query.plan(delta=found["delta"], max_error=wish, confidence=found["confidence"])
        reached = query.accuracy(delta=found["delta"], max_error=wish, confidence=found["confidence"])
        for name in chosen:
            width = reached[name]
            assert width is not None and Fraction(width) <= wish[name] * (1 + Fraction(1, 10**12))
        assert plan.loss == query.cost(delta=found["delta"], max_error=wish, confidence=found["confidence"])


@settings(max_examples=60, deadline=None)
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


@settings(max_examples=60, deadline=None)
@given(
    accountant=st.sampled_from(ACCOUNTANTS),
    sql=st.sampled_from([s for s in NAMED if "AVG" not in s]),
    epsilon=st.fractions(Fraction(1, 100), 10, max_denominator=1000),
    delta=st.sampled_from([None, "1e-9"]),
)
def test_what_an_epsilon_reaches_costs_no_more_when_asked_for(
    sessions: dict[str, Connection], accountant: str, sql: str, epsilon: Fraction, delta: str | None
) -> None:
    query = sessions[accountant].sql(sql)
    reached = {n: w or 1e-9 for n, w in query.accuracy(epsilon, delta).items() if n in NAMED[sql]}  # 0 is no wish
    again = query.cost(delta=delta, max_error=reached)
    assert price(again) <= price(query.cost(epsilon, delta)) * (1 + Fraction(1, 10**12))
