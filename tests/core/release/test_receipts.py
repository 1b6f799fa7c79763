"""No noise without a receipt: neither is anything drawn, nor a private row read."""

from __future__ import annotations

from fractions import Fraction
from uuid import uuid4

import pytest

from dpsql.core.engine import RawTable
from dpsql.core.ledger.ledger import Caps, Entry
from dpsql.core.ledger.memory import MemoryLedger
from dpsql.core.noise.backends import ExactBackend
from dpsql.core.release.noisy import draw_release
from dpsql.planner.plan import Plan
from tests.support.fake_engine import FakeEngine
from tests.support.planning import planned, policy

POLICY = policy(
    """
people:
  unit: {rows: 1}
  columns:
    word: {type: varchar}
    kind: {type: varchar, domain: [a, b], nullable: false}
    x: {type: integer, bounds: [0, 100], nullable: false}
years:
  unit: {rows: 1, neighbours: replace_one}
  size: {exact: 5}
  columns:
    x: {type: integer, bounds: [0, 100], nullable: false}
"""
)
MANY = ", ".join(f"COUNT(*) FILTER (WHERE x > {i}) AS n{i}" for i in range(30))
QUERIES = {
    "one row": "SELECT COUNT(*) FROM people",
    "public keys": "SELECT kind, SUM(x), COUNT(*) FROM people GROUP BY kind",
    "private keys": "SELECT word FROM people GROUP BY word",
    "gaussian": f"SELECT word, {MANY} FROM people GROUP BY word",
}


class Forbidden(ExactBackend):
    """Draws nothing."""

    def laplace(self, scale: Fraction, n: int) -> list[int]:
        raise AssertionError("drawn")

    def gaussian(self, variance: Fraction, n: int) -> list[int]:
        raise AssertionError("drawn")


def empty(plan: Plan) -> FakeEngine:
    """An engine whose tables are empty, but for aggregates without groups."""
    (release,) = plan.releases
    width = len(release.measured.node.keys)
    rows = [1] if width == 0 else []
    return FakeEngine(lambda sql: RawTable(tuple("abcdefgh"[: width + 1]), tuple(rows for _ in range(width + 1))))


@pytest.mark.parametrize("name", QUERIES)
def test_noise_needs_a_receipt(name: str) -> None:
    plan = planned(QUERIES[name], POLICY)
    assert {m.mechanism.name for m in plan.releases[0].measured.measurements} == (
        {"gaussian"} if name == "gaussian" else {"laplace"}
    )
    engine = empty(plan)
    with pytest.raises(AssertionError, match="noise without a receipt"):
        draw_release(plan.releases[0], engine, None, 0, backend=Forbidden())
    assert engine.queries == []


def test_with_a_receipt_it_is_measured() -> None:
    """The twin: the same call, once its cost is charged."""
    plan = planned(QUERIES["one row"], POLICY)
    entry = Entry(uuid4().hex, "*", plan.cost, plan.hash, plan.basis.policy_hash, "", {}, ())
    receipt = MemoryLedger("test").reserve(entry, Caps())
    engine = empty(plan)
    assert len(draw_release(plan.releases[0], engine, receipt, 0).values) == 1
    assert len(engine.queries) == 1


def test_what_is_public_needs_none_and_reads_nothing() -> None:
    plan = planned("SELECT COUNT(*) FROM years", POLICY)
    engine = empty(plan)
    assert draw_release(plan.releases[0], engine, None, 0, backend=Forbidden()).values == ((5,),)
    assert engine.queries == []
