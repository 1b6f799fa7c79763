"""The weights that the engine computes are those of the definition, in whichever width it computes them."""

from __future__ import annotations

import math
import random
from collections import Counter, defaultdict
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import duckdb
import pytest

from dpsql.core.ir.components import Component, ProductSum, RowCount, ValueSum
from dpsql.core.printing.dialects.duckdb import DuckDB
from dpsql.diagnostics.diagnostic import Source
from dpsql.planner.plan import Plan
from dpsql.planner.settings.query_settings import QuerySettings
from dpsql.policy.load import load_policy
from dpsql.service.checks.check import static_plan
from dpsql.service.privacy_settings import settled

POLICY = """\
version: 1
name: visits
units:
  patient: {}
tables:
  visits:
    unit: {column: id}
LIMITS
    columns:
      id:    {type: bigint}
      ward:  {type: varchar, domain: [a, b, c, d]}
      cost:  {type: double, bounds: [-20, 500]}
      stay:  {type: integer, bounds: [0, 31]}
      price: {type: "decimal(10,2)", bounds: [0, 99.99]}
budgets:
  total: {epsilon: 10, delta: 1e-6}
"""
TOTAL = "    max_rows_per_unit: 3"
GROUPS = "    max_groups_per_unit: 2\n    max_rows_per_group: 2"


def toward_zero(a: int, b: int) -> int:
    return a // b if a >= 0 else -(-a // b)


def plan_of(tmp_path: Path, sql: str, limits: str) -> Plan:
    path = tmp_path / "visits.yaml"
    path.write_text(POLICY.replace("LIMITS", limits))
    return static_plan(Source(sql), load_policy(path), settings=settled({"epsilon": 1}, QuerySettings()))


def expected(component: Component, rows: list[tuple], grouped: bool, limits: str) -> dict[str | None, int]:
    """The component's integer by group, from the formulas and Python's integers alone."""
    F, B = component.weight, component.magnitude
    C, M, G = (3, None, None) if limits == TOTAL else (None, 2, 2)
    if not grouped and C is None:
        C = 2
    by_group: dict[tuple[int, str | None], list[tuple]] = defaultdict(list)
    for row in rows:
        if row[0] is not None and (not grouped or row[1] in ("a", "b", "c", "d", None)):
            by_group[row[0], row[1] if grouped else None].append(row)
    n_of = Counter({key: len(found) for key, found in by_group.items()})
    rows_of: Counter[int] = Counter()
    groups_of: Counter[int] = Counter()
    for (unit, _), n in n_of.items():
        rows_of[unit] += n
        groups_of[unit] += 1

    def partial(found: list[tuple]) -> int:
        if isinstance(component, RowCount):
            return sum(component.arg is None or on_grid(row) is not None for row in found)
        return sum(on_grid(row) or 0 for row in found)

    def on_grid(row: tuple) -> int | None:
        column = {"cost": 2, "stay": 3, "price": 4}[
            next(n for n in ("cost", "stay", "price") if n in repr(component.arg))
        ]
        value = row[column]
        if value is None or value != value or value in (float("inf"), float("-inf")):
            return None
        if isinstance(component, RowCount):
            return 1
        units = round(Fraction(value) / component.grid) - component.center
        y = max(component.lo, min(component.hi, units))
        if not isinstance(component, ProductSum):
            return y
        return math.floor(Fraction(y**2, component.step) + Fraction(1, 2)) - component.shift

    totals: dict[str | None, int] = defaultdict(int)
    absolute: Counter[int] = Counter()
    for (unit, _), found in by_group.items():
        absolute[unit] += abs(partial(found))
    for (unit, group), found in by_group.items():
        S, n, K = partial(found), len(found), groups_of[unit]
        alone = isinstance(component, ValueSum) and not component.paired
        if C is not None and alone and not grouped:
            totals[group] += F * max(min(0, C * component.lo), min(max(0, C * component.hi), S))
        elif C is not None and alone:
            totals[group] += toward_zero(F * S * C * B, max(C * B, absolute[unit]))
        elif C is not None:
            totals[group] += toward_zero(F * S * C, max(rows_of[unit], C))
        elif alone:
            clipped = max(min(0, M * component.lo), min(max(0, M * component.hi), S))
            totals[group] += toward_zero(F * clipped * G, max(K, G))
        else:
            totals[group] += toward_zero(F * S * M * G, max(n, M) * max(K, G))
    return dict(totals)


KINDS = {
    "cost": [None, *map(float, ("nan", "inf", "-inf")), -20.0, 500.0, -21.5, 1e300, 0.0, 0.125, 499.875, -3.75],
    "stay": [None, -5, 0, 1, 17, 31, 32, 2**31 - 1],
    "price": [None, "0.00", "99.99", "-1.00", "12.34", "99999999.99"],
}


@pytest.fixture(scope="module")
def visits() -> Iterator[duckdb.DuckDBPyConnection]:
    """Four hundred rows of forty ids and of nobody, in five wards of which four are declared, and in none."""
    dice = random.Random(7)
    rows = [
        [dice.choice([None, 1, 2, 3, *range(4, 40)]), dice.choice([*"abcde", None]), *map(dice.choice, KINDS.values())]
        for _ in range(400)
    ]
    with duckdb.connect() as connection:
        connection.execute(
            "CREATE TABLE visits (id BIGINT, ward VARCHAR, cost DOUBLE, stay INTEGER, price DECIMAL(10,2))"
        )
        values = ", ".join(["(?, ?, ?, ?, ?)"] * len(rows))
        connection.execute(f"INSERT INTO visits VALUES {values}", [value for row in rows for value in row])
        yield connection


@pytest.mark.parametrize("windows", [False, True], ids=["joined", "windows"])
@pytest.mark.parametrize("limits", [TOTAL, GROUPS], ids=["C", "M,G"])
@pytest.mark.parametrize("grouped", [False, True])
@pytest.mark.parametrize("column", ["cost", "stay", "price"])
def test_statements_give_the_integers_of_the_formulas(
    tmp_path: Path,
    visits: duckdb.DuckDBPyConnection,
    monkeypatch: pytest.MonkeyPatch,
    column: str,
    grouped: bool,
    limits: str,
    windows: bool,
) -> None:
    monkeypatch.setattr(DuckDB, "weighs_in_windows", windows)
    keys = ("ward, ", " GROUP BY ward") if grouped else ("", "")
    plan = plan_of(tmp_path, f"SELECT {keys[0]}COUNT(*), SUM({column}), STDDEV({column}) FROM visits{keys[1]}", limits)
    rows = visits.execute("SELECT id, ward, cost, stay, price FROM visits").fetchall()
    node = plan.releases[0].measured.node
    compared = 0
    for statement in plan.releases[0].statements:
        assert (" OVER (" in statement.sql) is (windows and grouped)
        wanted = {i: expected(node.components[i], rows, grouped, limits) for i in statement.components}
        for found in visits.execute(statement.sql).fetchall():
            group = found[0] if grouped else None
            for i, value in zip(statement.components, found[grouped:], strict=True):
                assert value == wanted[i][group], node.components[i]
                compared += 1
    assert any(isinstance(c, ProductSum) and (c.step > 1) is (column == "cost") for c in node.components)
    assert compared >= (5 * 4 if grouped else 4)
