"""pandas, polars, jupysql and a plain DB-API consumer, over a connection and over SQLAlchemy."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pandas
import polars
import pytest
import sqlalchemy

import dpsql

POLICY = """\
version: 1
name: clinic
database: clinic.duckdb
units: {patient: {table: patients, key: id}}
tables:
  patients:
    unit: {column: id}
    primary_key: [id]
    columns:
      id: {type: bigint, nullable: false}
      age: {type: integer, bounds: [0, 100], nullable: false}
      fee: {type: 'decimal(8,2)', bounds: [0, 500]}
      town: {type: varchar, domain: [Bonn, Lyon, Oslo], nullable: false}
      day: {type: date, bounds: [2024-01-01, 2024-12-31], nullable: false}
budgets: {total: {epsilon: 1000000}}
ledger_head: head.json
"""
DATA = """\
CREATE TABLE patients AS SELECT i AS id, CAST(i % 80 AS INTEGER) AS age, CAST(i % 400 AS DECIMAL(8,2)) AS fee,
  ['Bonn', 'Lyon'][1 + i % 2] AS town, DATE '2024-01-01' + CAST(i % 300 AS INTEGER) AS day FROM range(2000) t(i);
"""
BY_TOWN = """\
SELECT town, COUNT(*) AS n, AVG(age) AS age, SUM(fee) AS fees, DATE '2024-05-06' AS day FROM patients
GROUP BY town ORDER BY town"""
COUNT = "SELECT COUNT(*) AS n FROM patients WHERE age < "
EPSILON = 400  # a count's noise is 0 but once in e^100 runs


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("clinic")
    with duckdb.connect(str(place / "clinic.duckdb")) as database:
        database.execute(DATA)
    (place / "clinic.yaml").write_text(POLICY, encoding="utf-8")
    return place


@pytest.fixture(scope="module")
def con(folder: Path) -> Iterator[dpsql.Connection]:
    with dpsql.connect(folder / "clinic.yaml", epsilon=EPSILON) as connection:
        yield connection


@pytest.fixture(scope="module")
def engine(folder: Path) -> Iterator[sqlalchemy.Engine]:
    made = sqlalchemy.create_engine(f"dpsql:///{folder}/clinic.yaml?epsilon={EPSILON}")
    yield made
    made.dispose()


# --- pandas ----------------------------------------------------------------------------------------------------------


@pytest.mark.filterwarnings(
    "ignore:pandas only supports SQLAlchemy connectable:UserWarning"
)  # it says so of all others
def test_pandas_over_the_connection(con: dpsql.Connection) -> None:
    frame = pandas.read_sql(BY_TOWN, con)
    assert list(frame.columns) == ["town", "n", "age", "fees", "day"] and list(frame["n"]) == [1000, 1000, 0]
    assert [str(t) for t in frame.dtypes[["n", "age"]]] == ["int64", "float64"]
    assert pandas.read_sql(COUNT + "?", con, params=[40])["n"].tolist() == [1000]
    assert pandas.read_sql_query(COUNT + "$age", con, params={"age": 40}, index_col="n").index.tolist() == [1000]
    parts = list(pandas.read_sql(BY_TOWN, con, chunksize=2))
    assert [len(part) for part in parts] == [2, 1] and pandas.concat(parts)["n"].tolist() == [1000, 1000, 0]
    assert pandas.read_sql(BY_TOWN, con, parse_dates=["day"])["day"].dt.month.tolist() == [5, 5, 5]
    with pytest.raises((dpsql.Rejected, pandas.errors.DatabaseError)):
        pandas.read_sql("SELECT age FROM patients", con)
    assert pandas.read_sql(COUNT + "40", con)["n"].tolist() == [1000]


def test_pandas_over_sqlalchemy(engine: sqlalchemy.Engine) -> None:
    """Without a warning: the tests make errors of them."""
    frame = pandas.read_sql(BY_TOWN, engine)
    assert list(frame["n"]) == [1000, 1000, 0]
    named = sqlalchemy.text(COUNT + ":age AND age >= :age - 40")
    assert pandas.read_sql(named, engine, params={"age": 40})["n"].tolist() == [1000]
    patients = sqlalchemy.Table("patients", sqlalchemy.MetaData(), autoload_with=engine)
    counted = sqlalchemy.select(patients.c.town, sqlalchemy.func.count().label("n")).group_by(patients.c.town)
    with engine.connect() as connection:
        found = pandas.read_sql_query(counted.order_by("town"), connection, index_col="town")
        assert found["n"].to_dict() == {"Bonn": 1000, "Lyon": 1000, "Oslo": 0}
        few = connection.execution_options(dpsql_epsilon=0.5, dpsql_fresh=True)
        assert pandas.read_sql(sqlalchemy.text(COUNT + "40"), few).shape == (1, 1)
    with pytest.raises((sqlalchemy.exc.ProgrammingError, pandas.errors.DatabaseError), match="DP110"):
        pandas.read_sql_table("patients", engine)


# --- polars ----------------------------------------------------------------------------------------------------------


def test_polars(con: dpsql.Connection, engine: sqlalchemy.Engine) -> None:
    for source in (con, con.cursor(), engine):
        frame = polars.read_database(BY_TOWN, source)
        assert frame["n"].to_list() == [1000, 1000, 0] and frame["town"].to_list() == ["Bonn", "Lyon", "Oslo"]
        kinds = [polars.String, polars.Int64, polars.Float64, polars.Decimal(38, 2), polars.Date]
        assert frame.dtypes == kinds, type(source)
    empty = polars.read_database(BY_TOWN + " LIMIT 0", con)
    assert empty.dtypes == [polars.String, polars.Int64, polars.Float64, polars.Decimal(38, 2), polars.Date]
    counted = polars.read_database(COUNT + "?", con, execute_options={"parameters": [40]})
    assert counted["n"].to_list() == [1000]
    fresh = polars.read_database(COUNT + "8", con, execute_options={"epsilon": 200, "fresh": True})
    assert fresh["n"].to_list() == [200]
    parts = list(polars.read_database(BY_TOWN, con, iter_batches=True, batch_size=2))
    assert [part.height for part in parts] == [2, 1]
    with pytest.raises(dpsql.Rejected):
        polars.read_database("SELECT age FROM patients", con)


# --- a plain consumer ------------------------------------------------------------------------------------------------


def report(connection: Any, module: Any) -> str:
    """A table as text, by nothing but PEP 249: what a tool that knows no dpsql would do."""
    assert module.apilevel == "2.0" and module.paramstyle == "qmark"
    with contextlib.closing(connection.cursor()) as cursor:
        cursor.arraysize = 2
        cursor.execute("SELECT town, COUNT(*) AS n FROM patients WHERE age < ? GROUP BY town ORDER BY town", (40,))
        lines = [" ".join(f"{d[0]}:{'number' if d[1] == module.NUMBER else 'text'}" for d in cursor.description)]
        while rows := cursor.fetchmany():
            lines += [" ".join(map(str, row)) for row in rows]
        try:
            cursor.execute("DELETE FROM patients")
        except connection.DatabaseError:
            connection.rollback()
            lines.append("not allowed")
        connection.commit()
    return "\n".join(lines)


def test_a_plain_consumer(con: dpsql.Connection) -> None:
    assert report(con, dpsql) == "town:text n:number\nBonn 500\nLyon 500\nOslo 0\nnot allowed"


# --- jupysql ---------------------------------------------------------------------------------------------------------

MAGICS = textwrap.dedent("""\
    import sys
    import warnings

    warnings.simplefilter("error")
    from IPython.core.interactiveshell import InteractiveShell

    shell = InteractiveShell.instance()

    def run(cell):
        found = shell.run_cell(cell)
        return found.error_before_exec or found.error_in_exec or found.result

    warnings.simplefilter("default")  # what jupysql imports is not ours
    run("%load_ext sql")
    warnings.simplefilter("error")
    run("%config SqlMagic.feedback = 0")
    run("%config SqlMagic.named_parameters = 'enabled'")
    run("import dpsql; con = dpsql.connect('clinic.yaml', epsilon=400)")
    run("age = 40")
    for source in ("con --alias own", "dpsql:///clinic.yaml?epsilon=400"):
        run(f"%sql {source}")
        told = [
            run("%sql SELECT COUNT(*) AS n FROM patients WHERE age < 40").dict(),
            run("%%sql\\nSELECT town, COUNT(*) AS n\\nFROM patients\\nGROUP BY town ORDER BY 1").DataFrame().n.tolist(),
            run("%sql SELECT COUNT(*) AS n FROM patients WHERE age < {{age}}").dict(),
            [line for line, in run("%sql EXPLAIN SELECT COUNT(*) AS n FROM patients")][-1].strip(),
            "DP110" in str(run("%sql SELECT age FROM patients")),
            run("%sql SET epsilon = 0.5").dict(),
            "0.5" in [line for line, in run("%sql EXPLAIN SELECT COUNT(*) AS n FROM patients")][-1],
        ]
        print("TOLD", told, file=sys.__stdout__)
    print("TABLES", run("%sqlcmd tables")._table.rows, file=sys.__stdout__)
    """)


@pytest.mark.processes
def test_jupysql(folder: Path, tmp_path: Path) -> None:
    """Its magics in a shell of IPython's; it has no telemetry any more, and what its parts have is switched off."""
    kept = {name: value for name, value in os.environ.items() if name != "VIRTUAL_ENV"}  # IPython warns of another one
    homes = {name: str(tmp_path) for name in ("HOME", "IPYTHONDIR", "XDG_STATE_HOME", "MPLCONFIGDIR")}
    done = subprocess.run(
        [sys.executable, "-c", MAGICS], capture_output=True, text=True, cwd=folder, timeout=300,
        env={**kept, **homes, "PLOOMBER_STATS_ENABLED": "false"},
    )  # fmt: skip
    lines = done.stdout.splitlines()
    told = [line for line in lines if line.startswith("TOLD")]
    wanted = "TOLD [{'n': (1000,)}, [1000, 1000, 0], {'n': (1000,)}, 'cost: ε 400 of each patient', True, " + (
        "{'setting': ('epsilon',), 'value': ('0.5',)}, True]"
    )
    assert told == [wanted] * 2, done.stdout + done.stderr
    assert "TABLES [['patients']]" in lines, done.stderr
