"""An id that is a DOUBLE: -0.0 and 0.0 are one person, and still what is computed from the two can differ.

One person against none is as far as two neighbours get, so the exact integers of that person are the difference.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from dpsql.api.connection import Connection
from dpsql.core.ir.nodes import Scan
from dpsql.core.release.noisy import exact_totals
from tests.support.checklist_clinic import DELTA, POLICY, Clinic
from tests.support.planning import derived, policy

SENSORS = (
    POLICY.partition("  patients:")[0]
    + """
  sensors:
    unit: {column: id}
    max_rows_per_unit: 3
    columns:
      id: {type: double}
      x: {type: integer}
"""
)
ROWS = "INSERT INTO sensors VALUES ('0.0', 1), ('-0.0', 1), ('-0.0', 2)"
QUERIES = (
    "SELECT COUNT(*) FROM (SELECT id, CAST(id AS VARCHAR) AS sign FROM sensors GROUP BY 1, 2) AS q",
    "SELECT COUNT(*) FROM (SELECT DISTINCT id, CAST(id AS VARCHAR) AS sign FROM sensors) AS q",
    "SELECT COUNT(*) FROM (SELECT id, CAST(id AS VARCHAR) AS sign, MAX(x) AS x FROM sensors GROUP BY 1, 2) AS q",
    "SELECT COUNT(*) FROM (SELECT id, CAST(id AS VARCHAR) AS sign FROM "
    "(SELECT id, x FROM sensors UNION ALL SELECT id, x FROM sensors) AS both GROUP BY 1, 2) AS q",
)


@pytest.fixture
def sensors(make: Callable[..., Clinic]) -> Iterator[Connection]:
    clinic = make("CREATE TABLE sensors (id DOUBLE, x INTEGER)", ROWS, private=False, policy=SENSORS)
    with clinic.connect() as con:
        yield con


def test_probe_zeros_of_either_sign_are_one_id(sensors: Connection) -> None:
    for sql in QUERIES:
        plan = sensors.sql(sql).plan(epsilon=1, delta=DELTA)
        for release in plan.releases:
            (moved,) = exact_totals(release, sensors.service.engine, 7).values()
            for measured, value in zip(release.measured.measurements, moved, strict=True):
                assert value and abs(value) <= measured.sensitivity.linf, (sql, value, measured.sensitivity)


def test_probe_one_row_per_id_is_still_known(sensors: Connection) -> None:
    sql = "SELECT COUNT(*) FROM (SELECT id, MAX(x) AS x FROM sensors GROUP BY id) AS q"
    (release,) = sensors.sql(sql).plan(epsilon=1, delta=DELTA).releases
    assert [m.sensitivity.linf for m in release.measured.measurements] == [1]


@pytest.mark.parametrize(("type_", "decided"), [("double", 0), ("bigint", 1)])
def test_probe_two_forms_of_an_id_decide_nothing(type_: str, decided: int) -> None:
    tables = (
        f"sensors:\n  unit: {{column: id}}\n  columns: {{id: {{type: {type_}, nullable: false}}, x: {{type: integer}}}}"
    )
    (scan,) = (t.fact for t in derived("SELECT x FROM sensors", policy(tables)).walk() if isinstance(t.node, Scan))
    assert len(scan.by_id) == decided
