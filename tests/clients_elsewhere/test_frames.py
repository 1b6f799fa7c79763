"""connectorx, ADBC and pandas: answers as data frames, each column of its type."""

from __future__ import annotations

import pytest

from tests.clients_elsewhere.clients import Address
from tests.support.answering import Answers
from tests.support.served import DATABASE, NAME, PASSWORD, Served


def address(served: Served) -> Address:
    return Address(served.port, NAME, PASSWORD, DATABASE)


@pytest.mark.parametrize("protocol", ["binary", "cursor", "csv"])
def test_connectorx(served: Served, protocol: str) -> None:
    cx = pytest.importorskip("connectorx")
    url = address(served).url(more="?sslmode=disable")
    table = cx.read_sql(url, "SELECT n, region, f, d FROM numbers(3)", return_type="arrow", protocol=protocol)
    assert [str(field.type) for field in table.schema][:3] == ["int64", "large_string", "double"] or [
        str(field.type) for field in table.schema
    ][:3] == ["int64", "string", "double"]
    assert table.column("n").to_pylist() == [42] * 3 and table.column("region").to_pylist() == ["norð"] * 3


def test_adbc_gives_values_of_their_types(served: Served, answers: Answers) -> None:
    """It reads from pg_type which bytes a type comes in; what it does not find there would come as bytes."""
    driver = pytest.importorskip("adbc_driver_postgresql.dbapi")
    with driver.connect(address(served).url(), autocommit=True) as connection, connection.cursor() as cursor:
        cursor.execute("/* dpsql: epsilon=0.125 */ SELECT n, i, region, f, d, ts, b, dec, none FROM numbers(2)")
        table = cursor.fetch_arrow_table()
        kinds = [str(field.type) for field in table.schema]
        assert kinds[:5] == ["int64", "int32", "string", "double", "date32[day]"]
        assert kinds[5].startswith("timestamp") and kinds[6] == "bool" and "binary" not in kinds
        assert table.column("n").to_pylist() == [42, 42] and table.column("none").to_pylist() == [None, None]
        assert {settings.epsilon for _, _, _, settings in answers.asked} == {"0.125"}
        cursor.execute("SELECT n WHERE x = $1 AND y = $2", (7, "a"))
        assert cursor.fetchall() == [(42,)]
        assert answers.asked[-1][2] == (7, "a")
        with pytest.raises(driver.Error) as refused:
            cursor.execute("SELECT n FROM nowhere")
        assert refused.value.sqlstate == "42P01"


def test_pandas(served: Served) -> None:
    pd, sa = pytest.importorskip("pandas"), pytest.importorskip("sqlalchemy")
    engine = sa.create_engine(address(served).url("postgresql+psycopg"))
    frame = pd.read_sql(sa.text("SELECT n, region, f FROM numbers(2) WHERE x = :x"), engine, params={"x": 5})
    assert frame.to_dict("list") == {"n": [42, 42], "region": ["norð", "norð"], "f": [0.5, 0.5]}
    assert str(frame.dtypes["n"]) == "int64" and str(frame.dtypes["f"]) == "float64"
    engine.dispose()
