"""What ordinary people ask of data as it is, in plain SQL: answered as written, or refused with what to ask instead.

Three kinds of data. travel: a DuckDB file of flights with ENUM, UUID, STRUCT, JSON, LIST, TIMESTAMPTZ, DECIMAL, NULLs,
odd names and a table of another schema. shop: a folder of Parquet divided by year, and a CSV as German programs write
it. frame: a pandas table without a policy. Noise is negligible, so that an answer is the engine's own but for groups
that public lists add. A comment below a question is its code and the repair, pasted.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from shutil import copy, which

import duckdb
import pytest

import dpsql
from tests.support.asked_questions import FOLDER, Data, Question, is_answered, is_refused, questions, run_all

pytestmark = pytest.mark.filterwarnings("ignore::dpsql.UtilityWarning")  # of bounds as wide as the dates'

CSV = (
    "'{}', auto_detect = false, header = true, delim = ';', dateformat = '%d.%m.%Y', encoding = 'latin-1', "
    "decimal_separator = ',', columns = {{'Kundennummer': 'BIGINT', 'Name': 'VARCHAR', 'Land': 'BIGINT', "
    "'Kontostand': 'DOUBLE', 'Straße': 'VARCHAR', 'Geburtstag': 'DATE'}}"
)
TRAVEL = """
SET TimeZone = 'UTC';
CREATE TYPE airport AS ENUM ('EWR', 'JFK', 'LGA');
CREATE SCHEMA raw;
CREATE TABLE airlines AS SELECT carrier AS code, name FROM '{data}/airlines.parquet';
CREATE TABLE raw.planes AS SELECT md5(p.tailnum)::UUID AS id, p.tailnum AS "Tail Number", year::SMALLINT AS built,
    manufacturer, {{'model': model, 'seats': seats::INT, 'engine': engine}} AS kind,
    ('{{"owner": {{"city": "' || (['Berlin', 'Paris', 'Rome'])[1 + seats % 3] || '"}}}}')::JSON AS papers
    FROM '{data}/planes.parquet' AS p;
CREATE TABLE flights AS SELECT row_number() OVER () AS flight_id, md5(f.tailnum)::UUID AS plane, carrier,
    origin::airport AS origin, dest, f.time_hour AT TIME ZONE 'UTC' AS "Scheduled At",
    f.time_hour AT TIME ZONE 'UTC' + coalesce(dep_delay, 0)::INT * INTERVAL 1 MINUTE AS departed,
    f.time_hour::DATE AS day, dep_delay::INT AS "dep delay", arr_delay::INT AS arr_delay, distance::INT AS distance,
    (distance * 0.11 + 40)::DECIMAL(8, 2) AS price, air_time::DOUBLE AS air_time, [carrier, dest] AS tags,
    dep_delay IS NULL AS cancelled
    FROM '{data}/flights.parquet' AS f
    WHERE month <= 2 AND day <= 20 AND f.tailnum IN (SELECT tailnum FROM '{data}/planes.parquet');
CREATE VIEW planes AS SELECT * FROM raw.planes
"""
TRAVEL_SEEN = """
SET TimeZone = 'UTC';
ATTACH '{file}' AS t (READ_ONLY);
CREATE SCHEMA raw;
CREATE TABLE airlines AS FROM t.airlines;
CREATE TABLE flights AS SELECT * REPLACE ("Scheduled At" AT TIME ZONE 'America/New_York' AS "Scheduled At",
    departed AT TIME ZONE 'UTC' AS departed) FROM t.flights;
CREATE TABLE raw.planes AS SELECT *, kind.model AS model, kind.seats AS seats, papers ->> '$.owner.city' AS city
    FROM t.raw.planes
"""


@pytest.fixture(scope="module")
def travel(tmp_path_factory: pytest.TempPathFactory, flights_folder: Path) -> Iterator[Data]:
    folder = tmp_path_factory.mktemp("travel")
    with duckdb.connect(str(folder / "travel.duckdb")) as con:
        run_all(con, TRAVEL, data=flights_folder / "data")
    copy(FOLDER / "travel.yaml", folder)
    with dpsql.connect(folder / "travel.yaml") as protected, duckdb.connect() as plain:
        run_all(plain, TRAVEL_SEEN, file=folder / "travel.duckdb")
        yield Data(protected, plain)


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Data]:
    folder = tmp_path_factory.mktemp("shop")
    program = which("tpchgen-cli", path=Path(sys.executable).parent) or which("tpchgen-cli")
    assert program is not None, "tpchgen-cli is a development dependency"
    made = [program, "parquet", "-s", "0.01", f"--output-dir={folder / 'tpch'}"]
    subprocess.run(made, check=True, capture_output=True, timeout=120)
    with duckdb.connect() as plain:
        plain.execute(
            f"COPY (SELECT o_orderkey, o_custkey, o_orderstatus, o_totalprice, o_orderdate, o_orderpriority, "
            f"year(o_orderdate) AS jahr FROM '{folder}/tpch/orders.parquet') TO '{folder}/bestellungen' "
            "(FORMAT parquet, PARTITION_BY (jahr))"
        )
        born = "strftime(DATE '1950-01-01' + (c_custkey * 37 % 20000)::INT, '%d.%m.%Y')"
        rows = plain.execute(
            f"SELECT concat_ws(';', c_custkey, c_name, c_nationkey, replace(c_acctbal::VARCHAR, '.', ','), "
            f"c_mktsegment, {born}) FROM '{folder}/tpch/customer.parquet'"
        ).fetchall()
        text = "\n".join(["Kundennummer;Name;Land;Kontostand;Straße;Geburtstag", *(row for (row,) in rows)])
        (folder / "kunden.csv").write_text(text + "\n", encoding="latin-1")
        copy(FOLDER / "shop.yaml", folder)
        plain.execute(f"CREATE TABLE kunden AS FROM read_csv({CSV.format(folder / 'kunden.csv')})")
        plain.execute(
            f"CREATE TABLE bestellungen AS FROM read_parquet('{folder}/bestellungen/**/*.parquet', "
            "hive_partitioning = true, hive_types = {'jahr': 'BIGINT'})"
        )
        with dpsql.connect(folder / "shop.yaml") as protected:
            yield Data(protected, plain)


@pytest.fixture(scope="module")
def frame(flights_folder: Path) -> Iterator[Data]:
    with duckdb.connect() as plain:
        columns = "tailnum, origin, dest, dep_delay, arr_delay, hour, distance, air_time, time_hour"
        data = plain.sql(
            f"SELECT {columns} FROM '{flights_folder}/data/flights.parquet' WHERE month = 1 AND day <= 3"
        ).df()
        bounds = {"dep_delay": (-60, 900), "arr_delay": (-100, 900), "distance": (0, 5000), "air_time": (0, 720)}
        groups = {"origin": ["EWR", "JFK", "LGA"], "hour": range(24)}
        budget = {"epsilon": 10**15, "delta": 0.5}
        with dpsql.protect(
            data, unit="tailnum", bounds=bounds, groups=groups, max_rows=30, budget=budget, delta="1e-3"
        ) as protected:
            plain.execute("CREATE TABLE data AS FROM data WHERE tailnum IS NOT NULL")
            yield Data(protected, plain)


CASES = [(name, q) for name in ("travel", "shop", "frame") for q in questions(name)]


@pytest.mark.sampled(3)
@pytest.mark.filterwarnings("ignore:warning.DP508")  # of durations it is told how to ask for less noise
@pytest.mark.parametrize(("name", "question"), CASES, ids=[f"{n}: {q.sql}" for n, q in CASES])
def test_a_question(request: pytest.FixtureRequest, name: str, question: Question) -> None:
    data: Data = request.getfixturevalue(name)
    sql = question.sql
    if question.refused is not None:
        code, sql = question.refused
        is_refused(data, question.sql, code)
    is_answered(data, sql)


def test_most_of_what_is_asked_is_answered() -> None:
    refused = [q.sql for _, q in CASES if q.refused is not None]
    assert len(CASES) >= 80 and 10 * len(refused) <= len(CASES), refused
