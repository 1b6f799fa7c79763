"""Twenty common queries: the standard deviation of each number over many releases, beside the least and beside before.

    python -m benchmarks.noise [--size short] [--rounds 500] [--before CHECKOUT] [--json FILE]

least   the deviation of discrete Laplace noise for what one unit can change in this number alone, with all of ε
before  the same queries asked of the dpsql of another checkout, by this file; a dash where that refuses
now     of this one
× least, × before  ratios of these

ε = 1 for each query. A number's deviation is the root of the mean variance over its groups. Of 500 releases it is known
to within a tenth (noise of one group) or less: ratios between 0.85 and 1.15 say nothing.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb

import dpsql
from benchmarks.frame import Figures, Settings, measured, number, parser, settings_of, table

TITLE = "Noise of twenty common queries"

POLICY = """\
version: 1
name: benchmark-noise
units: {customer: {table: customers, key: id}}
tables:
  customers:
    unit: {column: id}
    primary_key: [id]
    columns:
      id:      {type: bigint, nullable: false}
      country: {type: varchar, domain: [at, ch, de], nullable: false}
      age:     {type: integer, bounds: [0, 100], nullable: false}
  orders:
    unit: {column: customer}
    max_rows_per_unit: 20
    foreign_keys: [{columns: [customer], references: customers(id)}]
    columns:
      customer: {type: bigint, nullable: false}
      placed:   {type: date, bounds: [2023-01-01, 2024-12-31], nullable: false}
      paid:     {type: varchar, domain: [card, cash, bill], nullable: false}
      express:  {type: boolean}
      amount:   {type: integer, bounds: [0, 100], nullable: false}
      weight:   {type: integer, bounds: [0, 10], nullable: false}
      shop:     {type: varchar}
  visits:
    unit: {rows: 1}
    columns:
      seen:   {type: date, bounds: [2023-01-01, 2024-12-31], nullable: false}
      page:   {type: varchar, domain: [home, search, cart], nullable: false}
      bought: {type: boolean}
      spent:  {type: integer, bounds: [0, 100], nullable: false}
budgets:
  total: {epsilon: 1000000, delta: 1e-3}
"""

DATA = """
CREATE TABLE customers AS
SELECT i AS id, ['at', 'ch', 'de'][i % 3 + 1] AS country, (i * 7 % 80)::INTEGER AS age FROM range(2000) AS r(i);
CREATE TABLE orders AS
SELECT i AS customer, DATE '2023-01-01' + CAST(hash(i, j) % 730 AS INTEGER) AS placed,
       ['card', 'cash', 'bill'][CAST(hash(i, j, 1) % 3 AS BIGINT) + 1] AS paid,
       [TRUE, FALSE, NULL][CAST(hash(i, j, 2) % 3 AS BIGINT) + 1] AS express,
       CAST(hash(i, j, 3) % 101 AS INTEGER) AS amount, CAST(hash(i, j, 4) % 11 AS INTEGER) AS weight,
       's' || (i + j) % 4 AS shop
FROM range(2000) AS r(i), range(10) AS s(j);
CREATE TABLE visits AS
SELECT DATE '2023-01-01' + CAST(hash(i) % 730 AS INTEGER) AS seen,
       ['home', 'search', 'cart'][CAST(hash(i, 1) % 3 AS BIGINT) + 1] AS page,
       [TRUE, FALSE, NULL][CAST(hash(i, 2) % 3 AS BIGINT) + 1] AS bought, CAST(hash(i, 3) % 101 AS INTEGER) AS spent
FROM range(5000) AS r(i);
"""


@dataclass(frozen=True)
class Query:
    """name, SQL, and column → what one unit can change in it, all groups together; averages and ratios have none."""

    name: str
    sql: str
    changes: dict[str, float]
    delta: float = 0


_SPLIT = "SUM(amount) AS s, AVG(amount) AS m, AVG(weight) AS w"

QUERIES = (
    Query("rows", "SELECT COUNT(*) AS n FROM visits", {"n": 1}),
    Query("rows by page", "SELECT page, COUNT(*) AS n FROM visits GROUP BY page", {"n": 1}),
    Query("total by page", "SELECT page, SUM(spent) AS s FROM visits GROUP BY page", {"s": 100}),
    Query("average by page", "SELECT page, AVG(spent) AS m FROM visits GROUP BY page", {}),
    Query(
        "rows and average by page", "SELECT page, COUNT(*) AS n, AVG(spent) AS m FROM visits GROUP BY page", {"n": 1}
    ),
    Query("a share", "SELECT COUNT(*) AS n, COUNT(*) FILTER (WHERE bought) AS k FROM visits", {"n": 1, "k": 1}),
    Query(
        "a share by page",
        "SELECT page, COUNT(*) AS n, COUNT(*) FILTER (WHERE bought) AS k FROM visits GROUP BY page",
        {"n": 1, "k": 1},
    ),
    Query(
        "a percentage",
        "SELECT page, 100.0 * COUNT(*) FILTER (WHERE bought) / COUNT(*) AS p FROM visits GROUP BY page",
        {},
    ),
    Query(
        "two years, UNION ALL",
        "SELECT COUNT(*) AS n FROM (SELECT page FROM visits WHERE seen < '2024-01-01' "
        "UNION ALL SELECT page FROM visits WHERE seen >= '2024-01-01') AS v",
        {"n": 1},
    ),
    Query(
        "two years of customers, UNION ALL",
        "SELECT COUNT(*) AS n FROM (SELECT customer FROM orders WHERE placed < '2024-01-01' "
        "UNION ALL SELECT customer FROM orders WHERE placed >= '2024-01-01') AS o",
        {"n": 20},
    ),
    Query(
        "pivot of four",
        "SELECT "
        + ", ".join(f"COUNT(*) FILTER (WHERE quarter(placed) = {q}) AS q{q}" for q in (1, 2, 3, 4))
        + " FROM orders",
        {f"q{q}": 20 for q in (1, 2, 3, 4)},
    ),
    Query(
        "pivot of averages",
        "SELECT AVG(amount) FILTER (WHERE paid = 'card') AS card, "
        "AVG(amount) FILTER (WHERE paid = 'cash') AS cash FROM orders",
        {},
    ),
    Query(
        "express orders of all",
        "SELECT COUNT(*) AS n, COUNT(*) FILTER (WHERE express) AS k FROM orders",
        {"n": 20, "k": 20},
    ),
    Query(
        "customers by month",
        "SELECT month(placed) AS month, COUNT(DISTINCT customer) AS n FROM orders GROUP BY month(placed)",
        {"n": 12},
    ),
    Query("customers by way to pay", "SELECT paid, COUNT(DISTINCT customer) AS n FROM orders GROUP BY paid", {"n": 3}),
    Query(
        "customers by country", "SELECT country, COUNT(*) AS n, AVG(age) AS m FROM customers GROUP BY country", {"n": 1}
    ),
    Query("distinct booleans", "SELECT COUNT(DISTINCT express) AS n FROM orders", {"n": 2}),
    Query(
        "cohorts",
        "SELECT month(first) AS cohort, COUNT(*) AS n FROM (SELECT customer, MIN(placed) AS first FROM orders "
        "GROUP BY customer) AS c GROUP BY month(first)",
        {"n": 1},
    ),
    Query(
        "several by way to pay", f"SELECT paid, COUNT(*) AS n, {_SPLIT} FROM orders GROUP BY paid", {"n": 20, "s": 2000}
    ),
    Query("orders by shop, private keys", "SELECT shop, COUNT(*) AS n FROM orders GROUP BY shop", {"n": 20}, 1e-6),
)


@contextmanager
def session() -> Iterator[dpsql.Connection]:
    """Over tables in memory."""
    with duckdb.connect() as plain, tempfile.TemporaryDirectory() as name:
        for statement in DATA.split(";")[:-1]:
            plain.execute(statement)
        file = Path(name) / "policy.yaml"
        file.write_text(POLICY + "ledger: ledger.sqlite\nledger_head: head.json\n", encoding="utf-8")
        with dpsql.connect(plain, policy=file, optimizers="ours") as connection:
            yield connection


def deviations(connection: dpsql.Connection, query: Query, releases: int) -> dict[str, float]:
    """Column → the root of the mean variance over its groups; of private keys over those that are always there."""
    given: dict[str, Any] = {"epsilon": 1} | ({"delta": query.delta} if query.delta else {})
    keys = int("GROUP BY" in query.sql)
    seen: dict[str, dict[Any, list[float]]] = {}
    for _ in range(releases):
        answer = connection.execute(query.sql, fresh=True, **given)
        for row in answer.rows:
            for column, value in zip(answer.columns[keys:], row[keys:], strict=True):
                if value is not None:
                    seen.setdefault(column, {}).setdefault(row[:keys], []).append(float(value))
    found = {}
    for column, groups in seen.items():
        whole = [values for values in groups.values() if len(values) == releases]
        found[column] = math.sqrt(sum(map(_variance, whole)) / len(whole)) if whole else math.nan
    return found


def _variance(values: list[float]) -> float:
    mean = math.fsum(values) / len(values)
    return math.fsum((v - mean) ** 2 for v in values) / (len(values) - 1)


def least(change: float, step: float = 1) -> float:
    """The deviation of discrete Laplace noise of scale change/ε at ε = 1."""
    q = math.exp(-step / change)
    return step * math.sqrt(2 * q) / (1 - q)


def run(settings: Settings, before: Path | None = None) -> Figures:
    """All queries, with this dpsql and with that of another checkout."""
    releases = settings.turns(20, 500, 2000)
    found: Figures = {"releases": releases, "now": _measured(releases)}
    if before is not None:
        own = {**os.environ, "PYTHONPATH": str(before.resolve())}
        command = [sys.executable, str(Path(__file__).resolve()), "--measure", str(releases), str(before.resolve())]
        found["before"] = json.loads(subprocess.run(command, env=own, check=True, stdout=subprocess.PIPE).stdout)
    return found


def _measured(releases: int) -> dict[str, dict[str, float]]:
    """Query → column → deviation; no columns where it is refused."""
    found: dict[str, dict[str, float]] = {}
    with session() as connection:
        for query in QUERIES:
            try:
                found[query.name] = deviations(connection, query, releases)
            except dpsql.Rejected as refusal:
                print(f"{query.name}: {str(refusal).splitlines()[0]}", file=sys.stderr)
                found[query.name] = {}
    return found


def markdown(figures: Figures) -> str:
    """One line for each number."""
    earlier, rows = figures.get("before", {}), []
    for query in QUERIES:
        now = figures["now"][query.name]
        old = earlier.get(query.name, {})
        for column in now or old:
            a, b = old.get(column), now.get(column)
            bound = least(query.changes[column]) if column in query.changes else None
            rows.append((
                query.name, column, number(bound), number(a), number(b),
                number(b / bound if b and bound else None), number(b / a if a and b else None),
            ))  # fmt: skip
    head = ("query", "number", "least", "before", "now", "× least", "× before")
    return f"Standard deviations over {figures['releases']} releases at ε = 1.\n\n" + table(head, rows, left=2)


def main() -> None:
    """The command line."""
    if sys.argv[1:2] == ["--measure"]:
        assert Path(dpsql.__file__).is_relative_to(sys.argv[3]), f"{dpsql.__file__} is not of {sys.argv[3]}"
        print(json.dumps(_measured(int(sys.argv[2]))))
        return
    options: argparse.ArgumentParser = parser(__doc__, "python -m benchmarks.noise")
    options.add_argument("--before", type=Path, help="another checkout, whose dpsql is asked the same")
    given = options.parse_args()
    found = measured(lambda settings: run(settings, given.before), settings_of(given))
    print(markdown(found["figures"]))
    if given.json:
        given.json.write_text(json.dumps({"noise": found}, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
