"""Variances, and sums of distinct values, of one person's rows, whatever the rows and their order.

Each is compared with fractions over the clipped values; it fails for no row, and lies within the claimed bounds.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from fractions import Fraction

import duckdb
import pytest

from dpsql.core.ir.nodes import Aggregate, output_columns
from dpsql.core.numbers.interval import Interval
from dpsql.core.printing.expressions import Block, Names
from dpsql.core.printing.group_by import grouped
from dpsql.diagnostics.errors import Rejected
from dpsql.spelling.duckdb_functions import DUCKDB
from tests.support.planning import planned, policy

SPREADS = ("VAR_POP", "VAR_SAMP", "STDDEV_POP", "STDDEV_SAMP")
COLUMNS = [
    ("integer", 0, 9),
    ("bigint", -(2**62), 2**62),
    ("double", -3, 5),
    ("double", 1e9, 1e9 + 1),
    ("decimal(8,2)", -50, 50),
]


def _called(function: str, type_: str, low: float, high: float) -> tuple[str, Interval]:
    """SQL over a column x of a table t, by its column id; and the bounds that are claimed of it."""
    inner = f"SELECT id, {function} AS s FROM t GROUP BY id"
    tables = (
        f"t:\n  unit: {{column: id}}\n  max_rows_per_unit: 9\n  columns:\n    id: {{type: integer}}\n"
        f'    x: {{type: "{type_}", bounds: [{low}, {high}]}}\n'
    )
    plan = planned(f"SELECT AVG(CLIP(s, 0, 1)) FROM ({inner})", policy(tables))
    (tagged,) = [t for t in plan.tree.walk() if isinstance(t.node, Aggregate)]
    assert isinstance(tagged.node, Aggregate)
    below = tagged.inputs[0]
    names = Names({c.uid: c.name for c in output_columns(below.node)}, below.fact.env, DUCKDB)
    (call,) = tagged.node.calls
    claimed = tagged.fact.columns[call.column.uid].value.interval
    return grouped(tagged.node, Block("t", (), names), None, True), claimed


def _true(function: str, values: Sequence[Fraction]) -> float | None:
    n, less = len(values), 1 if function.endswith("SAMP") else 0
    if n <= less:
        return None
    mean = sum(values, Fraction(0)) / n
    found = sum((v - mean) ** 2 for v in values) / (n - less)
    return math.sqrt(found) if function.startswith("STDDEV") else float(found)


@pytest.mark.parametrize("function", SPREADS)
@pytest.mark.parametrize(("type_", "low", "high"), COLUMNS)
def test_spreads_of_a_person(function: str, type_: str, low: float, high: float) -> None:
    sql, bounds = _called(f"{function}(x)", type_, low, high)
    chance = random.Random(7)
    ends = [low, high] if type_ == "double" else [int(low), int(high)]
    wild: list[object] = [None]
    if type_ == "double":
        wild += [math.nan, math.inf, -math.inf, 1.7e308, -1.7e308, 5e-324]
    if type_ == "bigint":
        wild += [2**63 - 1, -(2**63)]
    people = [ends[:1], ends[1:] * 3, ends, wild, [*ends, ends[1]]]
    some = [*wild, *ends, *(low + (high - low) * chance.random() for _ in range(20) if type_ == "double")]
    some += [chance.randint(int(low), int(high)) for _ in range(20) if type_ != "double"]
    people += [chance.choices(some, k=chance.randint(1, 9)) for _ in range(40)]
    rows = [(i, value) for i, values in enumerate(people) for value in values]
    con = duckdb.cursor()
    con.execute(f"CREATE TEMP TABLE t (id INTEGER, x {type_})")
    con.execute(f"INSERT INTO t VALUES {', '.join(['(?, ?)'] * len(rows))}", [v for row in rows for v in row])
    found = dict(con.execute(sql).fetchall())
    con.execute("CREATE OR REPLACE TEMP TABLE t AS FROM t ORDER BY hash(x, 3), id")
    assert dict(con.execute(sql).fetchall()) == found, "another order, other numbers"
    grid = max(abs(low), abs(high)) * 2.0**-29 if type_ in ("double", "bigint") else 0
    assert bounds.hi is not None and bounds.lo == 0
    for i, values in enumerate(people):
        held = [v for v in values if isinstance(v, int | float) and math.isfinite(v)]
        wanted = _true(function, [min(max(Fraction(v), Fraction(low)), Fraction(high)) for v in held])
        if wanted is None:
            assert found[i] is None
            continue
        error = grid if function.startswith("STDDEV") else 4 * grid * (high - low + grid)
        assert abs(found[i] - wanted) <= error + 1e-12 * wanted, (values, found[i], wanted)
        assert 0 <= found[i] <= float(bounds.hi) * (1 + 1e-12)


@pytest.mark.parametrize("function", SPREADS)
def test_the_bounds_are_reached(function: str) -> None:
    """By two rows at both ends; no narrower bounds are true."""
    _, bounds = _called(f"{function}(x)", "integer", 0, 9)
    widest = _true(function, [Fraction(0), Fraction(9)])
    assert widest is not None and bounds.hi is not None and math.isclose(widest, float(bounds.hi), rel_tol=1e-9)
    most = max(
        _true(function, [Fraction(9 * (i < k)) for i in range(n)]) or 0.0 for n in range(2, 9) for k in range(n + 1)
    )
    assert most <= float(bounds.hi) * (1 + 1e-12)


@pytest.mark.parametrize("function", ["SUM", "AVG"])
@pytest.mark.parametrize(("type_", "values"), [("integer", [3, 3, 5, None, 99]), ("double", [0.5, 0.5, math.nan, 7.0])])
def test_sums_of_distinct_values(function: str, type_: str, values: list[object]) -> None:
    """What is clipped to the same value is one value."""
    sql, _ = _called(f"{function}(DISTINCT x)", type_, 0, 7)
    con = duckdb.cursor()
    con.execute(f"CREATE TEMP TABLE t (id INTEGER, x {type_})")
    con.executemany("INSERT INTO t VALUES (1, ?)", [(v,) for v in values])
    ((_, found),) = con.execute(sql).fetchall()
    each = {min(v, 7) for v in values if isinstance(v, int | float) and not math.isnan(v)}
    assert float(found) == pytest.approx(sum(each) / (len(each) if function == "AVG" else 1), abs=1e-7)


@pytest.mark.parametrize(
    ("function", "bounds", "code"),
    [("VAR_POP(DISTINCT x)", "[0, 1]", "DP101"), ("STDDEV(x + 1e200)", "[0, 1e200]", "DP410"),
     ("STDDEV(x)", "", "DP201"), ("CORR(x, x)", "[0, 1]", "DP101")],
)  # fmt: skip
def test_refused(function: str, bounds: str, code: str) -> None:
    known = f", bounds: {bounds}" if bounds else ""
    tables = f"t: {{unit: {{column: id}}, columns: {{id: {{type: integer}}, x: {{type: double{known}}}}}}}"
    with pytest.raises(Rejected) as refusal:
        planned(f"SELECT AVG(CLIP(s, 0, 1)) FROM (SELECT id, {function} AS s FROM t GROUP BY id)", policy(tables))
    assert refusal.value.diagnostics[0].code == code


@pytest.mark.parametrize("function", SPREADS)
@pytest.mark.parametrize(("type_", "low", "high"), COLUMNS)
def test_no_number_of_rows_fails(function: str, type_: str, low: float, high: float) -> None:
    """As if each row were there 2³¹ times, or 2⁶²: below 2³² rows it is what it is, and NULL from there on."""
    sql, claimed = _called(f"{function}(x)", type_, low, high)
    db = duckdb.cursor()
    db.execute(f"CREATE TEMP TABLE t (id INTEGER, x {type_})")
    db.execute(f"INSERT INTO t VALUES (1, {high}), (1, {low})")
    for power, few in ((30, True), (31, False), (62, False)):
        times = f"{2**power}::HUGEINT * "
        many = sql.replace("COUNT(", f"{times}COUNT(").replace("SUM(", f"{times}SUM(")
        ((_, found),) = db.execute(many).fetchall()
        assert (found is not None) == few, (many, found)
        if found is not None:
            assert math.isclose(found, _true(f"{function[:-4]}POP", _clipped([low, high], low, high)), rel_tol=1e-6)
            assert claimed.lo is not None and claimed.hi is not None and claimed.lo <= Fraction(found) <= claimed.hi


def _clipped(values: Sequence[float], low: float, high: float) -> list[Fraction]:
    return [min(Fraction(high), max(Fraction(low), Fraction(v))) for v in values]
