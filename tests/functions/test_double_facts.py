"""No claim about a computed DOUBLE narrows what must hold: that it is not 0 or NULL, a sign, a branch, how many values.

The expressions are those of analysts who mean it; each is compared with what the engine computes of it.
"""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction
from itertools import product

import duckdb
import pytest

from dpsql.core.ir.nodes import Project, Scan
from dpsql.core.ir.types import Kind
from dpsql.core.numbers.interval import interval
from dpsql.core.printing.expressions import Names, spell
from dpsql.core.values.value import Value
from dpsql.functions.numbers.arithmetic import may_be_zero
from dpsql.spelling.duckdb_functions import DUCKDB
from tests.support.planning import derived, policy

COLUMNS = {
    "i": ("INTEGER", (1, 2, 0, -1, 2049, 2**31 - 1, -(2**31), None)),
    "k": ("BIGINT", (1, 2**53 + 1, 2**63 - 1, -(2**63), 10**17 + 1, None)),
    "x": ("DOUBLE", (0.0, -0.0, 1.0, 0.1, 1e19, 1e300, -1e300, 5e-324, "nan", "inf", "-inf", None)),
    "p": ("DECIMAL(9,2)", ("0", "0.01", "-9999999.99", "9999999.99", None)),
    "d": ("DATE", ("1970-01-01", "9999-12-31", "0001-01-01", "infinity", None)),
    "t": ("TIME", ("00:00:00", "24:00:00", "23:59:59.999999", None)),
}
POLICY = policy(
    "t:\n  unit: {rows: 1}\n  columns:\n" + "\n".join(f'    {c}: {{type: "{t}"}}' for c, (t, _) in COLUMNS.items())
)
ONE = "(CLIP(CAST(i AS DOUBLE), 1, 2) + 1e19 - 1e19)"
"""1 or 2 in real arithmetic, and 0 in the engine."""
FAR = "(CLIP(CAST(i AS DOUBLE), 1, 2049) + 1e19 - 1e19)"

HOSTILE = [
    ONE, f"1 / {ONE}", f"CAST(0 / {ONE} AS BIGINT)", f"5 % {ONE}", f"5 // CAST({ONE} AS INTEGER)", f"ln({ONE})",
    f"sqrt({ONE} - 1)", f"sign({FAR})", f"sign({ONE}) * 2147483647", f"pow({ONE}, 64)", f"{FAR} * {FAR} - {FAR}",
    f"coalesce(CLIP(CAST(0 / {ONE} AS BIGINT), 0, 0), 9000000000000000000)",
    f"coalesce(CLIP(CAST(0 / {ONE} AS BIGINT), 0, 0), 9000000000000000000) * 9000000000000000000",
    f"ifnull(CAST(1 / {ONE} AS INTEGER), k)", f"greatest(CAST(0 / {ONE} AS BIGINT), - k)",
    f"least(CAST(0 / {ONE} AS BIGINT), k)", "least(x, 5)", "greatest(x, 5.5)", "greatest(least(x, 10), 0)",
    "least(x, 9223372036854775807)", "greatest(x, 9007199254740993)", "CAST(k AS DOUBLE)",
    "CAST(CLIP(k, 9007199254740993, 9007199254740993) AS DOUBLE)",
    "CLIP(k, 9007199254740993, 9007199254740993) - 9007199254740992e0",
    "CAST(k AS DOUBLE) - 9223372036854775807", "CAST(p AS DOUBLE) * 100 - 1", "CAST(k AS FLOAT)",
    "CAST(CAST(k AS DOUBLE) AS BIGINT)", "CAST(x AS INTEGER)", "CAST(x * 1e10 AS DECIMAL(20,10))", "round(x, 3)",
    "floor(x / 3)", "ceil(x * 0.1)", "abs(x) - x", "exp(CLIP(x, 0, 700))", "exp(CLIP(x, -750, -740))", "sin(x * 1e10)",
    "pow(CLIP(x, 0, 1e10), 2)", "pow(CLIP(x, 0, 9), 0.5)", "cbrt(CLIP(x, -8, 27))", "log10(CLIP(x, 1, 1000))",
    "radians(CLIP(x, -180, 180))", "epoch(d)", "epoch(CAST(d AS TIMESTAMP))", "hour(t)", "CAST(x AS DECIMAL(9,2)) % 7",
    "CAST(CLIP(x, -1e299, 1e299) * 1e300 AS BIGINT)", "d + CAST(x AS INTEGER)", "x * 0", "x / x", "x - x", "1e308 * 10",
    f"CASE WHEN x > 0 THEN {ONE} ELSE 5 END", f"nullif({ONE}, 0)", "CAST(CAST(x AS INTEGER) AS DOUBLE) / 3",
]  # fmt: skip


def printed(expression: str) -> tuple[str, Value]:
    """What is emitted for an expression over t, and what is believed of it."""
    tree = derived(f"SELECT {expression} AS e FROM t", POLICY)
    project = next(t for t in tree.walk() if isinstance(t.node, Project) and isinstance(t.inputs[0].node, Scan))
    assert isinstance(project.node, Project) and isinstance(project.inputs[0].node, Scan)
    scan, facts = project.inputs[0].node, project.inputs[0].fact
    return spell(project.node.items[0].expr, Names({c.uid: f'"{c.name}"' for c in scan.columns}, facts.env, DUCKDB))


@pytest.fixture(scope="module")
def rows() -> duckdb.DuckDBPyConnection:
    con = duckdb.connect()
    con.execute(f"CREATE TABLE t ({', '.join(f'{c} {t}' for c, (t, _) in COLUMNS.items())})")
    longest = max(len(values) for _, values in COLUMNS.values())
    for at in range(longest):
        con.execute(
            f"INSERT INTO t VALUES ({', '.join('?' * len(COLUMNS))})",
            [values[at % len(values)] for _, values in COLUMNS.values()],
        )
    for i, x in product(COLUMNS["i"][1], COLUMNS["x"][1]):
        con.execute("INSERT INTO t (i, k, x) VALUES (?, ?, ?)", [i, i, x])
    return con


@pytest.mark.parametrize("expression", HOSTILE)
def test_what_is_believed_holds(rows: duckdb.DuckDBPyConnection, expression: str) -> None:
    sql, known = printed(expression)
    for (value,) in rows.execute(f"SELECT {sql} FROM t").fetchall():
        if value is None:
            assert known.nullable
        elif isinstance(value, float) and not math.isfinite(value):
            assert not known.finite
        elif isinstance(value, (int, float, Decimal)):
            assert Fraction(value) in known.interval and Fraction(value) in known.range, (value, known)


@pytest.mark.parametrize("expression", HOSTILE)
def test_a_computed_double_may_be_anything(expression: str) -> None:
    known = printed(expression)[1]
    if known.type.kind is Kind.DOUBLE and not expression.startswith(
        ("CAST(k", "CAST(CLIP(k", "1e308", "greatest(least")
    ):
        assert known.nullable and not known.finite and may_be_zero(known)


def test_what_enforces_is_believed() -> None:
    for expression in ("CLIP(CAST(i AS DOUBLE), 1, 2)", "CAST(i AS DOUBLE)", "CASE WHEN i > 0 THEN 0.5e0 ELSE 2 END"):
        assert printed(expression)[1].finite
    assert not printed("coalesce(CLIP(x, 0, 1), 0.5e0)")[1].nullable


@pytest.mark.parametrize(
    ("expression", "low", "high"),
    [
        ("coalesce(CLIP(i, 0, 0), k)", -(2**63), 2**63 - 1),
        ("coalesce(5, k)", -(2**63), 2**63 - 1),
        ("ifnull(CLIP(i, 3, 4), 9)", 3, 9),
        ("greatest(CLIP(i, 3, 4), 9, 20)", 3, 20),
        ("least(CLIP(i, 3, 4), 9, 20)", 3, 20),
        ("sign(x)", -1, 1),
        ("sign(CLIP(x, 1, 2))", -1, 1),
        ("sign(CLIP(i, 1, 2))", 1, 1),
        ("hour(t)", 0, 24),
    ],
)
def test_choices_narrow_no_range(expression: str, low: int, high: int) -> None:
    assert printed(expression)[1].range == interval(low, high)


@pytest.mark.parametrize(
    ("expression", "low", "high"),
    [
        ("coalesce(CLIP(i, 0, 0), 9)", 0, 9),  # that a column is never NULL is only believed
        ("coalesce(CASE WHEN i > 0 THEN 1 ELSE 2 END, 9)", 1, 9),
        ("greatest(CASE WHEN i > 0 THEN 1 ELSE 2 END, CLIP(i, -5, 0))", -5, 2),
        ("least(CASE WHEN i > 0 THEN 1 ELSE 2 END, CLIP(i, 3, 9))", 1, 9),
        ("coalesce(5, k)", 5, 5),
        ("coalesce(NULL, 5, k)", 5, 5),
        ("coalesce(CLIP(i, 0, 1), 7, k)", 0, 7),
        ("greatest(CLIP(i, 3, 4), 9)", 9, 9),
        ("greatest(CLIP(i, 3, 4), CLIP(k, 0, 9))", 0, 9),
        ("least(CLIP(i, 3, 4), CLIP(k, 0, 9))", 0, 9),
        ("least(x, 5)", None, 5),
        ("sign(CLIP(x, 1, 2))", -1, 1),  # of DOUBLEs nothing narrower is worth believing
        ("sign(CLIP(i, 1, 2))", 1, 1),
        (FAR, 0, 4096),
    ],
)
def test_choices_narrow_an_interval_by_constants_alone(expression: str, low: int | None, high: int | None) -> None:
    found = printed(expression)[1].interval
    assert found == interval(low, high) and (found.lo is None or Fraction(found.lo) == low)
