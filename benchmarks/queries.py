"""Five queries end to end, beside plain DuckDB and beside the least work that unit-level privacy can do.

    python -m benchmarks.queries [--people 1000000] [--rounds 9] [--folder DIR] [--json FILE]

plain     the same query in plain DuckDB, not private at all
floor     aggregate per person (and group), then over persons: no noise, no weights; the least unit-level privacy needs
sampling  rows numbered at random per person and cut off, as most systems do it; no noise
engine    only the SQL that dpsql sends
dpsql     everything: parse, plan, charge the ledger durably, run, add noise, post-process

Contestants take turns within a round, on one connection, so that all share caches, settings and disturbances. A ratio
is the median over rounds of the ratio within the round. Single times mean little on a shared machine.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb

import dpsql
from benchmarks import data

RESULTS = Path(__file__).resolve().parent / "results"


@dataclass(frozen=True)
class Query:
    """One query and its contestants; None where there is nothing to compare with."""

    name: str
    policy: str
    sql: str
    floor: str | None = None
    sampling: str | None = None


QUERIES = (
    Query("Q1", "rows", "SELECT COUNT(*) FROM people WHERE age > 40"),
    Query("Q2", "rows", "SELECT region, COUNT(*), SUM(income), AVG(age) FROM people GROUP BY region"),
    Query(
        "Q3",
        "persons",
        "SELECT COUNT(*), SUM(amount) FROM orders",
        "SELECT SUM(LEAST(n, 10)), SUM(LEAST(GREATEST(s, 0), 5000)) "
        "FROM (SELECT person_id, COUNT(*) n, SUM(amount) s FROM orders GROUP BY 1)",
        "SELECT COUNT(*), SUM(amount) FROM "
        "(SELECT * FROM orders QUALIFY ROW_NUMBER() OVER (PARTITION BY person_id ORDER BY hash(rowid)) <= 10)",
    ),
    Query(
        "Q4",
        "persons",
        "SELECT category, COUNT(*), AVG(amount) FROM orders GROUP BY category",
        "SELECT category, COUNT(*), SUM(n), SUM(s) "
        "FROM (SELECT person_id, category, COUNT(*) n, SUM(amount) s FROM orders GROUP BY 1, 2) GROUP BY 1",
        "SELECT category, COUNT(*), AVG(amount) FROM (SELECT * FROM (SELECT *, DENSE_RANK() OVER "
        "(PARTITION BY person_id ORDER BY hash(category, person_id)) AS g FROM orders QUALIFY ROW_NUMBER() OVER "
        "(PARTITION BY person_id, category ORDER BY hash(rowid)) <= 5) WHERE g <= 5) GROUP BY 1",
    ),
    Query(
        "Q5",
        "persons",
        "SELECT p.region, COUNT(*), SUM(o.amount) FROM people p JOIN orders o ON p.id = o.person_id GROUP BY p.region",
        "SELECT region, SUM(LEAST(n, 10)), SUM(LEAST(GREATEST(s, 0), 5000)) FROM (SELECT person_id, COUNT(*) n, "
        "SUM(amount) s FROM orders GROUP BY 1) o JOIN people p ON p.id = o.person_id GROUP BY 1",
    ),
)

FIVE_TABLES = """\
SELECT r.r_name, COUNT(*) AS n, SUM(l.l_price * (1 - l.l_discount)) AS revenue, AVG(l.l_quantity) AS quantity
FROM customer c
JOIN orders o ON o.o_custkey = c.c_custkey
JOIN lineitem l ON l.l_custkey = c.c_custkey
JOIN nation n ON n.n_nationkey = c.c_nationkey
JOIN region r ON r.r_regionkey = n.n_regionkey
WHERE o.o_day >= DATE '1995-01-01' AND l.l_quantity BETWEEN 5 AND 40 AND n.n_name <> 'PERU'
GROUP BY r.r_name
HAVING COUNT(*) > 100
ORDER BY revenue DESC
LIMIT 3
"""

FIVE_TABLES_POLICY = """\
version: 1
name: benchmark-five-tables
units:
  customer: {}
tables:
  customer:
    unit: {column: c_custkey}
    primary_key: [c_custkey]
    columns:
      c_custkey:   {type: bigint, nullable: false}
      c_nationkey: {type: integer, nullable: false}
  orders:
    unit: {column: o_custkey}
    max_rows_per_unit: 50
    columns:
      o_custkey: {type: bigint, nullable: false}
      o_day:     {type: date, nullable: false}
  lineitem:
    unit: {column: l_custkey}
    max_rows_per_unit: 200
    columns:
      l_custkey:  {type: bigint, nullable: false}
      l_price:    {type: "decimal(12,2)", bounds: [0, 100000], nullable: false}
      l_discount: {type: "decimal(3,2)", bounds: [0, 0.2], nullable: false}
      l_quantity: {type: integer, bounds: [1, 50], nullable: false}
  nation:
    public: true
    primary_key: [n_nationkey]
    columns:
      n_nationkey: {type: integer, nullable: false}
      n_regionkey: {type: integer, nullable: false}
      n_name:      {type: varchar, nullable: false}
  region:
    public: true
    primary_key: [r_regionkey]
    columns:
      r_regionkey: {type: integer, nullable: false}
      r_name:      {type: varchar, domain: [AFRICA, AMERICA, ASIA, EUROPE, MIDDLE EAST], nullable: false}
budgets:
  total: {epsilon: 10, delta: 1e-6}
"""


def seconds(run: Callable[[], object]) -> float:
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def contestants(
    query: Query, session: dpsql.Connection, plain: duckdb.DuckDBPyConnection
) -> dict[str, Callable[[], object]]:
    """Name → one run of it."""
    plan = session.plan(query.sql, epsilon=1)
    sent = [s.salted(1) for r in plan.releases for s in r.statements]
    found: dict[str, Callable[[], object]] = {"plain": lambda: plain.execute(query.sql).fetchall()}
    for name, sql in (("floor", query.floor), ("sampling", query.sampling)):
        if sql is not None:
            found[name] = lambda sql=sql: plain.execute(sql).fetchall()  # type: ignore[misc]
    found["engine"] = lambda: [plain.execute(sql).fetchall() for sql in sent]
    found["dpsql"] = lambda: session.execute(query.sql, epsilon=1, fresh=True)
    return found


def compare(runs: dict[str, Callable[[], object]], rounds: int) -> dict[str, Any]:
    """Medians and extremes in milliseconds, and the ratios of everything to `plain` and to `floor`."""
    for run in runs.values():
        run()
    times: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(rounds):
        for name, run in runs.items():
            times[name].append(1e3 * seconds(run))
    found: dict[str, Any] = {}
    for name, own in times.items():
        found[name] = {"median_ms": statistics.median(own), "min_ms": min(own), "max_ms": max(own)}
        for base in ("plain", "floor"):
            if base in times:
                found[name][f"times_{base}"] = statistics.median(a / b for a, b in zip(own, times[base], strict=True))
    return found


def end_to_end(folder: Path, people: int, rounds: int) -> dict[str, Any]:
    """The five queries over tables of this size; a fresh ledger in a temporary folder."""
    found: dict[str, Any] = {}
    with duckdb.connect(str(data.make(folder, people)), read_only=True) as plain, tempfile.TemporaryDirectory() as name:
        sizes = {t: plain.execute(f"SELECT COUNT(*) FROM {t}").fetchall()[0][0] for t in ("people", "orders")}
        sessions = {}
        for policy, text in (("rows", data.POLICY_ROWS), ("persons", data.POLICY_PERSONS)):
            file = Path(name) / f"{policy}.yaml"
            file.write_text(text + f"ledger: {policy}.ledger.sqlite\nledger_head: {policy}.head.json\n")
            sessions[policy] = dpsql.connect(plain, policy=file)
        for query in QUERIES:
            found[query.name] = compare(contestants(query, sessions[query.policy], plain), rounds)
        for session in sessions.values():
            session.close()
    return {"rows": sizes, "rounds": rounds, "queries": found}


def planning(rounds: int) -> dict[str, float]:
    """Milliseconds from text to plan, warm; no data, no engine."""
    from dpsql.diagnostics.diagnostic import Source
    from dpsql.policy.load import parse_policy
    from dpsql.session.check import static_plan

    policies = {"rows": parse_policy(data.POLICY_ROWS), "persons": parse_policy(data.POLICY_PERSONS)}
    cases = {q.name: (Source(q.sql), policies[q.policy]) for q in QUERIES}
    cases["five-table join"] = (Source(FIVE_TABLES), parse_policy(FIVE_TABLES_POLICY))
    found = {}
    for name, (source, policy) in cases.items():
        static_plan(source, policy)
        found[name] = 1e3 * statistics.median(
            seconds(lambda s=source, p=policy: static_plan(s, p)) for _ in range(rounds)
        )  # type: ignore[misc]
    return found


def show(report: dict[str, Any]) -> None:
    """Print the tables of `end_to_end` and `planning`."""
    end, plans = report["end_to_end"], report["planning_ms"]
    sizes = ", ".join(f"{table} {rows:,}" for table, rows in end["rows"].items())
    print(f"end to end, ε = 1 ({sizes}; medians of {end['rounds']} interleaved rounds)")
    print(f"{'':4}{'':10}{'median ms':>11}{'least':>9}{'most':>9}{'× plain':>9}{'× floor':>9}")
    for query, rows in end["queries"].items():
        for name, row in rows.items():
            floor = f"{row['times_floor']:9.2f}" if "times_floor" in row else f"{'–':>9}"
            times = f"{row['median_ms']:11.1f}{row['min_ms']:9.1f}{row['max_ms']:9.1f}"
            print(f"{query:4}{name:10}{times}{row['times_plain']:9.2f}{floor}")
    print("\nfrom text to plan, warm")
    for name, spent in plans.items():
        print(f"    {name:16}{spent:8.2f} ms")


def run(folder: Path, people: int, rounds: int) -> dict[str, Any]:
    """Everything this file measures."""
    return {"end_to_end": end_to_end(folder, people, rounds), "planning_ms": planning(max(5, 5 * rounds))}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--people", type=int, default=data.PEOPLE)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--folder", type=Path, default=RESULTS, help="where the tables are made and kept")
    parser.add_argument("--json", type=Path, help="also write the figures here")
    options = parser.parse_args()
    print(f"load average before: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    report = run(options.folder, options.people, options.rounds)
    show(report)
    if options.json:
        options.json.write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
