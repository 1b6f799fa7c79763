"""Random queries over random policies without limits: what may be searched is planned, priced and bounded, or refused.

No query ends in an internal error (DP904); whatever a search finds has a plan that costs no more than was reserved; and
the exact integers of neighbours differ by no more than the noise of that plan was calibrated to.
"""

from __future__ import annotations

import random
from dataclasses import replace
from fractions import Fraction

import pytest

from dpsql.core.ir.components import KeySource
from dpsql.diagnostics.diagnostic import Source
from dpsql.diagnostics.errors import Rejected
from dpsql.planner.compile import compile_query
from dpsql.planner.costs.privacy_cost import cost_of
from dpsql.planner.plan import Plan
from dpsql.planner.settings.query_settings import QuerySettings
from dpsql.service.planning.public_facts import FactStore
from tests.support.neighbour_oracle import exact, report, violations
from tests.support.random_databases import Store, World, id_world, row_world
from tests.support.random_queries import random_query
from tests.support.searched_worlds import found_limit, opened, unasked

Limits = dict[str, int | tuple[int, int]]
WORLDS, QUERIES = 48, 5
FORMS = (
    "SELECT {keys}, SUM(age) AS a FROM visits GROUP BY ROLLUP ({keys})",
    "SELECT city, COUNT(*) AS n FROM visits GROUP BY city HAVING SUM(age) > 3",
    "SELECT AVG(s) AS a FROM (SELECT pid, SUM(CLIP(x, 0, 1)) AS s FROM visits GROUP BY pid)",
    "SELECT SUM(s) AS a, COUNT(*) AS n FROM (SELECT pid, city, SUM(w) AS s FROM visits GROUP BY pid, city)",
    "SELECT city, SUM(CLIP(y, AUTO)) AS s FROM visits WHERE pid IN (SELECT pid FROM people) GROUP BY city",
    "SELECT COUNT(*) AS n FROM visits v JOIN people p ON v.pid = p.pid WHERE p.flag OR v.age > 3",
    "SELECT COUNT(DISTINCT v.age) AS n, SUM(p.x) AS s FROM visits v LEFT JOIN people p ON v.pid = p.pid",
    "SELECT MAX(n) AS m FROM (SELECT city, COUNT(*) AS n FROM visits GROUP BY city)",
    "SELECT SUM(x) AS s FROM visits WHERE FALSE UNION ALL SELECT COUNT(*) FROM visits",
    "SELECT SUM(x) - (SELECT AVG(y) FROM visits) AS d FROM visits",
    "SELECT code, AVG(CLIP(x, 0, AUTO)) AS a, VAR_POP(w) AS v FROM visits GROUP BY code",
)


@pytest.fixture(scope="module")
def store() -> Store:
    return Store()


@pytest.mark.one_in(2)
@pytest.mark.parametrize("seed", range(WORLDS))
def test_random_queries(store: Store, seed: int) -> None:
    rng = random.Random(seed)
    world = opened(rng, row_world(rng) if seed % 4 == 0 else id_world(rng, replace_one=seed % 2 == 1))
    store.load(world)
    forms = [rng.choice(FORMS).format(keys="city, flag") for _ in range(2)] if seed % 4 else []
    for sql in (*forms, *(random_query(rng, world) for _ in range(QUERIES))):
        _look_at(rng, store, world, sql, _settings(rng))


@pytest.mark.one_in(2)
@pytest.mark.parametrize("seed", range(WORLDS, 2 * WORLDS))
def test_random_queries_that_do_not_ask(store: Store, seed: int) -> None:
    rng = random.Random(seed)
    world = unasked(rng, id_world(rng, replace_one=seed % 2 == 1))
    store.load(world)
    forms = [rng.choice(FORMS).format(keys="city, flag") for _ in range(2)]
    for sql in (*forms, *(random_query(rng, world) for _ in range(QUERIES))):
        _look_at(rng, store, world, sql, replace(_settings(rng), search=None))


def test_enough_queries_are_searched(store: Store) -> None:
    """Else nothing is shown here."""
    searched = 0
    for seed in range(1, WORLDS, 4):
        rng = random.Random(seed)
        world = opened(rng, id_world(rng))
        store.load(world)
        for sql in FORMS:
            try:
                searched += _compiled(store, world, sql.format(keys="city, flag"), _settings(rng)).searches is not None
            except Rejected as refusal:
                assert refusal.diagnostics[0].code != "DP904"
    assert searched >= 60


def _look_at(rng: random.Random, store: Store, world: World, sql: str, settings: QuerySettings) -> None:
    try:
        plan = _compiled(store, world, sql, settings)
    except Rejected as refusal:
        assert refusal.diagnostics[0].code != "DP904", sql
        return
    asked, at, most = [*plan.first.releases], plan, 3
    if plan.keys_first is not None:
        keys = [*exact(asked[0], store)]
        shown = rng.sample(keys, min(len(keys), rng.choice((0, 1, 2, 20))))
        list_of = KeySource(tuple(range(len(asked[0].measured.node.keys))), tuple(shown), "")
        at = _compiled(store, world, sql, replace(plan.keys_first.settings, keys=list_of))
        asked += at.first.releases
    while at.searches is not None:  # a round for each number that other rows read
        settings = at.searches.settings
        found: Limits = {**settings.found, **{s.limit.label: found_limit(rng, s) for s in at.searches.limits}}
        at, most = _compiled(store, world, sql, replace(settings, found=found)), most - 1
        assert most >= 0, sql
        asked += at.first.releases
    if at is plan:
        return
    both = cost_of([r.measured for r in asked], world.policy)
    assert all(loss.within(plan.cost[unit]) for unit, loss in both.items()), sql
    for planned in asked:
        if any(s.reads(other.label) for s in planned.statements for other in asked):
            continue  # noisy numbers that are not drawn here
        vectors = []
        for db in range(world.neighbours + 1):
            store.show(db)
            vectors.append(exact(planned, store))
        for other in vectors[1:]:
            assert not [*violations(planned, vectors[0], other)], report(world, sql, planned)


PRIVATE = (
    "SELECT code, COUNT(*) AS n, AVG(age) AS a FROM visits GROUP BY code",
    "SELECT code, city, COUNT(DISTINCT pid) AS u, SUM(CLIP(x, 0, 1)) AS s FROM visits GROUP BY code, city",
    "SELECT lower(city) AS c, COUNT(DISTINCT age) AS n FROM visits GROUP BY 1",
    "SELECT age, code, COUNT(*) FILTER (WHERE x > 1) AS n, COUNT(*) AS m FROM visits GROUP BY age, code",
    "SELECT code FROM visits GROUP BY code ORDER BY COUNT(DISTINCT pid) DESC LIMIT 2",
    "SELECT DISTINCT code, city FROM visits",
)


@pytest.mark.parametrize("seed", range(2 * WORLDS, 2 * WORLDS + 8))
def test_queries_of_private_keys(store: Store, seed: int) -> None:
    """Keys that are shown first, in any number, and limits that are found of them: never more than was told."""
    rng = random.Random(seed)
    world = unasked(rng, id_world(rng, replace_one=seed % 2 == 1))
    store.load(world)
    for sql in PRIVATE:
        settings = replace(_settings(rng), search=None)
        _look_at(rng, store, world, sql, settings)


def _compiled(store: Store, world: World, sql: str, settings: QuerySettings) -> Plan:
    return FactStore(store).compile(
        lambda public: compile_query(Source(sql), world.policy, public, settings, (), store.table_sql)
    )


def _settings(rng: random.Random) -> QuerySettings:
    epsilon = rng.choice((Fraction(1), Fraction(1, 3), Fraction(1, 10**5)))
    return QuerySettings(epsilon, Fraction(1, 10**6), search=True, anyway=True)
