"""JDBC's driver and ODBC's, which come with a system: types, parameters, cursors, what they ask of the catalogue."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pytest

from tests.clients_elsewhere.clients import JDBC, ODBC_DRIVER, Address, java, missing, odbc_string
from tests.support.answering import Answers
from tests.support.served import DATABASE, NAME, PASSWORD, Served

jdbc = pytest.mark.xfail(missing(JDBC), reason=f"needs {JDBC}", run=False, strict=False)
odbc = pytest.mark.xfail(missing(ODBC_DRIVER), reason=f"needs {ODBC_DRIVER}", run=False, strict=False)


def address(served: Served) -> Address:
    return Address(served.port, NAME, PASSWORD, DATABASE)


@pytest.fixture
def by_jdbc(served: Served) -> Iterator[Any]:
    url = f"jdbc:postgresql://127.0.0.1:{served.port}/{DATABASE}?sslmode=require"
    connection = java("java.sql.DriverManager").getConnection(url, NAME, PASSWORD)
    yield connection
    connection.close()


@jdbc
def test_jdbc_reads_types_and_notices(by_jdbc: Any) -> None:
    statement = by_jdbc.createStatement()
    rows = statement.executeQuery("SELECT n, i, region, d, f, dec, b, none, ts, u FROM numbers(2)")
    assert rows.next() and rows.getLong("n") == 42 and rows.getInt("i") == -1 and str(rows.getString(3)) == "norð"
    assert str(rows.getDate("d")) == "2025-01-02" and rows.getDouble("f") == 0.5 and rows.getBoolean("b")
    assert str(rows.getBigDecimal("dec")) == "3.50" and rows.getObject("none") is None
    assert str(rows.getTimestamp("ts")).startswith("2025-01-02 03:04:05") and str(rows.getObject("u"))[-1] == "7"
    kinds = rows.getMetaData()
    assert [str(kinds.getColumnTypeName(i)) for i in range(1, 11)] == [
        "int8", "int4", "text", "date", "float8", "numeric", "bool", "int8", "timestamp", "uuid",
    ]  # fmt: skip
    assert str(statement.getWarnings().getMessage()) == "spent ε 0.5"


@jdbc
def test_jdbc_gives_parameters_and_prepares_at_the_server(by_jdbc: Any, answers: Answers) -> None:
    prepared = by_jdbc.prepareStatement("/* dpsql: epsilon=0.125 */ SELECT n FROM numbers(2) WHERE x = ? AND y = ?")
    for i in range(7):  # from the fifth on it is prepared, and numbers come as bytes
        prepared.setLong(1, i)
        prepared.setString(2, "a")
        rows = prepared.executeQuery()
        assert rows.next() and rows.getLong(1) == 42
    assert [values for _, _, values, _ in answers.asked] == [(i, "a") for i in range(7)]
    assert {settings.epsilon for _, _, _, settings in answers.asked} == {"0.125"}


@jdbc
def test_jdbc_fetches_in_pieces_and_is_refused_at_a_place(by_jdbc: Any, answers: Answers) -> None:
    by_jdbc.setAutoCommit(False)
    statement = by_jdbc.createStatement()
    statement.setFetchSize(3)
    rows = statement.executeQuery("SELECT n FROM numbers(10)")
    assert sum(1 for _ in iter(rows.next, False)) == 10 and len(answers.asked) == 1
    by_jdbc.rollback()
    with pytest.raises(java("java.sql.SQLException")) as refused:
        statement.executeQuery("SELECT n FROM nowhere")
    told = refused.value.getServerErrorMessage()
    assert (str(refused.value.getSQLState()), told.getPosition(), str(told.getHint())) == ("42P01", 15, "SELECT n")
    by_jdbc.rollback()


@jdbc
def test_jdbc_asks_the_catalogue(by_jdbc: Any) -> None:
    """As DBeaver, DataGrip and Metabase do when they show tables."""
    about = by_jdbc.getMetaData()

    def column(rows: Any, name: str) -> list[str]:
        return [str(rows.getString(name)) for _ in iter(rows.next, False)]

    kinds = java("java.lang.String")[:](["TABLE"])
    assert column(about.getTables(None, "public", "%", kinds), "TABLE_NAME") == ["icd10", "patients", "visits"]
    assert "surcharge" in column(about.getColumns(None, "public", "visits", "%"), "COLUMN_NAME")
    assert column(about.getPrimaryKeys(None, "public", "patients"), "COLUMN_NAME") == ["patient_id"]
    assert column(about.getImportedKeys(None, "public", "visits"), "PKTABLE_NAME") == ["patients"]
    assert "public" in column(about.getSchemas(), "TABLE_SCHEM") and str(about.getDatabaseProductName())
    assert column(about.getIndexInfo(None, "public", "patients", True, False), "COLUMN_NAME") == ["patient_id"]
    assert "int8" in column(about.getTypeInfo(), "TYPE_NAME")


@pytest.fixture
def by_odbc(served: Served) -> Iterator[Any]:
    import pyodbc

    connection = pyodbc.connect(odbc_string(address(served), "SSLmode=require"), autocommit=True)
    yield connection
    connection.close()


@odbc
def test_odbc_reads_types_and_gives_parameters(by_odbc: Any, answers: Answers) -> None:
    cursor = by_odbc.cursor()
    row = cursor.execute("SELECT n, i, region, d, f, dec, b, none, ts FROM numbers(2)").fetchone()
    kept = tuple(row)[:6] + tuple(row)[7:]
    assert kept == (
        42, -1, "norð", dt.date(2025, 1, 2), 0.5, Decimal("3.50"), None, dt.datetime(2025, 1, 2, 3, 4, 5),
    )  # fmt: skip
    assert row[6] in (True, "1")
    cursor.execute("/* dpsql: epsilon=0.125 */ SELECT n WHERE x = ? AND y = ?", 7, "a")
    assert cursor.fetchall()[0][0] == 42
    assert answers.asked[-1][2] == (7, "a") and answers.asked[-1][3].epsilon == "0.125"


@odbc
def test_odbc_is_refused_with_a_state(by_odbc: Any) -> None:
    import pyodbc

    with pytest.raises(pyodbc.ProgrammingError, match="unknown table") as refused:
        by_odbc.cursor().execute("SELECT n FROM nowhere")
    assert refused.value.args[0] == "42P01" or refused.value.args[0] == "42S02"


@odbc
def test_odbc_fetches_in_pieces(served: Served, answers: Answers) -> None:
    """As Power BI and Tableau set it: a cursor that is declared in SQL."""
    import pyodbc

    more = "SSLmode=require;UseDeclareFetch=1;Fetch=3;ConnSettings=SET dpsql.epsilon = 0.25"
    connection = pyodbc.connect(odbc_string(address(served), more), autocommit=True)
    assert len(connection.cursor().execute("SELECT n FROM numbers(10)").fetchall()) == 10
    connection.close()
    assert len(answers.asked) == 1 and answers.asked[0][3].epsilon == "0.25"


@odbc
def test_odbc_asks_the_catalogue(by_odbc: Any) -> None:
    cursor = by_odbc.cursor()
    assert [row.table_name for row in cursor.tables(tableType="TABLE")] == ["icd10", "patients", "visits"]
    assert [row.column_name for row in cursor.columns(table="patients")] == [
        "patient_id", "age", "region", "town", "smoker",
    ]  # fmt: skip
    assert [row.column_name for row in cursor.primaryKeys("patients", schema="public")] == ["patient_id"]
    assert any(row.type_name == "int8" for row in cursor.getTypeInfo())
