"""Workers as processes: killed at every step, stopped, drained, without a network, and silent."""

from __future__ import annotations

import asyncio
import datetime as dt
import itertools
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import pytest

from dpsql.diagnostics.errors import CannotOpen
from dpsql.faces.server.size_limits import failed
from dpsql.faces.server.statements import Ceilings, Refused
from dpsql.faces.server.workers import worker_link as link
from dpsql.faces.server.workers.worker_link import Starting, Streams, WorkerLink, command, started
from dpsql.faces.server.workers.worker_messages import Ask, write
from dpsql.policy.load import load_policy
from tests.support.canary import CANARY, MARKER
from tests.support.served_shop import ANA, FINE, TENTH, Served, prepared_worker, served, with_serve
from tests.support.small_shop import COUNT, ENDLESS, MEANS, PRICE, Shop, make_shop

pytestmark = pytest.mark.processes


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    return with_serve(make_shop(tmp_path / "shop"), f"{FINE}}}")


def starting(shop: Shop, second: list[str]) -> Starting:
    """Workers, of which the second to be made, the first that runs, is started so."""
    usual = command(shop.policy, load_policy(shop.policy).serving)
    numbers = itertools.count()
    starts = {False: started(usual), True: started(second)}

    async def start() -> WorkerLink:
        return await starts[next(numbers) == 1]()

    return start


# Where a worker is killed; how many entries the ledger holds then, and whether asking again is free.
STEPS = {
    "as it is asked": ("wrap(dpsql.faces.server.workers.answering.WorkerAnswering, 'answer', before=die)", 0, False),
    "before it looks": ("wrap(dpsql.answers.stored.store.sqlite.SqliteAnswers, 'find', before=die)", 0, False),
    "while it waits its turn": ("wrap(dpsql.answers.stored.store.sqlite.SqliteAnswers, 'alone', before=die)", 0, False),
    "before the reservation": ("wrap(dpsql.core.ledger.sqlite.SqliteLedger, 'reserve', before=die)", 0, False),
    "in its transaction": ("wrap(dpsql.core.ledger.sqlite.StoredEntries, 'add', after=die)", 0, False),
    "after the reservation": ("wrap(dpsql.core.ledger.sqlite.SqliteLedger, 'reserve', after=die)", 1, False),
    "after the fetch": ("wrap(dpsql.core.release.noisy, '_fetch', after=die)", 1, False),
    "after the noise": (
        "wrap(dpsql.core.noise.mechanisms.laplace.DiscreteLaplace, 'add_noise', after=die)", 1, False,
    ),
    "before the answer is stored": ("wrap(dpsql.answers.stored.store.sqlite.SqliteAnswers, 'add', before=die)", 1,
    False),
    "before post-processing": ("wrap(AnsweringRows, 'handed_on', before=die)", 1, False),
    "while it waits for its moment": ("wrap(dpsql.service.stages_of_a_run._Kept, 'settle', before=die)", 1, False),
    "after the answer is stored": ("wrap(dpsql.answers.stored.store.sqlite.SqliteAnswers, 'add', after=die)", 1, True),
    "before the reply": ("wrap(dpsql.faces.server.workers.answering.WorkerAnswering, 'answer', after=die)", 1, True),
    "as the reply is written": ("from dpsql.faces.server.workers import worker\nwrite = worker.write\n"
        "worker.write = lambda message: die() if isinstance(message, worker.Reply) else write(message)", 1, True),
}  # fmt: skip


@pytest.mark.sampled(2)
@pytest.mark.parametrize("step", STEPS)
def test_killed_at_a_step(shop: Shop, step: str) -> None:
    """Whoever asked is told the constant error; nothing is shown that is not paid; the next one is served."""
    prepare, entries, stored = STEPS[step]
    with served(shop, starting(shop, prepared_worker(shop.policy, prepare))) as server:
        with pytest.raises(Refused) as refusal:
            server.ask(MEANS)
        assert refusal.value.diagnostics == failed().diagnostics and refusal.value.sqlstate == "XX000"
        assert shop.entries() == entries
        again = server.ask(MEANS)
        assert again.spent == ("" if stored else "ε 0.1") and len(again.rows) == 3
        assert shop.spent() == PRICE * (entries + (not stored))


def test_a_kill_from_outside_ends_one_statement_and_no_other(shop: Shop) -> None:
    with_serve_of_two = shop.policy.read_text().replace("serve: {", "serve: {workers: 2, ")
    shop.policy.write_text(with_serve_of_two)
    with served(shop) as server:

        async def both() -> list[object]:
            async def one(sql: str, name: str) -> object:
                described = await server.gateway.describe(ANA, sql, TENTH)
                return await server.gateway.run(ANA, described, (), TENTH, name)

            endless = asyncio.create_task(one(ENDLESS, "endless"))
            while not await asyncio.to_thread(shop.entries):
                await asyncio.sleep(0.01)
            run = server.gateway.pool._runs["endless"]
            assert run.seat is not None and isinstance(run.seat.link, Streams) and run.seat.link.process is not None
            os.kill(run.seat.link.process.pid, signal.SIGKILL)
            return await asyncio.gather(endless, one(COUNT, "count"), return_exceptions=True)

        killed, other = server.do(both)
        assert isinstance(killed, Refused) and not isinstance(other, Exception)
        assert shop.spent() == 2 * PRICE and server.charge_of(killed).has_failed
        assert shop.failures() == [("ana", "crashed")]


def test_a_statement_that_is_stopped_is_paid_and_its_worker_killed_at_the_last_moment(tmp_path: Path) -> None:
    shop = with_serve(make_shop(tmp_path / "shop"), "{answers_at: [8s]}")
    with served(shop) as server:

        async def stop() -> object:
            described = await server.gateway.describe(ANA, ENDLESS, TENTH)
            run = asyncio.create_task(server.gateway.run(ANA, described, (), TENTH, "endless"))
            while "endless" not in server.gateway.pool._runs:
                await asyncio.sleep(0.01)
            while server.gateway.pool._runs["endless"].seat is None:
                await asyncio.sleep(0.01)
            await server.gateway.stop("endless")
            return (await asyncio.gather(run, return_exceptions=True))[0]

        found = server.do(stop)
        assert isinstance(found, Refused) and found.sqlstate == "57014"
        assert len(server.ask(COUNT).rows) == 1


def test_a_statement_that_takes_too_long_is_paid_and_its_worker_serves_again(tmp_path: Path) -> None:
    shop = with_serve(make_shop(tmp_path / "shop"), "{answers_at: [8s]}")
    with served(shop) as server:
        with pytest.raises(Refused) as refusal:
            server.ask(ENDLESS)
        assert refusal.value.diagnostics == failed().diagnostics
        assert len(server.ask(COUNT).rows) == 1
        assert shop.spent() == 2 * PRICE and not server.charge_of(refusal.value).has_failed
        assert not shop.failures()


def test_draining_lets_a_run_end_and_its_answer_leave(shop: Shop) -> None:
    server = Served(shop)

    async def drain() -> object:
        described = await server.gateway.describe(ANA, MEANS, TENTH)
        run = asyncio.create_task(server.gateway.run(ANA, described, (), TENTH, "means"))
        while (known := server.gateway.pool._runs.get("means")) is None or known.seat is None:
            await asyncio.sleep(0.001)
        await asyncio.gather(server.gateway.close(), run)
        return run.result()

    answer = server.do(drain)
    server._end_loop()
    assert len(answer.rows) == 3 and shop.spent() == PRICE  # type: ignore[attr-defined]
    shop.serves()  # ledger and data were let go


@pytest.mark.parametrize(
    ("old", "new", "code"),
    [("database: shop.duckdb", "database: nowhere.duckdb", "DP006"),
     ("amount:   {type: double,", "amount:   {type: date,", "DP004"),
     ("ledger: shop.ledger.sqlite", 'ledger: ":memory:"', "DP407")],
)  # fmt: skip
def test_what_cannot_be_opened_is_said_at_the_start(shop: Shop, old: str, new: str, code: str) -> None:
    text = shop.policy.read_text().replace(old, new)
    if code == "DP004":
        text = text.replace("bounds: [0, 100]", "bounds: [2020-01-01, 2021-01-01]")
    if code == "DP407":
        text = text.replace("ledger_head: state/head.json\n", "")
    shop.policy.write_text(text)
    with pytest.raises(CannotOpen) as refusal:
        Served(shop)
    assert [d.code for d in refusal.value.diagnostics] == [code]


def test_a_worker_imports_nothing_that_opens_a_connection() -> None:
    code = "import sys, dpsql.faces.server.workers.worker\nprint({'asyncio', 'ssl'} & set(sys.modules) or 'none')"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "none"  # `socket` itself is imported by the standard library's email


def test_a_worker_whose_front_is_gone_ends(shop: Shop) -> None:
    """Also in the middle of a run that would take days; what it charged is charged."""
    arguments = command(shop.policy, load_policy(shop.policy).serving)
    process = subprocess.Popen(arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdin is not None and process.stdout is not None
    process.stdout.readline()
    ask = Ask("r", "run", "ana", ENDLESS, (), TENTH, Ceilings(), dt.datetime.now(dt.UTC))
    process.stdin.write(write(ask))
    process.stdin.flush()
    while not shop.entries():
        pass
    process.stdin.close()
    process.stdout.close()
    process.wait(300)
    assert shop.spent() == PRICE


@pytest.fixture
def planted(tmp_path: Path) -> Iterator[Shop]:
    """A shop in whose private rows the planted values stand."""
    shop = with_serve(make_shop(tmp_path / "planted"), f"{FINE}}}")
    with duckdb.connect(str(shop.folder / "shop.duckdb")) as connection:
        connection.execute(
            f"INSERT INTO orders VALUES (7, '{MARKER}', {CANARY}, '{MARKER}'), ({CANARY}, 'Bonn', 3, '')"
        )
    yield shop


def test_no_planted_value_is_in_anything_that_leaves(planted: Shop) -> None:
    """Answers, refusals, notices, and the bytes of the pipes: the plugin looks at the files and the errors."""
    sent: list[bytes] = []
    texts = [
        MEANS, COUNT, ENDLESS.replace("forever", "orders").replace("i %", "customer %"),
        "SELECT city, COUNT(*) AS n FROM orders GROUP BY city",
        "SELECT COUNT(*) AS n FROM orders WHERE note <> 'x' AND amount > 3",
        "SELECT note, COUNT(*) AS n FROM orders GROUP BY note", "SELECT MAX(amount) FROM orders",
        "SELECT * FROM orders", "SELECT CAST(note AS INTEGER) FROM orders", "SHOW budget",
        "SELECT * FROM dpsql.history", "SELECT * FROM dpsql.tables", f"EXPLAIN {MEANS}", f"EXPLAIN (COST) {MEANS}",
        "SELECT SUM(amount) / COUNT(*) AS a, QUANTILE(amount, 0.5) AS q FROM orders",
    ]  # fmt: skip
    original = link.read

    def tapped(line: bytes, *rest: Any) -> object:
        sent.append(line)
        return original(line, *rest)

    link.read = tapped  # type: ignore[assignment]
    try:
        with served(planted) as server:
            for text in texts:
                try:
                    sent.append(repr(server.ask(text, settings=replace(TENTH, delta="1e-9"))).encode())
                except Refused as refusal:
                    sent.append(repr(refusal.diagnostics).encode())
    finally:
        link.read = original
    whole = b"".join(sent)
    assert len(sent) > len(texts)
    assert CANARY.encode() not in whole and MARKER.encode() not in whole
