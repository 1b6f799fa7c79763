"""Ctrl-C on a terminal, at random moments of every kind of work: how long until the caller has control again.

    python -m benchmarks.cancel                       # 40 cancellations of each kind
    python -m benchmarks.cancel --times 5 --only noise

A child process on a pseudo-terminal of its own runs one long query after the other; the parent types Ctrl-C, and the
child notes when `KeyboardInterrupt` reached it, asks the same connection for something small, and goes on. The answer
has to come, the ledger has to hold, and nothing may be left in the temporary folder when the child has ended.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import select
import statistics
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import duckdb

PATIENCE = 300.0
"""Seconds in which a child has to say something; 10⁶ groups take a while on a busy machine."""
LIMIT = 0.5
"""Seconds within which a cancelled query should have given way."""

POLICY = """\
version: 1
name: long
database: d.duckdb
units: {person: {}}
tables:
  t:
    unit: {column: id}
    max_rows_per_unit: 3
    columns:
      id:   {type: bigint}
      x:    {type: integer, bounds: [0, 100]}
      g:    {type: integer, bounds: [0, GROUPS], nullable: false}
      word: {type: varchar}
  wide:
    public: true
    columns: {n: {type: integer}}
ledger: l.sqlite
ledger_head: head.json
budgets: {total: {epsilon: 1000000000, delta: 1e-3}}
defaults: {max_keys: 2000000}
"""
SMALL = "SELECT COUNT(*) FROM t WHERE g = 1"
_HEAVY = " OR ".join(f"REPLACE(REPLACE(UPPER(word || '{i}'), 'O', 'ab'), 'R', 'xyz') LIKE '%q%{i}'" for i in range(8))


@dataclass(frozen=True)
class Work:
    """One kind of work. sql: what runs. memory: DuckDB's limit. locked: whether the ledger is locked meanwhile."""

    sql: str
    memory: str | None = None
    locked: bool = False


WORKS = {
    "scan": Work(f"SELECT COUNT(*) FROM t WHERE {_HEAVY}"),
    "aggregation": Work("SELECT COUNT(DISTINCT word) AS n, COUNT(DISTINCT x) AS m, SUM(x) AS s FROM t"),
    "cross join": Work("SELECT COUNT(*) FROM t JOIN wide ON (t.x + wide.n) % 5 = 1"),
    "spill": Work("SELECT word, COUNT(*) AS n FROM t GROUP BY word", memory="64MB"),
    "noise": Work("SELECT g, COUNT(*) AS n, SUM(x) AS s FROM t GROUP BY g"),
    "post-processing": Work(
        "SELECT g, ROUND(SUM(x) / COUNT(*), 2) AS a FROM t GROUP BY g HAVING COUNT(*) > -5 ORDER BY a DESC, g"
    ),
    "dates": Work("SELECT DATE '2020-01-01' + g AS d, COUNT(*) AS n FROM t GROUP BY d"),
    "ledger lock": Work(SMALL, locked=True),
}

_CHILD = """
import json, sys, time, traceback
import dpsql
policy, sql, small, memory, progress = json.loads(sys.argv[1])
with dpsql.connect(policy, memory_limit=memory, progress=progress) as con:
    def ask(text):
        return con.execute(text, epsilon=1, delta="1e-9", fresh=True)
    def work(line):
        try:
            print(json.dumps(["begun"]), flush=True)
            ask(sql if line.strip() == "go" else small)
        except KeyboardInterrupt as stop:
            at = time.monotonic()
            frames = [f for f in traceback.extract_tb(stop.__traceback__) if "/dpsql/" in f.filename]
            where = frames[-1].filename.rpartition("/dpsql/")[2] + ":" + frames[-1].name if frames else "?"
            return ["cancelled", at, where]
        except dpsql.Error as error:
            return ["failed", error.diagnostics[0].code]
        return ["ended"]
    while True:
        try:
            for line in sys.stdin:
                print(json.dumps(work(line)), flush=True)
            break
        except KeyboardInterrupt:  # typed just after the end; a line that came at the same time is lost
            print(json.dumps(["idle"]), flush=True)
"""


def make_data(folder: Path, rows: int, groups: int) -> Path:
    """A table of a few words per person, and its policy; the policy's path."""
    with duckdb.connect(str(folder / "d.duckdb")) as connection:
        connection.execute(
            "CREATE TABLE t AS SELECT (i // 2)::BIGINT AS id, (i % 97)::INTEGER AS x, "
            f"((i * 7919) % {groups})::INTEGER AS g, 'word number ' || (i * 104729) % {rows} AS word "
            f"FROM range({rows}) s(i)"
        )
        connection.execute("CREATE TABLE wide AS SELECT i::INTEGER AS n FROM range(2000) s(i)")
    policy = folder / "p.yaml"
    policy.write_text(POLICY.replace("GROUPS", str(groups - 1)))
    return policy


class Child:
    """A process that asks when told, with a terminal of its own."""

    def __init__(self, policy: Path, work: Work, spill: Path, progress: bool) -> None:
        import pty

        given = json.dumps([str(policy), work.sql, SMALL, work.memory, progress])
        self._output, written = os.pipe()
        os.set_inheritable(written, True)
        self.process, self.terminal = pty.fork()
        if self.process == 0:
            os.dup2(written, 1)
            os.environ |= {"TMPDIR": str(spill), "TERM": "xterm"}
            os.execv(sys.executable, [sys.executable, "-c", _CHILD, given])
        os.close(written)
        self._text = b""
        self.drawn = b""

    def tell(self, line: str) -> None:
        """Type a line."""
        os.write(self.terminal, line.encode() + b"\n")

    def interrupt(self) -> float:
        """Type Ctrl-C; when that was, in seconds of the monotonic clock, which is the same in all processes."""
        at = time.monotonic()
        os.write(self.terminal, b"\x03")
        return at

    def hear(self, patience: float) -> list[object] | None:
        """The next thing that the child says; None if it says nothing for so many seconds, or has ended."""
        deadline = time.monotonic() + patience
        while b"\n" not in self._text:
            ready, _, _ = select.select([self._output, self.terminal], [], [], max(0.0, deadline - time.monotonic()))
            if not ready:
                return None
            if self.terminal in ready:
                with contextlib.suppress(OSError):
                    self.drawn += os.read(self.terminal, 65536)  # the echo, and the bar
            if self._output in ready:
                found = os.read(self._output, 65536)
                if not found:
                    return None
                self._text += found
        line, _, self._text = self._text.partition(b"\n")
        heard: list[object] = json.loads(line)
        return heard

    def end(self) -> int:
        """End of input; the exit code."""
        os.write(self.terminal, b"\x04")
        while True:
            with contextlib.suppress(OSError):
                if select.select([self.terminal], [], [], 0.05)[0]:
                    self.drawn += os.read(self.terminal, 65536)
            found, status = os.waitpid(self.process, os.WNOHANG)
            if found:
                os.close(self.terminal)
                os.close(self._output)
                return os.waitstatus_to_exitcode(status)


@dataclass
class Found:
    """What one kind of work showed. waits: seconds from Ctrl-C to the caller. places: where it was noticed."""

    waits: list[float] = field(default_factory=list)
    places: Counter[str] = field(default_factory=Counter)
    late: int = 0  # the query had ended before Ctrl-C was typed
    unusable: int = 0  # what the connection said afterwards was no answer
    left: list[str] = field(default_factory=list)  # files in the temporary folder after the end
    status: int = 0


@contextlib.contextmanager
def holding(ledger: Path, wanted: bool) -> Iterator[None]:
    """Hold the ledger's write lock, as another process would."""
    import sqlite3

    if not wanted:
        yield
        return
    connection = sqlite3.connect(ledger, isolation_level=None, timeout=30)
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
    finally:
        connection.execute("ROLLBACK")
        connection.close()


def cancel(policy: Path, work: Work, times: int, *, progress: bool = False) -> Found:
    """Cancel one kind of work so many times. Raises TimeoutError if a child says nothing."""
    found = Found()
    with tempfile.TemporaryDirectory() as spill:
        child = Child(policy, work, Path(spill), progress)
        child.tell("small")
        _until(child, "ended")
        longest = 3.0
        if not work.locked:
            began = time.monotonic()
            child.tell("go")
            _until(child, "ended")
            longest = time.monotonic() - began
        while len(found.waits) < times:
            with holding(policy.parent / "l.sqlite", work.locked):
                child.tell("go")
                _until(child, "begun")
                time.sleep(random.uniform(0.02, 0.95) * longest)
                typed = child.interrupt()
                heard = _until(child, "cancelled", "ended", "idle")
            if heard[0] != "cancelled":
                found.late += 1
                longest *= 0.6  # the machine may have been busier when it was measured
                if heard[0] == "ended":  # else Ctrl-C came before the child had said so
                    _until(child, "idle")
                if found.late > 5 * times:
                    break
            else:
                found.waits.append(float(str(heard[1])) - typed)
                found.places[str(heard[2])] += 1
            child.tell("small")
            found.unusable += _until(child, "ended", "failed", "cancelled")[0] != "ended"
        found.status = child.end()
        found.left = sorted(os.listdir(spill))
    return found


def _until(child: Child, *words: str) -> list[object]:
    while True:
        heard = child.hear(PATIENCE)
        if heard is None:
            raise TimeoutError(f"no word of {', '.join(words)}: {child.drawn[-2000:]!r}")
        if heard[0] in words:
            return heard
        if heard[0] == "failed":
            raise RuntimeError(f"refused or failed: {heard[1]}")


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table; 1 if a connection was not usable afterwards or a file was left. Times are judged by eye."""
    parser = argparse.ArgumentParser(prog="benchmarks.cancel", description="Time from Ctrl-C to control.")
    parser.add_argument("--times", type=int, default=40, help="cancellations of each kind")
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--groups", type=int, default=1_000_000)
    parser.add_argument("--only", choices=WORKS, action="append", help="only this kind; may be repeated")
    given = parser.parse_args(arguments)
    bad = False
    print(f"{'seconds from Ctrl-C':<18} {'n':>4} {'median':>8} {'p95':>8} {'most':>8} {'> 0.5':>6}   noticed in")
    with tempfile.TemporaryDirectory() as folder:
        policy = make_data(Path(folder), given.rows, given.groups)
        for name in given.only or WORKS:
            found = cancel(policy, WORKS[name], given.times)
            waits = sorted(found.waits) or [0.0]
            p95 = waits[min(len(waits) - 1, int(0.95 * len(waits)))]
            over = sum(w > LIMIT for w in waits)
            places = ", ".join(f"{place} {n}" for place, n in found.places.most_common(3))
            print(
                f"{name:<18} {len(found.waits):>4} {statistics.median(waits):>8.3f} {p95:>8.3f} {waits[-1]:>8.3f} "
                f"{over:>6}   {places}",
                flush=True,
            )
            if found.unusable or found.left or found.status:
                bad = True
                print(f"  unusable {found.unusable}, left {found.left}, exit code {found.status}")
    return int(bad)


if __name__ == "__main__":
    sys.exit(main())
