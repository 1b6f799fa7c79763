"""What the rows of one id weigh in histograms of quantiles: together as much as they do as a COUNT."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest

from dpsql.core.ir.components import QuantileChoice
from dpsql.core.printing.dialects.duckdb import DuckDB
from dpsql.core.release import noisy
from dpsql.core.release.drawing import EngineAsk
from dpsql.core.release.histograms import Histograms
from dpsql.service.planning.public_facts import FactStore
from tests.support.neighbour_oracle import SALT, plan_of
from tests.support.random_databases import Column, Store, Table, world_of

ROWS = (
    [("1", "'a'", x) for x in ("1", "2", "3", "NULL")]
    + [("1", "'b'", "4")]
    + [("1", "'c'", x) for x in ("5", "6", "7")]
)
ROWS += [("2", "'a'", "9"), ("NULL", "'a'", "9")]
FILTER = " FILTER (WHERE x <> 3)"


def weights(limits: dict[str, Any], sql: str) -> dict[object, dict[int, Fraction]]:
    """Group → value → what its rows weigh, in rows."""
    columns = (
        Column("pid", "BIGINT", ()),
        Column("g", "VARCHAR", (), {"domain": ["a", "b", "c"], "nullable": False}),
        Column("h", "VARCHAR", ()),
        Column("x", "INTEGER", (), {"bounds": [0, 9]}),
    )
    table = Table("t", columns, {"unit": {"column": "pid"}, **limits}, tuple(((u, g, g, x), 1) for u, g, x in ROWS))
    store, world = Store(), world_of([table], 0, "weights")
    store.load(world)
    try:
        (planned,) = plan_of(store, FactStore(store), world, sql).releases
        found = noisy._fetch(planned, EngineAsk(store, SALT))
    finally:
        store.close()
    i, m = next((i, m) for i, m in enumerate(planned.measured.measurements) if isinstance(m.component, QuantileChoice))
    column, shown = found.columns[i], dict[object, dict[int, Fraction]]()
    assert isinstance(column, Histograms)
    for group, key in enumerate(found.keys):
        there = slice(int(column.ends[group - 1]) if group else 0, int(column.ends[group]))
        pairs = zip(column.at[there].tolist(), column.weights.array[there].tolist(), strict=True)
        shown[key[0] if key else None] = {cell: Fraction(w, m.component.weight) for cell, w in pairs}
    return shown


def same(found: dict[object, dict[int, Fraction]], wanted: dict[object, dict[int, Fraction]]) -> None:
    """But for what is rounded down."""
    assert {k: set(v) for k, v in found.items()} == {k: set(v) for k, v in wanted.items()}
    for key, held in wanted.items():
        for value, weight in held.items():
            assert 0 <= weight - found[key][value] < Fraction(1, 256), (key, value, found)


@pytest.fixture(params=["joined", "in windows"], autouse=True)
def _way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "in windows":
        monkeypatch.setattr(DuckDB, "weighs_in_windows", True)


@pytest.mark.parametrize("where", ["", FILTER])
def test_weights(where: str) -> None:
    """By all rows of the id in the group and all its groups, whatever a filter or a NULL leaves of them."""

    def by_group(a: Fraction, b: Fraction, c: Fraction) -> dict[object, dict[int, Fraction]]:
        held = {1: a, 2: a, 3: a, 9: Fraction(1)}
        if where:
            del held[3]
        return {"a": held, "b": {4: b}, "c": {5: c, 6: c, 7: c}}

    each = Fraction(3, 8)  # C = 3 of 8 rows
    grouped = f"SELECT g, MEDIAN(x){where} FROM t GROUP BY g"
    same(weights({"max_rows_per_unit": 3}, grouped), by_group(each, each, each))
    of_all = {v: w for held in by_group(each, each, each).values() for v, w in held.items()}
    same(weights({"max_rows_per_unit": 3}, f"SELECT MEDIAN(x){where} FROM t"), {None: of_all})
    two = Fraction(2, 3)  # G = 2 of 3 groups, M = 2 of 4, 1 and 3 rows
    limits = {"max_rows_per_group": 2, "max_groups_per_unit": 2}
    same(weights(limits, grouped), by_group(two / 2, two, two * 2 / 3))
    few = {"max_rows_per_group": 2, "max_groups_per_unit": 3}
    same(weights(few, grouped), by_group(Fraction(1, 2), Fraction(1), Fraction(2, 3)))


def test_truncated_groups() -> None:
    """An id counts in its kept groups alone."""
    limits = {"max_rows_per_group": 2, "max_groups_per_unit": 1}
    found = weights(limits, "SELECT h, MEDIAN(x) FROM t GROUP BY h")
    own = {key: {v: w for v, w in held.items() if v != 9} for key, held in found.items()}
    (kept,) = (held for held in own.values() if held)
    assert sum(kept.values()) + Fraction(1, 64) >= 1 and sum(kept.values()) <= 2
