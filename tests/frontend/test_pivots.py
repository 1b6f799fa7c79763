"""PIVOT, UNPIVOT, and `*` with EXCLUDE, REPLACE and RENAME: the rows and the names are DuckDB's."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest
from sqlglot import Dialect

import dpsql
from dpsql.diagnostics.diagnostic import Source
from dpsql.diagnostics.errors import Rejected
from dpsql.frontend.parse import parse
from dpsql.frontend.pivots import columns_of_pivots
from dpsql.frontend.text.tokens import tokens_of

POLICY = """
version: 1
name: p
database: p.duckdb
budgets: {total: {epsilon: 1e12, delta: 1e-6}}
tables:
  p:
    unit: {column: id, of: person}
    primary_key: [id]
    columns:
      id: {type: bigint, nullable: false}
      c: {type: varchar, domain: [a, b], nullable: false}
      smoker: {type: boolean, nullable: false}
      x: {type: integer, bounds: [0, 9], nullable: false}
      y: {type: integer, bounds: [0, 9]}
  pub:
    public: true
"""
ASKED = (
    "PIVOT p ON c IN ('a', 'b') USING COUNT(*) GROUP BY smoker",
    "PIVOT p ON c IN ('a', 'b') USING COUNT(*) AS n, SUM(x) GROUP BY smoker",
    "PIVOT (SELECT c, smoker, x FROM p) ON c IN ('b'), smoker IN (true, false) USING SUM(x) AS s",
    "PIVOT (SELECT c, smoker FROM p) ON c IN ('a') USING COUNT(*)",
    "SELECT * FROM (PIVOT p ON c IN ('b') USING SUM(x) GROUP BY smoker) q WHERE q.b > 0",
    "WITH q AS (PIVOT p ON c IN ('a') USING COUNT(*) GROUP BY smoker) SELECT * FROM q",
    "WITH q AS (SELECT c, smoker FROM p) PIVOT q ON c IN ('a') USING COUNT(*)",
    "SELECT * FROM (SELECT smoker, c, x FROM p) PIVOT (COUNT(*), SUM(x) AS s FOR c IN ('a' AS q, 'b')) AS t",
    "FROM p PIVOT (COUNT(x) FOR c IN ('a', 'b') GROUP BY smoker)",
    "FROM (SELECT c, smoker, x > 4 AS big FROM p) PIVOT (COUNT(*) FOR c IN ('a', 'b') smoker IN (true) GROUP BY big)",
    "SELECT n, COUNT(*), SUM(v) FROM p UNPIVOT (v FOR n IN (x, y)) GROUP BY n",
    "SELECT n, COUNT(*), COUNT(v) FROM p UNPIVOT INCLUDE NULLS (v FOR n IN (x, y AS z)) GROUP BY n",
    "SELECT name, SUM(value) AS s FROM (UNPIVOT (SELECT smoker, x, y FROM p) ON x, y) GROUP BY name",
    "SELECT n, smoker, SUM(v) FROM (UNPIVOT p ON x, y INTO NAME n VALUE v) u GROUP BY ALL",
    "PIVOT pub ON k IN ('u') USING SUM(v)",
    "UNPIVOT (SELECT k, v, v + 1 AS w FROM pub) ON v, w INTO NAME n VALUE o",
    "SELECT * EXCLUDE (id, x, y), COUNT(*) FROM p GROUP BY ALL",
    "SELECT * EXCLUDE k FROM pub",
    "SELECT t.* EXCLUDE (t.k) REPLACE (v + 1 AS v) RENAME (j AS i) FROM pub t",
    "SELECT SUM(w) FROM (SELECT * REPLACE (x // 2 AS x) FROM p) AS t(id, c, smoker, w, y)",
)  # fmt: skip


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[dpsql.Session, duckdb.DuckDBPyConnection]]:
    folder: Path = tmp_path_factory.mktemp("pivots")
    with duckdb.connect(folder / "p.duckdb") as db:
        db.execute(
            "CREATE TABLE p AS SELECT i::BIGINT AS id, ['a', 'b'][1 + i % 2] AS c, i % 3 = 0 AS smoker, "
            "(i % 10)::INTEGER AS x, CASE WHEN i % 4 > 0 THEN (i % 7)::INTEGER END AS y FROM range(211) t(i)"
        )
        db.execute("CREATE TABLE pub AS SELECT * FROM (VALUES ('u', 1, 7), ('v', 2, 7), ('u', 3, 8)) t(k, v, j)")
    (folder / "p.yaml").write_text(POLICY)
    with (
        dpsql.connect(folder / "p.yaml", ledger=":memory:") as con,
        duckdb.connect(folder / "p.duckdb", read_only=True) as db,
    ):
        yield con, db


@pytest.mark.parametrize("sql", ASKED)
def test_the_answers_are_duckdbs(sql: str, data: tuple[dpsql.Session, duckdb.DuckDBPyConnection]) -> None:
    con, db = data
    theirs = db.execute(sql)
    names = [c[0] for c in theirs.description or ()]
    answer = con.sql(sql).run(epsilon=1e7)
    assert [c.lower() for c in answer.columns] == [n.lower().replace("count_star()", "count(*)") for n in names]
    ours = sorted((tuple(round(v, 3) if isinstance(v, float) else v for v in row) for row in answer.rows), key=str)
    assert ours == sorted((tuple(row) for row in theirs.fetchall()), key=str)


@pytest.mark.parametrize(
    ("sql", "code", "said"),
    [
        ("PIVOT p ON c USING COUNT(*)", "DP101", "list them:  c IN ('a', 'b')"),
        ("PIVOT p ON c IN ('a') USING COUNT(*)", "DP301", "id is the id"),
        ("FROM p PIVOT (COUNT(*) FOR c IN ('a')) PIVOT (COUNT(*) FOR x IN (1))", "DP101", "one PIVOT of another"),
        ("UNPIVOT p ON x", "DP110", "rows of p"),
        ("SELECT * EXCLUDE (nothing) FROM pub", "DP102", "it has: k, v, j"),
        ("SELECT * REPLACE (1 AS nothing) FROM pub", "DP102", "* has no column nothing"),
        ("PIVOT p ON x IN (" + ", ".join(map(str, range(1_001))) + ") USING COUNT(*) GROUP BY c", "DP101", "1,000"),
    ],
)
def test_what_is_refused(sql: str, code: str, said: str, data: tuple[dpsql.Session, duckdb.DuckDBPyConnection]) -> None:
    with pytest.raises(Rejected) as refusal:
        data[0].sql(sql).plan(epsilon=1)
    assert refusal.value.code == code and said in str(refusal.value)


def _long() -> dict[str, str]:
    """Short texts that stand for many columns, or for many copies of their rows."""
    values, columns = (", ".join(f"{mark}{i}{mark}" for i in range(20)) for mark in ("'", '"'))
    within = "t"
    for depth in range(4):
        within = f"(SELECT * FROM {within} UNPIVOT (v{depth} FOR n{depth} IN ({columns})))"
    lists = [f"c{i} IN ({values})" for i in range(6)]
    return {
        "in one another": f"SELECT COUNT(*) FROM {within}",
        "lists in FROM": f"FROM t PIVOT (COUNT(*) FOR {' '.join(lists)})",
        "lists": f"PIVOT t ON {', '.join(lists)} USING COUNT(*) GROUP BY g",
        "a long aggregate": f"PIVOT t ON c IN ({values}) USING SUM({'x + ' * 2_000}x) GROUP BY g",
    }


@pytest.mark.parametrize("which", _long())
def test_what_would_be_written_out_is_bounded_by_the_text(which: str) -> None:
    """By steps and not by the clock: each of these would make over 100,000 nodes, or as many columns."""
    with pytest.raises(Rejected) as refusal:
        parse(Source(_long()[which]))
    assert refusal.value.code == "DP101" and "PIVOT" in refusal.value.diagnostics[0].message


def test_the_columns_of_a_pivot_are_counted_in_its_tokens() -> None:
    sql = "FROM t PIVOT (SUM(x) FOR c IN ('a', 'b', 'c') d IN (1, 2)) JOIN u ON f(1, 2, 3) IN (1, 2)"
    tokens = tokens_of(sql, Dialect.get_or_raise("duckdb"))
    assert columns_of_pivots(tokens) == 6
