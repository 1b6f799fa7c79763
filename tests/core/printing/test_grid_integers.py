"""A SUM's argument on its integer grid: DuckDB computes the rounded, clipped quotient for every kind of value."""

from __future__ import annotations

import math
import random
import re
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import duckdb
import pytest

from dpsql.core.functions.value import Value
from dpsql.core.ir.components import Component, ProductSum, ValueSum
from dpsql.core.ir.expressions import Call, Column, walk
from dpsql.core.ir.nodes import Release
from dpsql.core.ir.types import INTEGER
from dpsql.core.printing.expressions import Block, Names
from dpsql.core.printing.grid_integers import counted_rows, quantized
from dpsql.core.printing.waist import waist
from dpsql.diagnostics.diagnostic import Source
from dpsql.diagnostics.errors import Rejected
from dpsql.planner.settings.query_settings import QuerySettings
from dpsql.policy.load import load_policy
from dpsql.service.checks.check import static_plan
from dpsql.service.privacy_settings import settled
from dpsql.spelling.duckdb_functions import DUCKDB

POLICY = """\
version: 1
name: numbers
tables:
  t:
    unit: {rows: 1}
    columns:
      x: {type: "TYPE", bounds: [LOW, HIGH]MORE}
budgets:
  total: {epsilon: 10, delta: 1e-6}
"""
INF, NAN = math.inf, math.nan
DOUBLES = [(0, 200000), (-1e15, 1e15), (-20, 500), (0.1, 0.7), (0, 1e-310), (-3, -1), (5, 5.000001), (0, 1)]


def component(
    tmp_path: Path, type_: str, low: float, high: float, aggregate: str, more: str = ""
) -> tuple[Component, str]:
    """The component of the aggregate's sum, and its printed argument over a column `x`."""
    found, names = summed(tmp_path, type_, low, high, aggregate, more)
    return found, quantized(found, names)


def summed(
    tmp_path: Path, type_: str, low: float, high: float, aggregate: str, more: str = ""
) -> tuple[ValueSum | ProductSum, Names]:
    """The component of the aggregate's sum, and the names of its columns, of which there is `x`."""
    path = tmp_path / "numbers.yaml"
    path.write_text(
        POLICY.replace("TYPE", type_).replace("LOW", str(low)).replace("HIGH", str(high)).replace("MORE", more)
    )
    source = Source(f"SELECT {aggregate}(x) FROM t")
    plan = static_plan(source, load_policy(path), settings=settled({"epsilon": 1}, QuerySettings()))
    (tagged,) = [t for t in plan.tree.walk() if isinstance(t.node, Release)]
    found = next(c for c in tagged.node.components if isinstance(c, ValueSum | ProductSum))
    assert found.arg is not None
    (uid,) = {e.uid for e in walk(found.arg) if isinstance(e, Column)}
    return found, Names({uid: "x"}, tagged.inputs[0].fact.env, DUCKDB)


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
    with duckdb.cursor() as connection:
        connection.execute("CREATE TEMP TABLE t (x DOUBLE)")
        connection.execute(f"INSERT INTO t VALUES {', '.join(['(?)'] * len(values))}", list(values))
        found = [row[0] for row in connection.execute(f"SELECT {sql} FROM t ORDER BY rowid").fetchall()]
    assert found == [pure(v, c) for v in values]
    assert all(v is None or c.lo <= v <= c.hi for v in found)
    assert {c.lo, c.hi} <= set(found)


def test_a_sum_counts_the_rows_whose_double_is_finite(tmp_path: Path) -> None:
    """Where no column below has the integer, as on engines that compute nothing apart."""
    c, names = summed(tmp_path, "double", 0, 9, "SUM")
    assert isinstance(c, ValueSum)
    with duckdb.cursor() as connection:
        rows = "(VALUES (1.0::DOUBLE), (99), ('nan'), ('inf'), (NULL)) AS t(x)"
        assert connection.execute(f"SELECT count({counted_rows(c, names)}) FROM {rows}").fetchall() == [(2,)]


@pytest.mark.parametrize("aggregate", ["SUM", "AVG"])
@pytest.mark.parametrize(
    ("type_", "low", "high"),
    [
        ("integer", 0, 100), ("tinyint", -100, 27), ("bigint", 0, 2**40), ("bigint", -(2**62), 2**62 - 1),
        ("ubigint", 3, 10), ("hugeint", -(2**70), 2**71), ("integer", 7, 8), ("bigint", -(2**40), -(2**39)),
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


@pytest.mark.parametrize(("low", "high"), [(3, 2**30), (-5, 2**30), (0.1, 0.7)])
def test_floats_are_computed_with_as_doubles(tmp_path: Path, low: float, high: float) -> None:
    """With 24 bits, the difference to the center would land outside."""
    c, sql = component(tmp_path, "float", low, high, "AVG")
    values = [low + (high - low) * i / 512 for i in range(-2, 515)]
    listed = ", ".join(f"({i}, CAST({v!r} AS FLOAT))" for i, v in enumerate(values))
    rows = duckdb.sql(f"SELECT {sql}, CAST(x AS DOUBLE) FROM (VALUES {listed}) t(i, x) ORDER BY i").fetchall()
    assert [found for found, _ in rows] == [pure(x, c) for _, x in rows]
    assert all(c.lo <= found <= c.hi for found, _ in rows)


def test_no_number_adds_nothing_though_there_is_no_null(tmp_path: Path) -> None:
    c, sql = component(tmp_path, "double", 2, 10, "SUM", ", nullable: false")
    found = duckdb.sql(f"SELECT {sql} FROM (VALUES (CAST('nan' AS DOUBLE)), ('-inf'), (1), (11)) t(x)").fetchall()
    assert [value for (value,) in found] == [None, None, c.lo, c.hi]


def test_a_grid_of_another_type_is_refused(tmp_path: Path) -> None:
    c, _ = component(tmp_path, "integer", 0, 100, "SUM")
    assert isinstance(c.arg, Call) and isinstance(c.arg.args[0], Column)
    facts = {c.arg.args[0].uid: Value(INTEGER)}
    with pytest.raises(Rejected) as refusal:
        quantized(replace(c, grid=Fraction(1, 3)), Names({c.arg.args[0].uid: "x"}, facts, DUCKDB))
    assert refusal.value.diagnostics[0].code == "DP904"


def halves_away(value: Decimal | None, c: Component) -> int | None:
    if value is None:
        return None
    low, high = ((end + c.center) * c.grid for end in (c.lo, c.hi))
    units = min(high, max(low, Fraction(value))) / c.grid
    return math.floor(abs(units) + Fraction(1, 2)) * (1 if units >= 0 else -1) - c.center


DECIMALS = [
    # type, bounds; then what is special
    ("decimal(15,2)", "0", "0.10"),
    ("decimal(15,2)", "900", "105000"),
    ("decimal(15,2)", "-105000", "-900"),
    ("decimal(15,2)", "-99999999999", "1234567890123"),  # rounded to a coarser grid, both signs
    ("decimal(16,4)", "0", "99999999999"),  # as many digits as 64 bits take
    ("decimal(18,6)", "-1", "1"),  # more digits than the bounds have
    ("decimal(18,0)", "3", "77"),
    ("decimal(18,18)", "0", "0.5"),  # more digits after the point than 64 bits take
    ("decimal(9,9)", "-0.25", "0.75"),
    ("decimal(4,3)", "0", "1.5"),
    ("decimal(12,0)", "0", "999999999999"),  # the end, rounded up to the grid, has more digits than the type
    ("decimal(16,0)", "0", "9999999999999999"),  # likewise, and then too many for 64 bits
    ("decimal(17,2)", "-7.25", "123456789012345"),
    ("decimal(38,2)", "-7.25", "99999"),
    ("decimal(38,4)", "0", "98765432109876543210987654"),  # more digits than 64 bits take, after rounding to a grid
    ("decimal(1,0)", "0", "9"),
]


@pytest.mark.parametrize("aggregate", ["SUM", "AVG"])
@pytest.mark.parametrize(("type_", "low", "high"), DECIMALS)
def test_decimals(tmp_path: Path, type_: str, low: str, high: str, aggregate: str) -> None:
    c, sql = component(tmp_path, type_, low, high, aggregate)
    precision, scale = map(int, type_.removeprefix("decimal(").removesuffix(")").split(","))
    unit, most = Fraction(1, 10**scale), 10**precision - 1
    dice = random.Random(f"{type_} {low} {high}")
    ends = [Fraction(x) / unit for x in (low, high)]
    step = int(c.grid / unit)
    near = [int(end) + i for end in ends for i in (-step, -1, 0, 1, step // 2 - 1, step // 2, step // 2 + 1, step)]
    halves = [(2 * dice.randrange(-(2**31), 2**31) + 1) * step // 2 + i for i in (-1, 0, 1) for _ in range(12)]
    inside = [dice.randint(int(ends[0]), int(ends[1])) for _ in range(40)]
    drawn = [dice.randint(-most, most) // 10 ** dice.randrange(precision) for _ in range(40)]
    raw = [i for i in (0, 1, -1, most, -most, *near, *halves, *inside, *drawn) if abs(i) <= most]
    values = [None, *(Decimal(f"{i}E-{scale}") for i in raw)]
    listed = ", ".join(f"({i}, CAST({'NULL' if v is None else f'{v:f}'} AS {type_}))" for i, v in enumerate(values))
    with duckdb.cursor() as connection:
        connection.execute(f"CREATE TEMP TABLE t AS SELECT * FROM (VALUES {listed}) t(i, x)")
        found = [row[0] for row in connection.execute(f"SELECT {sql} FROM t ORDER BY i").fetchall()]
    assert found == [halves_away(v, c) for v in values]
    assert all(v is None or c.lo <= v <= c.hi for v in found)
    assert len(set(found)) > 3


@pytest.mark.parametrize(("type_", "low", "high"), DECIMALS)
def test_decimals_need_no_guard(tmp_path: Path, type_: str, low: str, high: str) -> None:
    """No part of the expression may raise, even where the engine looks at a branch that its condition excludes."""
    c, names = summed(tmp_path, type_, low, high, "AVG")
    (item,), block = waist(Block("t", (), names), lambda over: [quantized(c, over)])
    sql = f"SELECT {item} {block.clause()}"
    unguarded = re.sub("CASE WHEN .*? THEN", "CASE WHEN TRUE THEN", sql)
    precision, scale = map(int, type_.removeprefix("decimal(").removesuffix(")").split(","))
    most = "9" * (precision - scale) + ("." + "9" * scale if scale else "")
    listed = f"(CAST('-{most}' AS {type_})), (CAST('{most}' AS {type_}))"
    for text in (sql, sql if "HUGEINT" in sql else unguarded):  # in 128 bits it is clipped before it is multiplied
        assert len(duckdb.sql(f"WITH t(x) AS (VALUES {listed}) {text}").fetchall()) == 2


def test_digits_decide_the_width(tmp_path: Path) -> None:
    wide = [type_ for type_, low, high in DECIMALS if "HUGEINT" in component(tmp_path, type_, low, high, "SUM")[1]]
    assert wide == ["decimal(18,18)", "decimal(16,0)", "decimal(17,2)", "decimal(38,4)"]
