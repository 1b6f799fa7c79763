"""OpenDP's polars interface, on data frames in memory. Averages are quotients of a sum and a count.

What a person contributes is bounded by drawing rows of each (`truncate_per_group`). Groups are cut with `keep="first"`:
the default, a random choice, fails in polars over a name that occurs twice. Told to keep n groups, version 0.16.0 keeps
n - 1 (seen with 4 groups a person and n of 1 to 4): it is told one more, and counts what the others count, with a
little more noise. Joins of private tables are refused.
"""

from __future__ import annotations

from typing import Any

import opendp.prelude as dp
import polars as pl
from serve import Asked, Rows, serve

dp.enable_features("contrib")


def open_task(task: dict[str, Any]) -> dict[str, Asked | str]:
    people, orders = pl.read_parquet(task["people"]).lazy(), pl.read_parquet(task["orders"]).lazy()
    limits = task["limits"]
    loss = dp.loss_of(epsilon=float(task["epsilon"]))

    def context(frame: pl.LazyFrame, unit: Any, key: str | None) -> Any:
        most = task["rows"]["people" if frame is people else "orders"]
        margins = [dp.polars.Margin(by=[], max_length=most)]
        if key:
            margins.append(dp.polars.Margin(by=[key], max_length=most, max_groups=len(task["domains"][key])))
        return dp.Context.compositor(
            data=frame, privacy_unit=unit, privacy_loss=loss, split_evenly_over=1, margins=margins
        )

    def total(column: str) -> Any:
        lower, upper = task["bounds"][column]
        return pl.col(column).cast(pl.Float64).fill_nan(0.0).fill_null(0.0).dp.sum((float(lower), float(upper)))

    def keys(column: str) -> pl.LazyFrame:
        return pl.LazyFrame({column: task["domains"][column]})

    one_row = dp.unit_of(contributions=1)
    one_person = dp.unit_of(contributions=1, identifier=pl.col("person_id"))

    def q1() -> Rows:
        query = context(people, one_row, None).query().filter(pl.col("age") > 40).select(dp.len())
        return [(None, list(map(float, query.release().collect().row(0))))]

    def q2() -> Rows:
        query = context(people, one_row, "region").query().group_by("region")
        found = query.agg(dp.len().alias("n"), total("income"), total("age")).with_keys(keys("region"))
        return [(r["region"], [r["n"], r["income"], r["age"] / r["n"]]) for r in rows(found)]

    def q3() -> Rows:
        query = context(orders, one_person, None).query().truncate_per_group(limits["rows"])
        return [(None, list(map(float, query.select(dp.len(), total("amount")).release().collect().row(0))))]

    def q4() -> Rows:
        query = context(orders, one_person, "category").query()
        query = query.truncate_per_group(limits["rows_per_group"], by=["category"])
        query = query.truncate_num_groups(limits["groups"] + 1, by=["category"], keep="first")
        found = query.group_by("category").agg(dp.len().alias("n"), total("amount")).with_keys(keys("category"))
        return [(r["category"], [r["n"], r["amount"] / r["n"]]) for r in rows(found)]

    def rows(query: Any) -> Any:
        return query.release().collect().iter_rows(named=True)

    return {"Q1": q1, "Q2": q2, "Q3": q3, "Q4": q4, "Q5": "joins of private tables are refused"}


serve(open_task, "opendp", "polars")
