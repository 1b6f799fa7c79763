"""Where ε and δ come from: keyword, else session, else policy; else DP401 or DP402."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import pytest

from dpsql.api.connection import Connection, connect
from dpsql.core.ledger.memory import MemoryLedger
from dpsql.diagnostics.errors import Rejected
from dpsql.planner.settings.query_settings import QuerySettings
from dpsql.service.privacy_settings import Options, settled

COUNT = "SELECT COUNT(*) AS n FROM members"
PRIVATE = "SELECT note, COUNT(*) AS n FROM members GROUP BY note"


def code(error: pytest.ExceptionInfo[Rejected]) -> str:
    (diagnostic,) = error.value.diagnostics
    return diagnostic.code


@pytest.mark.parametrize(
    ("policy", "session", "keyword", "expected"),
    [
        ("given", None, None, "1/4"),
        ("given", "0.5", None, "1/2"),
        ("given", None, 2, "2"),
        ("given", "0.5", 2, "2"),
        ("club", "0.5", None, "1/2"),
        ("club", None, 2, "2"),
        ("club", None, None, None),
    ],
)
def test_the_strongest_wins(
    club_folder: Path, policy: str, session: str | None, keyword: int | None, expected: str | None
) -> None:
    with connect(club_folder / f"{policy}.yaml", ledger=MemoryLedger(), epsilon=session) as con:
        query = con.sql(COUNT)
        if expected is None:
            for use in (query.plan, query.cost, query.accuracy, query.run):
                with pytest.raises(Rejected) as refusal:
                    use(epsilon=keyword)
                assert code(refusal) == "DP401"
            assert "cost:" in query.explain()  # shown at a nominal price
        else:
            assert query.plan(epsilon=keyword).bid.epsilon == Fraction(expected)
            assert query.run(epsilon=keyword).spent.epsilon == Fraction(expected)


@pytest.mark.parametrize(
    ("policy", "session", "keyword", "expected"),
    [
        ("given", None, None, "1e-9"),
        ("given", "1e-8", None, "1e-8"),
        ("given", "1e-8", "1e-7", "1e-7"),
        ("club", None, "1e-7", "1e-7"),
        ("club", None, None, None),
        ("given", None, 0, None),
    ],
)
def test_delta(club_folder: Path, policy: str, session: str | None, keyword: str | None, expected: str | None) -> None:
    with connect(club_folder / f"{policy}.yaml", ledger=MemoryLedger(), epsilon=1, delta=session) as con:
        if expected is None:
            with pytest.raises(Rejected) as refusal:
                con.sql(PRIVATE).plan(delta=keyword)
            assert code(refusal) == "DP402"
            with pytest.raises(Rejected, match="for those of city, note that have none"):
                con.sql("SELECT city, note, COUNT(*) FROM members GROUP BY ALL").plan(delta=keyword)
        else:
            plan = con.sql(PRIVATE).plan(delta=keyword)
            assert plan.bid.delta == Fraction(expected)
            assert Fraction(expected) / 5 < plan.loss.delta <= Fraction(expected)  # a threshold is a whole number
        # Where no key is private, δ is not charged, whoever gave it.
        assert con.sql(COUNT).plan(delta=keyword).loss.delta == 0


@pytest.mark.parametrize("epsilon", [0, -1, "0", "-0.5", float("nan"), float("inf"), "x", "", True, [], 10**400])
def test_epsilon_is_checked(epsilon: object) -> None:
    with pytest.raises(Rejected) as refusal:
        settled({"epsilon": epsilon, "delta": None}, QuerySettings())  # type: ignore[arg-type]
    (diagnostic,) = refusal.value.diagnostics
    assert diagnostic.code == "DP406" and diagnostic.help


@pytest.mark.parametrize("delta", [-1, 1, "1", 2, float("nan"), "x", True])
def test_delta_is_checked(delta: object) -> None:
    with pytest.raises(Rejected) as refusal:
        settled({"epsilon": None, "delta": delta}, QuerySettings())  # type: ignore[arg-type]
    assert code(refusal) == "DP406"


@pytest.mark.parametrize("spelled", [0.1, "0.1", Fraction(1, 10), "1/10", "1e-1"])
def test_numbers_are_read_exactly(spelled: float | str | Fraction) -> None:
    assert settled({"epsilon": spelled, "delta": spelled}, QuerySettings()) == QuerySettings(
        Fraction(1, 10), Fraction(1, 10)
    )


def test_settings_are_not_shared(club_folder: Path) -> None:
    """A keyword holds for one query; what the session had is left as it was."""
    with connect(club_folder / "club.yaml", ledger=MemoryLedger(), epsilon=1) as con:
        con.sql(COUNT).run(epsilon=2)
        assert con.sql(COUNT).plan().bid.epsilon == 1
        assert con.execute(COUNT, epsilon=3).spent.epsilon == 3
        assert con.execute(COUNT, fresh=True).spent.epsilon == 1


def test_decimals_are_refused_or_exact() -> None:
    """A Decimal is exact as well; whichever way, it never passes through a float."""
    try:
        settings = settled({"epsilon": Decimal("0.1"), "delta": None}, QuerySettings())  # type: ignore[arg-type]
    except Rejected as refusal:
        assert refusal.diagnostics[0].code == "DP406"
    else:
        assert settings.epsilon == Fraction(1, 10)


def test_a_nominal_delta_shows_no_noise_that_a_run_would_not_draw(club_folder: Path) -> None:
    """30 counts are better off with Gaussian noise, but only where a δ was given; private keys are shown at 1e-9."""
    wide = "SELECT " + ", ".join(f"COUNT(*) FILTER (WHERE age > {i})" for i in range(30)) + " FROM members"
    with connect(club_folder / "club.yaml", ledger=MemoryLedger(), epsilon=1) as con:
        if con.policy.defaults.delta:
            pytest.skip("the policy has a δ of its own")
        assert "gaussian" not in con.sql(wide).explain()
        assert "gaussian" in con.sql(wide).explain(delta="1e-9")
        assert "shown from a noisy count" in con.sql("SELECT note, COUNT(*) FROM members GROUP BY note").explain()


@pytest.mark.parametrize("method", ["plan", "explain", "cost", "accuracy", "run"])
def test_a_keyword_that_nobody_knows_is_no_option(con: Connection, ledger: MemoryLedger, method: str) -> None:
    """Said at once, with those that there are: a misspelled one must not be passed over."""
    with pytest.raises(TypeError, match=r"'max_eror'; what may be asked of a query: .*max_error"):
        getattr(con.sql(COUNT), method)(epsilon=1, max_eror={"n": 50})
    with pytest.raises(TypeError, match="max_eror"):
        con.execute(COUNT, max_eror={"n": 50})  # type: ignore[call-arg]
    assert not ledger.history()


def test_epsilon_and_delta_come_by_place_and_options_by_name(con: Connection) -> None:
    query = con.sql(COUNT)
    assert query.plan("0.5", "1e-6") == query.plan(epsilon="0.5", delta="1e-6") == con.plan(COUNT, (), "0.5", "1e-6")
    options: Options = {"max_error": {"n": 50}, "confidence": 0.9}
    assert query.cost(**options) == query.cost(max_error={"n": 50}, confidence=0.9)


def test_each_option_is_said_once_and_settled() -> None:
    """A name that is declared and not read would be passed over in silence."""
    assert set(Options.__optional_keys__) == {
        "rho", "max_error", "confidence", "weights", "allow_dearer", "coverage", "consistent_totals", "limits",
        "anyway",
    }  # fmt: skip
    for name, value in {
        "epsilon": 1, "delta": "1e-6", "rho": 1, "max_error": {"n": 1}, "confidence": 0.5, "weights": {"n": 2},
        "allow_dearer": True, "coverage": True, "consistent_totals": True, "limits": "search",
        "anyway": True,
    }.items():  # fmt: skip
        assert settled({name: value}, QuerySettings()) != QuerySettings(), name  # type: ignore[misc]
    assert settled({}, QuerySettings()) == QuerySettings()
