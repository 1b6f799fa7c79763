"""asyncpg, pg8000, psycopg2 and SQLAlchemy's engine: queries, parameters, errors, what pools send."""

from __future__ import annotations

import asyncio
import datetime as dt
import ssl
from decimal import Decimal
from typing import Any

import pytest

from tests.support.answering import COLUMNS, Answers
from tests.support.served import DATABASE, NAME, PASSWORD, Served


def trusting() -> ssl.SSLContext:
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context


def test_asyncpg(served: Served, answers: Answers) -> None:
    asyncpg = pytest.importorskip("asyncpg")

    async def talk() -> None:
        connection = await asyncpg.connect(
            host="127.0.0.1", port=served.port, user=NAME, password=PASSWORD, database=DATABASE, ssl=trusting(),
            server_settings={"dpsql.epsilon": "0.25", "application_name": "x"},
        )  # fmt: skip
        row = await connection.fetchrow(f"SELECT {', '.join(COLUMNS)}")
        assert dict(row) == {**{name: value for name, (_, value) in COLUMNS.items()}, "huge": Decimal(2**70)}
        assert await connection.fetchval("SELECT n WHERE x = $1 AND y = $2", 7, "a") == 42
        assert answers.asked[-1][2] == (7, "a") and answers.asked[-1][3].epsilon == "0.25"
        statement = await connection.prepare("SELECT n, d WHERE x = $1")
        assert [a.name for a in statement.get_attributes()] == ["n", "d"]
        assert [p.name for p in statement.get_parameters()] == ["int8"]
        assert len(await statement.fetch(1)) == 1
        async with connection.transaction():
            rows = [r async for r in connection.cursor("SELECT n FROM numbers(7)", prefetch=3)]
            assert len(rows) == 7
        with pytest.raises(asyncpg.UndefinedTableError) as refused:
            await connection.fetch("SELECT n FROM nowhere")
        assert refused.value.hint == "SELECT n" and refused.value.position == "15"
        await connection.execute("SET epsilon = 3; SELECT n")
        await connection.reset()
        assert await connection.fetchval("SHOW epsilon") == "0.25"
        answers.hold = True
        with pytest.raises(asyncio.TimeoutError):
            await connection.fetch("SELECT n", timeout=0.05)
        answers.hold = False
        assert await connection.fetchval("SELECT n") == 42
        await connection.close()

    asyncio.run(talk())


def test_pg8000(served: Served, answers: Answers) -> None:
    pg8000 = pytest.importorskip("pg8000.dbapi")
    connection = pg8000.connect(
        NAME, host="127.0.0.1", port=served.port, password=PASSWORD, database=DATABASE, ssl_context=trusting()
    )
    connection.autocommit = True
    cursor = connection.cursor()
    cursor.execute("SELECT n, region, d, dec, b, list FROM numbers(2)")
    assert (
        list(map(tuple, cursor.fetchall()))
        == [(42, "norð", dt.date(2025, 1, 2), Decimal("3.50"), True, ["a", None])] * 2
    )
    cursor.execute("SELECT n WHERE x = %s AND y = %s", (7, "a"))
    assert answers.asked[-1][2] == (7, "a")
    with pytest.raises(pg8000.DatabaseError) as refused:
        cursor.execute("SELECT n FROM nowhere")
    assert refused.value.args[0]["C"] == "42P01" and refused.value.args[0]["H"] == "SELECT n"
    connection.autocommit = False
    cursor.execute("SELECT n")
    connection.rollback()
    assert connection.notices[-1][b"M"].decode() == "spent ε 0.5"
    connection.close()


def test_psycopg2(served: Served, answers: Answers) -> None:
    psycopg2 = pytest.importorskip("psycopg2")
    connection = psycopg2.connect(served.dsn)
    cursor = connection.cursor()
    cursor.execute("SELECT n, region, d, huge, list FROM numbers(2)")
    assert cursor.fetchall() == [(42, "norð", dt.date(2025, 1, 2), Decimal(2**70), ["a", None])] * 2
    assert connection.notices == ["NOTICE:  spent ε 0.5\n"]
    with pytest.raises(psycopg2.errors.UndefinedTable) as refused:
        cursor.execute("SELECT n FROM nowhere")
    assert refused.value.diag.statement_position == "15"
    connection.rollback()
    named = connection.cursor("c")
    named.itersize = 2
    named.execute("SELECT n FROM numbers(5)")
    assert len(list(named)) == 5
    connection.close()


@pytest.mark.parametrize("driver", ["psycopg", "psycopg2"])
def test_sqlalchemy_executes(served: Served, driver: str) -> None:
    """Its inspector asks the catalogue, which is not here: what it asks when it connects is left out."""
    sqlalchemy = pytest.importorskip("sqlalchemy")
    pytest.importorskip(driver)
    url = f"postgresql+{driver}://{NAME}:{PASSWORD.replace(' ', '%20')}@127.0.0.1:{served.port}/{DATABASE}"
    engine = sqlalchemy.create_engine(url, use_native_hstore=False)
    engine.dialect.initialize = lambda connection: None
    with engine.connect() as connection:
        rows: Any = connection.execute(sqlalchemy.text("SELECT n, region FROM numbers(2) WHERE x = :x"), {"x": 5})
        assert [tuple(row) for row in rows] == [(42, "norð")] * 2
    engine.dispose()
