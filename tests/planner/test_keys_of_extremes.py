"""MIN and MAX of an id as group keys: what they can be is public, and NULL is a key only where it can occur."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest

from dpsql.core.ir.nodes import key_sources
from tests.support.planning import planned, policy

POLICY = policy("""
t:
  unit: {column: id}
  max_rows_per_unit: 50
  columns:
    id: {type: bigint, nullable: false}
    x: {type: integer, bounds: [0, 2], nullable: false}
    maybe: {type: integer, bounds: [0, 2]}
    free: {type: integer, nullable: false}
    word: {type: varchar, domain: [p, q], nullable: false}
    d: {type: date, bounds: [2024-01-15, 2024-03-15], nullable: false}
    at: {type: timestamp, bounds: [2024-01-01, 2024-01-02], nullable: false}
    sure: {type: boolean, nullable: false}
""")
MONTHS = [dt.date(2024, m, 1) for m in (1, 2, 3)]


def keys(key: str, least: str = "MIN(x)") -> list[Any] | None:
    """The keys of a function of m, the least or largest of each id; None if they are private."""
    inner = f"SELECT id, {least} AS m FROM t GROUP BY id"
    plan = planned(f"SELECT {key} AS k, COUNT(*) AS n FROM ({inner}) AS i GROUP BY k", POLICY)
    sources = key_sources(plan.releases[0].measured.node)
    return None if sources is None else [k for (k,) in sources[0].keys]


@pytest.mark.parametrize(
    ("key", "least", "found"),
    [
        ("m", "MIN(x)", [0, 1, 2]),
        ("m", "MAX(DISTINCT x)", [0, 1, 2]),
        ("m", "MIN(maybe)", [0, 1, 2, None]),
        ("m", "MIN(x) FILTER (WHERE sure)", [0, 1, 2, None]),
        ("COALESCE(m, 0)", "MIN(maybe)", [0, 1, 2]),
        ("m % 2", "MIN(x)", [0, 1]),
        ("m", "MAX(x + 1)", [1, 2, 3]),
        ("m", "MIN(free)", None),
        ("m", "MAX(word)", ["p", "q"]),
        ("month(m)", "MIN(d)", [1, 2, 3]),
        ("date_trunc('month', m)", "MAX(d)", MONTHS),
        ("date_trunc('month', m)", "MAX(d) FILTER (WHERE sure)", [*MONTHS, None]),
        ("hour(m)", "MIN(at)", list(range(24))),
        ("m", "MAX(CLIP(d, DATE '2024-01-31', DATE '2024-02-01'))", [dt.date(2024, 1, 31), dt.date(2024, 2, 1)]),
    ],
)
def test_keys_of_what_each_id_has_one_of(key: str, least: str, found: list[Any] | None) -> None:
    assert keys(key, least) == found


def test_an_id_has_one_cohort() -> None:
    """Months by months: an id is in as many groups as there are months, and its first one is its only one."""
    cohorts = (
        "SELECT date_trunc('month', t.d) AS month, date_trunc('month', f.first) AS cohort, COUNT(DISTINCT t.id) AS n "
        "FROM t JOIN (SELECT id, MIN(d) AS first FROM t GROUP BY id) AS f ON t.id = f.id GROUP BY month, cohort"
    )
    measured = planned(cohorts, POLICY).releases[0].measured
    assert [len(s.keys) for s in key_sources(measured.node) or ()] == [3, 3]
    assert measured.measurements[0].sensitivity.l1 == 3
    by_word = cohorts.replace("SELECT id, MIN", "SELECT id, word, MIN").replace("GROUP BY id)", "GROUP BY id, word)")
    assert planned(by_word, POLICY).releases[0].measured.measurements[0].sensitivity.l1 == 9


def test_the_count_of_a_value_that_is_always_there_is_the_count_of_rows() -> None:
    for least, shared in (("MIN(x)", True), ("MIN(maybe)", False), ("MIN(x) FILTER (WHERE sure)", False)):
        sql = f"SELECT COUNT(*) AS n, COUNT(m) AS c FROM (SELECT id, {least} AS m FROM t GROUP BY id) AS i"
        assert (len(planned(sql, POLICY).releases[0].measured.measurements) == 1) == shared


def test_distinct_values_of_an_extreme_are_those_of_its_argument() -> None:
    sql = "SELECT COUNT(DISTINCT m) AS n FROM (SELECT id, free, MIN(x) AS m FROM t GROUP BY id, free) AS i"
    (component,) = planned(sql, POLICY).releases[0].measured.node.components
    assert component.values == 3
