"""Which tables and columns a policy may have on a cluster, what is told of them, and what is refused by name."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import dpsql
from dpsql.core.policy.server_address import parse_server
from dpsql.core.policy.source import parse_source
from dpsql.diagnostics.errors import CannotOpen, Rejected
from dpsql.engines.spark import relations
from dpsql.engines.spark.engine import SparkEngine
from dpsql.engines.spark.engine_types import read_as
from dpsql.engines.spark.relations import Wanted
from dpsql.faces.cli.main import main
from tests.engines_elsewhere.spark.servers import Server
from tests.engines_elsewhere.spark.test_engine_contract import files_opened, opened

Make = Callable[..., str]
COLUMNS = """b BOOLEAN, t TINYINT, s SMALLINT, i INT NOT NULL, l BIGINT, f FLOAT, d DOUBLE, n DECIMAL(9, 2), v STRING,
  w VARCHAR(9), c CHAR(3), y DATE, z TIMESTAMP_NTZ, x TIMESTAMP, o BINARY, a ARRAY<INT>, r STRUCT<p: INT>,
  m MAP<INT, INT>, k STRING COLLATE UNICODE_CI, aa ARRAY<ARRAY<INT>>"""
TYPES = {
    "b": "BOOLEAN", "t": "TINYINT", "s": "SMALLINT", "i": "INTEGER", "l": "BIGINT", "f": "FLOAT", "d": "DOUBLE",
    "n": "DECIMAL(9,2)", "v": "VARCHAR", "w": "VARCHAR", "c": "unusable", "y": "DATE", "z": "TIMESTAMP",
    "x": "TIMESTAMP WITH TIME ZONE", "o": "BLOB", "a": "INTEGER[]", "r": "unusable", "m": "unusable",
    "k": "unusable", "aa": "unusable",
}  # fmt: skip


def test_types_and_what_is_told_of_them(cluster: Server, schema: Make) -> None:
    engine = opened(cluster, schema(f"CREATE TABLE SCHEMA.t ({COLUMNS}) USING parquet"), "t")
    table = engine.describe().table("t")
    assert table is not None
    assert {c.name: c.type for c in table.columns} == TYPES
    assert all(c.why for c in table.columns if c.type == "unusable")
    # Spark reads a column of files as one that may hold NULL, whatever its table says; keys it does not check.
    assert all(c.nullable for c in table.columns) and (table.primary_key, table.unique, table.foreign_keys) == ((),) * 3
    usable = [name for name, type_ in TYPES.items() if type_ != "unusable"]
    assert engine.fetch(f"SELECT * FROM {engine.table_sql('t')} AS t0").names == tuple(usable)
    engine.close()


@pytest.mark.parametrize(
    ("type_", "found"),
    [
        ("time(6)", "TIME"), ("time(9)", ""), ("decimal(38,0)", "DECIMAL(38,0)"), ("decimal(10,-2)", ""),
        ("variant", ""),
        ("interval day to second", ""), ("string collate UNICODE_CI", ""), ("void", ""), ("geometry(4326)", ""),
        ({"type": "udt"}, ""), ({"type": "array", "elementType": "decimal(9,2)"}, ""),
    ],
)  # fmt: skip
def test_what_is_not_known_is_not_read(type_: object, found: str) -> None:
    read = read_as({"name": "x", "type": type_, "metadata": {}})
    assert read.type == found and bool(read.why) != bool(found)


def test_names_are_found_whatever_their_case_and_called_as_the_policy_does(cluster: Server, tmp_path: Path) -> None:
    pq.write_table(pa.table({"Amount": [1], "a b`c": [2]}), tmp_path / "a.parquet")
    wanted = Wanted(
        "T", source=parse_source(f"read_parquet('{tmp_path}/*.parquet')", True), columns=("amount", "A B`C")
    )
    engine = SparkEngine.open(parse_server(cluster.address), [wanted])
    found = engine.fetch(f"SELECT * FROM {engine.table_sql('t')} AS t0")
    assert (found.names, found.columns) == (("amount", "A B`C"), ([1], [2]))
    engine.close()


REFUSED: dict[str, tuple[str, str]] = {
    "a view": ("CREATE VIEW SCHEMA.x AS SELECT * FROM SCHEMA.t", "is a view"),
    "a table of CSV": ("CREATE TABLE SCHEMA.x USING csv AS SELECT * FROM SCHEMA.t", "is of format csv"),
    "a table of ORC": ("CREATE TABLE SCHEMA.x USING orc AS SELECT * FROM SCHEMA.t", "is of format orc"),
}


@pytest.mark.parametrize("kind", REFUSED)
def test_tables_whose_files_cannot_be_pinned_are_refused_by_name(cluster: Server, schema: Make, kind: str) -> None:
    script, said = REFUSED[kind]
    name = schema("CREATE TABLE SCHEMA.t USING parquet AS SELECT 1 AS i", script)
    with pytest.raises(CannotOpen, match=said) as caught:
        opened(cluster, name, "t", "x")
    assert caught.value.diagnostics[0].code == "DP006" and caught.value.diagnostics[0].help


@pytest.mark.parametrize("provider", ["delta", "iceberg", "hudi", "hive", "jdbc", "", "org.example.Format"])
def test_formats_that_cannot_be_had_here_are_refused_too(provider: str) -> None:
    refused = relations._refused({"type": "MANAGED", "provider": provider})
    assert refused is not None and refused[1] and (provider.lower() or "unknown") in refused[0].lower()
    assert relations._refused({"type": "MANAGED", "provider": "parquet"}) is None
    assert relations._refused({"type": "FOREIGN", "provider": "parquet"}) is not None
    assert relations._refused({}) is not None


LOGS = {
    "delta": "_delta_log/00000000000000000000.json", "iceberg": "metadata/v1.metadata.json",
    "hudi": ".hoodie/hoodie.properties",
}  # fmt: skip


@pytest.mark.parametrize("format_", LOGS)
@pytest.mark.parametrize("inside", ["", "p=1/q=2/"])
def test_files_that_have_versions_of_their_own_are_refused(
    cluster: Server, tmp_path: Path, format_: str, inside: str
) -> None:
    """Their folder holds rows that were deleted, too."""
    data = tmp_path / "table"
    (data / inside).mkdir(parents=True)
    pq.write_table(pa.table({"i": [1]}), data / inside / "a.parquet")
    files_opened(cluster, data, "t").close()
    log = data / LOGS[format_]
    log.parent.mkdir()
    log.write_text("{}")
    for path in (data, data / "p=*" if inside else data / "*.parquet"):
        with pytest.raises(CannotOpen, match=format_.capitalize()) as caught:
            files_opened(cluster, path, "t")
        assert caught.value.diagnostics[0].help


def test_what_is_not_there(cluster: Server, schema: Make, tmp_path: Path) -> None:
    name = schema("CREATE TABLE SCHEMA.t USING parquet AS SELECT 1 AS i")
    engine = opened(cluster, name, "t", "gone")
    with pytest.raises(CannotOpen, match="DP004"):
        engine.table_sql("gone")
    engine.close()
    (tmp_path / "a.parquet").write_text("no Parquet")
    for path in (tmp_path / "nothing", tmp_path / "*.csv", tmp_path):
        with pytest.raises(CannotOpen, match="cannot be read") as caught:
            files_opened(cluster, path, "t")
        assert "Traceback" not in str(caught.value) and "no Parquet" not in str(caught.value)


POLICY = """
version: 1
name: shop
database: {address}
tables:
  orders:
    source: spark_catalog.{schema}.orders
    unit: {{of: customer, column: customer}}
    max_rows_per_unit: 5
    columns: {{customer: {{type: bigint}}, amount: {{bounds: [0, 10]}}, region: {{domain: [north, south]}}}}
  regions:
    public: true
    source: read_parquet('{folder}')
    primary_key: [name]
    columns: {{name: {{type: varchar}}}}
budgets: {{total: {{epsilon: 1000}}}}
"""
ORDERS = """CREATE TABLE SCHEMA.orders USING parquet AS SELECT id % 100 AS customer, CAST(id % 11 AS INT) AS amount,
  CASE WHEN id % 2 = 0 THEN 'north' ELSE 'south' END AS region FROM range(500)"""


@pytest.fixture
def policy(cluster: Server, schema: Make, tmp_path: Path) -> Path:
    pq.write_table(pa.table({"name": ["north", "south"]}), tmp_path / "regions.parquet")
    file = tmp_path / "shop.yaml"
    text = POLICY.format(address=cluster.address, schema=schema(ORDERS), folder=tmp_path / "regions.parquet")
    file.write_text(text, encoding="utf-8")
    return file


def test_a_policy_is_drafted_verified_explained_asked_and_audited(
    cluster: Server, policy: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(policy.parent)
    sql = "SELECT region, COUNT(*) AS n, AVG(amount) AS a FROM orders GROUP BY region"
    assert main(["policy", "init", cluster.address]) == 0
    drafted = capsys.readouterr().out
    assert cluster.address in drafted and ".orders" in drafted and "type: bigint" in drafted
    assert main(["policy", "verify", str(policy)]) == 0
    assert main(["policy", "audit", str(policy)]) == 0
    assert main(["audit", str(policy), "SELECT COUNT(*) AS n FROM orders", "--runs", "100"]) == 0
    assert main(["explain", str(policy), sql, "--epsilon", "1"]) == 0
    assert main(["explain", str(policy), sql, "--epsilon", "1", "--engine-sql"]) == 0
    assert "`system`.`session`" in capsys.readouterr().out
    with dpsql.connect(policy) as con:
        found = con.sql(sql).run(epsilon=500)
        assert [row[0] for row in found.rows] == ["north", "south", None]
        assert all(abs(row[1] - 250) < 9 for row in found.rows[:2])
        joined = con.sql("SELECT COUNT(*) AS n FROM orders JOIN regions ON region = name").run(epsilon=100)
        assert abs(joined.rows[0][0] - 500) < 9


def test_a_process_that_closes_nothing_ends_and_says_nothing(policy: Path) -> None:
    """The client would wait for its channel for ever; and take `python -c` for a run of its own tests."""
    asked = "con.sql('SELECT COUNT(*) AS n FROM orders').run(epsilon=1)"
    code = f"import dpsql; con = dpsql.connect({str(policy)!r}); print({asked}.rows)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300)
    assert (done.returncode, done.stderr) == (0, "") and done.stdout.startswith("((")


def test_a_table_and_its_files_have_one_unit(cluster: Server, policy: Path) -> None:
    """The same rows under two budgets would be asked twice for the price of one."""
    text = policy.read_text(encoding="utf-8")
    name = text.partition("spark_catalog.")[2].partition(".")[0]
    folder = cluster.folder / "warehouse" / f"{name}.db" / "orders"
    twice = text.replace(
        "  regions:",
        f"  again:\n    source: read_parquet('{folder}')\n    unit: {{rows: 1}}\n"
        "    columns: {amount: {type: integer}}\n  regions:",
    )
    policy.write_text(twice, encoding="utf-8")
    with pytest.raises((CannotOpen, Rejected), match="two budgets"):
        dpsql.connect(policy)


def test_stored_answers_of_one_engine_are_not_given_for_the_other(policy: Path) -> None:
    """Their addresses hold the dialect's name: which rows of an id are kept is decided by an engine's own hash."""
    from dpsql.spelling.duckdb_functions import DUCKDB
    from dpsql.spelling.spark_functions import SPARK

    assert SPARK.name != DUCKDB.name
    sql = "SELECT region, COUNT(*) AS n FROM orders GROUP BY region"
    with dpsql.connect(policy) as con:
        first = con.sql(sql).run(epsilon=1)
        assert con.sql(sql).run(epsilon=1).rows == first.rows  # stored, and given again
        assert con.budget["customer"].spent.epsilon == 1
    rows = {"customer": [1], "amount": pa.array([1], pa.int32()), "region": ["north"]}
    pq.write_table(pa.table(rows), policy.parent / "o.parquet")
    text = re.sub("(?m)^database:.*\n", "", policy.read_text(encoding="utf-8"))
    here = policy.with_name("here.yaml")
    here.write_text(re.sub(r"spark_catalog\.\w+\.orders", "read_parquet('o.parquet')", text), encoding="utf-8")
    with dpsql.connect(here) as con:
        assert con.budget["customer"].spent.epsilon == 1  # one ledger: the policies have one name
        con.sql(sql).run(epsilon=1)
        assert con.budget["customer"].spent.epsilon == 2
