"""PipelineDP on its local backend: Python over lists of tuples, which were read before.

A query that aggregates two columns is two aggregations that share ε. The join is made in Python and is timed.
"""

from __future__ import annotations

from typing import Any

import duckdb
import pipeline_dp
from pipeline_dp import Metrics
from serve import Asked, Rows, serve


def open_task(task: dict[str, Any]) -> dict[str, Asked | str]:
    people = duckdb.execute("SELECT id, age, income, region FROM read_parquet(?)", [task["people"]]).fetchall()
    orders = duckdb.execute("SELECT person_id, category, amount FROM read_parquet(?)", [task["orders"]]).fetchall()
    limits, bounds = task["limits"], task["bounds"]

    def aggregate(rows: Any, parts: list[tuple[int, list[Any], Any]], keys: list[Any], groups: int, each: int) -> Any:
        """rows: (person, key, *values). parts: index of the value, metrics, bounds. → key → all metrics in order."""
        accountant = pipeline_dp.NaiveBudgetAccountant(total_epsilon=task["epsilon"], total_delta=task["delta"])
        engine = pipeline_dp.DPEngine(accountant, pipeline_dp.LocalBackend())
        results = []
        for index, metrics, (lower, upper) in parts:
            parameters = pipeline_dp.AggregateParams(
                metrics=metrics,
                max_partitions_contributed=groups,
                max_contributions_per_partition=each,
                min_value=lower,
                max_value=upper,
                budget_weight=len(metrics),
            )
            extractors = pipeline_dp.DataExtractors(
                privacy_id_extractor=lambda row: row[0],
                partition_extractor=lambda row: row[1],
                value_extractor=lambda row, index=index: row[index],
            )
            results.append(engine.aggregate(rows, parameters, extractors, public_partitions=keys))
        accountant.compute_budgets()
        found: dict[Any, dict[str, float]] = {key: {} for key in keys}
        for (index, _, _), result in zip(parts, results, strict=True):
            for key, metrics in result:
                found[key] |= {f"{name}_{index}": float(value) for name, value in metrics._asdict().items()}
        return found

    def q1() -> Rows:
        rows = [(person, 0, 0) for person, age, _, _ in people if age > 40]
        return [(None, [aggregate(rows, [(2, [Metrics.COUNT], (0, 1))], [0], 1, 1)[0]["count_2"]])]

    def q2() -> Rows:
        rows = [(person, region, income, age) for person, age, income, region in people]
        parts = [(2, [Metrics.COUNT, Metrics.SUM], bounds["income"]), (3, [Metrics.MEAN], bounds["age"])]
        found = aggregate(rows, parts, task["domains"]["region"], 1, 1)
        return [(key, [row["count_2"], row["sum_2"], row["mean_3"]]) for key, row in found.items()]

    def q3() -> Rows:
        rows = [(person, 0, amount) for person, _, amount in orders]
        row = aggregate(rows, [(2, [Metrics.COUNT, Metrics.SUM], bounds["amount"])], [0], 1, limits["rows"])[0]
        return [(None, [row["count_2"], row["sum_2"]])]

    def q4() -> Rows:
        parts = [(2, [Metrics.COUNT, Metrics.MEAN], bounds["amount"])]
        keys = task["domains"]["category"]
        found = aggregate(orders, parts, keys, limits["groups"], limits["rows_per_group"])
        return [(key, [row["count_2"], row["mean_2"]]) for key, row in found.items()]

    def q5() -> Rows:
        regions = {person: region for person, _, _, region in people}
        rows = [(person, regions[person], amount) for person, _, amount in orders]
        parts = [(2, [Metrics.COUNT, Metrics.SUM], bounds["amount"])]
        found = aggregate(rows, parts, task["domains"]["region"], 1, limits["rows"])
        return [(key, [row["count_2"], row["sum_2"]]) for key, row in found.items()]

    return {"Q1": q1, "Q2": q2, "Q3": q3, "Q4": q4, "Q5": q5}


serve(open_task, "pipeline-dp", "python-dp")
