"""A constant -0.0 is 0.0: what is equal in a plan, and measured once, is one number for the engine, too."""

from __future__ import annotations

import math
from pathlib import Path

import duckdb
import pytest

import dpsql
from dpsql.core.ir.expressions import Literal, walk
from dpsql.core.ir.nodes import Release
from dpsql.planner.plan import Plan
from tests.support.planning import planned, policy

POLICY = policy(
    "t:\n  unit: {rows: 1}\n  columns: {x: {type: double, bounds: [0, 10], nullable: false}}\n"
    "p:\n  public: true\n  columns: {y: {type: double}}"
)
ZEROS = [
    ("-0e0", ()), ("- (0e0)", ()), ("CAST(? AS DOUBLE)", (-0.0,)),
    ("CAST('-0' AS DOUBLE)", ()), ("-CAST(0 AS DOUBLE)", ()),
    ("CAST(-0.0 AS DOUBLE)", ()), ("0e0", ()), ("CAST(? AS DOUBLE)", (0.0,)),
]  # fmt: skip


def literals(plan: Plan) -> list[Literal]:
    (release,) = [t.node for t in plan.tree.walk() if isinstance(t.node, Release)]
    found = [c.filter for c in release.components if c.filter is not None]
    return [e for f in found for e in walk(f) if isinstance(e, Literal)]


@pytest.mark.parametrize(("zero", "parameters"), ZEROS)
def test_no_literal_is_a_negative_zero(zero: str, parameters: tuple[float, ...]) -> None:
    found = literals(
        planned(f"SELECT COUNT(*) FILTER (WHERE CAST(x * {zero} AS VARCHAR) = '0.0') FROM t", POLICY, parameters)
    )
    signs = [math.copysign(1, e.value) for e in found if isinstance(e.value, float)]
    assert all(sign == 1 for sign in signs)


def test_equal_components_are_equal_in_the_engine() -> None:
    """One component, and its text is the same for both."""
    one, other = (planned(f"SELECT COUNT(*) FILTER (WHERE x / {zero} > 1) FROM t", POLICY) for zero in ("0e0", "-0e0"))
    assert one.releases[0].statements[0].shown == other.releases[0].statements[0].shown


def test_the_engine_sees_one_number(tmp_path: Path) -> None:
    with duckdb.connect(str(tmp_path / "d.duckdb")) as con:
        con.execute("CREATE TABLE p AS SELECT 3.0::DOUBLE AS y")
    (tmp_path / "p.yaml").write_text(
        "version: 1\nname: p\ndatabase: d.duckdb\ntables:\n  p:\n    public: true\n    columns: {y: {type: double}}\n"
    )
    with dpsql.connect(tmp_path / "p.yaml") as session:
        for zero, parameters in ZEROS[:3]:
            sql = f"SELECT CAST({zero} AS VARCHAR), CAST(y * {zero} AS VARCHAR) FROM p"
            assert session.execute(sql, [*parameters, *parameters]).rows == (("0.0", "0.0"),), zero
