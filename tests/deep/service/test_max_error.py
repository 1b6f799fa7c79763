"""The least price of an accuracy, for every family and several columns at once."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpsql.api.connection import Connection, connect
from dpsql.core.ledger.memory import MemoryLedger
from dpsql.core.privacy_loss import PrivacyLoss
from dpsql.diagnostics.errors import Rejected
from tests.service.test_max_error import ACCOUNTANTS, CAPS, NAMED, price


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


@settings(max_examples=15, deadline=None)
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


@settings(max_examples=15, deadline=None)
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
    assert price(again) <= price(query.cost(epsilon, delta)) * (1 + Fraction(1, 10**6))


@pytest.mark.parametrize("accountant", ["pure_dp", "zcdp"])
@pytest.mark.parametrize(("n", "s"), [(20, 5000), (100, 2000), (3, 5000), (1000, 1000)])
def test_no_weights_meet_both_errors_for_less(sessions: dict[str, Connection], accountant: str, n: int, s: int) -> None:
    """Errors are all but proportional to 1/ε (1/√ρ), so that each split says what it would have to cost."""
    query = sessions[accountant].sql("SELECT COUNT(*) AS n, SUM(age) AS s FROM members")
    found = price(query.cost(max_error={"n": n, "s": s}))
    small = Fraction(1, 10_000)
    others = []
    for weight in range(-24, 25):
        reached = query.accuracy(**{"rho" if accountant == "zcdp" else "epsilon": small}, weights={"n": 1.3**weight})
        assert reached["n"] is not None and reached["s"] is not None
        factor = max(reached["n"] / n, reached["s"] / s)
        others.append(float(small) * (factor**2 if accountant == "zcdp" else factor))
    assert float(found) < 1.01 * min(others) + 0.02 * float(found) * (n < 10)  # where whole numbers are coarse


def test_the_cheaper_family(sessions: dict[str, Connection]) -> None:
    """Many columns under a δ want Gaussian noise, a single one Laplace noise; under zCDP one number wants Gaussian."""
    many = "SELECT " + ", ".join(f"SUM(CLIP(age, 0, {i})) AS s{i}" for i in range(40, 60)) + " FROM members"
    wish = {f"s{i}": 200 for i in range(40, 60)}
    for accountant, sql, own, family in (
        ("pure_dp", many, wish, "laplace"),
        ("approx_dp", many, wish, "gaussian"),
        ("approx_dp", "SELECT COUNT(*) AS n FROM members", {"n": 5}, "laplace"),
        ("zcdp", "SELECT COUNT(*) AS n FROM members", {"n": 5}, "gaussian"),
    ):
        plan = sessions[accountant].sql(sql).plan(delta="1e-6", max_error=own)
        assert {m.mechanism.name for m in plan.releases[0].measured.measurements} == {family}
        if accountant == "approx_dp":
            pure = sessions["pure_dp"].sql(sql).cost(max_error=own).epsilon
            assert plan.loss.epsilon <= pure


# What is refused --------------------------------------------------------------------------------

KEYED = (
    "SELECT city, COUNT(*) AS n, AVG(age) AS a, COUNT(*) / 2 AS h, 7 AS c, STDDEV(age) AS s FROM members GROUP BY city"
)


@pytest.mark.parametrize(
    ("max_error", "code", "says"),
    [
        ({"n": 0}, "DP406", "above 0"),
        ({"n": -5}, "DP406", "above 0"),
        ({"n": float("nan")}, "DP406", "finite"),
        ({"n": float("inf")}, "DP406", "finite"),
        ({"n": "few"}, "DP406", "finite"),
        ({"n": None}, "DP406", "finite"),
        ({"n": True}, "DP406", "finite"),
        ({}, "DP406", "names columns"),
        ({1: 5}, "DP406", "names columns"),
        (50, "DP406", "names columns"),
        ("n=5", "DP406", "names columns"),
        ({"x": 5}, "DP411", "its columns are city, n, a, h, c, s"),
        ({"n": 5, "x": 5}, "DP411", "no column"),
        ({"city": 5}, "DP411", "group key"),
        ({"a": 5}, "DP411", "SUM and the COUNT"),
        ({"s": 5}, "DP411", "select a COUNT, too"),
        ({"n": 5, "a": 5}, "DP411", "depends on the data"),
        ({"h": 5}, "DP411", "computed"),
        ({"c": 5}, "DP411", "computed"),
        ({"n": "1e100"}, "DP410", "no noise"),
        ({"n": "1e300"}, "DP406", "1e-100 to 1e100"),
        ({"n": 10**17}, "DP410", "no noise"),
    ],
)
def test_absurd_wishes(con: Connection, ledger: MemoryLedger, max_error: Any, code: str, says: str) -> None:
    query = con.sql(KEYED)
    for use in (query.run, query.plan, query.cost, query.explain, query.accuracy):
        with pytest.raises(Rejected) as refusal:
            use(max_error=max_error)
        (found,) = refusal.value.diagnostics
        assert found.code == code and says in " ".join((found.message, *found.help)) and found.help
    assert ledger.spent("member") == PrivacyLoss()
