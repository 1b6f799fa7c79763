"""Random ids by the ten thousand: parallel members together take no more of an id than one of them may alone.

The tables hold all ids at once, and each id has groups of its own (`name`, which no plan knows to be a function of the
id), so that one statement tells what every one of them adds. Weights are as coarse as a plan may choose them.
"""

from __future__ import annotations

import random
from fractions import Fraction
from typing import Any

import pytest

from dpsql.core.noise import parallel_composition
from dpsql.planner.rewrites.bounds import choose_grids
from dpsql.policy.policy import Policy
from dpsql.service.planning.public_facts import FactStore
from tests.support.neighbour_oracle import exact, plan_of
from tests.support.random_databases import Column, Store, Table, World

IDS = 10_000
PIVOT = (
    "COUNT(*) FILTER (WHERE s = 1) AS n1, AVG(x) FILTER (WHERE s = 2) AS m2, AVG(x) FILTER (WHERE s IN (3, 4)) AS m3, "
    "COUNT(x) FILTER (WHERE s IS NULL) AS n5"
)  # no member counts the rows with s = 5
FORMS: dict[str, tuple[dict[str, Any], str]] = {
    "C": ({"max_rows_per_unit": 3}, ""),
    "C, groups": ({"max_rows_per_unit": 3}, ", g"),
    "M and G": ({"max_rows_per_group": 2, "max_groups_per_unit": 2}, ", g"),
    "M and G, kept": ({"max_rows_per_group": 2, "max_groups_per_unit": 2}, ", h"),
}


def _world(limits: dict[str, Any], ids: int) -> tuple[World, list[tuple[Any, ...]]]:
    """A world, and the rows of its table."""
    rng = random.Random(7)
    names = [f"n{i}" for i in range(ids)]
    columns = (
        Column("pid", "BIGINT", ("1",)),
        Column("name", "VARCHAR", ("''",), {"domain": names, "nullable": False}),
        Column("g", "VARCHAR", ("''",), {"domain": ["a", "b", "c"], "nullable": False}),
        Column("h", "VARCHAR", ("''",)),
        Column("s", "INTEGER", ("1",)),
        Column("x", "INTEGER", ("1",), {"bounds": [-3, 8]}),
    )
    rows = []
    for i, name in enumerate(names):
        for _ in range(rng.choice((0, 1, 2, 3, 3, 4, 5, 7, 12))):
            group = rng.choice("abc")
            rows.append((i, name, group, group, rng.choice((1, 2, 3, 4, 5, None)), rng.choice((-3, 8, 8, 2, None)), 1))
    table = Table("t", columns, {"unit": {"column": "pid"}, **limits}, ())
    budgets = {"total": {"epsilon": 10, "delta": 1e-6}}
    found = Policy.model_validate({"version": 1, "name": "many", "tables": {"t": table.entry}, "budgets": budgets})
    return World(found, (table,), 0, f"{limits}"), rows


def shares(form: str, calls: str = PIVOT, ids: int = IDS) -> list[tuple[Fraction, Fraction, int]]:
    """For each id and parallel group of several: Σ l1 and Σ l2² of what members claim, and the members it moves."""
    limits, groups = FORMS[form]
    (world, rows), store = _world(limits, ids), Store()
    store.load(world)
    columns = list(zip(*rows, strict=True))
    listed = ", ".join(["unnest(?)"] * len(columns))
    store.connection.execute(f"INSERT INTO t SELECT {listed}", [list(column) for column in columns])
    sql = f"SELECT name{groups}, {calls} FROM t GROUP BY name{groups}"
    (planned,) = plan_of(store, FactStore(store), world, sql).releases
    vectors: dict[str, list[list[int]]] = {}
    for key, integers in exact(planned, store).items():
        vectors.setdefault(str(key[0]), []).append(integers)
    store.close()
    measurements = planned.measured.measurements
    assert {m.component.weight for m in measurements if m.component.kind != "units"} == {256}
    found = []
    for parallel in planned.measured.parallel_groups:
        if len(parallel) < 2:
            continue
        claims = [(i, measurements[i].sensitivity.l1, measurements[i].sensitivity.l2_squared) for i in parallel]
        for rows in vectors.values():
            l1 = [Fraction(sum(abs(row[i]) for row in rows), most) for i, most, _ in claims]
            l2 = [Fraction(sum(row[i] ** 2 for row in rows)) / most for i, _, most in claims]
            found.append((sum(l1, Fraction(0)), sum(l2, Fraction(0)), sum(one > 0 for one in l1)))
    return found


@pytest.mark.parametrize("form", FORMS)
def test_members_share_one_claim(form: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choose_grids, "MOST_WEIGHT", choose_grids.LEAST_WEIGHT)
    found = shares(form)
    assert len(found) > IDS  # a parallel group of counts and one of sums
    assert max(l1 for l1, _, _ in found) == 1 and max(l2 for _, l2, _ in found) == 1
    assert any(l1 == 1 and moved > 1 for l1, _, moved in found)


@pytest.mark.parametrize("form", ["C", "M and G"])
def test_sums_that_are_cut_by_themselves_share_none(form: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The broken twin: were sums alone in parallel groups, these ids would say so."""
    monkeypatch.setattr(choose_grids, "MOST_WEIGHT", choose_grids.LEAST_WEIGHT)
    monkeypatch.setattr(parallel_composition, "_weighed_by_all_rows", parallel_composition._bounded_by_each_row)
    assert max(l1 for l1, _, _ in shares(form, PIVOT.replace("AVG", "SUM"), 500)) > 1
