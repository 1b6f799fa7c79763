"""A small shop on disk, and children that query it: real processes, a real DuckDB file, a real ledger."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

from dpsql.api.connection import Connection, connect
from dpsql.core.engine import RawTable
from dpsql.core.ledger.ledger import EntryKind
from dpsql.core.ledger.sqlite import SqliteLedger
from dpsql.engines.duckdb.engine import DuckDBEngine
from dpsql.policy.load import load_policy
from dpsql.policy.resolve.from_catalogue import complete
from tests.support.built_once import build

POLICY = """\
version: 1
name: shop
database: shop.duckdb
units:
  customer: {}
tables:
  orders:
    unit: {column: customer}
    max_rows_per_unit: 5
    columns:
      customer: {type: bigint}
      city:     {type: varchar, domain: [Bonn, Lyon, Oslo], nullable: false}
      amount:   {type: double, bounds: [0, 100]}
      note:     {type: varchar}
  forever:
    unit: {column: i}
    max_rows_per_unit: 1
    columns:
      i: {type: bigint}
  cities:
    public: true
    unique: [[city]]
    columns:
      city:    {type: varchar, nullable: false}
      country: {type: varchar, nullable: false}
ledger: shop.ledger.sqlite
ledger_head: state/head.json
budgets:
  total: {epsilon: EPSILON, delta: 1e-6}
"""
DATA = """
CREATE TABLE orders AS SELECT i % 300 AS customer, ['Bonn', 'Lyon', 'Oslo'][i % 3 + 1] AS city,
    (i * 37 % 1000) / 10.0 AS amount, 'n' || i AS note FROM range(2000) AS t(i);
CREATE TABLE cities AS FROM (VALUES ('Bonn', 'DE'), ('Lyon', 'FR'), ('Oslo', 'NO')) v(city, country);
CREATE VIEW forever AS SELECT i FROM range(9000000000000) AS t(i);
"""
COUNT = "SELECT COUNT(*) FROM orders"
MEANS = "SELECT city, 2 * SUM(amount) AS twice FROM orders JOIN cities USING (city) GROUP BY city ORDER BY 2 DESC"
"""Needs an engine for its post-processing as well."""
PRICE = Fraction(1, 10)
"""What a child spends on a query."""
ENDLESS = "SELECT COUNT(*) FROM forever WHERE i % 7 <> 3"
PRIVATE = ('"orders"', '"forever"')


def board(no: int) -> str:
    """A batch of three groups and of one row, with three noisy columns. no: told apart by it."""
    rows = f"FROM orders WHERE city <> 'nowhere {no}'"
    return f"DP BATCH (SELECT city, COUNT(*) AS n {rows} GROUP BY city; SELECT COUNT(*) AS n, SUM(amount) AS s {rows})"


@dataclass(frozen=True)
class Shop:
    """A folder with the shop's data, policy and ledger."""

    folder: Path

    @property
    def policy(self) -> Path:
        return self.folder / "shop.yaml"

    def ledger(self, timeout: float = 600) -> SqliteLedger:
        """The ledger, opened anew: its chain is verified."""
        policy = load_policy(self.policy)
        return SqliteLedger.open(policy.ledger_path, policy.ledger_head_path, policy.name, "approx_dp", timeout=timeout)

    def spent(self) -> Fraction:
        with self.ledger() as ledger:
            ledger.verify()
            return ledger.spent("customer").epsilon

    def entries(self) -> int:
        """Those that say that a run failed or died aside."""
        with self.ledger() as ledger:
            ledger.verify()
            return sum(receipt.entry.kind is not EntryKind.FAILURE for receipt in ledger.history())

    def failures(self) -> list[tuple[str, str]]:
        """Account and how, of each that counts."""
        with self.ledger() as ledger:
            return [(f.account, f.how) for f in ledger.failures()]

    def serves(self) -> None:
        """A new session answers and pays."""
        before = self.spent()
        with connect(self.policy) as con:
            assert len(con.execute(MEANS, epsilon="0.1", fresh=True).rows) == 3
        assert self.spent() == before + PRICE

    @contextlib.contextmanager
    def watched(self, ledger: Any = None) -> Iterator[tuple[Connection, list[str]]]:
        """A session that notes what it does: "reserve" for a receipt, "private" and "public" for a fetch."""
        policy = load_policy(self.policy)
        events: list[str] = []
        engine = WatchedEngine.open(policy.database_path, {}, policy.directory)
        engine.events = engine.sibling().events = events
        watched = WatchedLedger(ledger or self.ledger(), events)
        with Connection(complete(policy, engine.describe()), engine, None, watched) as connection:
            yield connection, events


class WatchedEngine(DuckDBEngine):
    """Notes every fetch."""

    events: list[str]

    def fetch(self, sql: str) -> RawTable:
        self.events.append("private" if any(name in sql for name in PRIVATE) else "public")
        return super().fetch(sql)


class WatchedLedger:
    """Notes every receipt that is handed out."""

    def __init__(self, ledger: Any, events: list[str]) -> None:
        self._ledger, self._events = ledger, events

    def reserve(self, *arguments: Any) -> Any:
        receipt = self._ledger.reserve(*arguments)
        self._events.append("reserve")
        return receipt

    def __getattr__(self, name: str) -> Any:
        return getattr(self._ledger, name)


def make_shop(folder: Path, epsilon: str = "1000000") -> Shop:
    """Make a shop with this total ε."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "shop.yaml").write_text(POLICY.replace("EPSILON", epsilon))
    build(folder / "shop.duckdb", DATA)
    return Shop(folder)


# One process that has loaded everything; each job is a fork of it, so that a victim starts within milliseconds. Nothing
# is opened before the fork. A line of jobs starts all of them; its answer is their numbers, then their statuses.
_NURSERY = """
import json, os, signal, sys, time
import dpsql, dpsql.core.ledger.sqlite, dpsql.core.ledger.chain.head, dpsql.engines.duckdb.engine
import dpsql.engines.duckdb.scratch, dpsql.planner.postprocessing.run, dpsql.answers.stored.store.sqlite
import dpsql.core.noise.mechanisms.laplace, dpsql.core.release.noisy, dpsql.service.service
from dpsql.diagnostics.errors import BudgetExceeded
from dpsql.planner.stages.answering_rows import AnsweringRows

# However slow the machine and however many children: what a child waits for, it gets.
dpsql.core.ledger.sqlite.SqliteLedger.open.__func__.__kwdefaults__["timeout"] = 600
dpsql.answers.stored.store.sqlite.SqliteAnswers.__init__.__kwdefaults__.update(timeout=600, patience=3600)
CTRL_C = {signal.SIGINT}

def die(*_):
    os.kill(os.getpid(), signal.SIGKILL)

def arm(calls):
    # Die at the call after so many: opening a new ledger makes one, too.
    left = [calls]
    def bang():
        left[0] -= 1
        if left[0] < 0: die()
    return bang

def wrap(owner, name, before=None, after=None):
    inner = getattr(owner, name)
    def wrapped(*arguments, **named):
        if before: before()
        found = inner(*arguments, **named)
        if after: after()
        return found
    setattr(owner, name, wrapped)

def work(job):
    signal.pthread_sigmask(signal.SIG_UNBLOCK, CTRL_C)
    os.dup2(os.open(job["output"], os.O_WRONLY | os.O_CREAT | os.O_APPEND), 1)
    os.dup2(os.open(job["output"] + ".err", os.O_WRONLY | os.O_CREAT | os.O_APPEND), 2)
    exec(job["prepare"], {**globals(), "job": job})
    with dpsql.connect(job["policy"]) as con:
        for _ in range(job["queries"]):
            try:
                release = con.execute(job["sql"], epsilon="0.1", fresh=job["fresh"])
                exec(job["before_output"])
                print(release.spent.epsilon, release.rows, flush=True)
            except BudgetExceeded as refusal:
                print("refused", refusal.diagnostics[0].code, flush=True)
            except dpsql.Error as refusal:
                print("failed", refusal.diagnostics[0].code, flush=True)

for line in sys.stdin:
    children = []
    signal.pthread_sigmask(signal.SIG_BLOCK, CTRL_C)  # in a child, until somebody there can tell how it ended
    for job in json.loads(line):
        child = os.fork()
        if child == 0:
            status = 1
            try:
                work(job)
                status = 0
            except KeyboardInterrupt:
                status = 130
            except BaseException:
                import traceback
                traceback.print_exc()
            finally:
                sys.stdout.flush()
                sys.stderr.flush()
                os._exit(status)
        children.append(child)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, CTRL_C)
    print(json.dumps(children), flush=True)
    print(json.dumps([os.waitstatus_to_exitcode(os.waitpid(c, 0)[1]) for c in children]), flush=True)
"""

LOST = re.compile(r"Exception ignored in: .*?\n(?:.*\n)*?KeyboardInterrupt: ?\n")
"""How Python says that a Ctrl-C came where no exception can be raised."""


class Nursery:
    """Starts children that query a shop; `kill` reaches each of them."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        environment = {**os.environ, "TMPDIR": str(folder)}  # what killed children leave behind stays here
        self._process = subprocess.Popen(
            [sys.executable, "-c", _NURSERY], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
        )
        self._outputs = 0
        self._folder = folder

    def start(
        self,
        shop: Shop,
        queries: int,
        *,
        sql: str = COUNT,
        prepare: str = "",
        before_output: str = "",
        copies: int = 1,
        fresh: bool = True,
    ) -> tuple[list[int], list[Path]]:
        """The numbers of the new processes, and the files they print to. fresh: every query pays for new noise."""
        outputs = []
        for _ in range(copies):
            self._outputs += 1
            outputs.append(self._folder / f"{self._outputs}.txt")
            outputs[-1].touch()
        jobs = [
            {
                "policy": str(shop.policy), "output": str(output), "queries": queries, "sql": sql, "prepare": prepare,
                "before_output": before_output, "fresh": fresh,
            }
            for output in outputs
        ]  # fmt: skip
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(jobs) + "\n")
        self._process.stdin.flush()
        return self._line(), outputs

    def wait(self) -> list[int]:
        """Wait for the children started last; their exit codes, negative for a signal."""
        return self._line()

    def interrupt(self, child: int, output: Path) -> None:
        """Press Ctrl-C until the child is gone: again after each one that Python itself says it has lost.

        What arrives in the callback of a weak reference or in a finaliser cannot be raised there: a person presses
        again, too. Any other Ctrl-C that is lost makes this wait in vain.
        """
        errors = output.with_suffix(".txt.err")
        pressed = 0
        deadline = time.monotonic() + 300
        with contextlib.suppress(ProcessLookupError):
            while time.monotonic() < deadline:
                if pressed <= len(LOST.findall(errors.read_text() if errors.exists() else "")):
                    os.kill(child, signal.SIGINT)
                    pressed += 1
                os.kill(child, 0)
                time.sleep(0.001)
        assert time.monotonic() < deadline, "a Ctrl-C was lost and nobody said so"

    def _line(self) -> list[int]:
        assert self._process.stdout is not None
        found: list[int] = json.loads(self._process.stdout.readline())
        return found

    def close(self) -> None:
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait(timeout=300)
        self._process.stdout.close()


def answers(outputs: Sequence[Path]) -> list[Fraction]:
    """The ε that each printed answer says it cost; a line cut short by a kill counts in full."""
    lines = [line for output in outputs for line in output.read_text().splitlines()]
    return [Fraction(line.split()[0]) for line in lines if line and line.split()[0] not in ("refused", "failed")]
