"""Subqueries over private tables, without noise and with limits that never bind: what DuckDB says to the user's text.

Semi and anti joins on the unit's id, totals per person, and scalar subqueries that are releases of their own: the
statement of a later release reads the numbers of the earlier ones.
"""

from __future__ import annotations

import math
import random
from typing import Any

import pytest

from dpsql.core.release.noisy import NoisyRelease, exact_totals
from dpsql.diagnostics.errors import Rejected
from dpsql.engines.duckdb.scratch import Scratch
from dpsql.planner.postprocessing.noisy_rows import as_query
from dpsql.planner.postprocessing.run import post_process
from dpsql.service.planning.public_facts import FactStore
from dpsql.spelling.duckdb_functions import DUCKDB
from tests.deep.frontend.test_meaning import _tables
from tests.support.neighbour_oracle import SALT, plan_of
from tests.support.random_databases import Store, World, world_of

WHERE_PEOPLE = (
    "pid IN (SELECT pid FROM visits WHERE {v})",
    "pid NOT IN (SELECT pid FROM visits WHERE {v})",
    "pid = ANY (SELECT pid FROM visits)",
    "EXISTS (SELECT 1 FROM visits v WHERE v.pid = people.pid AND {v})",
    "NOT EXISTS (SELECT 1 FROM visits v WHERE v.pid = people.pid AND {v})",
    "EXISTS (SELECT 1 FROM visits v WHERE v.pid = people.pid AND v.age < people.born)",
    "NOT EXISTS (SELECT 1 FROM visits v WHERE v.pid = people.pid AND v.age <> people.born)",
    "pid IN (SELECT pid FROM visits WHERE {v} GROUP BY pid HAVING COUNT(*) > 1)",
    "2 <= (SELECT COUNT(*) FROM visits v WHERE v.pid = people.pid AND {v})",
    "0 = (SELECT COUNT(*) FROM visits v WHERE v.pid = people.pid AND {v})",
    "(SELECT SUM(y) FROM visits v WHERE v.pid = people.pid) > born",
    "(SELECT SUM(y) FROM visits v WHERE v.pid = people.pid AND {v}) IS NULL",
    "born < (SELECT AVG(born) FROM people)",
    "born <> (SELECT COUNT(*) FROM visits WHERE {v})",
    "born IN (SELECT code FROM codes)",
    "born NOT IN (SELECT code FROM codes WHERE code IS NOT NULL)",
    "born NOT IN (SELECT code FROM codes)",
    "({v0} OR pid IN (SELECT pid FROM visits WHERE {v}))",
    "({v0} OR NOT pid IN (SELECT pid FROM visits WHERE {v}))",
    "NOT ({v0} OR EXISTS (SELECT 1 FROM visits v WHERE v.pid = people.pid AND {v}))",
    "CASE WHEN born IN (SELECT code FROM codes) THEN {v0} ELSE born > 1 END",
    "(pid IN (SELECT pid FROM visits WHERE {v})) = {v0}",
    "(born IN (SELECT age FROM visits v WHERE v.pid = people.pid) OR {v0})",
)
WHERE_LOG = (
    "code IN (SELECT code FROM codes WHERE label = 'u')",
    "code NOT IN (SELECT code FROM codes)",
    "NOT EXISTS (SELECT 1 FROM codes c WHERE c.code = log.code AND c.label <> log.city)",
    "y > (SELECT AVG(y) FROM log)",
    "y > (SELECT SUM(age) FROM log WHERE {v}) - (SELECT COUNT(*) FROM log)",
    "y >= (SELECT AVG(i.y) FROM log i WHERE i.city = log.city)",
    "1 < (SELECT COUNT(*) FROM log i WHERE i.age = log.age AND i.flag = log.flag)",
    "age <= (SELECT COUNT(*) FROM codes c WHERE c.code = log.code)",
    "y > (SELECT MAX(n) FROM (SELECT city, COUNT(*) AS n FROM log GROUP BY city HAVING COUNT(*) > 0))",
)
CONDITIONS = ("TRUE", "flag", "age > 0", "y < 5", "city = 'a'")
CALLS = (
    "COUNT(*)", "COUNT(*) + (SELECT COUNT(*) FROM {t} WHERE {v})", "COUNT(*) / (SELECT COUNT(*) + 1 FROM log)",
    "SUM(CLIP({n}, 0, 9)) - (SELECT COUNT(*) FROM codes)",
)  # fmt: skip


def _query(rng: random.Random) -> str:
    table, conditions = rng.choice((("people", WHERE_PEOPLE), ("log", WHERE_LOG)))
    terms = rng.sample(conditions, rng.choice((1, 1, 2)))
    terms = [term.replace("{v0}", "(born IS NULL)") for term in terms]
    number, inside = ("born", "born > 0") if table == "people" else ("age", "flag")
    calls = ", ".join(rng.sample(CALLS, rng.choice((1, 2))))
    sql = f"SELECT {calls.replace('{v}', inside)} FROM {table} WHERE {' AND '.join(terms)}"
    return sql.replace("{t}", table).replace("{n}", number).replace("{v}", rng.choice(CONDITIONS))


def _ours(store: Store, world: World, sql: str) -> list[tuple[Any, ...]]:
    plan = plan_of(store, FactStore(store), world, sql)
    found: list[NoisyRelease] = []
    for planned in plan.releases:
        earlier = {n.planned.label: as_query(n, DUCKDB) for n in found}
        vector = exact_totals(planned, store, SALT, earlier)
        found.append(NoisyRelease.of_rows(planned, vector, vector.values()))
    scratch = Scratch()
    rows = post_process(plan.post, found, store, scratch).rows
    scratch.close()
    return list(rows)


def _same(a: Any, b: Any) -> bool:
    if a is None or b is None:
        return b is None  # an aggregate over nothing is 0 here
    return math.isclose(float(a), float(b), rel_tol=1e-9, abs_tol=2e-6)


@pytest.mark.parametrize("seed", range(4))
def test_private_subqueries_mean_what_duckdb_says(seed: int) -> None:
    rng, store, compared = random.Random(seed), Store(), 0
    store.connection.execute("CREATE MACRO clip(x, lo, hi) AS CASE WHEN x < lo THEN lo WHEN x > hi THEN hi ELSE x END")
    for _ in range(3):
        world = world_of(_tables(rng), 0, "subqueries")
        store.load(world)
        for _ in range(10):
            sql = _query(rng)
            try:
                ours = _ours(store, world, sql)
            except Rejected as refusal:
                raise AssertionError(f"{sql}\n{refusal}") from refusal
            theirs = store.connection.execute(sql).fetchall()
            same = all(
                _same(a, b) for mine, yours in zip(ours, theirs, strict=True) for a, b in zip(mine, yours, strict=True)
            )
            assert same, f"{sql}\nours:   {ours}\ntheirs: {theirs}"
            compared += theirs[0][0] not in (0, None)
    store.close()
    assert compared > 8, compared


def test_the_comparison_sees_a_lost_null(monkeypatch: pytest.MonkeyPatch) -> None:
    """NOT IN as a plain ANTI join, as if nothing were ever NULL, is found out."""
    monkeypatch.setattr("dpsql.frontend.bind.subqueries.subqueries.never_null", lambda *_: True)
    with pytest.raises(AssertionError, match="theirs"):
        for seed in range(6):
            test_private_subqueries_mean_what_duckdb_says(seed)
