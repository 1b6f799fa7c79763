"""Five queries end to end, beside plain DuckDB and beside the least work that unit-level privacy can do.

    python -m benchmarks.queries [--size short] [--people 1000000] [--rounds 9] [--folder DIR] [--json FILE]

plain     the same query in plain DuckDB, not private at all
floor     aggregate per person (and group), then over persons: no noise, no weights; the least unit-level privacy needs
sampling  rows numbered at random per person and cut off, as most systems do it; no noise
engine    only the SQL that dpsql sends
dpsql     everything: parse, plan, charge the ledger durably, run, add noise, post-process
again     the same for a text that the session has seen, so that its plan is at hand

All on one connection.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import duckdb

import dpsql
from benchmarks import data
from benchmarks.frame import Figures, Settings, command, number, table, take_turns, times, unasked

TITLE = "Five queries"


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
        "FROM (SELECT person_id, COUNT(*) n, SUM(amount) s FROM orders GROUP BY 1) AS p",
        "SELECT COUNT(*), SUM(amount) FROM "
        "(SELECT * FROM orders QUALIFY ROW_NUMBER() OVER (PARTITION BY person_id ORDER BY hash(rowid)) <= 10)",
    ),
    Query(
        "Q4",
        "persons",
        "SELECT category, COUNT(*), AVG(amount) FROM orders GROUP BY category",
        "SELECT category, COUNT(*), SUM(n), SUM(s) "
        "FROM (SELECT person_id, category, COUNT(*) n, SUM(amount) s FROM orders GROUP BY 1, 2) AS p GROUP BY 1",
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
    found["dpsql"] = lambda: session.execute(unasked(query.sql), epsilon=1, fresh=True)
    found["again"] = lambda: session.execute(query.sql, epsilon=1, fresh=True)
    return found


def run(settings: Settings) -> Figures:
    """The five queries, over tables of this size."""
    rounds = settings.turns(2, 9, 15)
    people = settings.people or settings.pick(20_000, data.PEOPLE, data.PEOPLE)
    found: Figures = {}
    with duckdb.connect(str(data.make(settings.folder, people)), read_only=True) as plain:
        sizes = {t: plain.execute(f"SELECT COUNT(*) FROM {t}").fetchall()[0][0] for t in ("people", "orders")}
        for query in QUERIES:
            with data.session(plain, data.POLICIES[query.policy]) as session:
                found[query.name] = take_turns(contestants(query, session, plain), rounds)
    return {"rows": sizes, "rounds": rounds, "queries": found}


def markdown(figures: Figures) -> str:
    """One line per query and contestant."""
    sizes = ", ".join(f"`{table}` {rows:,} rows" for table, rows in figures["rows"].items())
    rows = [
        (
            query,
            name,
            f"{row['ms'][0]:.1f}",
            *(times(row["over"].get(base)) for base in ("plain", "floor")),
            f"{row['cpu_ms']:.1f}",
            *(number(row["cpu_over"].get(base)) for base in ("plain", "floor")),
        )
        for query, contest in figures["queries"].items()
        for name, row in contest.items()
    ]
    head = ("query", "", "ms", "× plain", "× floor", "cpu ms", "cpu × plain", "cpu × floor")
    return f"{sizes}, ε = 1, {figures['rounds']} interleaved rounds; cpu is processor time.\n\n" + table(
        head, rows, left=2
    )


if __name__ == "__main__":
    command(__doc__, "queries", run, markdown)
