"""Peak memory of a process that asks one query, as rows, persons and groups grow; beside plain DuckDB and the floor.

    python -m benchmarks.memory [--size short] [--folder DIR] [--json FILE]

within    Q3, Q4 and Q5 within 256 MB of DuckDB's limit, over 10 M persons in full: what does not fit is spilled

Each figure is the largest resident set of a child process that reads a Parquet file within DuckDB's default limits.
DuckDB's buffers grow with the file up to its memory limit; what dpsql adds is the difference to plain DuckDB, or
to the floor where each person has to be told apart.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import duckdb

from benchmarks import data
from benchmarks.frame import Figures, Settings, command, lines_of, number, table
from benchmarks.growth import GROUPED, GROUPED_POLICY, scratch
from benchmarks.queries import QUERIES

TITLE = "Memory"
SQL = {query.name: query.sql for query in QUERIES} | {"groups": GROUPED}
FLOOR = {query.name: query.floor for query in QUERIES if query.floor is not None}
LIMIT_MB = 256
POLICY = {query.name: data.POLICIES[query.policy] for query in QUERIES} | {"groups": GROUPED_POLICY}


def run(settings: Settings) -> Figures:
    """Q2 as rows grow, Q3 as persons grow, a count and a sum per key as keys grow."""
    million = 10**6
    sizes = settings.pick((1_000,), (million, 10 * million, 50 * million), (million, 10 * million, 100 * million))
    people = settings.pick((), (200_000, 2 * million), (200_000, 2 * million, 10 * million))
    groups = settings.pick((10,), (10, 10_000, million), (10, 1_000, 100_000, million))
    found = []
    for size in sizes:
        with (
            scratch(data.make(settings.folder, size, orders=False)) as database,
            scratch(data.parquet(settings.folder, "people", database)) as file,
        ):
            found.append({"query": "Q2", "size": size} | peaks("Q2", {"people": file}))
    for size in people:
        with (
            scratch(data.make(settings.folder, size)) as database,
            scratch(data.parquet(settings.folder, "orders", database)) as file,
        ):
            found.append({"query": "Q3", "size": size} | peaks("Q3", {"orders": file}))
    facts = settings.pick(1_000, 5 * million, 5 * million)
    for count in groups:
        with scratch(settings.folder / "facts.parquet") as file, scratch(settings.folder / "keys.parquet") as keys:
            duckdb.execute(f"COPY (SELECT i::INTEGER AS k FROM range({count}) t(i)) TO '{keys}'")
            duckdb.execute(
                f"COPY (SELECT (hash(i) % {count})::INTEGER AS k, (hash(i, 1) % 1000)::INTEGER AS x "
                f"FROM range({facts}) t(i)) TO '{file}'"
            )
            found.append({"query": "groups", "size": count} | peaks("groups", {"facts": file, "keys": keys}))
    limited = settings.pick((1_000,), (200_000,), (10 * million,))
    return {"facts": facts, "peaks": found, "within": [row for size in limited for row in within(settings, size)]}


def within(settings: Settings, people: int) -> Iterator[Figures]:
    """Queries of persons in a new process whose DuckDB has `LIMIT_MB`: its peak, and what it takes."""
    with scratch(data.make(settings.folder, people)) as database:
        for query in ("Q3", "Q4", "Q5"):
            task = {"query": query, "system": "dpsql", "database": str(database), "folder": str(settings.folder)}
            began = time.perf_counter()
            most = in_child(task)
            yield {"query": query, "size": people, "dpsql_mb": most, "seconds": time.perf_counter() - began}


def peaks(query: str, files: dict[str, Path]) -> dict[str, float]:
    """Megabytes at the peak of a process that runs it plainly, of one that runs its floor, of one that asks dpsql."""
    systems = ("plain", *(("floor",) if query in FLOOR else ()), "dpsql")
    found = {f"{system}_mb": peak(query, system, files) for system in systems}
    return found | {"added_mb": found["dpsql_mb"] - found.get("floor_mb", found["plain_mb"])}


def peak(query: str, system: str, files: dict[str, Path]) -> float:
    """Megabytes at the peak of a new process."""
    return in_child({"query": query, "system": system, "files": {name: str(path) for name, path in files.items()}})


def in_child(asked: Figures) -> float:
    """Megabytes at the peak of a new process that does this."""
    task = json.dumps(asked)
    line = [sys.executable, "-m", "benchmarks.memory", "--child", task]
    said = subprocess.run(line, check=True, capture_output=True, text=True).stdout
    return float(said)


def child(task: Figures) -> None:
    """Run one query and print this process's peak in megabytes."""
    if "database" in task:
        with tempfile.TemporaryDirectory(dir=task["folder"]) as spill:
            config = {"memory_limit": f"{LIMIT_MB}MB", "temp_directory": spill}
            with duckdb.connect(task["database"], read_only=True, config=config) as limited:
                ask(limited, task["query"])
        print(own_peak())
        return
    plain = duckdb.connect()
    for name, file in task["files"].items():
        data.view(plain, name, file)
    query = task["query"]
    if task["system"] != "dpsql":
        plain.sql((SQL if task["system"] == "plain" else FLOOR)[query]).to_arrow_table()
    else:
        ask(plain, query)
    print(own_peak())


def ask(plain: duckdb.DuckDBPyConnection, query: str) -> None:
    """One query of dpsql over a connection."""
    with data.session(plain, POLICY[query]) as session:
        session.execute(SQL[query], epsilon=1, fresh=True).arrow()


def own_peak() -> float:
    """Megabytes at the peak of this process."""
    for line in lines_of("/proc/self/status"):
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) / 2**10
    import resource  # counts what the parent had when it forked, so it is only second best

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (2**20 if sys.platform == "darwin" else 2**10)


def markdown(figures: Figures) -> str:
    """One line per query and size."""
    what = {"Q2": "rows", "Q3": "persons", "groups": "groups"}
    rows = [
        (
            "per key" if row["query"] == "groups" else row["query"],
            f"{row['size']:,} {what[row['query']]}",
            *(number(row.get(name)) for name in ("plain_mb", "floor_mb", "dpsql_mb", "added_mb")),
        )
        for row in figures["peaks"]
    ]
    grown = f"Parquet; the query per key reads {figures['facts']:,} rows.\n\n" + table(
        ("query", "", "plain MB", "floor MB", "dpsql MB", "added MB"), rows, left=2
    )
    if not (limited := figures.get("within")):
        return grown
    lines = [(r["query"], f"{r['size']:,} persons", number(r["dpsql_mb"]), number(r["seconds"])) for r in limited]
    return f"{grown}\n\nWithin {LIMIT_MB} MB of DuckDB's limit, from DuckDB's own format:\n\n" + table(
        ("query", "", "peak of the process, MB", "seconds"), lines, left=2
    )


if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]:
        child(json.loads(sys.argv[2]))
    else:
        command(__doc__, "memory", run, markdown)
