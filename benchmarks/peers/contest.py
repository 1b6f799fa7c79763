"""Five queries asked of dpsql and of other systems: the same data, the same ε, times and errors side by side.

    python -m benchmarks.peers [--size short] [--people 100000] [--rounds 3] [--json FILE]

Every peer runs in its own virtual environment (made on first use, see environments.py) behind its adapter, which has
the data in memory before the clock runs. Plain DuckDB, the floor (queries.py), dpsql, dpsql over prepared tables and
the peer take turns; ratios are within rounds. The error is |answer - exact| / |exact|, the median over groups and
rounds, against the exact answer and not the one cut to the limits of a person; of prepared tables, ten rows of each. A
peer that cannot express a query, or cannot be installed, is shown with the reason. Where rows are the unit there is no
floor but plain DuckDB, and nothing to prepare.

quick asks no peer; short: 100,000 people. full: a million, and up to ten minutes for an answer.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import duckdb

import dpsql
from benchmarks import data
from benchmarks.frame import Figures, Settings, number, table, take_turns, unasked
from benchmarks.peers.environments import HERE, PEERS, NotInstalled, environment, python_of
from benchmarks.prepared import PERSONS, sessions
from benchmarks.queries import QUERIES, Query

TITLE = "Other systems"
NUMBERS = {
    "Q1": ("COUNT",),
    "Q2": ("COUNT", "SUM", "AVG"),
    "Q3": ("COUNT", "SUM"),
    "Q4": ("COUNT", "AVG"),
    "Q5": ("COUNT", "SUM"),
}
OWN = {"plain": "plain DuckDB", "floor": "per-person floor", "dpsql": "dpsql", "prepared": "dpsql, prepared"}
"""Our own contestants, and their names."""
Answer = dict[Any, Sequence[float]]


class Failed(Exception):
    """A peer did not answer; the text says why."""


class Peer:
    """A running adapter."""

    def __init__(
        self, python: Path, name: str, task: dict[str, Any], patience: float, log: IO[str], adapter: str = "adapter"
    ) -> None:
        line = [str(python), str(HERE / name / f"{adapter}.py")]
        self._patience = patience
        self._process = subprocess.Popen(
            line,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            env=environment(),
            cwd=Path(log.name).parent,  # where Spark leaves a folder
        )
        said = self._ask(json.dumps(task))
        self.ready: dict[str, str | None] = said["ready"]
        self.versions: dict[str, str] = said["versions"]

    def answer(self, query: str) -> Answer:
        """Raises Failed."""
        said = self._ask(query)
        if "error" in said:
            raise Failed(said["error"])
        return dict(said["rows"])

    def close(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.communicate()

    def _ask(self, line: str) -> dict[str, Any]:
        assert self._process.stdin and self._process.stdout
        alarm = threading.Timer(self._patience, self._process.kill)
        alarm.start()
        try:
            self._process.stdin.write(line + "\n")
            self._process.stdin.flush()
            said = self._process.stdout.readline()
        except BrokenPipeError:
            said = ""
        late = not alarm.is_alive()
        alarm.cancel()
        if not said:
            raise Failed(f"no answer within {self._patience:.0f} s" if late else "its process ended")
        found: dict[str, Any] = json.loads(said)
        return found


def the_task(people: Path, orders: Path, rows: dict[str, int]) -> dict[str, Any]:
    """What an adapter is told: the data, the price, and what the policies declare."""
    return {
        "people": str(people.resolve()),
        "orders": str(orders.resolve()),
        "rows": rows,
        "epsilon": 1,
        "delta": 1e-6,
        "bounds": {"age": [0, 100], "income": [0, 200_000], "amount": [0, 500]},
        "domains": {
            "region": ["north", "south", "east", "west"],
            "category": [f"c{i:02}" for i in range(20)],
        },
        "limits": {"rows": 10, "groups": 5, "rows_per_group": 5},
    }


def keyed(query: Query, rows: Sequence[Sequence[Any]]) -> Answer:
    """Rows as an adapter gives them: key → numbers."""
    width = len(NUMBERS[query.name])
    return {(row[0] if len(row) > width else None): [float(x) for x in row[-width:]] for row in rows}


def errors(exact: Answer, answers: Sequence[Answer]) -> list[float]:
    """Per number of the query, the median relative error over groups and answers; 1 for a group that is missing."""
    found = []
    for i in range(len(next(iter(exact.values())))):
        off = [
            abs(answer[key][i] - true[i]) / abs(true[i]) if key in answer else 1.0
            for answer in answers
            for key, true in exact.items()
        ]
        found.append(statistics.median(off))
    return found


def kept(run: Callable[[], Answer]) -> tuple[Callable[[], object], list[Answer]]:
    """A contestant whose answers are kept."""
    answers: list[Answer] = []
    return lambda: answers.append(run()), answers


@contextmanager
def started(name: str, folder: Path, task: dict[str, Any], patience: float, adapter: str = "adapter") -> Iterator[Peer]:
    """A peer, ready for queries. Raises NotInstalled, Failed."""
    python = python_of(name, folder / "peers")
    with (folder / "peers" / f"{name}.log").open("w", encoding="utf-8") as log:
        peer = Peer(python, name, task, patience, log, adapter)
        try:
            yield peer
        finally:
            peer.close()


def run(settings: Settings) -> Figures:
    """All queries of all peers, one peer after the other. Our own contestants stand beside each other first."""
    people = settings.people or settings.pick(1_000, 100_000, data.PEOPLE)
    rounds, limit = settings.turns(1, 2, 3), settings.pick(2, 20, 120)
    database = data.make(settings.folder, people)
    people_file, orders_file = (data.parquet(settings.folder, table, database) for table in ("people", "orders"))
    persons = PERSONS.replace("units:", f"database: {database.resolve()}\nunits:")
    with duckdb.connect(str(database), read_only=True) as plain, sessions(persons) as (_, prepared, _):
        rows = {t: plain.execute(f"SELECT COUNT(*) FROM {t}").fetchall()[0][0] for t in ("people", "orders")}
        task = the_task(people_file, orders_file, rows)
        alone = {query.name: contest(query, plain, prepared, None, max(rounds, 3), limit) for query in QUERIES}
        own = {name: {q: each[name] for q, each in alone.items() if name in each} for name in OWN}
        found: Figures = {"rows": rows, "rounds": rounds, "own": own, "peers": {}}
        for name in settings.pick((), tuple(PEERS), tuple(PEERS)):
            asked: Figures = {"queries": {}}
            found["peers"][name] = asked
            try:
                with started(name, settings.folder, task, settings.pick(10, 150, 600)) as peer:
                    asked["versions"] = peer.versions
                    for query in QUERIES:
                        if reason := peer.ready[query.name]:
                            asked["queries"][query.name] = {"refused": reason}
                        else:
                            asked["queries"][query.name] = contest(query, plain, prepared, peer, rounds, limit)["peer"]
            except (NotInstalled, Failed) as reason:
                asked["failed"] = str(reason)[:300]
    return found


def contest(
    query: Query,
    plain: duckdb.DuckDBPyConnection,
    prepared: dpsql.Connection,
    peer: Peer | None,
    rounds: int,
    limit: float,
) -> Figures:
    """One query, all contestants in turn. Ours have had a turn that is not counted."""
    with data.session(plain, data.POLICIES[query.policy]) as session:
        exact = keyed(query, plain.execute(query.sql).fetchall())
        sessions_of = {"dpsql": session} | ({"prepared": prepared} if query.policy == "persons" else {})
        ours = {name: kept(lambda s=s: keyed(query, released(s, query))) for name, s in sessions_of.items()}
        runs: dict[str, Callable[[], object]] = {"plain": lambda: plain.execute(query.sql).fetchall()}
        if (floor := query.floor) is not None:
            runs["floor"] = lambda: plain.execute(floor).fetchall()
        runs |= {name: run for name, (run, _) in ours.items()}
        for run in runs.values():
            run()
        kept_answers = {name: answers for name, (_, answers) in ours.items()}
        if peer is not None:
            runs["peer"], kept_answers["peer"] = kept(lambda: peer.answer(query.name))
        try:
            found: Figures = take_turns(runs, rounds, warm=False, limit=limit)
        except Failed as reason:
            return {"peer": {"refused": str(reason)[:300]}}
        return {
            name: figures | ({"errors": errors(exact, kept_answers[name])} if name in kept_answers else {})
            for name, figures in found.items()
        }


def released(session: dpsql.Connection, query: Query) -> list[tuple[Any, ...]]:
    """An answer at ε = 1 with noise of its own."""
    return session.execute(unasked(query.sql), epsilon=1, fresh=True).fetchall()


def markdown(figures: Figures) -> str:
    """Times, then errors; a line per system, a column per query. Reasons below."""
    ours = {OWN[name]: {"queries": queries} for name, queries in figures["own"].items()}
    systems: dict[str, Figures] = ours | {PEERS[n]: peer for n, peer in figures["peers"].items()}
    reasons: list[str] = []

    def cell(name: str, query: str, show: Callable[[Figures], str]) -> str:
        peer = systems[name]
        if name in ours and query not in peer["queries"]:
            return "–"
        found = peer["queries"].get(query, {"refused": peer.get("failed", "not asked")})
        if "refused" not in found:
            return show(found)
        reason = " ".join(found["refused"].split()).replace("|", "/")
        text = f"{name}, {query}: {reason}"
        if text not in reasons:
            reasons.append(text)
        return f"no ({reasons.index(text) + 1})"

    def lines(show: Callable[[Figures], str], names: Iterable[str] = systems) -> list[list[str]]:
        return [[name, *(cell(name, query.name, show) for query in QUERIES)] for name in names]

    def time(found: Figures) -> str:
        over = [f"{number(found['over'][base][0])} ×" for base in ("dpsql", "prepared") if base in found["over"]]
        return f"{number(found['ms'][0])} ms" + (f" (**{' / '.join(over)}**)" if over else "")

    def error(found: Figures) -> str:
        return " / ".join(f"{100 * e:.2g} %" for e in found["errors"])

    versions = "; ".join(
        ", ".join(f"{package} {version}" for package, version in peer.get("versions", {}).items())
        for peer in figures["peers"].values()
    )
    rows = ", ".join(f"`{name}` {count:,} rows" for name, count in figures["rows"].items())
    queries = [query.name for query in QUERIES]
    return "\n\n".join(
        [
            f"{rows}, ε = 1, {figures['rounds']} interleaved rounds. {versions}.",
            "Time, and in brackets how many times that of dpsql and of dpsql over prepared tables in the same rounds:",
            table(["", *queries], lines(time)),
            "Median relative error against the exact answer:",
            table(
                ["", *(f"{q} {'/'.join(NUMBERS[q])}" for q in queries)],
                lines(error, [n for n in systems if n not in (OWN["plain"], OWN["floor"])]),
            ),
            "\n".join(f"{i}. {reason}" for i, reason in enumerate(reasons, 1)),
        ]
    )
