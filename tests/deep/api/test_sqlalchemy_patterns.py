"""What SQLAlchemy writes gives the rows of plain DuckDB."""

from __future__ import annotations

from collections.abc import Iterator

import duckdb
import pyarrow
import pytest
import sqlalchemy as sa

import dpsql
from dpsql.core.ledger.memory import MemoryLedger
from tests.api.test_sqlalchemy_patterns import NASTY, POLICY, X, by_sqlalchemy, counts

METHODS = [f"{i}{name}" for i in ("", "i") for name in ("contains", "startswith", "endswith")]


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


@pytest.mark.parametrize("text", NASTY, ids=repr)
def test_the_same_rows_as_in_plain_duckdb(engine: sa.Engine, plain: duckdb.DuckDBPyConnection, text: str) -> None:
    made = [getattr(X, name)(text, autoescape=escaped) for name in METHODS for escaped in (False, True)]
    statement = counts(*made, *(~condition for condition in made))
    with engine.connect() as connection:
        found = tuple(connection.execute(statement).one())
    assert found == plain.execute(by_sqlalchemy(statement)).fetchone()
