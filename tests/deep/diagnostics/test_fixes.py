"""Many repairs of one query change no row."""

from __future__ import annotations

import random
from collections.abc import Iterator

import duckdb
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dpsql.diagnostics.diagnostic import Source
from dpsql.faces.check.report.finding import Finding
from dpsql.faces.check.report.fixing import fix_text
from dpsql.service.checks.check import examine
from tests.diagnostics.test_fixes import POLICY


@pytest.fixture(scope="module")
def engine() -> Iterator[duckdb.DuckDBPyConnection]:
    """The tables of the policy with 300 rows, NULLs and ties among them."""
    drawn = random.Random(8)
    with duckdb.connect() as connection:
        connection.execute("CREATE TABLE patients (patient_id BIGINT, age INTEGER, region VARCHAR)")
        connection.execute(
            "CREATE TABLE visits (visit_id BIGINT, patient_id BIGINT, cost DOUBLE, code VARCHAR, day DATE)"
        )
        for i in range(60):
            age, region = drawn.choice([None, 1, 2, 30, 44]), drawn.choice([None, "north", "south"])
            connection.execute("INSERT INTO patients VALUES (?, ?, ?)", [i, age, region])
        for i in range(300):
            cost, code = drawn.choice([None, 1, 2.5, 4]), drawn.choice([None, "a", "b", "c"])
            connection.execute("INSERT INTO visits VALUES (?, ?, ?, ?, '2024-03-04')", [i, i % 50, cost, code])
        yield connection


ITEMS = ["mean(cost) AS m", "COUNT_STAR() AS n", "SUM(cost ORDER BY patient_id, cost) AS s",
         "COUNT(DISTINCT code) AS d", "SUM(CASE WHEN code = ANY(['a', 'c']) THEN 1 ELSE 0 END) AS k"]  # fmt: skip
SOURCES = ["visits", "(SELECT * FROM visits ORDER BY cost DESC, code)",
           "(SELECT * FROM (SELECT * FROM visits ORDER BY 1) ORDER BY 2)",
           "(SELECT * FROM visits WHERE cost = ANY([1, 4]) UNION ALL SELECT * FROM visits ORDER BY cost)",
           "w"]  # fmt: skip
WHERES = ["", " WHERE code = ANY(['a', NULL])", " WHERE NOT cost = ANY( [1, 2.5] ) -- mean(x) ORDER BY\n"]
GROUPS = ["", " GROUP BY code", " GROUP BY code HAVING mean(cost) > 2",
          " GROUP BY ALL HAVING COUNT_STAR() > 3 ORDER BY code"]  # fmt: skip
ENDS = ["", " FETCH FIRST 500 ROWS ONLY", " LIMIT 100"]


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(st.sampled_from(ITEMS), min_size=1, max_size=4, unique=True), st.sampled_from(SOURCES),
    st.sampled_from(WHERES), st.sampled_from(GROUPS), st.sampled_from(ENDS),
)  # fmt: skip
def test_many_repairs_of_one_query_change_no_row(
    engine: duckdb.DuckDBPyConnection, items: list[str], source: str, where: str, group: str, end: str
) -> None:
    """Any of them together, in one another, until nothing is left to repair: then dpsql accepts the query.

    An ORDER BY below a LIMIT that has none of its own is left, for a person to decide.
    """
    before = "WITH RECURSIVE w AS (SELECT * FROM visits ORDER BY day)\n" if source == "w" else ""
    code = "code, " if group else ""
    before += f"SELECT {code}{', '.join(items)} FROM {source}{' AS t' if source[0] == '(' else ''}{where}{group}{end}"

    def find(text: str) -> list[Finding]:
        return [Finding(d, text) for d in examine(Source(text), POLICY).diagnostics]

    after = fix_text(before, find).text
    left = {f.diagnostic.code for f in find(after) if f.diagnostic.severity == "error"}
    kept = end and source != "visits" and not group.endswith("ORDER BY code")
    assert left == ({"DP112"} if kept else set()), after
    rows = [sorted(engine.execute(text).fetchall(), key=repr) for text in (before, after)]
    assert rows[0] == rows[1]
