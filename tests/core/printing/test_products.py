"""A product of two arguments on their grids: DuckDB computes the integer that is claimed, whatever they are."""

from __future__ import annotations

import random
from dataclasses import replace
from fractions import Fraction

import duckdb
import pytest

from dpsql.core.ir.components import Comoment, Component, ProductSum
from dpsql.core.ir.expressions import Column, walk
from dpsql.core.ir.nodes import Release
from dpsql.core.printing.expressions import Names
from dpsql.core.printing.grid_integers import comoment, quantized
from dpsql.spelling.duckdb_functions import DUCKDB
from tests.support.planning import planned, policy

SPANS = [((-2, 3), (0, 9)), ((-1000, 1000), (-7, 7)), ((5, 9), (-3, -1)), ((0, 2**31), (-(2**31), 2**31))]


def _component(y: tuple[int, int], x: tuple[int, int]) -> tuple[Component, Names]:
    """The component of the products, over columns `y` and `x`."""
    tables = f"""
t:
  unit: {{rows: 1}}
  columns:
    y: {{type: bigint, bounds: {list(y)}}}
    x: {{type: double, bounds: {list(x)}}}
"""
    plan = planned("SELECT COVAR_POP(y, x) FROM t", policy(tables))
    (tagged,) = [t for t in plan.tree.walk() if isinstance(t.node, Release)]
    assert isinstance(tagged.node, Release)
    (found,) = (c for c in tagged.node.components if isinstance(c, ProductSum) and c.times is not None)
    uids = {e.uid: e.name for arg in found.arguments for e in walk(arg) if isinstance(e, Column)}
    return found, Names(uids, tagged.inputs[0].fact.env, DUCKDB)


def _clipped(value: float, grid: Fraction, center: int, lo: int, hi: int) -> int:
    return max(lo, min(hi, round(Fraction(value) / grid) - center))


@pytest.mark.parametrize(("y", "x"), SPANS)
def test_the_engine_computes_what_is_claimed(y: tuple[int, int], x: tuple[int, int]) -> None:
    """Whole numbers inside of the bounds, at them and far beyond them; the rounding of halves does not come up."""
    c, names = _component(y, x)
    sql = quantized(c, names)
    assert c.times is not None
    chance = random.Random(3)
    rows = [(a, float(b)) for a in (*y, -(2**62), 2**62) for b in (*x, -1e308, 1e308)]
    steps = [int(max(Fraction(1), grid)) for grid in (c.grid, c.times.grid)]
    for _ in range(300):
        whole = [chance.randint(low - 2, high + 2) for low, high in (y, x)]
        rows.append((whole[0] - whole[0] % steps[0], float(whole[1] - whole[1] % steps[1])))
    connection = duckdb.connect()
    connection.execute("CREATE TABLE t (i INTEGER, y BIGINT, x DOUBLE)")
    listed = [value for i, row in enumerate(rows) for value in (i, *row)]
    connection.execute(f"INSERT INTO t VALUES {', '.join(['(?, ?, ?)'] * len(rows))}", listed)
    found = [v for (v,) in connection.execute(f"SELECT {sql} FROM t ORDER BY i").fetchall()]
    for (a, b), value in zip(rows, found, strict=True):
        u = _clipped(max(min(a, y[1]), y[0]), c.grid, c.center, c.lo, c.hi)
        v = _clipped(max(min(b, x[1]), x[0]), c.times.grid, c.times.center, c.times.lo, c.times.hi)
        assert value == c.stepped(u * v) and c.ends[0] <= value <= c.ends[1]
    assert {min(found), max(found)} == set(c.ends)


def test_what_is_not_valid_has_no_product() -> None:
    sql = quantized(*_component((-2, 3), (0, 9)))
    connection = duckdb.connect()
    values = "(NULL, 1.0), (1, NULL), (1, 'nan'::DOUBLE), (1, 'inf'::DOUBLE), (NULL, NULL)"
    found = connection.execute(f"SELECT {sql} FROM (VALUES {values}) AS t(y, x)").fetchall()
    assert found == [(None,)] * 5


def test_a_step_halves_the_range_until_it_fits() -> None:
    c, _ = _component((0, 2**31), (-(2**31), 2**31))
    low, high = c.ends
    assert c.step > 1 and high - low <= 2**30 and abs(low + high) <= 1
    assert replace(c, step=1, shift=0).magnitude > 2**30


def test_a_comoment_is_that_of_exactly_its_rows() -> None:
    """It is rounded down to steps, whatever its sign, and is 0 of any other number of rows."""
    product, names = _component((-3, 4), (-6, 5))
    connection, chance = duckdb.connect(), random.Random(5)
    for n, step in ((1, 1), (2, 1), (5, 4), (6, 16)):
        assert product.times is not None
        c = Comoment(
            product.arg, grid=product.grid, center=product.center, lo=product.lo, hi=product.hi, step=step,
            times=product.times, rows=n,
        )  # fmt: skip
        databases = [[(chance.randint(-9, 9), chance.randint(-9, 9)) for _ in range(n)] for _ in range(40)]
        moments = []
        for rows in databases:
            u = [_clipped(max(min(a, 4), -3), c.grid, c.center, c.lo, c.hi) for a, _ in rows]
            v = [_clipped(max(min(b, 5), -6), c.times.grid, c.times.center, c.times.lo, c.times.hi) for _, b in rows]
            moments.append((n * sum(a * b for a, b in zip(u, v, strict=True)) - sum(u) * sum(v)) // step)
        assert n == 1 or len({*moments}) > n
        for more, expected in (((), moments), (((4, 5),), [0] * len(databases))):
            listed = [f"({i}, {y}, {x})" for i, rows in enumerate(databases) for y, x in (*rows, *more)]
            table = f"(SELECT i, y::BIGINT AS y, x::DOUBLE AS x FROM (VALUES {', '.join(listed)}) AS v(i, y, x)) AS t"
            sql = f"SELECT {comoment(c, names)} FROM {table} GROUP BY i ORDER BY i"
            assert connection.execute(sql).fetchall() == [(m,) for m in expected]
