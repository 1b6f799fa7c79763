"""Durable charges per second from one and from many processes, a race for a budget, one charge with its stored answer,
the time to open a long ledger, and what a server's pages take of one.

    python -m benchmarks.ledger [--size short] [--folder DIR] [--json FILE]

A charge counts once the log is flushed to the disk (fsync) and the head written and flushed, too, as it is before an
answer is shown. In a query the head is flushed while the data is read; here nothing is read, so that one charge alone
waits for both. Processes that wait at the same time share flushes (group commit), so together they may be faster than
the disk's own. The folder decides which disk is measured: its flushes a second are measured in the same run and printed
beside each figure.

The race: 16 processes ask 200 times each for a charge out of a budget that holds exactly 1,000.

DPSQL_BENCH_POSTGRES=postgresql://… names an empty database: the same charges are made there in the same run. Its schema
`dpsql` is removed each time. Its server's disk is another one's, unless its data lies in the folder's.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import multiprocessing
import os
import statistics
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path
from typing import Any

from benchmarks.frame import Figures, Settings, command, table
from dpsql.answers.stored.analyst_account import answers_beside
from dpsql.core.ledger.ledger import Caps, Entry
from dpsql.core.ledger.losses.regions import LossSpan
from dpsql.core.ledger.postgres import PostgresLedger
from dpsql.core.ledger.postgres_server import LedgerServer
from dpsql.core.ledger.privacy_filter import Book, settle
from dpsql.core.ledger.released import StoredAnswer
from dpsql.core.ledger.sqlite import SqliteLedger
from dpsql.core.privacy_loss import PrivacyLoss
from dpsql.diagnostics.errors import BudgetExceeded
from dpsql.faces.server.account_relations import RELATIONS
from dpsql.faces.server.statements import Ceilings, StatementSettings
from dpsql.faces.server.workers.answering import WorkerAnswering
from dpsql.faces.server.workers.ceilings import AccountSpending
from dpsql.faces.server.workers.worker_messages import Ask
from dpsql.service.open_data import open_data
from dpsql.service.service import Service
from tests.support.long_ledger import lengthen
from tests.support.small_shop import make_shop

TITLE = "Ledger"
CHARGE = {"patient": PrivacyLoss(Fraction(1, 1000))}
SERVER = os.environ.get("DPSQL_BENCH_POSTGRES")


def open_ledger(folder: Path, url: str | None = None) -> SqliteLedger | PostgresLedger:
    """The ledger in a folder, or in a database with its head in a folder; made if need be."""
    if url is not None:
        return PostgresLedger.open(url, folder / "head.json", "benchmark", "approx_dp", timeout=60)
    return SqliteLedger.open(folder / "l.sqlite", folder / "head.json", "benchmark", "approx_dp", timeout=60)


def emptied(url: str) -> None:
    """A database without a ledger."""
    server = LedgerServer(url)
    server.read(lambda session: session.run("DROP SCHEMA IF EXISTS dpsql CASCADE"))
    server.close()


def work(
    folder: Path, url: str | None, name: str, charges: int, budget: Fraction | None, gate: Any, latencies: Any
) -> None:
    """One process: charges once the gate opens; the seconds that each admitted one took go into `latencies`."""
    with open_ledger(folder, url) as ledger:
        gate.wait()
        taken = []
        caps = Caps() if budget is None else Caps(total={"patient": PrivacyLoss(budget)})
        for i in range(charges):
            start = time.perf_counter()
            entry = Entry(f"{name}-{i}", "ana", CHARGE, "plan", "policy", "SELECT COUNT(*) FROM t")
            with contextlib.suppress(BudgetExceeded):
                ledger.reserve(entry, caps)
                ledger.finish()
                taken.append(time.perf_counter() - start)
        latencies.put(taken)


def charges_per_second(
    base: Path, processes: int, charges: int, holds: int | None, url: str | None = None
) -> dict[str, float]:
    """What so many processes charge in all, and how long single charges take.

    holds: how many charges the budget is for; None for no limit. url: of an empty database, in place of a file.
    """
    if url is not None:
        emptied(url)
    budget = None if holds is None else holds * CHARGE["patient"].epsilon
    with tempfile.TemporaryDirectory(dir=base) as name:
        folder = Path(name)
        open_ledger(folder, url).close()
        context = multiprocessing.get_context("spawn")
        gate, latencies = context.Barrier(processes + 1), context.Queue()
        each = charges // processes
        workers = [
            context.Process(target=work, args=(folder, url, f"p{i}", each, budget, gate, latencies))
            for i in range(processes)
        ]
        for worker in workers:
            worker.start()
        gate.wait()
        start = time.perf_counter()
        taken = sorted(t for _ in workers for t in latencies.get())
        seconds = time.perf_counter() - start
        for worker in workers:
            worker.join()
        admitted = each * processes if holds is None else min(holds, each * processes)
        with open_ledger(folder, url) as ledger:
            assert ledger.verify() == len(taken) == admitted, "a charge was lost or came for nothing"
    return {
        "admitted": admitted,
        "per_second": admitted / seconds,
        "median_ms": 1e3 * taken[len(taken) // 2],
        "p99_ms": 1e3 * taken[len(taken) * 99 // 100],
        "worst_ms": 1e3 * taken[-1],
    }


def charged_and_stored(base: Path, runs: int) -> dict[str, float]:
    """Milliseconds of what the disk takes of a query: looking for stored answers, the charge, storing the answer."""
    wall, processor = [], []
    with tempfile.TemporaryDirectory(dir=base) as name, open_ledger(Path(name)) as ledger:
        store = answers_beside(ledger)
        for i in range(runs):
            entry = Entry(f"{i}", "ana", CHARGE, "plan", "policy", "SELECT COUNT(*) FROM t", answers=(f"{i}",))
            answer = StoredAnswer(f"{i}", f"a{i}", (i,), "laplace", Fraction(1), CHARGE, Fraction(0), datetime.now(UTC))
            began, busy = time.perf_counter(), time.process_time()
            store.find([answer.address])
            ledger.reserve(entry, Caps())
            store.add([answer])
            ledger.finish()
            wall.append(1e3 * (time.perf_counter() - began))
            processor.append(1e3 * (time.process_time() - busy))
        store.close()
    return {
        "runs": runs,
        "least_ms": min(wall),
        "median_ms": statistics.median(wall),
        "processor_least_ms": min(processor),
        "processor_median_ms": statistics.median(processor),
    }


def opening(base: Path, entries: int, periods: int = 0) -> dict[str, float]:
    """Seconds to open, which verifies the whole chain, and of a processor. periods: each entry charges one in turn."""
    with tempfile.TemporaryDirectory(dir=base) as name:
        folder = Path(name)
        with open_ledger(folder) as ledger:
            for i in range(entries):
                ledger.reserve(by_period(str(i), i % periods, 1) if periods else every_period(str(i)), Caps())
        wall, processor = [], []
        for _ in range(5):
            start, busy = time.perf_counter(), time.process_time()
            open_ledger(folder).close()
            wall.append(time.perf_counter() - start)
            processor.append(time.process_time() - busy)
    return {"entries": entries, "seconds": statistics.median(wall), "processor_seconds": min(processor)}


def every_period(name: str) -> Entry:
    """A charge that counts in every period."""
    return Entry(name, "ana", CHARGE, "plan", "policy", "SELECT COUNT(*) FROM t")


def by_period(name: str, first: int, days: int) -> Entry:
    """A charge of some days."""
    begin = dt.date(2026, 1, 1) + dt.timedelta(days=first)
    span = LossSpan(begin, begin + dt.timedelta(days=days - 1), CHARGE["patient"])
    return replace(every_period(name), regions={"patient": (span,)})


def charges_by_period(periods: int, times: int) -> dict[str, float]:
    """Milliseconds of the book's work for a charge, admitted and counted, of one day, of 28 and of all."""
    book, caps = (
        Book("approx_dp"),
        Caps({"patient": PrivacyLoss(Fraction(100))}, {"patient": PrivacyLoss(Fraction(100))}),
    )
    for day in range(periods):
        book.add(settle(by_period(f"{day}", day, 1 + day % 2), "approx_dp"))
    found = {"periods": float(periods)}
    for name, days in {"one_ms": 1, "28_ms": 28, "all_ms": periods}.items():
        taken = []
        for i in range(times):
            entry = settle(by_period(f"{name}{i}", (i * 37) % (periods - days + 1), days), "approx_dp")
            start = time.process_time()
            book.check(entry, caps)
            book.add(entry)
            taken.append(1e3 * (time.process_time() - start))
        found[name] = statistics.median(taken)
    return found


def told(base: Path, entries: int) -> dict[str, float]:
    """Milliseconds of a processor that a worker takes to read a ledger, and then for each relation about it."""
    with tempfile.TemporaryDirectory(dir=base) as name:
        shop = make_shop(Path(name) / "shop", epsilon="100")
        lengthen(shop.policy, entries)
        with Service(*open_data(shop.policy, None, None, None, None)) as service:
            service.ledger  # noqa: B018  # opened, which is measured above
            spending = AccountSpending(service)
            found = {"entries": float(entries), "read": _busy_ms(spending.read)}
            worker = WorkerAnswering(service, 10_000, lambda id: None, lambda id, entry: None, spending=spending)
            for relation in RELATIONS:
                now = datetime.now(UTC)
                ask = Ask(
                    "", "look", "ana", f"SELECT * FROM dpsql.{relation}", (), StatementSettings(), Ceilings(), now
                )
                found[relation] = statistics.median(_busy_ms(lambda: worker.answer(ask)) for _ in range(5))  # noqa: B023
    return found


def _busy_ms(action: Callable[[], object]) -> float:
    busy = time.process_time()
    action()
    return 1e3 * (time.process_time() - busy)


def flushes_per_second(base: Path, lasting: float) -> float:
    """Of one file that grows by a page each time, from one process: the least that a charge can wait for."""
    with tempfile.TemporaryFile(dir=base) as file:
        start, count = time.perf_counter(), 0
        while (seconds := time.perf_counter() - start) < lasting:
            file.write(b"x" * 4096)
            file.flush()
            os.fsync(file.fileno())
            count += 1
    return count / seconds


def run(settings: Settings) -> Figures:
    """Everything that is measured, on the disk of the settings' folder."""
    folder = settings.folder
    processes, racers = settings.pick([1], [1, 8, 16], [1, 8, 16]), settings.pick(2, 16, 16)
    charges, race, budget = settings.pick(20, 2000, 5000), settings.pick(20, 3200, 3200), settings.pick(5, 1000, 1000)
    found: Figures = {"charges": {}, "flushes": {}}
    runs = [(f"{n} process{'es' if n > 1 else ''}", n, charges, None) for n in processes]
    for name, count, asked, holds in (*runs, (f"race of {racers} processes", racers, race, budget)):
        for where, url in {"": None, **({"PostgreSQL, ": SERVER} if SERVER else {})}.items():
            found["flushes"][where + name] = flushes_per_second(folder, settings.pick(0.1, 1, 1))
            found["charges"][where + name] = {"asked": asked} | charges_per_second(folder, count, asked, holds, url)
    found["charged and stored"] = charged_and_stored(folder, settings.pick(20, 300, 300))
    entries = settings.pick(100, 15_000, 15_000)
    found |= {"opening": opening(folder, entries), "opening by period": opening(folder, entries, 3650)}
    found["told"] = told(folder, settings.pick(1_000, 100_000, 100_000))
    return found | {"by period": charges_by_period(settings.pick(100, 3650, 3650), settings.pick(3, 50, 50))}


def markdown(figures: Figures) -> str:
    """One line per number of processes."""
    rows = [
        (
            name,
            f"{row['admitted']:,} of {row['asked']:,}",
            f"{row['per_second']:.0f}",
            f"{figures['flushes'][name]:.0f}",
            *(f"{row[cell]:.0f}" for cell in ("median_ms", "p99_ms", "worst_ms")),
        )
        for name, row in figures["charges"].items()
    ]
    head = ("", "charges", "a second", "flushes a second of the disk alone", "median ms", "p99 ms", "worst ms")
    opened, one = figures["opening"], figures.get("charged and stored")
    stored = (
        f"\n\nOne process that looks for an answer, charges and stores the new one, {one['runs']} times: "
        f"{one['least_ms']:.1f} ms at least, {one['median_ms']:.1f} in the median; of the processor "
        f"{one['processor_least_ms']:.1f} and {one['processor_median_ms']:.1f}."
        if one  # measured since a stored answer waits for no flush
        else ""
    )
    return (
        table(head, rows)
        + stored
        + f"\n\nOpening a ledger of {opened['entries']:,} entries and verifying them: {opened['seconds']:.2f} s."
        + _of_periods(figures)
        + _of_pages(figures)
    )


def _of_pages(figures: Figures) -> str:
    if "told" not in figures:  # measured since a worker reads a ledger once
        return ""
    row = dict(figures["told"])
    entries, read = row.pop("entries"), row.pop("read")
    slowest = max(row, key=row.__getitem__)
    return (
        f"\n\nA worker reads a ledger of {entries:,.0f} entries in {read / 1e3:.1f} s of a processor, once; "
        f"`dpsql.history` then takes {row['history']:.0f} ms, and "
        f"`dpsql.{slowest}`, of all relations the most, {row[slowest]:.0f} ms."
    )


def _of_periods(figures: Figures) -> str:
    if "by period" not in figures:  # measured since losses are said by period
        return ""
    opened, row = figures["opening by period"], figures["by period"]
    return (
        f" Where each charges one of 3,650 days: {opened['seconds']:.2f} s. Deciding and counting a charge among "
        f"{row['periods']:,.0f} days takes {row['one_ms']:.2f} ms for one day, {row['28_ms']:.2f} for 28, "
        f"{row['all_ms']:.2f} for all."
    )


if __name__ == "__main__":
    command(__doc__, "ledger", run, markdown)
