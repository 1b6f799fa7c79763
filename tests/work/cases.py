"""What the engine does for a statement: its scans, aggregations, joins and sorts, with the rows that DuckDB counts.

No times: the counts are the same on every machine, with any load and with both supported versions of DuckDB. `CASES`
holds the benchmark's queries, each physical shape of dpsql/core/printing/shapes, and TPC-H queries, over small tables
that are made of row numbers alone.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import duckdb

from benchmarks import data, queries
from dpsql.diagnostics.diagnostic import Source
from dpsql.planner.plan import Plan
from dpsql.planner.settings import Settings
from dpsql.policy.load import load_policy, parse_policy
from dpsql.policy.policy import Policy
from dpsql.service.check import static_plan
from dpsql.service.settings import Asked

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "tpch"
SALT = 1

TABLES = """
CREATE TABLE people AS
SELECT i AS id, CAST(i * 37 % 100 AS INTEGER) AS age, CAST(i * 7919 % 200000 AS DOUBLE) AS income,
       ['north', 'south', 'east', 'west'][i * 13 % 4 + 1] AS region
FROM range(3000) AS t(i);
CREATE TABLE orders AS
SELECT i * i % 3001 AS person_id, 'c' || lpad(CAST(i * 31 % 20 AS VARCHAR), 2, '0') AS category,
       CAST(i * 7919 % 500 AS DOUBLE) AS amount
FROM range(15000) AS t(i);
CREATE SCHEMA tpch;
CREATE TABLE tpch.region AS SELECT i AS r_regionkey, ['AFRICA', 'AMERICA', 'ASIA', 'EUROPE'][i + 1] AS r_name
FROM range(4) AS t(i);
CREATE TABLE tpch.nation AS SELECT i AS n_nationkey, CASE WHEN i = 7 THEN 'GERMANY' ELSE 'nation ' || i END AS n_name,
       i % 4 AS n_regionkey
FROM range(12) AS t(i);
CREATE TABLE tpch.supplier AS
SELECT i AS s_suppkey, i % 12 AS s_nationkey, 'supplier ' || i AS s_name, 'road ' || i AS s_address,
       '+' || i AS s_phone, CAST(i * 37 % 100 AS DECIMAL(15,2)) AS s_acctbal,
       CASE WHEN i % 7 = 0 THEN 'Customer Complaints' ELSE 'none' END AS s_comment
FROM range(60) AS t(i);
CREATE TABLE tpch.part AS
SELECT i AS p_partkey, ['PROMO TIN', 'SMALL BRASS', 'LARGE TIN'][i % 3 + 1] AS p_type, 'maker ' || i % 5 AS p_mfgr,
       ['Brand#45', 'Brand#13'][i % 2 + 1] AS p_brand, CAST(i % 50 + 1 AS INTEGER) AS p_size
FROM range(400) AS t(i);
CREATE TABLE tpch.partsupp AS
SELECT i // 4 AS ps_partkey, (i // 4 + i % 4 * 17) % 60 AS ps_suppkey, CAST(i * 31 % 9000 AS INTEGER) AS ps_availqty,
       CAST(i * 17 % 1000 AS DECIMAL(15,2)) AS ps_supplycost
FROM range(1600) AS t(i);
CREATE TABLE tpch.customer AS
SELECT i AS c_custkey, i % 12 AS c_nationkey, ['BUILDING', 'MACHINERY', 'FURNITURE'][i % 3 + 1] AS c_mktsegment
FROM range(500) AS t(i);
CREATE TABLE tpch.orders AS
SELECT i AS o_orderkey, i * 7 % 500 AS o_custkey, DATE '1992-01-01' + CAST(i * 11 % 2400 AS INTEGER) AS o_orderdate,
       ['1-URGENT', '2-HIGH', '3-MEDIUM', '4-NOT SPECIFIED', '5-LOW'][i % 5 + 1] AS o_orderpriority,
       CASE WHEN i % 9 = 0 THEN 'special requests' ELSE 'none' END AS o_comment
FROM range(4000) AS t(i);
CREATE TABLE tpch.lineitem AS
SELECT o_orderkey AS l_orderkey, CAST(j AS INTEGER) AS l_linenumber, (o_orderkey * 3 + j) % 400 AS l_partkey,
       (o_orderkey + j) % 60 AS l_suppkey, CAST((o_orderkey * j) % 50 + 50 AS DECIMAL(15,2)) AS l_quantity,
       CAST((o_orderkey * 17 + j) % 104000 + 950 AS DECIMAL(15,2)) AS l_extendedprice,
       CAST((o_orderkey + j) % 11 / 100 AS DECIMAL(15,2)) AS l_discount,
       CAST((o_orderkey + j) % 9 / 100 AS DECIMAL(15,2)) AS l_tax,
       ['A', 'N', 'R'][j % 3 + 1] AS l_returnflag, ['F', 'O'][j % 2 + 1] AS l_linestatus,
       o_orderdate + CAST(j * 20 AS INTEGER) AS l_shipdate, o_orderdate + 45 AS l_commitdate,
       o_orderdate + CAST(j * 25 AS INTEGER) AS l_receiptdate, ['RAIL', 'MAIL', 'SHIP'][j % 3 + 1] AS l_shipmode
FROM tpch.orders, range(1, 5) AS u(j);
"""


@dataclass(frozen=True, slots=True)
class Case:
    """A query under a policy; `schema` is where its tables are; `since`: an older DuckDB does it in another way."""

    title: str
    policy: str
    sql: str
    schema: str = "main"
    since: int = 1

    @property
    def skipped(self) -> bool:
        """Whether this DuckDB is too old for it."""
        return int(duckdb.__version__.split(".")[0]) < self.since


JOINED = "FROM people p JOIN orders o ON p.id = o.person_id"
CASES = (
    *(Case(f"{q.name} of the benchmark", q.policy, q.sql) for q in queries.QUERIES),
    Case(
        "an id that is unique: no level of ids, no weights",
        "persons",
        "SELECT region, COUNT(*), SUM(income) FROM people GROUP BY region",
    ),
    Case(
        "few possible groups: no groups per id",
        "persons",
        "SELECT amount > 100, COUNT(*), AVG(amount) FROM orders GROUP BY 1",
    ),
    Case(
        "the group is a function of the id: no groups per id",
        "persons",
        f"SELECT p.region, AVG(o.amount + p.age) {JOINED} GROUP BY 1",
    ),
    Case("aggregated before the join", "persons", f"SELECT p.region, AVG(o.amount) {JOINED} GROUP BY 1"),
    Case(
        "a condition on the one side: joined first",
        "persons",
        f"SELECT p.region, COUNT(*) {JOINED} WHERE p.age > 80 GROUP BY 1",
    ),
    Case(
        "private keys: each id's groups are cut",
        "persons",
        "SELECT CAST(amount AS INTEGER), COUNT(*) FROM orders GROUP BY 1",
    ),
    Case("distinct values: each id's are cut", "persons", "SELECT COUNT(DISTINCT category) FROM orders", since=2),
    Case("distinct ids", "persons", "SELECT category, COUNT(DISTINCT person_id) FROM orders GROUP BY category"),
    Case("a unit path of one hop", "tpch", "SELECT l_returnflag, COUNT(*) FROM lineitem GROUP BY 1", "tpch"),
    Case(
        "a unit path that the query walks itself",
        "tpch",
        "SELECT COUNT(*) FROM lineitem JOIN orders ON l_orderkey = o_orderkey",
        "tpch",
    ),
    *(
        Case(f"TPC-H {q}", "tpch", (EXAMPLE / "queries" / f"{q}.sql").read_text(encoding="utf-8"), "tpch")
        for q in ("q01", "q03-months", "q04", "q05", "q06", "q12", "q13", "q14", "q18-orders")
    ),
    *(
        Case(f"TPC-H {q}, rows", "tpch-rows", (EXAMPLE / "queries" / f"{q}.sql").read_text(encoding="utf-8"), "tpch")
        for q in ("q01", "q06")
    ),
    *(
        Case(f"TPC-H {q}, public", "tpch", (EXAMPLE / "queries" / f"{q}.sql").read_text(encoding="utf-8"), "tpch", 2)
        for q in ("q02", "q11", "q16")
    ),
)


@cache
def policy(name: str) -> Policy:
    """The benchmark's policies by name, else one of the TPC-H example."""
    texts = {"rows": data.POLICY_ROWS, "persons": data.POLICY_PERSONS}
    return parse_policy(texts[name]) if name in texts else load_policy(EXAMPLE / f"{name}.yaml")


def plan_of(case: Case) -> Plan:
    """Its plan. Made from the policy alone."""
    return static_plan(Source(case.sql), policy(case.policy), settings=Asked(1, "1e-6").settled(Settings()))


def tables() -> duckdb.DuckDBPyConnection:
    """The data; one thread, because some operators count rows once per thread."""
    connection = duckdb.connect()
    connection.execute(TABLES)
    connection.execute("SET threads = 1")
    return connection


def work_of(case: Case, connection: duckdb.DuckDBPyConnection, folder: Path) -> str:
    """One block of lines per statement: its shape, then what it scans, aggregates, joins, sorts and keeps.

    Without releases the only statement is the one that makes the answer.
    """
    connection.execute(f"USE {case.schema}")
    plan = plan_of(case)
    run = [(f"{r.label}: {s.shape}", s.salted(SALT)) for r in plan.releases for s in r.statements]
    lines = []
    for title, sql in run or [("answer", plan.post.sql)]:
        found = counted(operators(connection, sql, folder / "profile.json"))
        lines += [title, *(f"  {line}" for line in found)]
    return "\n".join(lines)


def operators(connection: duckdb.DuckDBPyConnection, sql: str, file: Path) -> list[dict[str, Any]]:
    """The operators that ran, from DuckDB's profile."""
    connection.execute("PRAGMA enable_profiling = 'json'")
    connection.execute(f"PRAGMA profiling_output = '{file}'")
    try:
        connection.execute(sql).fetchall()
    finally:
        connection.execute("PRAGMA disable_profiling")
    profile = json.loads(file.read_text(encoding="utf-8"))
    return [found for top in profile.get("operator", profile.get("children")) for found in _walk(top)]


def _walk(operator: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield operator
    for child in operator.get("children", ()):
        yield from _walk(child)


KINDS = {
    "GROUP_BY": "aggregate",
    "UNGROUPED_AGGREGATE": "aggregate to one row",
    "JOIN": "join",
    "CROSS_PRODUCT": "cross join",
    "WINDOW": "window",
    "ORDER": "sort",
    "TOP_N": "sort",
    "UNNEST": "unnest",
    "UNION": "union",
    "CTE_SCAN": "read what was kept",
}
"""Part of a profile's name of an operator → the line. Projections and filters cost little, and differ by version."""


def counted(found: list[dict[str, Any]]) -> list[str]:
    """Lines `kind: rows that came out, of each operator`; of scans only how many: what they skip depends on much."""
    rows: dict[str, list[int]] = {}
    scans: Counter[str] = Counter()
    for operator in found:
        name = operator.get("type") or operator["operator_type"]
        out = operator.get("intermediate_rows", operator.get("operator_cardinality"))
        if name == "TABLE_SCAN":
            scans[operator["extra_info"]["Table"].rsplit(".", 1)[-1]] += 1
        for part, kind in KINDS.items():
            if part in name:
                rows.setdefault(kind, []).append(out)
                break
    lines = [f"{kind}: {', '.join(f'{n:,}' for n in sorted(rows[kind], reverse=True))}" for kind in sorted(rows)]
    return lines + [f"scan {table}: {times} ×" for table, times in sorted(scans.items())]
