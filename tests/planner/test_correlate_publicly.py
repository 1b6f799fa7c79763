"""A correlated subquery is released for the public values that it is asked for, and no others."""

from __future__ import annotations

from typing import Any

import pytest

from dpsql.core.ir.nodes import key_sources
from tests.support.key_plans import SUPPLIER_ROWS, plan

ONE = (
    "SELECT COUNT(*) FROM visits AS v JOIN supplier ON v.suppkey = s_suppkey "
    "WHERE v.age < (SELECT AVG(w.age) FROM visits AS w WHERE w.suppkey = s_suppkey)"
)
TWO = (
    "SELECT s_suppkey FROM supplier WHERE 3 < (SELECT SUM(v.age) FROM visits AS v "
    "WHERE v.suppkey = s_suppkey AND v.nation = s_nationkey)"
)


def listed(sql: str) -> list[tuple[Any, ...]]:
    """The keys of the query's first release with groups."""
    (sources,) = [s for r in plan(sql).releases if (s := key_sources(r.measured.node))]
    (source,) = sources
    return sorted(tuple(key) for key in source.keys)


@pytest.mark.parametrize(
    ("sql", "nations"),
    [
        (ONE, range(7)),
        (f"{ONE} AND s_nationkey = 3", [3]),
        (f"{ONE} AND s_nationkey IN (3, 5) AND s_suppkey >= 1000", [3, 5]),
        (f"{ONE} AND (s_nationkey = 3 OR v.flag)", range(7)),  # says nothing of the table alone
        (f"{ONE} AND v.age > 2", range(7)),
        (ONE.replace("JOIN supplier", "LEFT JOIN supplier") + " AND s_nationkey = 3", [3]),
    ],
)
def test_conditions_on_the_public_table_shorten_the_list(sql: str, nations: list[int]) -> None:
    assert listed(sql) == [(key,) for key, nation, _ in SUPPLIER_ROWS if nation in nations]


def test_several_columns_of_one_table_are_looked_up_together() -> None:
    assert listed(TWO) == [(key, nation) for key, nation, _ in SUPPLIER_ROWS]
    assert listed(f"{TWO} AND s_phone LIKE '12-%'") == [(k, n) for k, n, phone in SUPPLIER_ROWS if phone[:3] == "12-"]
