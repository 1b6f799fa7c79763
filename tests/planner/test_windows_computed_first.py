"""A window function in an aggregate is refused, with the query that computes it first: pasted, it works."""

from __future__ import annotations

import pytest

from dpsql.diagnostics.errors import Rejected
from tests.support.planning import planned, policy

TABLES = policy(
    "visits:\n  unit: {column: id}\n  max_rows_per_unit: 5\n  columns: {id: {type: bigint, nullable: false}, "
    "day: {type: integer}, cost: {type: integer, bounds: [0, 9]}}\n"
    "people:\n  unit: {column: id}\n  primary_key: [id]\n  columns: {id: {type: bigint}, age: {type: integer}}\n"
)
LAG = "LAG(cost) OVER (PARTITION BY id ORDER BY day)"


def refused(sql: str) -> str:
    with pytest.raises(Rejected) as refusal:
        planned(sql, TABLES)
    found = refusal.value.diagnostics[0]
    assert (found.code, found.message) == ("DP101", "a window function cannot stand in an aggregate")
    return found.help[0]


@pytest.mark.parametrize(
    ("sql", "advised"),
    [
        (f"SELECT AVG(cost - {LAG}) FROM visits", f"SELECT AVG(w) FROM (SELECT cost - {LAG} AS w FROM visits) AS t"),
        (f"SELECT sum(CLIP({LAG}, 0, 5)) AS s, COUNT(*) FROM visits AS v WHERE cost > 3 -- of all",
         f"SELECT SUM(w) FROM (SELECT CLIP({LAG}, 0, 5) AS w FROM visits AS v WHERE cost > 3) AS t"),
        (f"SELECT AVG({LAG}) FROM visits JOIN people USING (id) WHERE age > 3",
         f"SELECT AVG(w) FROM (SELECT {LAG} AS w FROM visits INNER JOIN people USING (id) WHERE age > 3) AS t"),
    ],
)  # fmt: skip
def test_the_query_that_is_advised_works(sql: str, advised: str) -> None:
    assert refused(sql) == f"compute it first:  {advised}"
    assert planned(advised, TABLES).releases


@pytest.mark.parametrize(
    "sql",
    [
        f"SELECT day, AVG({LAG}) FROM visits GROUP BY day",
        f"SELECT COUNT(DISTINCT {LAG}) FROM visits",
        f"SELECT AVG({LAG}) + 1 FROM visits",
        f"SELECT AVG({LAG}) FILTER (WHERE day > 1) FROM visits",
        f"SELECT AVG({LAG}) FROM visits WHERE cost < 1 ORDER BY 1",
    ],
)
def test_of_other_forms_it_is_said_in_words(sql: str) -> None:
    assert refused(sql) == "compute it first, in a subquery that the aggregate reads"
