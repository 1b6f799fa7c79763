"""SmartNoise SQL on SQLite, with an index on the person.

Its groups cannot be declared public, so the suppression of small ones is turned off (`censor_dims`), which is what a
public list of groups comes to. A person's limit is one number of rows, drawn at random; joins are refused.
"""

from __future__ import annotations

import sqlite3
from typing import Any

import duckdb
import snsql
from serve import Asked, Rows, serve


def open_task(task: dict[str, Any]) -> dict[str, Asked | str]:
    connection = sqlite3.connect(":memory:")
    for table in ("people", "orders"):
        copy(connection, table, task[table])
    connection.execute("CREATE INDEX of_person ON orders(person_id)")

    def column(name: str, kind: str, **more: Any) -> dict[str, Any]:
        found = {"type": kind} | more
        if name in task["bounds"]:
            found["lower"], found["upper"] = task["bounds"][name]
        return found

    people = {
        "row_privacy": True,
        "id": column("id", "int"),
        "age": column("age", "int"),
        "income": column("income", "float"),
        "region": column("region", "string"),
    }
    orders = {
        "person_id": column("person_id", "int", private_id=True),
        "category": column("category", "string"),
        "amount": column("amount", "float"),
    }

    def query(sql: str, rows: int = 1, grouped: bool = True) -> Asked:
        limits = {"max_ids": rows, "sample_max_ids": True, "censor_dims": False}
        metadata = {"": {"main": {"people": people | limits, "orders": orders | limits}}}

        def reader(epsilon: float) -> Any:
            privacy = snsql.Privacy(epsilon=epsilon, delta=task["delta"])
            return snsql.from_connection(connection, privacy=privacy, metadata=metadata, engine="sqlite")

        def run() -> Rows:
            price, _ = reader(1.0).get_privacy_cost(sql)  # ε is asked for each number that is released
            found = reader(task["epsilon"] / price).execute(sql)[1:]
            return [(row[0], list(row[1:])) if grouped else (None, list(row)) for row in found]

        return run

    limits = task["limits"]
    return {
        "Q1": query("SELECT COUNT(*) AS n FROM main.people WHERE age > 40", grouped=False),
        "Q2": query("SELECT region, COUNT(*) AS n, SUM(income) AS s, AVG(age) AS a FROM main.people GROUP BY region"),
        "Q3": query("SELECT COUNT(*) AS n, SUM(amount) AS s FROM main.orders", limits["rows"], grouped=False),
        "Q4": query(
            "SELECT category, COUNT(*) AS n, AVG(amount) AS a FROM main.orders GROUP BY category",
            limits["groups"] * limits["rows_per_group"],
        ),
        "Q5": "joins of private tables are refused",
    }


def copy(connection: sqlite3.Connection, table: str, file: str) -> None:
    """A Parquet file as a table of SQLite."""
    read = duckdb.execute("FROM read_parquet(?)", [file])
    names = [column[0] for column in read.description or []]
    connection.execute(f"CREATE TABLE {table} ({', '.join(names)})")
    while rows := read.fetchmany(100_000):
        connection.executemany(f"INSERT INTO {table} VALUES ({', '.join('?' * len(names))})", rows)
    connection.commit()


serve(open_task, "smartnoise-sql", "opendp")
