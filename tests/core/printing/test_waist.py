"""Inner projections: what a statement repeats is computed once, the integers stay, and the clip reads columns."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Sequence

import duckdb
import pytest

from dpsql.core.printing import group_by as aggregates
from dpsql.core.printing.dialect import Dialect
from dpsql.core.printing.forms import sliced
from dpsql.core.printing.repeated_parts import RepeatedParts
from dpsql.core.printing.shapes import cells, direct, weighted
from dpsql.core.printing.waist import Level, WaistColumns
from dpsql.engines.duckdb.locked.optimizers import restrict
from dpsql.spelling.duckdb_functions import DUCKDB
from dpsql.spelling.postgres_functions import POSTGRES
from dpsql.spelling.spark_functions import SPARK
from tests.support.planning import planned
from tests.support.waist_queries import POLICY, READ_TWICE, REPEATING, WRITTEN_ONCE, of_dialect

PLAIN = [
    "SELECT COUNT(*), SUM(x) FROM log",
    "SELECT t, COUNT(*), SUM(x) FROM log GROUP BY t",
    "SELECT COUNT(DISTINCT x), COUNT(x) FROM log",
    "SELECT SUM(x), COUNT(*) FROM ids",
    "SELECT COUNT(*) FROM log WHERE x + 1 > 3",
]
EXTREMES = ["NULL", "0", "-0.0", "1e300", "'NaN'", "'Infinity'", "'-Infinity'", "2.5", "-3", "3.0000001"]


def statements(sql: str) -> list[str]:
    return [s.salted(7) for r in planned(sql, POLICY).releases for s in r.statements]


@pytest.fixture(scope="module")
def engine() -> Iterator[duckdb.DuckDBPyConnection]:
    """Random rows with all that is hostile in them."""
    rng = random.Random(40)
    with duckdb.connect() as con:
        restrict(con)
        con.execute("CREATE TABLE log (x INTEGER, y DOUBLE, p DECIMAL(9,2), t VARCHAR, d DATE)")
        con.execute("CREATE TABLE ids (id BIGINT, x INTEGER, y DOUBLE, t VARCHAR)")
        con.execute("CREATE TABLE owners (id BIGINT, land VARCHAR)")
        for _ in range(300):
            x, y = rng.choice(["NULL", "-7", "2147483647", *map(str, range(12))]), rng.choice(EXTREMES)
            t, p = (
                rng.choice(["'a'", "'b'", "'it''s'", "'c'", "NULL"]),
                rng.choice(["NULL", "-1.5", "0.01", "77", "9999999.99"]),
            )
            d = rng.choice(["NULL", "DATE '2024-05-01'", "DATE '1999-01-01'", "DATE 'infinity'"])
            con.execute(f"INSERT INTO log VALUES ({x}, CAST({y} AS DOUBLE), {p}, {t}, {d})")
            con.execute(
                f"INSERT INTO ids VALUES ({rng.choice(['NULL', *map(str, range(20))])}, {x}, CAST({y} AS DOUBLE), {t})"
            )
        con.execute("INSERT INTO owners SELECT i, CASE WHEN i % 2 = 0 THEN 'at' ELSE 'ch' END FROM range(15) AS r(i)")
        yield con


def in_place(monkeypatch: pytest.MonkeyPatch) -> None:
    """Prints every text where it is read: the broken twin of the waist."""
    for module in (direct, sliced, weighted, cells, aggregates):
        monkeypatch.setattr(module, "waist", lambda block, listed: (listed(block.names), block))


def differing(engine: duckdb.DuckDBPyConnection, queries: Sequence[str], monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The queries whose statements give other integers than the same without projections."""
    found = []
    for sql in queries:
        now = [sorted(engine.execute(s).fetchall(), key=str) for s in statements(sql)]
        with monkeypatch.context() as without:
            in_place(without)
            if now != [sorted(engine.execute(s).fetchall(), key=str) for s in statements(sql)]:
                found.append(sql)
    return found


def test_the_integers_are_the_same(engine: duckdb.DuckDBPyConnection, monkeypatch: pytest.MonkeyPatch) -> None:
    assert not differing(engine, [*REPEATING, *PLAIN], monkeypatch)


def test_a_column_of_another_expression_is_found(
    engine: duckdb.DuckDBPyConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The broken twin: all expressions read the column of the first."""
    right = WaistColumns.column

    def first(self: WaistColumns, level: Level, sql: str, own: bool = True) -> str:
        right(self, level, sql, own)
        return f"\0{level}:0\0"

    monkeypatch.setattr(WaistColumns, "column", first)
    assert differing(engine, ["SELECT SUM(x * 2), SUM(x * 3) FROM log"], monkeypatch)


def adds_up_tables(statement: str) -> bool:
    """Whether a SELECT that adds up, or tells values apart, reads a table itself, and not columns of a projection."""
    lists = [above.rpartition("\n")[2] for above in re.split(r"\nFROM [\"`]", statement)[:-1]]
    return any(re.search(r"\b(COUNT|SUM|MAX)\(|SELECT DISTINCT", listed) for listed in lists)


@pytest.mark.parametrize("sql", [*(q for q in REPEATING if "MEDIAN" not in q), *WRITTEN_ONCE])
@pytest.mark.parametrize("dialect", [DUCKDB, POSTGRES, SPARK], ids=lambda d: d.name)
def test_no_text_stands_above_the_waist(sql: str, dialect: Dialect, monkeypatch: pytest.MonkeyPatch) -> None:
    assert not any(adds_up_tables(s) for s in of_dialect(sql, dialect))
    in_place(monkeypatch)
    assert any(adds_up_tables(s) for s in of_dialect(sql, dialect))


@pytest.mark.parametrize("sql", REPEATING)
def test_it_is_a_projection_of_its_own(
    engine: duckdb.DuckDBPyConnection, sql: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of what DuckDB runs: its optimizers that we leave on do not merge it into the one above."""
    now = [projections(engine, statement) for statement in statements(sql)]
    in_place(monkeypatch)
    before = [projections(engine, statement) for statement in statements(sql)]
    assert all(a >= b for a, b in zip(now, before, strict=True)) and sum(now) > sum(before)


def projections(engine: duckdb.DuckDBPyConnection, statement: str) -> int:
    ((_, text),) = engine.execute(f"EXPLAIN {statement}").fetchall()
    return str(text).upper().count("PROJECTION")


def test_an_average_counts_the_rows_that_its_sum_adds(engine: duckdb.DuckDBPyConnection) -> None:
    """NaN, infinities and NULL are in neither."""
    (statement,) = statements("SELECT AVG(y), SUM(y) FROM log")
    finite = "SELECT COUNT(*) FROM log WHERE isfinite(y)"
    ((counted,),) = engine.execute(finite).fetchall()
    assert 0 < counted < 300 and counted in engine.execute(statement).fetchall()[0]


def test_the_clip_stands_above_and_reads_a_column() -> None:
    (statement,) = statements("SELECT SUM(x * 2 + 1) FROM log")
    above, below = statement.split("\nFROM (")
    assert above == (
        "SELECT COALESCE(SUM(CAST(CASE WHEN e.a0 < 1 THEN 1 WHEN e.a0 > 21 THEN 21 ELSE e.a0 END AS INTEGER)), 0) AS m0"
    )
    assert below.count("* 2") == 1 and below.endswith('FROM "log" AS t1) AS e')


@pytest.mark.parametrize("sql", READ_TWICE)
def test_what_a_text_reads_twice_is_computed_once(sql: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def times() -> int:
        (statement,) = statements(sql)
        return statement.count("* CAST(7 ") + statement.replace("* 7)'", "").count("* 7")

    assert times() == 1
    monkeypatch.setattr(RepeatedParts, "_levels", lambda self, texts: {})
    assert times() > 1, "the broken twin"


def test_a_long_list_of_slices_is_a_column() -> None:
    """Within a CASE DuckDB compares one value after the other."""
    kinds = ", ".join(map(str, range(9)))
    (statement,) = statements(f"SELECT COUNT(*) FILTER (WHERE x IN ({kinds})), COUNT(*) FILTER (WHERE x > 9) FROM log")
    assert "CASE WHEN o.a0 THEN 0" in statement


@pytest.mark.parametrize("sql", PLAIN)
def test_columns_of_a_table_stay_where_they_are(sql: str, monkeypatch: pytest.MonkeyPatch) -> None:
    now = statements(sql)
    in_place(monkeypatch)
    assert now == statements(sql)
