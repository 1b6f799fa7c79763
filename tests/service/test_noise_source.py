"""`noise:` of the policy decides who draws, is said where results are shown, and is refused where it cannot be had."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import pytest

from dpsql.api.connection import Connection, connect
from dpsql.core.ledger.memory import MemoryLedger
from dpsql.core.noise import backends
from dpsql.core.noise.backends import EXACT, ExactBackend, OpenDPBackend
from dpsql.core.privacy_loss import NO_LOSS
from dpsql.diagnostics.errors import Rejected

COUNT = "SELECT COUNT(*) AS n FROM members"
WIDE = "SELECT city, COUNT(*) AS n, SUM(fee) AS s, SUM(age) AS a, AVG(age) AS m FROM members GROUP BY city"
NOTE = "the noise is drawn by OpenDP, at scales rounded up to doubles"
SHIFT = 1_000_000
Calls = list[tuple[str, Fraction, int]]


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> Calls:
    """What OpenDP is asked for; every draw is SHIFT. Our own sampler may not be used."""
    found: Calls = []

    def record(name: str, size: Fraction, n: int) -> list[int]:
        found.append((name, size, n))
        return [SHIFT] * n

    def forbidden(*_: object) -> list[int]:
        raise AssertionError("drawn by our own sampler")

    monkeypatch.setattr(backends, "_opendp", lambda: None)
    monkeypatch.setattr(OpenDPBackend, "laplace", lambda self, scale, n: record("laplace", scale, n))
    monkeypatch.setattr(OpenDPBackend, "gaussian", lambda self, variance, n: record("gaussian", variance, n))
    monkeypatch.setattr(ExactBackend, "laplace", forbidden)
    monkeypatch.setattr(ExactBackend, "gaussian", forbidden)
    return found


def opened(folder: Path, name: str, change: str, ledger: MemoryLedger) -> Connection:
    policy = folder / f"{name}.yaml"
    text = (folder / "club.yaml").read_text("utf-8").replace("database:", f"{change}\ndatabase:")
    if "zcdp" in change:
        text = text.replace("total: {epsilon: 10000, delta: 1e-3}", "total: {rho: 10000, delta: 1e-3}")
    policy.write_text(text, encoding="utf-8")
    return connect(policy, ledger=ledger)


@pytest.fixture
def opendp(club_folder: Path, ledger: MemoryLedger) -> Iterator[Connection]:
    with opened(club_folder, "opendp", "noise: opendp", ledger) as con:
        yield con


def test_the_policy_decides_who_draws(opendp: Connection, calls: Calls) -> None:
    plan = opendp.plan(COUNT, epsilon=1)
    (measurement,) = plan.releases[0].measured.measurements
    answer = opendp.run(plan)
    assert answer.rows == ((3000 + SHIFT,),)
    assert calls == [("laplace", measurement.mechanism.scale, 1)]


def test_every_component_of_every_group(opendp: Connection, calls: Calls) -> None:
    plan = opendp.plan(WIDE, epsilon=1)
    opendp.run(plan)
    wanted = [("laplace", m.mechanism.scale, 3) for m in plan.releases[0].measured.measurements]
    assert len(wanted) >= 3
    assert calls == wanted


def test_gaussian_noise_as_well(club_folder: Path, calls: Calls) -> None:
    change = "noise: opendp\nprivacy: {accountant: zcdp}"
    with opened(club_folder, "gaussian", change, MemoryLedger("club", "zcdp")) as con:
        plan = con.plan(WIDE, epsilon=1)
        con.run(plan)
    mechanisms = [m.mechanism for m in plan.releases[0].measured.measurements]
    assert {m.name for m in mechanisms} == {"gaussian"}
    assert [(name, n) for name, _, n in calls] == [("gaussian", 3)] * len(mechanisms)
    assert [size for _, size, _ in calls] == [m.sigma_squared for m in mechanisms]  # type: ignore[attr-defined]


def test_the_reader_is_told(opendp: Connection, con: Connection, calls: Calls) -> None:
    query = opendp.sql(COUNT)
    assert f"note: {NOTE}" in str(query.explain(epsilon=1))
    assert NOTE in query.run(epsilon=1).notes
    assert NOTE not in str(con.sql(COUNT).explain(epsilon=1)), "said only where it is so"


def test_our_own_is_the_default(con: Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ExactBackend, "laplace", lambda self, scale, n: [7] * n)
    assert con.execute(COUNT, epsilon=1).rows == ((3007,),)
    assert EXACT.name == "exact"


def test_without_opendp_nothing_is_spent(
    opendp: Connection, ledger: MemoryLedger, monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing() -> None:
        raise backends.reject("DP905", "not installed")

    monkeypatch.setattr(backends, "_opendp", missing)
    with pytest.raises(Rejected, match="DP905"):
        opendp.execute(COUNT, epsilon=1)
    assert ledger.spent("member") == NO_LOSS
    assert NOTE in str(opendp.sql(COUNT).explain(epsilon=1)), "planning needs no sampler"


def test_without_opendp_stored_answers_are_given(
    opendp: Connection, ledger: MemoryLedger, calls: Calls, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They need no noise, and so nobody who draws it; asked for more, the query is refused before it is charged."""
    first = opendp.execute(COUNT, epsilon=1)
    before = ledger.spent("member")

    def missing() -> None:
        raise backends.reject("DP905", "not installed")

    monkeypatch.setattr(backends, "_opendp", missing)
    again = opendp.execute(COUNT, epsilon=1)
    assert again.rows == first.rows and again.spent == NO_LOSS
    for more in (COUNT.replace("COUNT(*) AS n", "COUNT(*) AS n, SUM(fee) AS s"), COUNT):
        with pytest.raises(Rejected, match="DP905"):
            opendp.execute(more, epsilon=2, fresh=more == COUNT)
    assert ledger.spent("member") == before and len(calls) == 1


def test_two_policies_that_differ_in_their_noise_differ(con: Connection, opendp: Connection) -> None:
    assert con.policy.hash != opendp.policy.hash


def test_with_the_real_library(opendp: Connection) -> None:
    pytest.importorskip("opendp")
    answer = opendp.execute(WIDE, epsilon=100)
    assert [row[0] for row in answer.rows] == ["Bonn", "Lyon", "Oslo"]
    assert all(abs(row[1] - n) < 50 for row, n in zip(answer.rows, (1500, 1500, 0), strict=True))
