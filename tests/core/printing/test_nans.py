"""A NaN of either sign is one value to DISTINCT and GROUP BY, and only its text would tell the two apart.

Which of two equal values stands for both is up to the engine and the order of rows: one row more, and the one value
that a DISTINCT gave would be gone and another one there, where at most one row is claimed to come or go. And where all
values of a column are NaN, DuckDB's statistics call it a constant and compute its text once: one row with a number made
the difference of how many rows `CAST(x AS VARCHAR) = '-nan'` holds for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from dpsql.api.connection import Connection
from dpsql.core.release.noisy import exact_totals
from tests.support.checklist_clinic import DELTA, POLICY, Clinic

UP, DOWN = "('nan', 'nan', true)", "('nan', 'nan', false)"
ROWS = {"one": DOWN, "two": f"{UP}, {DOWN}", "turned": f"{DOWN}, {UP}"}
GAUGES = POLICY.partition("  patients:")[0] + "".join(
    f"  {name}:\n    unit: {{rows: 1}}\n    columns:\n"
    "      x: {type: double}\n      y: {type: float}\n      up: {type: boolean}\n"
    for name in ROWS
)
SIGNED = "(SELECT CASE WHEN up THEN x ELSE -x END AS x, CASE WHEN up THEN y ELSE -y END AS y FROM {}) AS s"
QUERIES = (
    f"SELECT CAST(x AS VARCHAR) = 'nan' AS plus, COUNT(*) FROM (SELECT DISTINCT x FROM {SIGNED}) AS q GROUP BY 1",
    f"SELECT CAST(y AS VARCHAR) = 'nan' AS plus, COUNT(*) FROM (SELECT DISTINCT y FROM {SIGNED}) AS q GROUP BY 1",
    f"SELECT CAST(x AS VARCHAR) = 'nan' AS plus, COUNT(*) FROM (SELECT x FROM {SIGNED} GROUP BY x) AS q GROUP BY 1",
    f"SELECT CAST(-x AS VARCHAR) LIKE '-%' AS minus, COUNT(*) FROM (SELECT DISTINCT x FROM {SIGNED}) AS q GROUP BY 1",
)


@pytest.fixture
def gauges(make: Callable[..., Clinic]) -> Iterator[Connection]:
    tables = (f"CREATE TABLE {name} (x DOUBLE, y FLOAT, up BOOLEAN)" for name in ROWS)
    rows = (f"INSERT INTO {name} VALUES {values}" for name, values in ROWS.items())
    with make(*tables, *rows, private=False, policy=GAUGES).connect() as con:
        yield con


def test_probe_the_text_of_a_nan_has_no_sign(gauges: Connection) -> None:
    for name in ROWS:
        sql = f"SELECT COUNT(*) FROM {SIGNED.format(name)} WHERE CAST(x AS VARCHAR) <> 'nan'"
        (release,) = gauges.sql(sql).plan(epsilon=1, delta=DELTA).releases
        assert exact_totals(release, gauges.service.engine, 7) == {(): [0]}


def test_probe_one_nan_stands_for_all(gauges: Connection) -> None:
    for sql in QUERIES:
        found = []
        for name in ROWS:
            (release,) = gauges.sql(sql.format(name)).plan(epsilon=1, delta=DELTA).releases
            (claimed,) = (m.sensitivity.l1 for m in release.measured.measurements)
            found.append(exact_totals(release, gauges.service.engine, 7))
        one, two, turned = found
        assert sum(value for (value,) in two.values()) == 1, sql
        assert two == turned, (sql, "the order of rows decides")
        moved = sum(abs(one.get(k, (0,))[0] - two.get(k, (0,))[0]) for k in {**one, **two})
        assert moved <= claimed, (sql, one, two)
