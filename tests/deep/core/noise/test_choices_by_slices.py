"""Quantiles and modes of slices that exclude each other: together they lose no more than one of them may alone.

All row sets of a tiny unit, as of quantiles (test_quantile_neighbours.py); the losses of all members of a parallel
group are added up, pair by pair.
"""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Any

import pytest

from dpsql.core.ir.nodes import Release
from dpsql.core.noise.measurement import MeasuredRelease
from dpsql.core.printing.forms import sliced
from dpsql.core.printing.shapes import direct, weighed_rows
from dpsql.planner.rewrites.releases import cut_slices
from dpsql.service.planning.public_facts import FactStore
from tests.deep.core.noise.test_quantile_neighbours import (
    AND_NULL,
    M_AND_G,
    ONE,
    ORDERS,
    ROW,
    TWO,
    Form,
    in_epsilon,
    in_rho,
)
from tests.support.chosen_losses import Database, changed, histograms_of, loss_of_group, renyi_of_group
from tests.support.neighbour_oracle import plan_of
from tests.support.random_databases import Store


def _pivot(call: str, *conditions: str) -> str:
    return ", ".join(f"{call} FILTER (WHERE {each}) AS a{i}" for i, each in enumerate(conditions))


BY_G = _pivot("QUANTILE_DISC(x, 0.5)", "g = 'a'", "g = 'b'", "g IS NULL")
BY_X = _pivot("QUANTILE_DISC(x, 0.5)", "x < 100", "x >= 100")
MODES = _pivot("MODE(g)", "x < 100", "x >= 100")
HIGH = _pivot("QUANTILE_DISC(x, 0.9)", "x < 100", "x >= 100")
PROMISED: dict[str, Any] = {"max_rows_per_unit": {"rows": 2, "enforce": "assume"}}

FORMS: dict[str, Form] = {
    "rows": Form({}, f"SELECT {BY_G} FROM t", **ROW),
    "rows by groups": Form({}, f"SELECT g, {BY_X} FROM t GROUP BY g", **ROW),
    "rows, 0.9": Form({}, f"SELECT {HIGH} FROM t", **ROW),
    "rows, modes": Form({}, f"SELECT {MODES} FROM t", **ROW),
    "promised": Form(PROMISED, f"SELECT {BY_G} FROM t", rows=2),
    "promised by groups": Form(PROMISED, f"SELECT g, {BY_X} FROM t GROUP BY g", rows=2, groups=TWO),
    "C": Form({"max_rows_per_unit": 2}, f"SELECT {BY_G} FROM t"),
    "C by groups": Form({"max_rows_per_unit": 2}, f"SELECT g, {BY_X} FROM t GROUP BY g", groups=TWO),
    "C, modes": Form({"max_rows_per_unit": 2}, f"SELECT {MODES} FROM t", values=AND_NULL, groups=TWO),
    "M, G": Form(M_AND_G, f"SELECT g, {BY_X} FROM t GROUP BY g", rows=4, groups=TWO),
    "M, truncated groups": Form(
        {**M_AND_G, "max_groups_per_unit": 1}, f"SELECT h, {BY_X} FROM t GROUP BY h", groups=TWO
    ),
}


def losses(form: Form) -> tuple[int, float, float]:
    """The size of the parallel group, and the most that its members lose together, as parts of what one costs."""
    store, world = Store(), form.world()
    store.load(world)
    try:
        (planned,) = plan_of(store, FactStore(store), world, form.sql, form.own).releases
        databases: list[Database] = []
        for db in range(world.neighbours + 1):
            store.show(db)
            databases.append(histograms_of(planned, store))
    finally:
        store.close()
    measured: MeasuredRelease = planned.measured
    own = max(measured.parallel_groups, key=len)
    chosen = [i for i in range(len(measured.measurements)) if i != measured.node.threshold]
    pure = {i: in_epsilon(measured.measurements[i]) for i in own}
    ranged = {i: in_rho(measured.measurements[i]) for i in own}
    epsilon, rho = max(e for _, e in pure.values()), max(r for _, r in ranged.values())
    most, furthest = Decimal(0), 0.0
    pairs = {
        tuple(tuple(sorted(changed(databases[x], databases[y], chosen.index(i)))) for i in own)
        for pair in form.pairs()
        for x, y in (pair, pair[::-1])
    }
    for moved in pairs:
        most = max(
            most,
            sum((loss_of_group(a, b, pure[i][0]) for i, m in zip(own, moved, strict=True) for a, b in m), Decimal(0)),
        )
        for order in ORDERS:
            told = (renyi_of_group(a, b, ranged[i][0], order) for i, m in zip(own, moved, strict=True) for a, b in m)
            furthest = max(furthest, math.fsum(told) / order)
    return len(own), float(most / epsilon), furthest / rho


@pytest.mark.one_in(3)
@pytest.mark.parametrize("name", FORMS)
def test_choices_of_slices_lose_together_what_one_may(name: str) -> None:
    size, epsilon, rho = losses(FORMS[name])
    assert size == FORMS[name].sql.count("FILTER"), "they are as one"
    assert epsilon <= 1 + 1e-9 and rho <= 1 + 1e-9
    assert epsilon > (0.5 if "modes" in name else 0.9), "some pair loses much of it: of few values no mode loses all"


@pytest.mark.parametrize("form", [Form(ONE, f"SELECT {BY_X} FROM t", rows=1, full=1, replaced=True, groups=TWO[:1])])
def test_choices_of_replaced_ids_share_nothing(form: Form) -> None:
    size, epsilon, rho = losses(form)
    assert size == 1 and epsilon <= 1 + 1e-9 and rho <= 1 + 1e-9


# --- broken twins ----------------------------------------------------------------------------------------------------

OVERLAP = _pivot("QUANTILE_DISC(x, 0.5)", "g IN ('a', 'b')", "g IN ('b', 'c')", "x > -9")


def _filters(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each choice reads its own condition, as if that were its slice."""

    def choices(node: Release) -> list[tuple[sliced.Sets, tuple[int, ...]]]:
        return [((), (i,)) for i in range(len(node.components)) if i != node.threshold]

    monkeypatch.setattr(direct, "choices", choices)
    monkeypatch.setattr(sliced, "choices", choices)


@pytest.mark.parametrize("limits", [{}, {"max_rows_per_unit": 2}], ids=["rows", "weighed"])
def test_a_wrong_guess_costs_nothing_and_filters_are_found(
    limits: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cut_slices, "are_disjoint", lambda a, b: True)
    form = Form(limits, f"SELECT {OVERLAP} FROM t", **(ROW if not limits else {"values": ("-5", "70000")}))
    size, epsilon, rho = losses(form)
    assert size == 3 and epsilon <= 1 + 1e-9 and rho <= 1 + 1e-9
    _filters(monkeypatch)
    size, epsilon, rho = losses(form)
    assert size == 3 and epsilon > 1.9 and rho > 1.9


def test_weights_of_the_rows_of_a_slice_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows that weigh as much as if the id had no others: each member reaches its own claim."""
    monkeypatch.setattr(weighed_rows, "scaled", lambda d, partial, factor, magnitude, floors: str(2**20))
    form = Form({"max_rows_per_unit": 1}, f"SELECT {BY_G} FROM t", rows=3, full=1, values=("-5", "70000"))
    size, epsilon, _ = losses(form)
    assert size == 3 and epsilon > 1.9
