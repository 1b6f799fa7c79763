"""The chain of search and query on all neighbours of small databases: what both together tell is within what is paid.

Of two databases the noise of each release tells at most e^(Σ|Δ|/scale), and that is reached: what the octaves tell and
what the query tells at the limit that was read from them add up, whatever the limit. Both are rationals.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import combinations

import pytest

from dpsql.core.release.noisy import NoisyRelease, exact_totals
from dpsql.core.release.planned import PlannedRelease
from dpsql.diagnostics.diagnostic import Source
from dpsql.planner.compile import compile_query
from dpsql.planner.plan import Plan
from dpsql.planner.postprocessing.noisy_rows import as_query
from dpsql.planner.searches.limits_to_search import Rule
from dpsql.planner.settings.query_settings import QuerySettings
from dpsql.service.planning.public_facts import FactStore
from dpsql.spelling.duckdb_functions import DUCKDB
from tests.deep.core.analysis.test_contribution_bounding import _worlds
from tests.support.neighbour_oracle import SALT, Vector, change, exact, violations
from tests.support.random_databases import Store, World

QUERIES = {
    "rows": "SELECT COUNT(*) FROM t",
    "rows, groups": "SELECT g, COUNT(*) FROM t GROUP BY g",
    "some rows": "SELECT g, COUNT(*) FILTER (WHERE x > 0) FROM t GROUP BY g",
    "totals": "SELECT SUM(x) FROM t",
    "totals, groups": "SELECT g, SUM(x), COUNT(*) FROM t GROUP BY g",
    "values": "SELECT g, COUNT(DISTINCT x) FROM t GROUP BY g",
    "averages": "SELECT g, AVG(x) FROM t GROUP BY g",
    "ids": "SELECT g, COUNT(DISTINCT pid) FROM t GROUP BY g",
}
OCTAVES = 2
"""Limits up to 2^2: an id has at most two rows."""


def compiled(store: Store, world: World, sql: str, found: dict[str, int | tuple[int, int]] | None = None) -> Plan:
    settings = QuerySettings(Fraction(1), Fraction(1, 10**6), search=True, found=found or {}, family="laplace")
    return FactStore(store).compile(
        lambda public: compile_query(Source(sql), world.policy, public, settings, (), store.table_sql)
    )


def limited(store: Store, world: World, sql: str, k: int) -> Plan:
    searches = compiled(store, world, sql).searches
    assert searches is not None
    ranges = {s.limit.label: (-(2**k), 2**k) for s in searches.limits if s.limit.rule is Rule.RANGE}
    return compiled(store, world, sql, {s.limit.label: 2**k for s in searches.limits} | ranges)


def told(releases: Sequence[PlannedRelease], one: Sequence[Vector], other: Sequence[Vector]) -> Fraction:
    """ln of the largest ratio of the probabilities of any one output."""
    return sum(
        (
            Fraction(change(a, b, i).l1) / m.mechanism.scale
            for planned, a, b in zip(releases, one, other, strict=True)
            for i, m in enumerate(planned.measured.measurements)
            if m.sensitivity.l1
        ),
        Fraction(0),
    )


def vectors(store: Store, databases: Sequence[int], releases: Sequence[PlannedRelease]) -> list[list[Vector]]:
    found = []
    for db in databases:
        store.show(db)
        found.append([exact(planned, store) for planned in releases])
    return found


def chains(query: str, neighbours: str) -> tuple[Fraction, Fraction, list[str]]:
    """The most that a chain tells; the most that it would tell with the noise of half the limit; claims not kept."""
    store, most, halved, broken = Store(), Fraction(0), Fraction(0), list[str]()
    sql, replaced = QUERIES[query], neighbours == "replace_one"
    for world, count in _worlds({}, 2, neighbours=neighbours) if replaced else _worlds({}, 2):
        store.load(world)
        databases = range(1, count + 1) if replaced else range(count + 1)
        first = compiled(store, world, sql).first.releases
        octaves = vectors(store, databases, first)
        rests = [limited(store, world, sql, k).releases for k in range(OCTAVES + 1)]
        for k, rest in enumerate(rests):
            numbers = vectors(store, databases, rest)
            pairs = combinations(range(len(databases)), 2) if replaced else ((0, i) for i in range(1, count + 1))
            for i, j in pairs:
                search = told(first, octaves[i], octaves[j])
                most = max(most, search + told(rest, numbers[i], numbers[j]))
                halved = max(halved, search + told(rests[max(0, k - 1)], numbers[i], numbers[j]))
                for planned, a, b in zip(
                    (*first, *rest), octaves[i] + numbers[i], octaves[j] + numbers[j], strict=True
                ):
                    broken += violations(planned, a, b)
    store.close()
    return most, halved, broken


@pytest.mark.parametrize("query", QUERIES)
def test_a_chain_tells_what_is_paid_and_no_more(query: str) -> None:
    most, halved, broken = chains(query, "add_remove")
    assert not broken
    assert Fraction(9, 10) <= most <= 1, "ε is 1, and it is reached"
    assert halved > 1, "noise for half the limit is told apart"


@pytest.mark.parametrize("query", ["rows, groups", "totals, groups", "averages"])
def test_where_units_are_replaced(query: str) -> None:
    most, halved, broken = chains(query, "replace_one")
    assert not broken and Fraction(1, 2) <= most <= 1 < halved


IN_ROUNDS = {
    "rows that read a number": "SELECT COUNT(*) FROM t WHERE x > (SELECT COUNT(*) FROM t)",
    "totals that read a number": "SELECT g, SUM(x) FROM t WHERE x >= (SELECT COUNT(*) FROM t) GROUP BY g",
}
NUMBERS = (-1, 1, 2)
"""What the inner number may be drawn as: all rows are above it, some, or none."""


def shown(
    store: Store, databases: Sequence[int], releases: Sequence[PlannedRelease], number: int
) -> list[list[Vector]]:
    """The vectors of two releases, of which the second reads the first, as that was drawn."""
    first, second = releases
    free = NoisyRelease.of_rows(first, {(): [number]}, [[number]])
    earlier, found = {first.label: as_query(free, DUCKDB)}, []
    for db in databases:
        store.show(db)
        found.append([exact(first, store), exact_totals(second, store, SALT, earlier)])
    return found


@pytest.mark.parametrize("query", IN_ROUNDS)
def test_rounds_tell_what_is_paid_and_no_more(query: str) -> None:
    """Four statements, whatever the two numbers and both limits are: the search, the inner number with the second
    search, and both numbers of the answer."""
    store, most, halved, broken = Store(), Fraction(0), Fraction(0), list[str]()
    sql = IN_ROUNDS[query]
    for world, count in _worlds({}, 2):
        store.load(world)
        databases = range(count + 1)
        plan = compiled(store, world, sql)
        octaves = vectors(store, databases, plan.first.releases)
        for k in range(OCTAVES + 1):
            inner = {s.limit.label: 2**k for s in plan.searches.limits} if plan.searches is not None else {}
            between = compiled(store, world, sql, dict(inner))
            assert between.searches is not None
            outer = {s.limit.label: 2**k for s in between.searches.limits}
            last = compiled(store, world, sql, {**inner, **outer})
            less = compiled(store, world, sql, {**inner, **{label: max(1, 2 ** (k - 1)) for label in outer}})
            for number in NUMBERS:
                second = shown(store, databases, between.first.releases, number)
                third = shown(store, databases, last.releases, number)
                for i in range(1, count + 1):
                    before = told(plan.first.releases, octaves[0], octaves[i])
                    before += told(between.first.releases, second[0], second[i])
                    most = max(most, before + told(last.releases, third[0], third[i]))
                    halved = max(halved, before + told(less.releases, third[0], third[i]))
                    each = (*plan.first.releases, *between.first.releases, *last.releases)
                    one, other = (octaves[j] + second[j] + third[j] for j in (0, i))
                    for planned, a, b in zip(each, one, other, strict=True):
                        broken += violations(planned, a, b)
    store.close()
    assert not broken
    assert Fraction(9, 10) <= most <= 1, "ε is 1, and it is reached"
    assert halved > 1, "noise for half the limit is told apart"
