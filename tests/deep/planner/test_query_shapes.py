"""Items 41 to 57 and 60 over neighbouring databases."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import dpsql
from dpsql.core.ir.nodes import key_sources
from dpsql.core.release.drawing import EngineAsk
from dpsql.core.release.noisy import _fetch, public_keys
from dpsql.engines.duckdb.engine import DuckDBEngine
from tests.planner.test_query_shapes import NEIGHBOURS, OPERATORS
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
        return [[_fetch(release, EngineAsk(engine, 12345)).rows() for release in plan.releases] for _, plan in plans]
    finally:
        engine.close()


def test_item_43_having_and_order_read_the_released_numbers(attack: Attack) -> None:
    """The very noisy number that is shown decides: a group that HAVING lets through shows a number that fits."""
    for _ in range(30):
        answer = attack.con.sql(
            "SELECT diag, COUNT(*) n FROM patients GROUP BY diag HAVING COUNT(*) >= 2 ORDER BY COUNT(*) DESC"
        ).run(epsilon=1, fresh=True)
        shown = [n for _, n in answer.rows]
        assert all(n >= 2 for n in shown) and shown == sorted(shown, reverse=True)
        assert answer.spent.epsilon == 1


def test_item_45_sets_without_a_row_show_no_more(make: Callable[..., Clinic]) -> None:
    """The total is there over no rows as well, and groups come from the list, in its order."""
    shown = []
    for change in ("SELECT 1", "DELETE FROM patients", "UPDATE patients SET diag = 'Ebola'"):
        with make(change).connect() as con:
            answer = con.execute("SELECT diag, COUNT(*) FROM patients GROUP BY ROLLUP (diag)", epsilon=1)
            shown.append([key for key, _ in answer.rows])
    assert sorted(map(str, shown[0])) == ["HIV", "None", "None", "flu", "rare"] and shown.count(shown[0]) == 3


@pytest.mark.parametrize("operator", OPERATORS)
def test_item_49_rows_whose_id_is_lost_are_refused(attack: Attack, operator: str) -> None:
    """A row of one id must not cancel or merge with another id's, nor public rows be counted as somebody's.

    UNION ALL merges none, and carries the id where both sides have one: a patient has one row and three visits.
    """
    for left, right, rows in (
        ("SELECT pid, age FROM patients", "SELECT age, pid FROM patients", 2),  # ids at different positions
        ("SELECT pid FROM visits", "SELECT pid + 0 FROM patients", 4),  # something else than the id
        ("SELECT amt FROM visits", "SELECT income FROM patients", 4),  # no id
        ("SELECT pid FROM visits", "SELECT 1", 0),
        ("SELECT diag FROM patients", "SELECT diag FROM pub", 0),
        ("SELECT diag FROM pub", "SELECT diag FROM patients", 0),
        ("SELECT 1 AS pid", "SELECT pid FROM visits", 0),
        ("SELECT a.pid, b.pid AS p FROM visits a JOIN patients b USING (pid)", "SELECT age, pid + 1 FROM patients", 4),
    ):
        if rows and operator == "UNION ALL":
            united = f"SELECT COUNT(*) FROM ({left} {operator} {right})"
            assert attack.sensitivities(united) == [(rows, rows)]
            attack.refused(f"{left} {operator} {right}", "DP110", "DP220")
            continue
        # The rows that stay are an id's own where constants only say which of them do.
        filters = (right == "SELECT 1" and not operator.startswith("UNION")) or (
            left == "SELECT 1 AS pid" and operator.startswith("INTERSECT")
        )
        if not filters:
            attack.refused(f"SELECT COUNT(*) FROM ({left} {operator} {right})", "DP220", "DP211")
        attack.refused(f"{left} {operator} {right}", "DP110", "DP220")
    attack.refused(f"SELECT pid FROM visits {operator} SELECT pid FROM patients", "DP110")
    attack.refused(f"SELECT name FROM patients {operator} SELECT diag FROM pub", "DP110", "DP220")
    attack.refused(f"SELECT diag FROM pub {operator} SELECT name FROM patients", "DP110", "DP220")


def test_item_49_bounds_are_those_of_the_rows_that_stay(attack: Attack) -> None:
    """Of EXCEPT those of its left side, of INTERSECT either side's; a side without any bounds no union."""
    total = "SELECT SUM(x) FROM (SELECT pid, {} AS x FROM patients {} SELECT pid, {} FROM patients)"
    for operator in ("EXCEPT", "EXCEPT ALL"):
        assert attack.sensitivities(total.format("age", operator, "big")) == [(110, 110)]
        attack.refused(total.format("big", operator, "age"), "DP201")
    for operator in ("INTERSECT", "INTERSECT ALL"):
        assert attack.sensitivities(total.format("age", operator, "big")) == [(110, 110)]
        assert attack.sensitivities(total.format("big", operator, "age")) == [(110, 110)]
        attack.refused(total.format("big", operator, "big"), "DP201")
    for operator in ("UNION", "UNION ALL"):
        assert attack.sensitivities(total.format("age * 2", operator, "age - 300")) == [(600, 600)]
        attack.refused(total.format("age * 2", operator, "big * 2"), "DP201", "DP202")
        attack.refused(total.format("age", operator, "big"), "DP201")
        attack.refused(total.format("big", operator, "age"), "DP201")


@pytest.mark.parametrize(
    ("public", "most"),
    [
        ("(SELECT DISTINCT diag, label FROM grid)", 2),
        ("(SELECT diag, COUNT(*) AS n FROM grid GROUP BY diag)", 1),
        ("(SELECT diag, label, MAX(age) AS n FROM grid GROUP BY diag, label)", 2),
        ("(SELECT diag, 'it' AS one FROM grid WHERE age > 35)", 2),
        ("(SELECT d AS diag FROM (SELECT diag AS d, cost FROM pub) WHERE cost < 9)", 2),
        ("(SELECT DISTINCT diag FROM pub)", 1),
        ("(SELECT DISTINCT d AS diag, one FROM (SELECT diag AS d, 1 AS one, cost FROM pub))", (1, 2)),
        ("(SELECT DISTINCT label AS diag, diag AS x FROM grid)", 2),
        ("(SELECT lower(diag) AS diag FROM grid)", None),
        ("(SELECT DISTINCT lower(diag) AS diag, age FROM grid)", None),
        ("(SELECT * FROM (VALUES ('flu', 1), ('flu', 2), ('HIV', 1)) AS v(diag, x))", 2),
        ("(SELECT x AS diag, diag AS x FROM (VALUES ('flu', 'a'), ('flu', 'b')) AS v(diag, x))", 1),
    ],
)
@pytest.mark.parametrize("kind", ["JOIN", "LEFT JOIN"])
def test_item_53_matches_are_counted_behind_a_query(
    attack: Attack, kind: str, public: str, most: int | tuple[int, int] | None
) -> None:
    """The public rows behind a projection or DISTINCT bound what a row meets; a computed key is bounded by nothing.

    most: where it differs, of JOIN and of LEFT JOIN.
    """
    most = most[kind == "LEFT JOIN"] if isinstance(most, tuple) else most
    sql = f"SELECT COUNT(*) FROM patients p {kind} {public} u ON u.diag = p.diag"
    if most is None:
        attack.refused(sql, "DP210", "DP211")
        return
    for _ in range(2):  # what the first run was planned on holds in the second
        attack.con.sql(sql).run(epsilon=1)
    assert attack.sensitivities(sql) == [(most, most)]


def test_item_61_the_order_of_rows_is_public(make: Callable[..., Clinic]) -> None:
    """Insertion order shows nowhere: public keys come in the order of their list, private ones sorted."""
    orders = []
    for direction in ("ASC", "DESC"):
        clinic = make(
            "DELETE FROM events",
            f"INSERT INTO events (kind, value) SELECT 'k' || i % 5, 1 FROM range(500) r(i) ORDER BY i % 5 {direction}",
            f"CREATE TABLE o AS SELECT * FROM patients ORDER BY pid {direction}",
            "DROP TABLE patients",
            "ALTER TABLE o RENAME TO patients",
        )
        with clinic.connect() as con:
            private = con.execute("SELECT kind, COUNT(*) FROM events GROUP BY kind", epsilon=100, delta=1e-12).rows
            public = con.execute("SELECT diag, COUNT(*) FROM patients GROUP BY diag", epsilon=100).rows
            orders.append([k for k, _ in (*private, *public)])
    assert orders[0] == orders[1] and orders[0][:5] == ["k0", "k1", "k2", "k3", "k4"]
