"""Questions about public tables alone give plain DuckDB's rows."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import UUID

import duckdb
import pytest

import dpsql
from tests.planner.test_public_questions import DATA, OTHERWISE, POLICY, ROADS, TOWNS, load

ORDERED = [
    "SELECT * FROM odd ORDER BY id",
    "SELECT x, f, id FROM odd ORDER BY x DESC, f, id",
    "SELECT id, s FROM odd ORDER BY s, id",
    "SELECT id, d FROM odd ORDER BY d DESC, stamp",
    "SELECT n, h, id FROM odd WHERE x > 1 OR x < 0 OR n IS NULL ORDER BY h, id",
    "SELECT id, CASE WHEN b THEN s ELSE 'no' END AS t, x / 2 AS q, n // 2 AS half FROM odd WHERE id <> 2 ORDER BY id",
    "SELECT b, COUNT(*) AS n, COUNT(s) AS m, MIN(s) AS least, SUM(small) AS t FROM odd GROUP BY b ORDER BY b",
    "SELECT SUM(money) AS m, AVG(small) AS a, COUNT(DISTINCT n) AS k, MAX(stamp) AS last FROM odd",
    "SELECT COUNT(*) FILTER (WHERE b) AS n FROM odd HAVING COUNT(*) > 100",
    "SELECT name, COUNT(*) AS n, SUM(region) AS s FROM towns GROUP BY name HAVING COUNT(*) > 5 ORDER BY s DESC, name",
    "SELECT t.name, r.to, r.length FROM towns t JOIN roads r ON t.id = r.from ORDER BY r.length DESC, t.id LIMIT 7",
    "SELECT t.id, r.length FROM towns t LEFT JOIN roads r ON t.id = r.to ORDER BY t.id, r.length DESC",
    "SELECT id FROM towns WHERE region NOT IN (SELECT region FROM towns WHERE id < 3) ORDER BY id",
    'SELECT id FROM towns t WHERE NOT EXISTS (SELECT 1 FROM roads WHERE "to" = t.id AND length > 2) ORDER BY id',
    'SELECT id, (SELECT MAX(length) FROM roads WHERE "to" = t.id) AS m FROM towns t ORDER BY m, id',
    "SELECT id, region, row_number() OVER (PARTITION BY region ORDER BY name DESC, id) AS r, lag(id) OVER (ORDER BY id)"
    " AS before, SUM(id) OVER (PARTITION BY region) AS s FROM towns ORDER BY region, r",
    "SELECT region FROM towns UNION SELECT small FROM odd ORDER BY region",
    "SELECT DISTINCT region, id % 2 AS odd FROM towns ORDER BY region DESC, odd",
    "WITH most AS (SELECT region, COUNT(*) AS n FROM towns GROUP BY region) "
    "SELECT t.name, most.n FROM towns t JOIN most ON t.region = most.region ORDER BY most.n, t.id OFFSET 3",
    "SELECT SUM(id) AS s, part FROM many GROUP BY part ORDER BY s DESC",
    "SELECT SUM(id) AS s, mixed FROM many GROUP BY mixed ORDER BY mixed DESC",
    "SELECT id, mixed FROM many WHERE part IS NULL ORDER BY mixed",
    "SELECT 1 + 1 AS two, 'x' AS t",
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("public")
    (made / "public.yaml").write_text(POLICY)
    with duckdb.connect(str(made / "d.duckdb")) as con:
        con.execute(DATA)
        con.execute(f"COPY ({TOWNS}) TO '{made / 'towns.parquet'}'")
        con.execute(f"COPY ({ROADS}) TO '{made / 'roads.csv'}'")
    return made


@pytest.fixture(scope="module")
def plain() -> Iterator[duckdb.DuckDBPyConnection]:
    """The same tables in a DuckDB as it comes."""
    with duckdb.connect() as con:
        load(con)
        yield con


@pytest.fixture(scope="module")
def sessions(folder: Path) -> Iterator[dict[str, dpsql.Connection]]:
    """Opened from the policy, and on a connection whose owner has set everything otherwise."""
    with duckdb.connect() as theirs:
        load(theirs)
        for setting in OTHERWISE:
            theirs.execute(f"SET {setting}")
        wrapped = folder / "wrapped.yaml"
        stored = POLICY.replace("database: d.duckdb\n", "")
        for source in ("read_parquet('towns.parquet')", "read_csv('roads.csv')"):
            stored = stored.replace(f", source: {source}", "")
        wrapped.write_text(stored)
        with (
            dpsql.connect(folder / "public.yaml") as opened,
            dpsql.connect(theirs, policy=wrapped, optimizers="ours") as over,
        ):
            yield {"opened": opened, "wrapped": over}


def written(rows: list[tuple[Any, ...]]) -> list[list[tuple[type, str]]]:
    """Types and texts of the values: a NaN equals itself, a zero has its sign, and a UUID reads as a text."""
    plain = [[str(value) if isinstance(value, UUID) else value for value in row] for row in rows]
    return [[(type(value), repr(value)) for value in row] for row in plain]


@pytest.mark.parametrize("way", ["opened", "wrapped"])
@pytest.mark.parametrize("sql", ORDERED)
def test_the_answer_is_plain_duckdbs(
    sql: str, way: str, sessions: dict[str, dpsql.Connection], plain: duckdb.DuckDBPyConnection
) -> None:
    con = sessions[way]
    plan = con.plan(sql)
    assert not plan.releases and not plan.cost
    answer = con.sql(sql).run()
    cursor = plain.execute(sql)
    assert list(answer.columns) == [d[0] for d in cursor.description or []]
    rows, true = answer.fetchall(), cursor.fetchall()
    assert (rows == true) if len(true) > 1000 else (written(rows) == written(true))
    assert answer.intervals()[:1] == [dict.fromkeys(answer.columns)][: len(rows)]
