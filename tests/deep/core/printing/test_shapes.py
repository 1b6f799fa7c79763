"""The SQL computes the integers of the definition: it agrees with a plain Python model, and with the direct shape."""

from __future__ import annotations

import math
import random
from collections import defaultdict
from fractions import Fraction
from typing import Any

import pytest

from dpsql.core.ir.components import Component, ProductSum, RowCount, UnitCount, ValueSum
from dpsql.core.ir.nodes import BoundContributions
from dpsql.core.release.planned import PlannedRelease
from dpsql.planner.rewrites.rewrite_context import ContributionLimits
from dpsql.service.planning.public_facts import FactStore
from tests.support.neighbour_oracle import SALT, exact, plan_of
from tests.support.random_databases import Column, Store, Table, World, world_of

Row = tuple[int | None, str | None, int | None, bool]
"""(id, group, x, flag)"""

COLUMNS = (
    Column("pid", "BIGINT", ()),
    Column("g", "VARCHAR", (), {"domain": {"values": ["a", "b", "c"], "null": True}}),
    Column("h", "VARCHAR", ()),
    Column("x", "INTEGER", (), {"bounds": [-7, 4]}),
    Column("f", "BOOLEAN", ()),
)
QUERY = (
    "SELECT {keys} COUNT(*), COUNT(x), SUM(x), AVG(x), SUM(x) FILTER (WHERE f), AVG(x) FILTER (WHERE f), "
    "VAR_POP(x), STDDEV(x) FILTER (WHERE f), COUNT(DISTINCT pid) FROM t {group}"
)


def _rows(rng: random.Random, height: int) -> list[Row]:
    ids = [None, 1, 2, 3]
    groups = ["a", "b", "c", None, "elsewhere"]
    return [
        (rng.choice(ids), rng.choice(groups), rng.choice([None, -100, -7, -3, 0, 1, 4, 90]), rng.random() < 0.6)
        for _ in range(height)
    ]


def _world(rows: list[Row], limits: dict[str, Any]) -> World:
    def text(v: Any) -> str:
        return "NULL" if v is None else f"'{v}'" if isinstance(v, str) else str(v)

    stored = tuple((tuple(text(v) for v in (p, g, g, x, f)), -1) for p, g, x, f in rows)
    return world_of([Table("t", COLUMNS, {"unit": {"column": "pid"}, **limits}, stored)], 0, str(limits))


def _towards_zero(a: int, b: int) -> int:
    return a // b if a >= 0 else -(-a // b)


def _clip(x: int, low: int, high: int) -> int:
    return max(low, min(high, x))


def _argument(c: Component, x: int | None) -> int | None:
    """The clipped, centred argument in grid units, or its square to the nearest step."""
    if x is None:
        return None
    y = _clip(int(Fraction(x) / c.grid) - c.center, c.lo, c.hi)
    return math.floor(Fraction(y**2, c.step) + Fraction(1, 2)) - c.shift if isinstance(c, ProductSum) else y


def _partial(c: Component, rows: list[Row]) -> int:
    """The sum or count of one id in one group."""
    chosen = [r for r in rows if c.filter is None or r[3]]
    match c:
        case RowCount():
            return sum(c.arg is None or r[2] is not None for r in chosen)
        case ValueSum() | ProductSum():
            return sum(v for r in chosen if (v := _argument(c, r[2])) is not None)
        case UnitCount():
            return int(bool(chosen))
    raise AssertionError(c.kind)


def model(
    b: BoundContributions, components: tuple[Component, ...], rows: list[Row], order: Any
) -> dict[Any, list[int]]:
    """The definition, row by row."""
    grouped = bool(b.keys)
    public = b.input.sources is not None  # type: ignore[union-attr]
    by_id: dict[int, dict[Any, list[Row]]] = defaultdict(lambda: defaultdict(list))
    for row in rows:
        if row[0] is not None and not (grouped and public and row[1] == "elsewhere"):
            by_id[row[0]][(row[1],) if grouped else ()].append(row)
    totals: dict[Any, list[int]] = defaultdict(lambda: [0] * len(components))
    for pid, groups in by_id.items():
        if b.truncate_groups and grouped:
            kept = sorted(groups, key=lambda key, pid=pid: order(pid, *key))[: b.groups]
            groups = {k: groups[k] for k in kept}
        for key, own in groups.items():
            for i, c in enumerate(components):
                totals[key][i] += _weighted(b, c, key, own, groups)
    return dict(totals)


def _weighted(b: BoundContributions, c: Component, key: Any, own: list[Row], groups: dict[Any, list[Row]]) -> int:
    F, B, n, K = c.weight, c.magnitude, len(own), len(groups)
    spread = bool(b.keys) and not b.few_groups and not b.truncate_groups
    S = _partial(c, own)
    alone = isinstance(c, ValueSum) and not c.paired
    if isinstance(c, UnitCount):
        G = b.groups or b.rows
        assert G is not None
        return (F * G * S) // max(K, G) if spread else S
    if b.rows is not None:
        C = b.rows
        if alone:
            total = sum(abs(_partial(c, r)) for r in groups.values())
            return _towards_zero(F * C * B * S, max(C * B, total, 1))
        return _towards_zero(F * S * C, max(sum(map(len, groups.values())), C))
    M, G = b.per_group, b.groups
    assert M is not None and G is not None
    if alone:
        S = _clip(S, min(0, M * c.lo), max(0, M * c.hi))
        return _towards_zero(F * S * G, max(K, G)) if spread else F * S
    return _towards_zero(F * S * M * G, max(n, M) * max(K, G)) if spread else _towards_zero(F * S * M, max(n, M))


FORMS: list[tuple[dict[str, Any], str]] = [
    ({"max_rows_per_unit": 3}, ""),
    ({"max_rows_per_group": 2, "max_groups_per_unit": 2}, ""),
    ({"max_rows_per_unit": 3}, "g"),
    ({"max_rows_per_unit": 1}, "g"),
    ({"max_rows_per_group": 2, "max_groups_per_unit": 2}, "g"),
    ({"max_rows_per_group": 3, "max_groups_per_unit": 1}, "g"),
    ({"max_rows_per_group": 2, "max_groups_per_unit": 7}, "g"),
    ({"max_rows_per_unit": 2}, "h"),
    ({"max_rows_per_group": 1, "max_groups_per_unit": 2}, "h"),
]


def _release(store: Store, world: World, key: str, limits: ContributionLimits | None = None) -> PlannedRelease:
    store.load(world)
    sql = QUERY.format(keys=f"{key}," if key else "", group=f"GROUP BY {key}" if key else "")
    (planned,) = plan_of(store, FactStore(store), world, sql, limits).releases
    return planned


@pytest.mark.parametrize(("limits", "key"), FORMS, ids=str)
def test_the_sql_computes_the_model(limits: dict[str, Any], key: str) -> None:
    store, different = Store(), 0

    def order(pid: int, group: str | None) -> Any:
        text = "NULL::VARCHAR" if group is None else f"'{group}'"
        return store.connection.execute(f"SELECT hash({pid}, {text}, {SALT})").fetchone()[0]  # type: ignore[index]

    for seed in range(12):
        rng = random.Random(seed)
        rows = _rows(rng, rng.choice((0, 3, 10, 40)))
        planned = _release(store, _world(rows, limits), key)
        bounding = planned.measured.node.input
        assert isinstance(bounding, BoundContributions)
        expected = model(bounding, planned.measured.node.components, rows, order)
        found = exact(planned, store)
        for group in {**expected, **found}:
            zeros = [0] * len(planned.measured.node.components)
            assert found.get(group, zeros) == expected.get(group, zeros), (seed, group, bounding, rows)
        parts = planned.measured.node.components
        for group, values in found.items():
            own = [r for r in rows if not key or (r[1],) == group]
            different += [_partial(c, own) for c in parts] != [
                v // c.weight for c, v in zip(parts, values, strict=True)
            ]
    store.close()
    assert different > 3, "the limits never mattered"


@pytest.mark.parametrize("key", ["", "g", "h"])
@pytest.mark.parametrize("limits", [{"max_rows_per_unit": 60}, {"max_rows_per_group": 60, "max_groups_per_unit": 60}])
def test_shapes_agree_where_limits_do_not_bind(
    limits: dict[str, Any], key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows promised to be few are counted directly; limits that nobody reaches change nothing."""
    monkeypatch.setattr("dpsql.planner.cheapest_form.total_error", None)  # sums plain in both
    store = Store()
    promise = {"max_rows_per_unit": {"rows": 50, "enforce": "assume"}}
    for seed in range(10):
        rng = random.Random(seed)
        rows = _rows(rng, rng.choice((0, 1, 12, 50)))
        answers = []
        for chosen in (promise, limits):
            planned = _release(store, _world(rows, chosen), key)
            bounded = isinstance(planned.measured.node.input, BoundContributions)
            assert bounded is (chosen is limits)
            parts = planned.measured.measurements
            answers.append(
                {
                    group: [_value(v, m) for v, m in zip(values, parts, strict=True)]
                    for group, values in exact(planned, store).items()
                }
            )
        assert answers[0] == answers[1], (seed, rows)
    store.close()


def _value(v: int, m: Any) -> Fraction:
    """What an integer stands for, before the centre is added."""
    return v * m.unit
