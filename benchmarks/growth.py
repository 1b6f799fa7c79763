"""How time grows with rows, in DuckDB's own format and in Parquet, and with groups.

    python -m benchmarks.growth [--size short] [--rounds 3] [--folder DIR] [--json FILE]

rows      Q1 and Q2 over `people` of 1 M to 50 M rows (full: 100 M), Q3 over `orders` of up to 10 M (full: 100 M).
          Tables are deleted after each size; the largest needs about 4 GB of disk in full, 2 GB in short.
groups    one count and one sum per key over 5 M rows, 10 to 1,000,000 public keys, fetched as an Arrow table; `again`
          is dpsql for a text whose plan the session has kept

The fit over rows is a least-squares line; `residual` is the largest distance of a point from it, relative to the point.
`exponent` is the slope of the line through logarithms of the sizes from 10 M rows on: 1 is linear.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import duckdb

from benchmarks import data
from benchmarks.frame import Figures, Settings, command, number, seconds, table, take_turns, times, unasked
from benchmarks.queries import QUERIES, Query

TITLE = "Growth"
LARGE = 10_000_000
ORDERS_PER_PERSON = 5

GROUPED_POLICY = """\
version: 1
name: benchmark-groups
tables:
  keys:
    public: true
    primary_key: [k]
    columns:
      k: {type: integer, nullable: false}
  facts:
    unit: {rows: 1}
    columns:
      k: {type: integer, domain: {table: keys, column: k}, nullable: false}
      x: {type: integer, bounds: [0, 1000], nullable: false}
defaults: {max_keys: 1000000}
budgets:
  total: {epsilon: 1000000, delta: 1e-3}
"""
GROUPED = "SELECT k, COUNT(*) AS n, SUM(x) AS s FROM facts GROUP BY k"


@contextmanager
def scratch(path: Path) -> Iterator[Path]:
    """A generated file, deleted at the end."""
    try:
        yield path
    finally:
        path.unlink(missing_ok=True)


def run(settings: Settings) -> Figures:
    """Growth with rows and with groups."""
    million = 10**6
    sizes: tuple[int, ...] = settings.pick(
        (1_000, 2_000), (million, 10 * million, 50 * million), (million, 10 * million, 50 * million, 100 * million)
    )
    rounds = settings.turns(1, 5, 7)
    rows = [measured for size in sizes for measured in by_rows(settings, size, rounds)]
    groups = settings.pick((10, 100), (10, 1_000, 100_000, million), (10, 100, 1_000, 10_000, 100_000, million))
    facts = settings.pick(1_000, 5 * million, 10 * million)
    return {
        "rounds": rounds,
        "rows": rows,
        "fits": fits(rows),
        "groups": {"facts": facts, "sizes": [by_groups(facts, count, rounds) for count in groups]},
    }


def by_rows(settings: Settings, size: int, rounds: int) -> Iterator[Figures]:
    """Q1 and Q2 over that many people, Q3 over about that many orders, from both formats."""
    tables: list[tuple[str, int, tuple[str, ...]]] = [("people", size, ("Q1", "Q2"))]
    if size <= settings.pick(size, 10_000_000, size):
        tables.append(("orders", size // ORDERS_PER_PERSON, ("Q3",)))
    for name, people, queries in tables:
        with (
            scratch(data.make(settings.folder, people, orders=name == "orders")) as database,
            scratch(data.parquet(settings.folder, name, database)) as file,
        ):
            for layout, kept in (("native", database), ("parquet", file)):
                with opened(kept, name) as plain:
                    for query in (q for q in QUERIES if q.name in queries):
                        found = contest(plain, name, query, rounds)
                        yield {"query": query.name, "layout": layout, "bytes": kept.stat().st_size} | found


@contextmanager
def opened(file: Path, name: str) -> Iterator[duckdb.DuckDBPyConnection]:
    """A connection that sees the table in a database, or in a Parquet file."""
    if file.suffix == ".duckdb":
        with duckdb.connect(str(file), read_only=True) as plain:
            yield plain
    else:
        with duckdb.connect() as plain:
            data.view(plain, name, file)
            yield plain


def contest(plain: duckdb.DuckDBPyConnection, name: str, query: Query, rounds: int) -> Figures:
    """Plain, floor and dpsql over one table, and the time to plan."""
    ((rows,),) = plain.execute(f"SELECT COUNT(*) FROM {name}").fetchall()
    with data.session(plain, data.POLICIES[query.policy]) as session:
        runs: dict[str, Callable[[], object]] = {"plain": lambda: plain.execute(query.sql).fetchall()}
        if query.floor is not None:
            floor = query.floor
            runs["floor"] = lambda: plain.execute(floor).fetchall()
        runs["dpsql"] = lambda: session.execute(unasked(query.sql), epsilon=1, fresh=True).fetchall()
        found = take_turns(runs, rounds, limit=60)
        plan = statistics.median(
            seconds(lambda: session.plan(unasked(query.sql), epsilon=1)) for _ in range(2 * rounds)
        )
    return {"rows": rows, "times": found, "plan_ms": 1e3 * plan}


def by_groups(facts: int, count: int, rounds: int) -> Figures:
    """One count and one sum per key, of so many keys."""
    with duckdb.connect() as plain:
        plain.execute(f"CREATE TABLE keys AS SELECT i::INTEGER AS k FROM range({count}) t(i)")
        plain.execute(
            f"CREATE TABLE facts AS SELECT (hash(i) % {count})::INTEGER AS k, (hash(i, 1) % 1000)::INTEGER AS x "
            f"FROM range({facts}) t(i)"
        )
        with data.session(plain, GROUPED_POLICY) as session:
            plan = session.plan(GROUPED, epsilon=1)
            sent = [s.salted(1) for release in plan.releases for s in release.statements]
            runs = {
                "plain": lambda: plain.sql(GROUPED).to_arrow_table(),
                "engine": lambda: [plain.sql(sql).to_arrow_table() for sql in sent],
                "dpsql": lambda: session.execute(unasked(GROUPED), epsilon=1, fresh=True).arrow(),
                "again": lambda: session.execute(GROUPED, epsilon=1, fresh=True).arrow(),
            }
            return {"groups": count, "times": take_turns(runs, rounds, limit=60)}


def fits(rows: Sequence[Figures]) -> list[Figures]:
    """A line of milliseconds over rows per query, layout and contestant."""
    series: dict[tuple[str, str, str], list[tuple[float, float]]] = {}
    for row in rows:
        for name, found in row["times"].items():
            series.setdefault((row["query"], row["layout"], name), []).append((row["rows"], found["ms"][0]))
    return [
        {"query": query, "layout": layout, "contestant": name} | fit(points)
        for (query, layout, name), points in series.items()
    ]


def fit(points: Sequence[tuple[float, float]]) -> Figures:
    """The least-squares line, how far the points lie from it, and the exponent among large sizes."""
    x, y = zip(*points, strict=True)
    slope, fixed = statistics.linear_regression(x, y)
    large = [(math.log(a), math.log(b)) for a, b in points if a >= 0.8 * LARGE]
    return {
        "fixed_ms": fixed,
        "ms_per_million": slope * 1e6,
        "residual": max(abs(fixed + slope * a - b) / b for a, b in points),
        "exponent": statistics.linear_regression(*zip(*large, strict=True)).slope if len(large) > 1 else None,
    }


def markdown(figures: Figures) -> str:
    """Rows, fits and groups."""
    rows = [
        (
            row["query"],
            row["layout"],
            f"{row['rows']:,}",
            f"{row['bytes'] / 1e6:,.0f}",
            *(number(row["times"][name]["ms"][0]) if name in row["times"] else "–" for name in CONTESTANTS),
            times(row["times"]["dpsql"]["over"]["plain"]),
            times(row["times"]["dpsql"]["over"].get("floor")),
            f"{row['plan_ms']:.1f}",
        )
        for row in sorted(figures["rows"], key=lambda row: (row["query"], row["layout"], row["rows"]))
    ]
    head = ("query", "layout", "rows", "MB", *(f"{n} ms" for n in CONTESTANTS), "× plain", "× floor", "planning ms")
    groups = [(f"{row['groups']:,}", *group_cells(row["times"])) for row in figures["groups"]["sizes"]]
    return "\n\n".join(
        [
            f"ε = 1, {figures['rounds']} interleaved rounds, the whole query each time.",
            table(head, rows, left=2),
            f"Groups: `{GROUPED}` over {figures['groups']['facts']:,} rows in memory, fetched as an Arrow table.",
            table(
                ("groups", "plain ms", "engine ms", "dpsql ms", "again ms", "beyond the engine ms", "× plain"),
                groups,
                left=0,
            ),
        ]
    )


CONTESTANTS = ("plain", "floor", "dpsql")
GROUP_CONTESTANTS = ("plain", "engine", "dpsql", "again")


def group_cells(found: dict[str, Any]) -> list[str]:
    """The cells of one number of groups."""
    own = [found[name]["ms"][0] for name in GROUP_CONTESTANTS]
    return [*map(number, own), number(own[2] - own[1]), times(found["dpsql"]["over"]["plain"])]


if __name__ == "__main__":
    command(__doc__, "growth", run, markdown)
