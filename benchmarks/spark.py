"""Five queries end to end on Spark, beside plain Spark, the least work of unit-level privacy, and Tumult Analytics.

    .venv-engines/spark/bin/python -m benchmarks.spark [--size short] [--people 200000] [--rounds 5] [--json FILE]

It starts a cluster of its own with two tasks (make test-engines makes the environments) and gives it the tables of
benchmarks/data.py as Parquet.

plain     the same query, not private at all
floor     aggregate per person (and group), then over persons: no noise, no weights
engine    only the SQL that dpsql sends
dpsql     everything: parse, plan, pin the files, charge the ledger durably, run, add noise, post-process
prepared  the same over tables that `dpsql prepare` made, ten rows of each person
Tumult    in an environment and a Spark of its own, with two threads, its tables cached in memory

What is read and shuffled is what Spark's own plans count while they run. The last size is the first again, but a third
of the orders are one person's.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb

import dpsql
from benchmarks import data
from benchmarks.frame import Figures, Settings, command, table, take_turns, times, unasked
from benchmarks.peers.contest import Failed, Peer, started, the_task
from benchmarks.peers.environments import NotInstalled
from benchmarks.prepared import PERSONS
from benchmarks.queries import QUERIES, Query

if TYPE_CHECKING:
    from tests.engines_elsewhere.spark import servers

TITLE = "Five queries on Spark"
TABLES = ("people", "orders")
MEMORY = {"spark.driver.memory": "6g", "spark.sql.shuffle.partitions": "4"}
"""What a cluster of this size would be given; the tests' own is small."""
_COUNTED = {"filesSize": "read", "shuffleRecordsWritten": "rows", "dataSize": "bytes", "shuffleBytesWritten": "packed"}
"""Spark's names and ours: bytes of files, rows shuffled, their bytes, and their bytes compressed."""
_SKEWED = "SELECT if(hash(category, amount) % 3 = 0, 0, person_id) AS person_id, category, amount FROM orders"


@contextmanager
def session(
    cluster: servers.Server, files: dict[str, Path], policy: str, prepared: bool = False
) -> Iterator[tuple[dpsql.Connection, float]]:
    """A session with a new, durable ledger, and the seconds that preparing took."""
    with tempfile.TemporaryDirectory() as name:
        text = policy
        for which, file in files.items():
            text = text.replace(f"  {which}:\n    unit:", f"  {which}:\n    source: read_parquet('{file}')\n    unit:")
        if prepared:
            text = text.replace("    source:", "    prepared: true\n    source:")
        place = f"database: '{cluster.address}'\nprepared_at: {name}\nledger: ledger.sqlite\nledger_head: head.json\n"
        (Path(name) / "policy.yaml").write_text(text + place, encoding="utf-8")
        began = time.perf_counter()
        if prepared:
            dpsql.prepare(Path(name) / "policy.yaml")
        spent = time.perf_counter() - began
        with dpsql.connect(Path(name) / "policy.yaml") as connection:
            yield connection, spent


def counted(spark: Any, statements: Sequence[str]) -> dict[str, int]:
    """What statements read and exchange between tasks, and in how many shuffles."""
    found = dict.fromkeys((*_COUNTED.values(), "shuffles"), 0)
    for sql in statements:
        frame = spark.sql(sql)
        frame.toArrow()
        for plan in frame.executionInfo.metrics.extract_graph()[1].values():
            values = {m.name: m.value for m in plan.metrics}
            shuffles = "shuffleRecordsWritten" in values
            found["shuffles"] += shuffles
            for name, ours in _COUNTED.items():
                # what is broadcast has a dataSize, too
                found[ours] += values.get(name, 0) if shuffles or name != "dataSize" else 0
    return found


def contest(
    query: Query, spark: Any, asked: dict[str, dpsql.Connection], peer: Peer | None, rounds: int, limit: float
) -> Figures:
    """One query of all, in turns, and what ours shuffle."""
    sent = {
        name: [s.salted(1) for r in con.plan(query.sql, epsilon=1).releases for s in r.statements]
        for name, con in asked.items()
    }
    runs: dict[str, Callable[[], object]] = {"plain": lambda: spark.sql(query.sql).toArrow()}
    if query.floor is not None:
        runs["floor"] = lambda: spark.sql(query.floor).toArrow()
    engine = asked["dpsql"].service.engine
    runs["engine"] = lambda: engine.in_snapshot(lambda: [engine.fetch(sql) for sql in sent["dpsql"]])
    for name, con in asked.items():
        runs[name] = lambda con=con: con.execute(unasked(query.sql), epsilon=1, fresh=True).fetchall()  # type: ignore[misc]
    if peer is not None and not peer.ready[query.name]:
        runs["Tumult"] = lambda: peer.answer(query.name)
    try:
        found: Figures = take_turns(runs, rounds, limit=limit)
    except Failed as reason:
        del runs["Tumult"]
        found = take_turns(runs, rounds, limit=limit) | {"failed": str(reason)[:200]}
    ours = {name: counted(con.service.engine._session, sent[name]) for name, con in asked.items()}  # type: ignore[attr-defined]
    others = {"plain": query.sql} | ({"floor": query.floor} if query.floor is not None else {})
    return found | {"counted": {name: counted(spark, [sql]) for name, sql in others.items()} | ours}


def at(settings: Settings, cluster: servers.Server, people: int, rounds: int, skewed: bool = False) -> Figures:
    """The five queries, over tables of this size. skewed: a third of the orders are one person's; no Tumult."""
    database = data.make(settings.folder, people)
    files = {which: data.parquet(settings.folder, which, database).resolve() for which in TABLES}
    with duckdb.connect(str(database), read_only=True) as own:
        if skewed:
            files["orders"] = files["orders"].with_name(f"{database.stem}-skewed.parquet")
            own.execute(f"COPY ({_SKEWED}) TO '{files['orders']}' (FORMAT parquet)")
        rows = {which: own.execute(f"SELECT COUNT(*) FROM {which}").fetchall()[0][0] for which in TABLES}
    found: Figures = {"rows": rows, "rounds": rounds, "skewed": skewed, "queries": {}}
    with cluster.admin() as spark, ExitStack() as stack:
        for which, file in files.items():
            spark.sql(f"CREATE OR REPLACE TEMPORARY VIEW {which} USING parquet OPTIONS (path '{file}')")
        peer = None
        if settings.size != "quick" and not skewed:
            try:
                task = the_task(files["people"], files["orders"], rows)
                peer = stack.enter_context(started("tumult", settings.folder, task, 900))
                found["versions"] = peer.versions
            except (NotInstalled, Failed) as reason:
                found["without"] = str(reason)[:200]
        prepared, spent = stack.enter_context(session(cluster, files, PERSONS, prepared=True))
        found["prepared_in"] = spent
        by_policy = {
            "rows": {"dpsql": stack.enter_context(session(cluster, files, data.POLICY_ROWS))[0]},
            "persons": {"dpsql": stack.enter_context(session(cluster, files, PERSONS))[0], "prepared": prepared},
        }
        for query in QUERIES:
            found["queries"][query.name] = contest(query, spark, by_policy[query.policy], peer, rounds, 150)
    return found


def run(settings: Settings) -> Figures:
    """The five queries, over tables of one size or two."""
    from tests.engines_elsewhere.spark import servers  # of its own environment: whoever only shows figures has none

    rounds = settings.turns(1, 3, 3)
    sizes = settings.pick((2_000,), (200_000,), (200_000, 2_000_000))
    sizes = (settings.people,) if settings.people else sizes
    with servers.running(MEMORY) as cluster:
        with cluster.admin() as spark:
            version = spark.version
        found = [at(settings, cluster, people, rounds) for people in sizes]
        found.append(at(settings, cluster, sizes[0], rounds, skewed=True))
        return {"version": version, "sizes": found}


_HEAD = ("query", "", "ms", "× plain", "× floor", "MB of files", "shuffles", "rows shuffled", "MB", "MB compressed")


def _counts(found: dict[str, int] | None) -> tuple[str, ...]:
    if found is None:
        return ("",) * 5
    read, size, packed = (f"{found[name] / 1e6:,.1f}" for name in ("read", "bytes", "packed"))
    return read, str(found["shuffles"]), f"{found['rows']:,}", size, packed


def markdown(figures: Figures) -> str:
    """A table for each size: one line per query and contestant."""
    said = []
    for size in figures["sizes"]:
        rows = [
            (
                query,
                name,
                f"{contest[name]['ms'][0]:,.0f}",
                *(times(contest[name]["over"].get(base)) for base in ("plain", "floor")),
                *_counts(contest["counted"].get(name)),
            )
            for query, contest in size["queries"].items()
            for name in ("plain", "floor", "engine", "dpsql", "prepared", "Tumult")
            if name in contest
        ]
        sizes = ", ".join(f"`{which}` {n:,} rows" for which, n in size["rows"].items())
        failed = {f"Tumult, {query}: {c['failed']}." for query, c in size["queries"].items() if "failed" in c}
        without = " ".join(["", *sorted(failed), *([f"Tumult: {size['without']}."] if "without" in size else [])])
        skew = ", of which a third are one person's" if size["skewed"] else ""
        said.append(
            f"Spark {figures['version']}, two tasks; {sizes}{skew}; prepared in {size['prepared_in']:.0f} s; ε = 1, "
            f"{size['rounds']} interleaved rounds.{without}"
        )
        said.append(table(_HEAD, rows, left=2))
    return "\n\n".join(said)


if __name__ == "__main__":
    command(__doc__, "spark", run, markdown)
