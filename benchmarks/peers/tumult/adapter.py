"""Tumult Analytics on Spark with two local threads, on cached data frames. Needs Java.

One evaluation releases one column, so a query is as many evaluations that share ε. A session's budget is for one query,
so each run opens a session; that is part of what is timed.
"""

from __future__ import annotations

import os
import sys
from typing import Any

from pyspark.sql import SparkSession
from serve import Asked, Rows, serve
from tmlt.analytics import (
    AddOneRow,
    AddRowsWithID,
    KeySet,
    MaxGroupsPerID,
    MaxRowsPerGroupPerID,
    MaxRowsPerID,
    PureDPBudget,
    QueryBuilder,
    Session,
)


def open_task(task: dict[str, Any]) -> dict[str, Asked | str]:
    os.environ["PYSPARK_PYTHON"] = sys.executable  # Spark's own processes are to find the same packages
    spark = (
        SparkSession.builder.master("local[2]")
        .config("spark.driver.memory", "6g")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", "4")
        .config("spark.sql.execution.arrow.pyspark.enabled", "true")
        .getOrCreate()
    )
    people, orders = (spark.read.parquet(task[table]).cache() for table in ("people", "orders"))
    assert people.count() and orders.count()
    limits, bounds = task["limits"], task["bounds"]
    keys = {column: KeySet.from_dict({column: values}) for column, values in task["domains"].items()}

    def rows_session() -> Any:
        return Session.from_dataframe(PureDPBudget(task["epsilon"]), "t", people, protected_change=AddOneRow())

    def persons_session() -> Any:
        builder = Session.Builder().with_privacy_budget(PureDPBudget(task["epsilon"])).with_id_space("person")
        builder = builder.with_private_dataframe("t", orders, protected_change=AddRowsWithID("person_id", "person"))
        renamed = people.withColumnRenamed("id", "person_id")
        change = AddRowsWithID("person_id", "person")
        return builder.with_private_dataframe("people", renamed, protected_change=change).build()

    def release(session: Any, queries: list[Any], key: str | None) -> Rows:
        """Each query releases a column; together they are the rows."""
        found: dict[Any, list[float]] = {}
        for query in queries:
            share = PureDPBudget(task["epsilon"] / len(queries))
            for row in session.evaluate(query, share).collect():
                named = row.asDict()
                found.setdefault(named.pop(key) if key else None, []).extend(map(float, named.values()))
        return list(found.items())

    def q1() -> Rows:
        return release(rows_session(), [QueryBuilder("t").filter("age > 40").count()], None)

    def q2() -> Rows:
        groups = QueryBuilder("t").groupby(keys["region"])
        queries = [groups.count(), groups.sum("income", *bounds["income"]), groups.average("age", *bounds["age"])]
        return release(rows_session(), queries, "region")

    def q3() -> Rows:
        rows = QueryBuilder("t").enforce(MaxRowsPerID(limits["rows"]))
        return release(persons_session(), [rows.count(), rows.sum("amount", *bounds["amount"])], None)

    def q4() -> Rows:
        rows = QueryBuilder("t").enforce(MaxGroupsPerID("category", limits["groups"]))
        groups = rows.enforce(MaxRowsPerGroupPerID("category", limits["rows_per_group"])).groupby(keys["category"])
        return release(persons_session(), [groups.count(), groups.average("amount", *bounds["amount"])], "category")

    def q5() -> Rows:
        rows = QueryBuilder("t").join_private("people").enforce(MaxRowsPerID(limits["rows"]))
        groups = rows.groupby(keys["region"])
        return release(persons_session(), [groups.count(), groups.sum("amount", *bounds["amount"])], "region")

    return {"Q1": q1, "Q2": q2, "Q3": q3, "Q4": q4, "Q5": q5}


serve(open_task, "tmlt.analytics", "tmlt.core", "pyspark")
