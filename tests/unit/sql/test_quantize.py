"""A SUM's argument on its integer grid: DuckDB computes the rounded, clipped quotient for every kind of value."""

from __future__ import annotations

import math
from fractions import Fraction
from pathlib import Path

import duckdb
import pytest

from dpsql.compiler import Settings
from dpsql.diagnostics.diagnostic import Source
from dpsql.plan.components import Component, Measure
from dpsql.plan.expr import Column, walk
from dpsql.plan.nodes import Release
from dpsql.policy.load import load_policy
from dpsql.session.check import static_plan
from dpsql.session.settings import Asked
from dpsql.sql.emit import Names
from dpsql.sql.quantize import quantized

POLICY = """\
version: 1
name: numbers
tables:
  t:
    unit: {rows: 1}
    columns:
      x: {type: "TYPE", bounds: [LOW, HIGH]}
budgets:
  total: {epsilon: 10, delta: 1e-6}
"""
INF, NAN = math.inf, math.nan
DOUBLES = [(0, 200000), (-1e15, 1e15), (-20, 500), (0.1, 0.7), (0, 1e-310), (-3, -1), (5, 5.000001), (0, 1)]


def component(tmp_path: Path, type_: str, low: float, high: float, aggregate: str) -> tuple[Component, str]:
    """The component of the aggregate's sum, and its printed argument over a column `x`."""
    path = tmp_path / "numbers.yaml"
    path.write_text(POLICY.replace("TYPE", type_).replace("LOW", str(low)).replace("HIGH", str(high)))
    source = Source(f"SELECT {aggregate}(x) FROM t")
    plan = static_plan(source, load_policy(path), settings=Asked(1).settled(Settings()))
    (tagged,) = [t for t in plan.tree.walk() if isinstance(t.node, Release)]
    found = next(c for c in tagged.node.components if c.measure is Measure.SUM)
    assert found.arg is not None
    (uid,) = {e.uid for e in walk(found.arg) if isinstance(e, Column)}
    return found, quantized(found, Names({uid: "x"}, tagged.inputs[0].fact.env))


def pure(value: float | int | None, c: Component) -> int | None:
    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        return None
    # DuckDB computes value · 2^k - center in doubles; both are rounded to the nearest integer, ties to even.
    low, high = ((end + c.center) * c.grid for end in (c.lo, c.hi))
    units = Fraction(min(high, max(low, Fraction(value)))) / c.grid
    if isinstance(value, float):
        return round(float(units) - c.center)
    whole, rest = divmod(abs(units), 1)
    return int(whole + (rest >= Fraction(1, 2))) * (1 if units >= 0 else -1) - c.center


@pytest.mark.parametrize("aggregate", ["SUM", "AVG"])
@pytest.mark.parametrize(("low", "high"), DOUBLES)
def test_doubles(tmp_path: Path, low: float, high: float, aggregate: str) -> None:
    c, sql = component(tmp_path, "double", low, high, aggregate)
    inside = [low + (high / 16 - low / 16) * i for i in range(17)]
    ends = [
        f(end)
        for end in (low, high)
        for f in (float, lambda x: math.nextafter(x, INF), lambda x: math.nextafter(x, -INF))
    ]
    values = [None, NAN, INF, -INF, 0.0, -0.0, 5e-324, 1.7e308, -1.7e308, *map(float, inside), *ends]
    with duckdb.connect() as connection:
        connection.execute("CREATE TABLE t (x DOUBLE)")
        connection.executemany("INSERT INTO t VALUES (?)", [(v,) for v in values])
        found = [row[0] for row in connection.execute(f"SELECT {sql} FROM t ORDER BY rowid").fetchall()]
    assert found == [pure(v, c) for v in values]
    assert all(v is None or c.lo <= v <= c.hi for v in found)
    assert {c.lo, c.hi} <= set(found)


@pytest.mark.parametrize("aggregate", ["SUM", "AVG"])
@pytest.mark.parametrize(
    ("type_", "low", "high"),
    [
        ("integer", 0, 100), ("tinyint", -100, 27), ("bigint", 0, 2**40), ("bigint", -(2**62), 2**62 - 1),
        ("ubigint", 3, 10), ("hugeint", -(2**70), 2**71), ("integer", 7, 8),
    ],
)  # fmt: skip
def test_integers(tmp_path: Path, type_: str, low: int, high: int, aggregate: str) -> None:
    c, sql = component(tmp_path, type_, low, high, aggregate)
    bits = {"tinyint": 7, "integer": 31, "bigint": 63, "ubigint": 64, "hugeint": 127}[type_]
    least = 0 if type_ == "ubigint" else -(2**bits)
    step = max(1, (high - low) // 37)
    values = [None, least, 2**bits - 1, low - 1, high + 1, *range(low, high + 1, step), high]
    values = [v for v in values if v is None or least <= v < 2**bits]
    listed = ", ".join(f"({i}, CAST({'NULL' if v is None else repr(str(v))} AS {type_}))" for i, v in enumerate(values))
    found = [row[0] for row in duckdb.sql(f"SELECT {sql} FROM (VALUES {listed}) t(i, x) ORDER BY i").fetchall()]
    assert found == [pure(v, c) for v in values]
    assert all(v is None or c.lo <= v <= c.hi for v in found)
