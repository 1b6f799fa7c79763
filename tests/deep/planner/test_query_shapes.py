"""Items 41 to 57 and 60 over neighbouring databases."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import dpsql
from dpsql.core.ir.nodes import key_sources
from dpsql.core.release.drawing import Ask
from dpsql.core.release.noisy import _fetch, public_keys
from dpsql.engines.duckdb.engine import DuckDBEngine
from tests.planner.test_query_shapes import NEIGHBOURS
from tests.support.checklist_clinic import DELTA, POLICY, Attack, Clinic


def test_item_42_a_scalar_subquery_is_a_release(attack: Attack) -> None:
    """It has noise of its own and a share of ε, wherever it stands; nothing reads the exact number."""
    scalar = "(SELECT COUNT(*) FROM patients WHERE name = 'bob' AND diag = 'HIV')"
    for sql in (
        f"SELECT COUNT(*) FROM patients WHERE {scalar} = 1",
        f"SELECT COUNT(*) FROM patients HAVING {scalar} = 1",
        f"SELECT COUNT(*) FILTER (WHERE {scalar} = 1) FROM patients",
        f"SELECT SUM(CASE WHEN {scalar} = 1 THEN 1 ELSE 0 END) FROM patients",
        f"SELECT COUNT(*) FROM patients ORDER BY {scalar}",
    ):
        plan = attack.con.sql(sql).plan(epsilon=1, delta=DELTA)
        assert sorted(m.sensitivity.l1 for r in plan.releases for m in r.measured.measurements) == [1, 1], sql
        assert plan.loss.epsilon == 1
    assert len(attack.con.sql(f"SELECT diag FROM pub WHERE {scalar} = 1").plan(epsilon=1, delta=DELTA).releases) == 1
    seen = {
        attack.con.sql(f"SELECT CASE WHEN {scalar} > 0 THEN 1 ELSE 0 END FROM pub")
        .run(epsilon="0.2", fresh=True)
        .rows[0][0]
        for _ in range(40)
    }
    assert seen == {0, 1}


def test_item_44_public_keys_do_not_tell_who_is_there(make: Callable[..., Clinic]) -> None:
    """Same keys in the same order, whatever the data; keys outside of the list are dropped."""
    shown = []
    for change in (
        "SELECT 1",
        "DELETE FROM patients",
        "UPDATE patients SET diag = 'Ebola'",
        "UPDATE patients SET diag = 'HIV '",
    ):
        with make(change).connect() as con:
            answer = con.execute("SELECT diag, COUNT(*) FROM patients GROUP BY diag", epsilon=1)
            shown.append([key for key, _ in answer.rows])
    assert shown[0] == ["flu", "HIV", "rare", None] and shown.count(shown[0]) == 4


def test_item_60_noise_is_added_to_what_is_shown_not_after_it(attack: Attack) -> None:
    """Rounding and formatting are post-processing; counts are not clamped at 0; no exact number of rows is printed."""
    seen = {
        attack.con.sql("SELECT COUNT(*) FROM patients WHERE age > 1000").run(epsilon="0.5", fresh=True).rows[0][0]
        for _ in range(60)
    }
    assert min(seen) < 0
    answer = attack.con.sql("SELECT diag, COUNT(*) FROM patients GROUP BY diag").run(epsilon=1, fresh=True)
    empty = attack.con.sql("SELECT diag, COUNT(*) FROM patients WHERE age > 1000 GROUP BY diag").run(
        epsilon=1, fresh=True
    )
    assert answer.notes == empty.notes and len(str(answer).splitlines()) == len(str(empty).splitlines()) == 5


LIMITS = (
    "max_rows_per_unit: 3",
    "max_groups_per_unit: 1\n    max_rows_per_group: 2",
    "max_rows_per_unit: {rows: 40, enforce: assume}",
)


@pytest.mark.parametrize("limit", LIMITS)
def test_items_41_to_57_no_neighbour_is_further_than_the_noise_covers(make: Callable[..., Clinic], limit: str) -> None:
    """Exact integers of the very statements that would run, with and without one id (or one row of `events`)."""
    more = (
        "INSERT INTO visits SELECT 1 + i % 4, i * 7 - 50 FROM range(60) r(i)",
        "INSERT INTO visits VALUES (2, 'NaN'), (2, 'inf'), (2, '-inf'), (2, NULL), (2, 1e308)",
        "INSERT INTO events (kind, value) SELECT 'k' || i % 3, i FROM range(9) r(i)",
        "UPDATE patients SET age = 5000 WHERE pid = 4",
    )
    policy = POLICY.replace("max_rows_per_unit: 3", limit)
    full = make(*more, policy=policy)
    with full.connect() as con:
        plans = []
        for sql in NEIGHBOURS:
            try:
                plans.append((sql, con.sql(sql).plan(epsilon=1, delta=1e-3)))
            except dpsql.Rejected as refusal:
                assert refusal.diagnostics[0].code in ("DP211", "DP210"), sql
    assert len(plans) >= 8
    totals = _totals(full, plans)
    changes = [(f"DELETE FROM patients WHERE pid = {i}", f"DELETE FROM visits WHERE pid = {i}") for i in (1, 2, 3, 4)]
    changes += [("DELETE FROM events WHERE value > 271828180",), ("DELETE FROM events WHERE value = 8",)]
    moved = 0
    for change in changes:
        neighbour = _totals(make(*more, *change, policy=policy), plans)
        for (sql, plan), ours, theirs in zip(plans, totals, neighbour, strict=True):
            for release, a, b in zip(plan.releases, ours, theirs, strict=True):
                node = release.measured.node
                sources = key_sources(node)
                keys = set(a) | set(b) if sources is None else set(public_keys(sources, len(node.keys)))
                nothing = [0] * len(node.components)
                for i, m in enumerate(release.measured.measurements):
                    differences = [abs(a.get(k, nothing)[i] - b.get(k, nothing)[i]) for k in keys]
                    moved += sum(differences) > 0
                    assert sum(differences) <= m.sensitivity.l1, (sql, i, change)
                    assert max(differences, default=0) <= m.sensitivity.linf, (sql, i, change)
                    assert sum(d > 0 for d in differences) <= m.sensitivity.l0, (sql, i, change)
    assert moved > 30


def _totals(clinic: Clinic, plans: list) -> list:  # type: ignore[type-arg]
    engine = DuckDBEngine.open(Path("d.duckdb"), {}, clinic.folder)
    try:
        return [[_fetch(release, Ask(engine, 12345)).rows() for release in plan.releases] for _, plan in plans]
    finally:
        engine.close()
