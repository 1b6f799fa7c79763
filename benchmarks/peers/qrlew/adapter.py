"""Qrlew rewrites the SQL, DuckDB runs what it writes, on tables in memory. Rewriting is part of what is timed.

The catalogue is read from tables of one made-up row, so that nothing is taken from the data; ranges, values and the
number of rows, which Qrlew takes for public, are declared.
"""

from __future__ import annotations

import json
from typing import Any

import duckdb
import pyqrlew
import sqlalchemy
from serve import Asked, Rows, serve

TABLES = {
    "people": "id BIGINT, age INTEGER, income DOUBLE PRECISION, region VARCHAR",
    "orders": "person_id BIGINT, category VARCHAR, amount DOUBLE PRECISION",
}


def open_task(task: dict[str, Any]) -> dict[str, Asked | str]:
    connection = duckdb.connect()
    for table, columns in TABLES.items():
        connection.execute(f"CREATE TABLE {table} ({columns})")
        connection.execute(f"INSERT INTO {table} BY NAME FROM read_parquet(?)", [task[table]])
    dataset = declared(task)
    limits = task["limits"]

    def query(sql: str, unit: list[Any], rows: int, groups: int, grouped: bool = True) -> Asked:
        def run() -> Rows:
            rewritten = dataset.relation(sql).rewrite_with_differential_privacy(
                dataset,
                unit,
                {"epsilon": task["epsilon"], "delta": task["delta"]},
                max_multiplicity=float(rows),
                max_multiplicity_share=1.0,
                max_privacy_unit_groups=groups,
            )
            found = connection.execute(rewritten.relation().to_query(pyqrlew.Dialect.PostgreSql)).fetchall()
            return [(row[0], list(row[1:])) if grouped else (None, list(row)) for row in found]

        return run

    rows: list[Any] = [("people", [], "id")]
    persons: list[Any] = [("people", [], "id"), ("orders", [], "person_id")]
    return {
        "Q1": query("SELECT COUNT(*) AS n FROM people WHERE age > 40", rows, 1, 1, grouped=False),
        "Q2": query(
            "SELECT region, COUNT(*) AS n, SUM(income) AS s, AVG(age) AS a FROM people GROUP BY region", rows, 1, 1
        ),
        "Q3": query("SELECT COUNT(*) AS n, SUM(amount) AS s FROM orders", persons, limits["rows"], 1, grouped=False),
        "Q4": query(
            "SELECT category, COUNT(*) AS n, AVG(amount) AS a FROM orders GROUP BY category",
            persons,
            limits["rows_per_group"],
            limits["groups"],
        ),
        "Q5": query(
            "SELECT p.region AS region, COUNT(*) AS n, SUM(o.amount) AS s "
            "FROM people p JOIN orders o ON p.id = o.person_id GROUP BY p.region",
            persons,
            limits["rows"],
            1,
        ),
    }


def declared(task: dict[str, Any]) -> Any:
    """The tables as Qrlew knows them."""
    engine = sqlalchemy.create_engine("sqlite://", poolclass=sqlalchemy.pool.StaticPool)
    with engine.begin() as catalogue:
        for table, columns in TABLES.items():
            catalogue.execute(sqlalchemy.text(f"CREATE TABLE {table} ({columns})"))
            catalogue.execute(sqlalchemy.text(f"INSERT INTO {table} DEFAULT VALUES"))
    dataset = pyqrlew.Dataset.from_database("benchmark", engine)
    said = json.loads(dataset.size)
    for table in said["statistics"]["union"]["fields"]:
        fill(table, task["rows"][table["name"]])
    named = json.dumps({"uuid": said["dataset"], "name": "benchmark", "spec": {}})
    dataset = pyqrlew.Dataset.from_str(named, dataset.schema, json.dumps(said))
    for table, column in (("people", "age"), ("people", "income"), ("orders", "amount")):
        dataset = dataset.with_range(None, table, column, *map(float, task["bounds"][column]))
    for table, column in (("people", "region"), ("orders", "category")):
        dataset = dataset.with_possible_values(None, table, column, task["domains"][column])
    return dataset.with_constraint(None, "people", "id", pyqrlew.Dataset.CONSTRAINT_UNIQUE)


def fill(node: Any, rows: int) -> None:
    """Put the number of rows wherever the catalogue says how many there are."""
    if isinstance(node, dict):
        for key, value in node.items():
            if key == "size":
                node[key] = type(value)(rows)
            else:
                fill(value, rows)
    elif isinstance(node, list):
        for item in node:
            fill(item, rows)


serve(open_task, "pyqrlew", "duckdb")
