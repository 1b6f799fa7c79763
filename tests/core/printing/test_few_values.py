"""V: how many different values of a group count, by what is printed and by what the engine keeps."""

from __future__ import annotations

from collections import Counter

import duckdb
import pytest

from dpsql.core.ir.components import DistinctCount, DistinctSum
from dpsql.core.ir.expressions import Column
from dpsql.core.ir.types import INTEGER
from dpsql.core.printing.forms.few_values import at_most_values, kept_values
from dpsql.core.printing.forms.kept_first import SALT
from dpsql.spelling.duckdb_functions import DUCKDB

ROWS = [(u, k, x) for u in (1, 2) for k in ("a", "b", None) for x in range(4)]
X = Column(1, "x", INTEGER)
GROUP = [("u", INTEGER), ("k", INTEGER)]


def kept(most: int, values: int | None) -> list[tuple[int, str | None, int]]:
    c = DistinctCount(X, values=values)
    con = duckdb.connect()
    con.execute("CREATE TABLE b (u INTEGER, k VARCHAR, x INTEGER)")
    con.executemany("INSERT INTO b VALUES (?, ?, ?)", ROWS)
    sql = DUCKDB.first_rows("SELECT *", " FROM b ", kept_values(DUCKDB, most, c, GROUP, ("x", INTEGER)))
    return con.execute(sql.replace(SALT, "7")).fetchall()


@pytest.mark.parametrize("most", [1, 3, 6, 12])
@pytest.mark.parametrize("values", [None, 1, 2, 4])
def test_values_are_kept_within_both_limits(most: int, values: int | None) -> None:
    found = kept(most, values)
    assert set(Counter(u for u, _, _ in found)) == {1, 2}
    assert max(Counter(u for u, _, _ in found).values()) <= most
    assert max(Counter((u, k) for u, k, _ in found).values()) <= (values or most)


def test_what_lies_within_the_limits_is_kept() -> None:
    assert sorted(kept(12, 4), key=str) == sorted(ROWS, key=str)
    assert len(kept(6, 2)) <= 12


@pytest.mark.parametrize(
    ("added", "sql", "found"),
    [
        (False, "3", 2),
        (False, "1", 1),
        (True, "15", 14),
        (True, "-9", -6),
        (True, "5", 5),
    ],
)
def test_numbers_and_sums_are_cut(added: bool, sql: str, found: int) -> None:
    c = DistinctSum(X, lo=-3, hi=7, values=2) if added else DistinctCount(X, values=2)
    assert duckdb.sql(f"SELECT {at_most_values(DUCKDB, sql, c)}").fetchall() == [(found,)]
