"""Keys first, by brute force: what its statement adds up in every pair of neighbours, and the exact law of what shows.

All units of up to three keys, NULL among them, in databases of up to three units. σ and the law are those of the plan;
tails are added up here anew. Each mutant breaks one thing that the mechanism rests on, and has to be found.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache
from itertools import combinations, product

import pytest

from dpsql.core.noise import calibration, partition_selection
from dpsql.core.noise.mechanisms import Additive
from dpsql.core.printing.shapes import weighted
from dpsql.core.release.planned import PlannedRelease
from dpsql.diagnostics.diagnostic import Source
from dpsql.planner import with_keys_first
from dpsql.planner.compile import compile_query
from dpsql.planner.settings.query_settings import QuerySettings
from dpsql.policy.policy import Policy
from dpsql.service.planning.public_facts import FactStore
from tests.support.neighbour_oracle import Vector, exact, violations
from tests.support.random_databases import Column, Store, Table, World

KEYS = ("'a'", "'b'", "NULL")
UNITS = [own for size in (1, 2, 3) for own in combinations(KEYS, size)]
DATABASES = [db for size in (0, 1, 2, 3) for db in combinations(range(len(UNITS)), size)][:62]
F, DELTA = 12, Fraction(2, 100)
"""Small, so that roots are not whole."""
RHOS = (Fraction(4, 7), Fraction(64, 7))
"""A half is for keys, a quarter of the other half for a search. So σ² is 2F², where units of many keys decide on T, or
F²/8, where those of one do."""
SQL = "SELECT k, COUNT(*) AS n FROM t GROUP BY k"
Pair = tuple[Vector, Vector]


def world(neighbours: str) -> World:
    """Each unit has its first key twice, and a row of nobody's is in every database."""
    rows = [
        ((str(unit), key), sum(1 << at for at, db in enumerate(DATABASES) if unit in db))
        for unit, own in enumerate(UNITS)
        for key in (own[0], *own)
    ]
    columns = (Column("id", "BIGINT", ()), Column("k", "VARCHAR", ()))
    made = Table("t", columns, {"unit": {"column": "id", "of": "who"}}, (*rows, (("NULL", "'a'"), (1 << 62) - 1)))
    policy = Policy.model_validate(
        {
            "version": 1, "name": "keys", "search": "auto", "units": {"who": {}}, "tables": {"t": made.entry},
            "privacy": {"accountant": "zcdp", "neighbours": neighbours},
            "budgets": {"total": {"rho": 10, "delta": 0.1}},
        }
    )  # fmt: skip
    return World(policy, (made,), len(DATABASES) - 1, "keys first")


def planned(store: Store, of: World, rho: Fraction) -> PlannedRelease:
    """What shows the keys."""
    settings = QuerySettings(rho=rho, delta=DELTA)
    plan = FactStore(store).compile(
        lambda public: compile_query(Source(SQL), of.policy, public, settings, (), store.table_sql)
    )
    assert plan.keys_first is not None
    (release,) = plan.keys_first.releases
    return release


def pairs(found: Sequence[Vector], neighbours: str) -> Iterator[Pair]:
    """Neighbours, as they are and the other way round: one unit more; or another one in the place of one."""
    for (one, a), (other, b) in product(zip(DATABASES, found, strict=True), repeat=2):
        apart = len({*one} ^ {*other})
        if apart == 1 if neighbours == "add_remove" else apart == 2 and len(one) == len(other):
            yield a, b


@lru_cache
def tail(variance: Fraction, least: int) -> float:
    """P(Z ≥ least), added up term by term."""
    reach = 40 * math.isqrt(math.ceil(variance)) + 40
    weights = [math.exp(-(z * z) / (2 * float(variance))) for z in range(-reach, reach + 1)]
    return math.fsum(weights[max(0, least + reach) :]) / math.fsum(weights)


def shows(release: PlannedRelease, vector: Vector) -> dict[object, float]:
    """Key → the probability that it is shown; of others it is 0."""
    threshold = release.measured.threshold
    assert threshold is not None
    mechanism = threshold.mechanism
    assert isinstance(mechanism, Additive)
    variance = release.measured.measurements[0].mechanism.parameter  # type: ignore[attr-defined]
    return {key: tail(variance, threshold.threshold - count) for key, (count,) in vector.items()}


def problems(release: PlannedRelease, pair: Pair) -> Iterator[str]:
    """What two neighbours say against the plan, of the pair in this order."""
    one, other = pair
    yield from violations(release, one, other)
    measured = release.measured
    moved = sum((one.get(k, [0])[0] - other.get(k, [0])[0]) ** 2 for k in {**one, **other})
    both = 2 if measured.contribution.ids == 2 else 1
    if moved > both * F**2:
        yield f"ρ {moved / F**2:.3f} of the promise"
    own = [p for key, p in shows(release, other).items() if key not in one]
    by_name = 1 - math.prod(1 - p for p in own)
    if by_name > DELTA * (1 + 1e-9):
        yield f"own keys show with {by_name:.4f}"


def lost(release: PlannedRelease, pair: Pair) -> float:
    """Σ max(0, P'(S) - e^ε·P(S)) over all sets S of shown keys, as a part of δ: ρ as ε at .01, and the threshold's."""
    ours, theirs = (shows(release, vector) for vector in pair)
    keys = list({**ours, **theirs})
    rho = float(release.measured.measurements[0].loss.rho)
    epsilon, apart = rho + 2 * math.sqrt(rho * math.log(100)), 0.0
    for shown in product((False, True), repeat=len(keys)):
        own, other = (
            math.prod(law.get(k, 0.0) if s else 1 - law.get(k, 0.0) for k, s in zip(keys, shown, strict=True))
            for law in (ours, theirs)
        )
        apart += max(0.0, other - math.exp(epsilon) * own)
    return apart / float(DELTA + Fraction(1, 100))


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(with_keys_first, "WEIGHT", F)
    monkeypatch.setattr(with_keys_first, "MOST_GROUPS", len(KEYS))


def attacked(neighbours: str, rho: Fraction = RHOS[0]) -> tuple[PlannedRelease, list[Vector]]:
    store, of = Store(), world(neighbours)
    store.load(of)
    try:
        release, found = planned(store, of, rho), []
        for db in range(len(DATABASES)):
            store.show(db)
            found.append(exact(release, store))
        return release, found
    finally:
        store.close()


@pytest.mark.parametrize("neighbours", ["add_remove", "replace_one"])
@pytest.mark.parametrize(("kept", "rho"), [(3, RHOS[0]), (3, RHOS[1]), (2, RHOS[0]), (1, RHOS[1])])
def test_neighbours(neighbours: str, kept: int, rho: Fraction, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(with_keys_first, "MOST_GROUPS", kept)
    release, found = attacked(neighbours, rho)
    seen = list(pairs(found, neighbours))
    assert len(seen) > 200
    assert not [problem for pair in seen for problem in problems(release, pair)]
    worst = max(lost(release, pair) for pair in seen)
    assert 0.1 < worst < 1, f"{worst}: it is no empty promise, and held"


def test_the_statement_adds_what_the_definition_says() -> None:
    """⌊√(F²/K)⌋ for each of a unit's K groups, whatever rows it has there."""
    _, found = attacked("add_remove")
    names = {"'a'": ("a",), "'b'": ("b",), "NULL": (None,)}
    for db, vector in zip(DATABASES, found, strict=True):
        counts: dict[object, int] = {}
        for own in (UNITS[unit] for unit in db):
            for key in own:
                counts[names[key]] = counts.get(names[key], 0) + math.isqrt(F**2 // len(own))
        assert {key: count for key, (count,) in vector.items()} == counts


# --- twins -----------------------------------------------------------------------------------------------------------


def _weights(of: Callable[[int], int]) -> Callable[[int, int], tuple[tuple[int, int], ...]]:
    return lambda weight, groups: tuple((k, of(k)) for k in range(1, groups + 1))


honest_steps, honest_delta = calibration.steps, partition_selection.delta_of
MUTANTS = {
    "⌈F/√K⌉": (weighted, "weights_by_groups", _weights(lambda k: math.isqrt(F**2 // k - 1) + 1)),
    "weight F": (weighted, "weights_by_groups", _weights(lambda k: F)),
    "no union over K": (partition_selection, "delta_of", lambda t, r, g, z: honest_delta(t, r, 1, z)),
    "T from the smallest weight": (calibration, "steps", lambda f, g: ((g, honest_steps(f, g)[-1][1]),)),
    "> accounted for ≥": (partition_selection, "delta_of", lambda t, r, g, z: honest_delta(t + 1, r, g, z)),
}


@contextmanager
def broken(name: str) -> Iterator[None]:
    where, what, how = MUTANTS[name]
    partition_selection.largest_delta.cache_clear()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(where, what, how)
        yield
    partition_selection.largest_delta.cache_clear()


@pytest.mark.parametrize("name", MUTANTS)
@pytest.mark.parametrize("neighbours", ["add_remove", "replace_one"])
def test_a_broken_twin_is_found(name: str, neighbours: str) -> None:
    told = list[str]()
    for rho in RHOS:
        with broken(name):
            release, found = attacked(neighbours, rho)
        told += [problem for pair in pairs(found, neighbours) for problem in problems(release, pair)]
    assert told, f"{name} was not noticed"


def test_many_groups_of_a_unit() -> None:
    """A unit's groups are counted once each, however many rows they have; w is 0 beyond the last step."""
    release, _ = attacked("add_remove")
    threshold = release.measured.threshold
    assert threshold is not None and threshold.g == len(KEYS)
    for k in range(1, 1001):
        w = next(w for most, w in honest_steps(1024, 1000) if most >= k)
        assert k * w * w <= 1024**2
        assert w * w * k * 4 > 1024**2 * 3, "little is lost"
    with pytest.raises(ValueError, match="steps"):
        replace(threshold, steps=threshold.steps[:-1])
