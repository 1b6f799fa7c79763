"""Claims about values hold on data: intervals and nullability of nested expressions, and integers inside their clips.

The sensitivity of a sum rests on one thing alone: `quantized` lands in [lo, hi] for whatever a row may hold.
"""

from __future__ import annotations

import math
import random
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest

from dpsql.core.ir.components import Component, ProductSum, ValueSum
from dpsql.core.ir.nodes import Release, key_sources
from dpsql.core.ir.types import Kind
from dpsql.core.numbers.interval import everything
from dpsql.core.printing.expressions import Aliases, Names, spell
from dpsql.core.printing.grid_integers import quantized
from dpsql.core.printing.relational_nodes import Emitter
from dpsql.core.values.value import Value, type_range
from dpsql.diagnostics.errors import Rejected
from dpsql.functions.expression_values import evaluate
from dpsql.service.planning.public_facts import FactStore
from tests.support.neighbour_oracle import plan_of
from tests.support.random_databases import NUMBERS, Column, Store, Table, World, row_world, world_of
from tests.support.random_queries import condition, names_of, number

INTEGERS = {
    "TINYINT": (-(2**7), 2**7 - 1), "SMALLINT": (-(2**15), 2**15 - 1), "INTEGER": (-(2**31), 2**31 - 1),
    "BIGINT": (-(2**63), 2**63 - 1), "HUGEINT": (-(2**127), 2**127 - 1), "UTINYINT": (0, 2**8 - 1),
    "USMALLINT": (0, 2**16 - 1), "UINTEGER": (0, 2**32 - 1), "UBIGINT": (0, 2**64 - 1),
}  # fmt: skip
DOUBLES = (
    "0", "-0.0", "'nan'", "'-nan'", "'inf'", "'-inf'", "5e-324", "-5e-324", "2.2250738585072014e-308", "1e308",
    "-1e308", "1.7976931348623157e308", "0.1", "-0.1", "1", "-1", "0.5", "2.5", "3.5", "-2.5", "1e15",
    "9007199254740993", "123456.789",
)  # fmt: skip
FLOATS = (
    "0", "-0.0", "'nan'", "'inf'", "'-inf'", "1e-45", "-1e-45", "3.4028235e38", "-3.4028235e38", "0.1", "-0.1",
    "16777217", "33554431", "1000000007", "0.5", "2.5", "-2.5", "999999.94",
)  # fmt: skip
DECIMALS = ((4, 1), (9, 2), (18, 3), (18, 18), (38, 0), (38, 10), (38, 37), (1, 0), (38, 20))


def _ends(precision: int, scale: int) -> tuple[Decimal, Decimal]:
    """The largest and the smallest positive value, exact at any precision."""
    return Decimal((0, (9,) * precision, -scale)), Decimal((0, (1,), -scale))


def _decimals(precision: int, scale: int) -> list[str]:
    top, step = _ends(precision, scale)
    values = [top, top.copy_negate(), step, -step, Decimal(0)]
    values += [
        v
        for v in (Decimal("0.5"), Decimal("-2.5"), Decimal("7"))
        if abs(v) <= top and -int(v.as_tuple().exponent) <= scale
    ]
    return [format(v, "f") for v in values]


def _cases() -> list[tuple[str, list[str], list[tuple[Any, Any]]]]:
    """(type, values, bounds): every numeric type with its extremes; bounds narrow, wide, negative and at its ends."""
    found: list[tuple[str, list[str], list[tuple[Any, Any]]]] = []
    for name, (least, most) in INTEGERS.items():
        values = sorted(
            {least, least + 1, -1, 0, 1, 2, 5, 7, most - 1, most, most // 2, most // 3} & _within(least, most)
        )
        bounds = [
            (0, 1),
            (0, 5),
            (1, 4),
            (least, most),
            (least, 0),
            (0, most),
            (most - 3, most),
            (most // 3, most // 2),
        ]
        bounds += [(-3, 4), (least, least + 3), (-5, -1)] if least < 0 else []
        found.append((name, [f"'{v}'" for v in values], bounds))
    wide: list[tuple[Any, Any]] = [
        (0, 1), (-5, 10), ("-0.1", "0.3"), (0, 1_000_000_050), (0, 1_000_000_007), (-1_000_000_007, 3), (-1e15, 1e15),
        (1e-300, 2e-300), (0, 1e299), (-1e299, 1e299), (0, 5e-324), ("0.3", "0.30000001"), (999_999, 1_000_000),
        (-7, -2), (1e18, 1.5e18), (-3e-310, 1e-309),
    ]  # fmt: skip
    found.append(("DOUBLE", list(DOUBLES), wide))
    found.append(("FLOAT", list(FLOATS), wide))
    for precision, scale in DECIMALS:
        top, step = _ends(precision, scale)
        ends: list[tuple[Any, Any]] = [
            (0, top),
            (top.copy_negate(), top),
            (top.copy_negate(), 0),
            (0, step),
            (step, top),
        ]
        found.append((f"DECIMAL({precision},{scale})", _decimals(precision, scale), ends))
    return found


def _within(least: int, most: int) -> set[int]:
    return {
        v for v in (least, least + 1, -1, 0, 1, 2, 5, 7, most - 1, most, most // 2, most // 3) if least <= v <= most
    }


def _shown(end: Any) -> str:
    return format(end, "f") if isinstance(end, Decimal) else str(end)


@pytest.mark.parametrize(("type_", "values", "bounds"), _cases(), ids=[c[0] for c in _cases()])
def test_quantized_lands_in_its_bounds(type_: str, values: list[str], bounds: list[tuple[Any, Any]]) -> None:
    """For every type, bounds and extreme value, alone (SUM) and centred (AVG); NULL only for NULL, NaN and ±∞."""
    store, checked = Store(), 0
    store.connection.execute("CREATE TABLE raw (x " + type_ + ")")
    listed = ", ".join(f"(CAST({v} AS {type_}))" for v in values)
    store.connection.execute(f"INSERT INTO raw VALUES {listed}, (NULL)")
    table = Table("t", (Column("x", type_, ()),), {"unit": {"rows": 1}}, ())
    world = world_of([table], 0, type_)
    store.load(world)
    for low, high in bounds:
        for aggregate in ("SUM", "AVG"):
            sql = f"SELECT {aggregate}(CLIP(x, {_literal(low, type_)}, {_literal(high, type_)})) FROM t"
            try:
                (planned,) = plan_of(store, FactStore(store), world, sql).releases
            except Rejected as refusal:
                known = {"DP410", "DP106", "DP202"} if low != high else {"DP410", "DP106", "DP202", "DP204"}
                assert {d.code for d in refusal.diagnostics} <= known, (sql, refusal)
                continue
            component = next(c for c in planned.measured.node.components if isinstance(c, ValueSum | ProductSum))
            checked += _check_quantized(store, planned.measured.node, component, (type_, low, high))
    store.close()
    assert checked > len(values) or type_ == "DECIMAL(38,37)", "nothing was checked"


def _literal(end: Any, type_: str) -> str:
    return (
        format(end, "f") if isinstance(end, Decimal) else repr(float(end)) if type_ in ("DOUBLE", "FLOAT") else str(end)
    )


def _check_quantized(store: Store, node: Release, c: Component, what: tuple[Any, ...]) -> int:
    scan = node.input
    while hasattr(scan, "input"):
        scan = scan.input
    (column,) = scan.columns

    value = Value(column.type, everything(), type_range(column.type), True, column.type.kind is not Kind.DOUBLE)
    names = Names({column.uid: "x"}, {column.uid: value}, store.dialect)
    rows = store.connection.execute(f"SELECT x, {quantized(c, names)} AS q, typeof(q) FROM raw").fetchall()
    for x, q, type_ in rows:
        nothing = x is None or (isinstance(x, float) and not math.isfinite(x))
        assert (q is None) == nothing, (what, x, q)
        if q is None:
            continue
        assert type_ in ("INTEGER", "BIGINT"), (what, type_)
        assert c.lo <= q <= c.hi, (what, x, q, c.lo, c.hi)
        exact = (Fraction(x) / c.grid) - c.center
        clipped = min(max(exact, Fraction(c.lo)), Fraction(c.hi))
        slack = 1 + abs(Fraction(c.center)) / 2**40  # one grid unit, and DOUBLE's own rounding
        assert abs(q - clipped) <= slack, (what, x, q, float(clipped), c)
    return len(rows)


# --- nested expressions ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(6))
def test_intervals_hold_on_data(seed: int) -> None:
    """Every value of a random expression lies in its interval, and is NULL only where it may be."""
    store, checked = Store(), 0
    for world_seed in range(seed * 5, seed * 5 + 5):
        rng = random.Random(world_seed)
        world = row_world(rng)
        store.load(world)
        facts = FactStore(store)
        names = names_of(world, "log", "t")
        for _ in range(12):
            call = rng.choice(("SUM", "AVG"))
            where = f" WHERE {condition(rng, names)}" if rng.random() < 0.3 else ""
            sql = f"SELECT {call}({number(rng, names, 3)}) FROM log AS t{where}"
            checked += _check_expression(store, facts, world, sql)
    store.close()
    assert checked > 100


def _check_expression(store: Store, facts: FactStore, world: World, sql: str) -> int:
    try:
        plan = plan_of(store, facts, world, sql)
    except Rejected:
        return 0
    (planned,) = plan.releases
    tagged = next(t for t in plan.tree.walk() if t.node is planned.measured.node)
    (below,) = tagged.inputs
    sums = [c for c in planned.measured.node.components if isinstance(c, ValueSum | ProductSum)]
    if not sums:
        return 0  # of a constant: it is counted
    (component,) = sums
    assert component.arg is not None and key_sources(planned.measured.node) == ()

    block = Emitter(store.dialect, store.table_sql, {}, Aliases()).block(below)
    value = evaluate(component.arg, below.fact.env)
    text = spell(component.arg, block.names)[0]
    rows = list(store.fetch(f"SELECT {text}, {quantized(component, block.names)}\n{block.clause()}").rows())
    for x, q in rows:
        if x is None:
            assert value.nullable, sql
            assert q is None, sql
            continue
        if isinstance(x, float) and not math.isfinite(x):
            assert not value.finite, sql
            assert q is None, sql
            continue
        low, high = value.interval.lo, value.interval.hi
        assert low is not None and high is not None
        # Intervals are those of real arithmetic; a DOUBLE may leave them by its rounding.
        slack = Fraction(1, 2**40) * max(abs(low), abs(high), 1) if isinstance(x, float) else 0
        assert low - slack <= Fraction(x) <= high + slack, (sql, x, value.interval)
        assert component.lo <= q <= component.hi, (sql, x, q)
    return len(rows)


def test_the_pools_hold_the_extremes() -> None:
    """The random attacks see values beyond all declared bounds."""
    assert all(len(pool) >= 5 for pool in NUMBERS.values())
