"""Frames of every form: the same answers, and units of time and categories as they are."""

from __future__ import annotations

import datetime as dt
from typing import Any

import polars
import pyarrow
import pytest

from tests.api.conftest import cities, members
from tests.api.test_frames import open_

SQL = """\
SELECT country, COUNT(*) AS n, SUM(age) AS ages, SUM(fee) AS fees, COUNT(*) FILTER (WHERE joined < '2024-02-01') AS j
FROM members JOIN cities USING (city) GROUP BY country ORDER BY country"""


def forms() -> dict[str, tuple[Any, Any]]:
    private, public = members(), cities()
    return {
        "arrow": (private, public),
        "batches": (pyarrow.Table.from_batches(private.to_batches(100)), pyarrow.RecordBatchReader.from_stream(public)),
        "polars": (polars.from_arrow(private).cast({"fee": polars.Decimal(8, 2)}), polars.from_arrow(public)),
        "pandas": (private.to_pandas(), public.to_pandas(integer_object_nulls=True)),
        "mixed": (private.to_pandas(), polars.from_arrow(public)),
    }


@pytest.mark.parametrize("form", forms())
def test_every_form_gives_the_same_answers(form: str) -> None:
    """At this ε the noise of counts and ages is 0 but once in e^100 runs, that of fees is small."""
    private, public = forms()[form]
    if form == "pandas":
        public = public.astype({"founded": "object", "streets": "Int32"})
    if form in ("polars", "mixed"):
        public = public.with_columns(polars.col("share").cast(polars.Decimal(5, 2)))
    with open_({"members": private, "cities": public}) as con:
        found = con.execute(SQL).fetchall()
        ages, fees = ([sum(i % most for i in range(start, 3000, 2)) for start in (1, 0)] for most in (80, 400))
        france, germany = ("France", 1500, ages[0], 0), ("Germany", 1500, ages[1], 250)
        assert [(*row[:3], row[4]) for row in found] == [france, germany, (None, 0, 0, 0)]
        assert [abs(row[3] - fee) < 100 for row, fee in zip(found, [*fees, 0], strict=True)] == [True] * 3
        assert not any("not locked" in note for note in con.execute(SQL).notes)


def test_units_of_time_and_categories() -> None:
    policy = {
        "version": 1,
        "name": "log",
        "tables": {
            "log": {
                "unit": {"rows": 1},
                "columns": {"at": {"type": "timestamp"}, "kind": {"type": "varchar", "domain": ["a", "b"]}},
            }
        },
        "budgets": {"total": {"epsilon": 100_000}},
    }
    times = [dt.datetime(2024, 1, 1), dt.datetime(2024, 1, 2), None]
    counted = "SELECT COUNT(*) FILTER (WHERE at < '2024-01-02') AS n, COUNT(at) AS m FROM log WHERE kind = 'a'"
    for unit in ("s", "ms", "us", "ns"):
        arrow = pyarrow.table(
            {
                "at": pyarrow.array(times, pyarrow.timestamp(unit)),
                "kind": pyarrow.array(["a", "a", "b"]).dictionary_encode(),
            }
        )
        for frame in (arrow, arrow.to_pandas(), polars.from_arrow(arrow)):
            with open_({"log": frame}, policy) as con:
                assert con.execute(counted).fetchall() == [(1, 2)]
