"""`contains`, `startswith`, `endswith` of SQLAlchemy, with nasty texts: dpsql counts what plain DuckDB counts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import duckdb
import pyarrow
import pytest
import sqlalchemy as sa
from sqlalchemy import func, select

import dpsql
from dpsql.core.ledger.memory import MemoryLedger

POLICY: dict[str, Any] = {
    "version": 1,
    "name": "texts",
    "units": {"person": {}},
    "tables": {
        "texts": {
            "unit": {"column": "id"},
            "primary_key": ["id"],
            "columns": {"id": {"type": "bigint", "nullable": False}, "x": {"type": "varchar"}},
        }
    },
    "budgets": {"total": {"epsilon": 10**9}},
}
NASTY = (
    "", "a", "A", "ab", "%", "_", "%%", "a%b", "a_b", "a/b", "a/%b", "/", "\\", "\\%", "a\\_b", "'", "''", "a'b", '"',
    "?", ":x", "$1", "%(x)s", "{}", "[a]", "^a", "--", "/*", "a\nb", " a ", "é", "É", "ß", "SS", "日本", "🙂", "a🙂b",
)  # fmt: skip
TEXTS = sa.table("texts", sa.column("id", sa.BigInteger), sa.column("x", sa.String))
X = TEXTS.c.x


@pytest.fixture(scope="module")
def rows() -> pyarrow.Table:
    texts = [*NASTY, *(f"{a}{b}" for a in NASTY for b in ("a", "%", "/x")), None]
    return pyarrow.table({"id": pyarrow.array(range(len(texts)), pyarrow.int64()), "x": texts})


@pytest.fixture(scope="module")
def engine(rows: pyarrow.Table) -> Iterator[sa.Engine]:
    """At the ε of these tests a count's noise is 0 but once in e^100 runs."""
    with dpsql.connect(
        dpsql.Policy.from_dict(POLICY), frames={"texts": rows}, ledger=MemoryLedger("texts"), epsilon=4000
    ) as con:
        yield sa.create_engine("dpsql://", creator=lambda: con)


@pytest.fixture(scope="module")
def plain(rows: pyarrow.Table) -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as con:
        con.register("texts", rows)
        yield con


def counts(*conditions: Any) -> sa.Select[Any]:
    """One query that counts the rows of each condition."""
    return select(*(func.count().filter(condition).label(f"n{i}") for i, condition in enumerate(conditions)))


def by_sqlalchemy(statement: Any) -> str:
    """The statement as any database is given it: `x LIKE '%' || 'a' || '%'`, with lower() for the i of icontains."""
    return str(statement.compile(compile_kwargs={"literal_binds": True}))


def test_a_cached_statement_takes_new_texts(engine: sa.Engine, plain: duckdb.DuckDBPyConnection) -> None:
    """One compiled form for all: each run counts with its own text, also where one name has several uses."""
    for text in ("a", "%", "'", "b"):
        x = sa.bindparam("text", text, sa.String)
        statement = counts(X.contains(x), X.startswith(x), X.endswith(x), x == X, X.icontains(x), X.like(x))
        with engine.connect() as connection:
            assert tuple(connection.execute(statement).one()) == plain.execute(by_sqlalchemy(statement)).fetchone()
    named = sa.bindparam("text", type_=sa.String)
    statement = counts(X.contains(named), X.startswith(named), named == X)
    with engine.connect() as connection:
        for text in ("a", "é", "_"):
            wanted = plain.execute(
                "SELECT COUNT(*) FILTER (x LIKE '%' || $t || '%'), COUNT(*) FILTER (x LIKE $t || '%'), "
                "COUNT(*) FILTER (x = $t) FROM texts", {"t": text},
            ).fetchone()  # fmt: skip
            assert tuple(connection.execute(statement, {"text": text}).one()) == wanted


def test_types_of_a_user_s_own_are_asked_first(engine: sa.Engine) -> None:
    class Doubled(sa.TypeDecorator[str]):
        impl = sa.String
        cache_ok = True

        def process_bind_param(self, value: Any, dialect: Any) -> str:
            return value * 2

    table = sa.table("texts", sa.column("x", Doubled))
    with engine.connect() as connection:
        both = [counts(table.c.x.startswith("/")), counts(X.startswith("//"))]
        assert len({connection.execute(one).scalar_one() for one in both}) == 1


def test_a_pattern_out_of_a_column_is_refused(engine: sa.Engine) -> None:
    with engine.connect() as connection, pytest.raises(sa.exc.DBAPIError, match="DP115"):
        connection.execute(counts(X.contains(TEXTS.c.x)))
