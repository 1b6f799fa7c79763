"""Five queries end to end on PostgreSQL, beside plain PostgreSQL and the least work that unit-level privacy can do.

    .venv-engines/postgres/bin/python -m benchmarks.postgres [--size short] [--people 200000] [--rounds 9] [--json FILE]

It starts a server of its own (make test-engines makes the environment) and loads the tables of benchmarks/data.py.

plain     the same query, not private at all
floor     aggregate per person (and group), then over persons: no noise, no weights
engine    only the SQL that dpsql sends, in dpsql's own transaction
dpsql     everything: parse, plan, charge the ledger durably, run, add noise, post-process
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import duckdb
import psycopg

import dpsql
from benchmarks import data
from benchmarks.frame import Figures, Settings, command, table, take_turns, times, unasked
from benchmarks.queries import QUERIES, Query
from tests.engines_elsewhere.postgres import servers

TITLE = "Five queries on PostgreSQL"

LIKE_A_DATABASE = {
    "shared_buffers": "1GB", "work_mem": "256MB", "maintenance_work_mem": "256MB", "temp_file_limit": "-1",
    "max_parallel_workers_per_gather": "2",
}  # fmt: skip
"""What a server of this size would be given; the tests' own is small."""

TABLES = {
    "people": "id bigint PRIMARY KEY, age integer NOT NULL, income float8, region text NOT NULL",
    "orders": "person_id bigint NOT NULL, category text NOT NULL, amount float8",
}


@contextmanager
def loaded(database: Path) -> Iterator[tuple[servers.Server, str]]:
    """A server with the tables, and the name of their database."""
    (name, programs), *_ = servers.found().items()
    servers.SETTINGS.update(LIKE_A_DATABASE)
    with servers.running(name, programs) as server:
        made = server.new_database("; ".join(f"CREATE TABLE {t} ({columns})" for t, columns in TABLES.items()))
        with duckdb.connect(str(database), read_only=True) as source, tempfile.TemporaryDirectory() as folder:
            for t in TABLES:
                file = Path(folder) / f"{t}.csv"
                source.execute(f"COPY {t} TO '{file}' (FORMAT csv, HEADER false)")
                fill = f"COPY {t} FROM STDIN (FORMAT csv)"
                with server.admin(made) as admin, admin.cursor().copy(fill) as sink, open(file, "rb") as rows:
                    while part := rows.read(1 << 20):
                        sink.write(part)
        with server.admin(made) as admin:
            admin.execute("VACUUM ANALYZE")
        yield server, made


@contextmanager
def session(server: servers.Server, database: str, policy: str) -> Iterator[dpsql.Connection]:
    """A session with a new, durable ledger."""
    with tempfile.TemporaryDirectory() as name:
        file = Path(name) / "policy.yaml"
        place = f"database: '{server.address(database)}'\nledger: ledger.sqlite\nledger_head: head.json\n"
        file.write_text(policy + place, encoding="utf-8")
        with dpsql.connect(file) as connection:
            yield connection


def contestants(query: Query, con: dpsql.Connection, plain: psycopg.Connection[Any]) -> dict[str, Callable[[], object]]:
    """Name → one run of it."""
    engine = con.service.engine
    sent = [s.salted(1) for r in con.plan(query.sql, epsilon=1).releases for s in r.statements]
    found: dict[str, Callable[[], object]] = {"plain": lambda: plain.execute(query.sql).fetchall()}
    if query.floor is not None:
        found["floor"] = lambda: plain.execute(query.floor or "").fetchall()
    found["engine"] = lambda: engine.in_snapshot(lambda: [engine.fetch(sql) for sql in sent])
    found["dpsql"] = lambda: con.execute(unasked(query.sql), epsilon=1, fresh=True)
    return found


def run(settings: Settings) -> Figures:
    """The five queries, over tables of this size."""
    rounds = settings.turns(2, 7, 15)
    people = settings.people or settings.pick(5_000, 200_000, data.PEOPLE)
    found: Figures = {}
    with loaded(data.make(settings.folder, people)) as (server, name), server.admin(name) as plain:
        version = plain.info.server_version // 10_000
        sizes = {t: plain.execute(f"SELECT COUNT(*) FROM {t}").fetchall()[0][0] for t in TABLES}
        for query in QUERIES:
            with session(server, name, data.POLICIES[query.policy]) as con:
                found[query.name] = take_turns(contestants(query, con, plain), rounds)
    return {"version": version, "rows": sizes, "rounds": rounds, "queries": found}


def markdown(figures: Figures) -> str:
    """One line per query and contestant."""
    sizes = ", ".join(f"`{table}` {rows:,} rows" for table, rows in figures["rows"].items())
    rows = [
        (query, name, f"{row['ms'][0]:.1f}", *(times(row["over"].get(base)) for base in ("plain", "floor")))
        for query, contest in figures["queries"].items()
        for name, row in contest.items()
    ]
    head = ("query", "", "ms", "× plain", "× floor")
    return f"PostgreSQL {figures['version']}, {sizes}, ε = 1, {figures['rounds']} interleaved rounds.\n\n" + table(
        head, rows, left=2
    )


if __name__ == "__main__":
    command(__doc__, "postgres", run, markdown)
