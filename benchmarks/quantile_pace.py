"""How long quantiles take: one scan beside the COUNT of the same ids, and the choice among many cells."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from pathlib import Path

import duckdb
import numpy as np

import dpsql
from benchmarks import data
from benchmarks.frame import Figures, take_turns, unasked
from dpsql.core.noise.backends import EXACT
from dpsql.core.release.drawing import EngineAsk, NoiseDraws
from dpsql.core.release.histograms import Histograms

ASKED = {
    "all orders": "FROM orders",
    "by category": "FROM orders GROUP BY category",
}
GROUPED = """\
version: 1
name: benchmark-cells
tables:
  t:
    unit: {{rows: 1}}
    columns:
      k: {{type: bigint, domain: {keys}, nullable: false}}
      v: {{type: bigint, bounds: [0, 16000], nullable: false}}
budgets:
  total: {{epsilon: 1e18}}
"""


def paces(folder: Path, people: int, rounds: int) -> Figures:
    """A median and the COUNT of the same query, per person, in turns, end to end."""
    with duckdb.connect(str(data.make(folder, people)), read_only=True) as plain:
        plain.execute("SET threads = 2")
        ((rows,),) = plain.execute("SELECT COUNT(*) FROM orders").fetchall()
        with data.session(plain, data.POLICY_PERSONS) as con:
            found = {
                name: take_turns(
                    {
                        "count": _run(con, f"COUNT(amount) AS n {source}"),
                        "median": _run(con, f"MEDIAN(amount) AS m {source}"),
                    },
                    rounds,
                )
                for name, source in ASKED.items()
            }
    return {"rows": rows, "times": found}


def _run(con: dpsql.Connection, rest: str) -> Callable[[], object]:
    key = "category, " if "GROUP BY" in rest else ""
    return lambda: con.sql(unasked(f"SELECT {key}{rest}")).run(epsilon=1, fresh=True)


def many_cells(groups: int, each: int, rounds: int) -> Figures:
    """Processor seconds of all choices, with so many groups and non-empty cells in each."""
    keys = "[" + ", ".join(map(str, range(groups))) + "]"
    with duckdb.connect() as plain:
        plain.execute(f"CREATE TABLE t AS SELECT k, 16 * i AS v FROM range({groups}) a(k), range({each}) b(i)")
        with data.session(plain, GROUPED.format(keys=keys)) as con:
            plan = con.sql("SELECT k, MEDIAN(v) AS m FROM t GROUP BY k").plan(epsilon=1)
            (release,) = plan.releases
            (statement,) = release.statements
            raw = EngineAsk(con.service.engine, 0)(statement)
    assert statement.cells is not None
    spent = []
    for _ in range(rounds):
        begun = time.process_time()
        at = np.asarray(raw.columns[0], dtype=np.intp)
        found = Histograms.of(statement.cells, at, groups, *raw.columns[1:])
        NoiseDraws(release.measured.measurements, EXACT).choose(0, found)
        spent.append(time.process_time() - begun)
    return {"groups": groups, "cells": raw.height, "seconds": statistics.median(spent)}
